"""Hyperparameter samples of their posterior: against quadrature, repeatable, and in a study."""

import functools
import json
import logging
import time

import numpy as np
import pytest

import shoestring as st
from shoestring.surrogate.gp import SAMPLE_ROWS
from shoestring.surrogate.marginal_likelihood import Layout, MarginalLikelihood
from shoestring.surrogate.mcmc import LOG_POSTERIOR_FLOOR, draw_hyperparameters, initial_walkers, laplace_root, sampled_fits
from tests.differences import gradient_of
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study

MCMC = st.GP(inference="mcmc", sets=4)


def data(n, p, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, p))
    y = np.sin(5 * Z[:, 0]) + (Z**2).sum(axis=1) + 0.1 * rng.normal(size=n)
    return Z, (y - y.mean()) / y.std()


def posterior_of(n, p, seed=0, kernel="matern52"):
    Z, y = data(n, p, seed)
    return MarginalLikelihood(Z, y, Layout(np.arange(p)), kernel), st.GP(kernel=kernel).fit(Z, y)


# -- the right distribution ----------------------------------------------------------------------------------------------


def by_quadrature(Z, y, layout):
    """Mean and deviation of (log l, log s2, log noise) on a grid, from the definition: squared exponential, one column."""
    axes = [np.linspace(low, high, 40) for low, high in layout.bounds]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    square = (Z - Z.T) ** 2
    off = (grid - layout.centre) / layout.width
    logs = -0.5 * (off**2).sum(axis=1)
    for rows in np.array_split(np.arange(len(grid)), 20):
        length, variance, noise = np.exp(grid[rows]).T
        K = variance[:, None, None] * np.exp(-0.5 * square / length[:, None, None] ** 2) + noise[:, None, None] * np.eye(len(y))
        inverse = np.linalg.inv(K)
        mean = inverse.sum(axis=1) @ y / (inverse.sum(axis=(1, 2)) + 1.0)
        rest = y - mean[:, None]
        logs[rows] -= 0.5 * (np.einsum("ki,kij,kj->k", rest, inverse, rest) + np.linalg.slogdet(K)[1] + mean**2)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    centre = weights @ grid
    return centre, np.sqrt(weights @ (grid - centre) ** 2)


def test_the_samples_have_the_moments_of_the_posterior():
    likelihood, fit = posterior_of(7, 1, kernel="se")
    centre, deviation = by_quadrature(likelihood.Z, likelihood.y, likelihood.layout)
    cold = draw_hyperparameters(likelihood, fit.theta, 240, np.random.default_rng(0))[0]
    warm = draw_hyperparameters(likelihood, fit.theta, 240, np.random.default_rng(1), cold[:10])[0]
    for sets in (cold, warm):
        np.testing.assert_allclose((sets.mean(axis=0) - centre) / deviation, 0.0, atol=0.3)
        np.testing.assert_allclose(sets.std(axis=0) / deviation, 1.0, atol=0.25)
    assert np.abs((fit.theta - centre) / deviation).max() > 0.3  # the most probable values are something else


@pytest.mark.slow
def test_a_short_warm_chain_keeps_the_spread_of_a_long_one():
    likelihood, fit = posterior_of(14, 3)
    sets, seen = None, []
    for seed in range(14):
        sets, _ = draw_hyperparameters(likelihood, fit.theta, 10, np.random.default_rng(seed), sets)
        seen.append(sets)
    long, _ = draw_hyperparameters(likelihood, fit.theta, 120, np.random.default_rng(99))
    ratio = np.vstack(seen[3:]).std(axis=0) / long.std(axis=0)
    assert (ratio > 0.75).all()
    assert (ratio < 1.35).all()


def test_laplaces_approximation_is_the_inverse_of_the_curvature():
    likelihood, fit = posterior_of(40, 2)
    root = laplace_root(likelihood, fit.theta)
    curvature = -np.array([
        gradient_of(lambda t, j=j: gradient_of(likelihood.value, t, 1e-4)[j], fit.theta, 1e-3) for j in range(len(fit.theta))
    ])
    scaled = curvature * np.outer(likelihood.layout.width, likelihood.layout.width)
    assert np.linalg.eigvalsh(scaled).min() > 1.0
    np.testing.assert_allclose(root @ root.T @ curvature, np.eye(4), atol=0.02)


def test_no_direction_is_wider_than_the_prior():
    layout = Layout(np.arange(2))
    for y in (np.zeros(1), np.array([np.nan])):  # nothing is known, and nothing can be computed
        likelihood = MarginalLikelihood(np.full((1, 2), 0.5), y, layout, "matern52")
        scaled = laplace_root(likelihood, layout.centre) / layout.width[:, None]
        assert np.linalg.eigvalsh(scaled @ scaled.T).max() <= 1.0 + 1e-9


# -- the chain -----------------------------------------------------------------------------------------------------------


def test_a_warm_chain_takes_fewer_steps_and_starts_from_the_last_samples():
    likelihood, fit = posterior_of(15, 2)
    last, _ = draw_hyperparameters(likelihood, fit.theta, 10, np.random.default_rng(0))
    cold = likelihood.evaluations
    draw_hyperparameters(likelihood, fit.theta, 10, np.random.default_rng(1), last)
    assert likelihood.evaluations - cold < 0.5 * cold
    begun = initial_walkers(likelihood, fit.theta, 400, np.random.default_rng(2), last)
    for i in range(10):
        assert np.corrcoef(np.abs(begun[i::10] - fit.theta).mean(axis=0), np.abs(last[i] - fit.theta))[0, 1] > 0.5
        np.testing.assert_allclose(begun[i::10].mean(axis=0), fit.theta + np.sqrt(0.75) * (last[i] - fit.theta), atol=0.6)


def test_the_same_randomness_gives_the_same_samples_whatever_the_global_generator_does():
    likelihood, fit = posterior_of(10, 2)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, values = draw_hyperparameters(likelihood, fit.theta, 5, np.random.default_rng(3))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    other, _ = draw_hyperparameters(likelihood, fit.theta, 5, np.random.default_rng(3))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, draw_hyperparameters(likelihood, fit.theta, 5, np.random.default_rng(4))[0])
    np.testing.assert_allclose(values, [likelihood.value(theta) for theta in one])


@pytest.mark.parametrize("sets", [1, pytest.param(3, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow), 41])
@pytest.mark.parametrize("warp", [False, True])
def test_as_many_samples_as_wanted_within_the_bounds(sets, warp):
    model = st.GP(inference="mcmc", sets=sets, warp=warp)
    Z, y = data(6, 2)
    fits = sampled_fits(model, model.fit(Z, y), np.arange(2), np.random.default_rng(0))
    thetas = np.array([fit.theta for fit in fits])
    assert len(np.unique(thetas, axis=0)) == sets
    layout = Layout(np.arange(2), warp)
    np.testing.assert_array_equal(layout.clip(thetas[0]), thetas[0])
    for fit in fits:
        np.testing.assert_allclose(fit.posterior.kernel.inverse_lengths, np.exp(-fit.theta[:2]))
        assert fit.posterior.noise == pytest.approx(np.exp(fit.theta[3]))


def test_the_smallest_ensemble_there_is():
    Z, y = data(5, 1)
    model = st.GP(inference="mcmc", sets=1)
    last = None
    for seed in range(10):
        fit, = sampled_fits(model, model.fit(Z, y), np.arange(1), np.random.default_rng(seed), last)
        last = fit.theta[None, :]
        assert np.isfinite(fit.log_likelihood)


@functools.cache
def samples_from_nothing():
    fits = sampled_fits(MCMC, MCMC.fit(*data(8, 2)), np.arange(2), np.random.default_rng(0), None)
    return [fit.theta for fit in fits]


@pytest.mark.parametrize("last", [np.zeros((4, 9)), np.full((4, 4), np.nan), np.zeros(4)], ids=["another model", "nan", "flat"])
def test_samples_that_do_not_fit_are_ignored(last):
    Z, y = data(8, 2)
    fit = MCMC.fit(Z, y)
    given = sampled_fits(MCMC, fit, np.arange(2), np.random.default_rng(0), last)
    np.testing.assert_array_equal([each.theta for each in given], samples_from_nothing())


def test_large_data_are_sampled_for_the_chain_and_whole_in_the_posteriors():
    Z, y = data(SAMPLE_ROWS + 40, 2)
    fit = MCMC.fit(Z, y)
    fits = sampled_fits(MCMC, fit, np.arange(2), np.random.default_rng(0))
    assert [len(each.posterior) for each in fits] == [SAMPLE_ROWS + 40] * 4


def test_where_nothing_can_be_drawn_the_most_probable_values_are_used_and_it_is_said(monkeypatch, caplog):
    monkeypatch.setattr(MarginalLikelihood, "values", lambda self, theta: np.nan)
    study = told_study(plane(), bowl, 9)
    with caplog.at_level(logging.WARNING, "shoestring"):
        belief, encoding, _ = belief_of(study, MCMC)
    assert "no hyperparameters could be drawn" in caplog.text
    X = encoding.features(np.random.default_rng(0).random((5, 2)))
    np.testing.assert_array_equal(belief.moments(X)[0], belief_of(study)[0].objective.mean_at(X))
    assert LOG_POSTERIOR_FLOOR < -1e9


# -- what is believed ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled_belief():
    """A belief with four hyperparameter samples, its encoding, and the data behind it."""
    return belief_of(told_study(plane(), bowl, 9), MCMC)


def test_moments_are_those_of_the_mixture(sampled_belief):
    belief, encoding, seen = sampled_belief
    X = encoding.features(np.random.default_rng(0).random((3, 2)))
    samples = enumerate(belief.hyperparameter_samples)
    draws = np.vstack([each.objective.sample(X, 40000, np.random.default_rng(i)) for i, each in samples])
    mean, variance = belief.moments(X)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02 * np.sqrt(variance.max()))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.05)
    means = np.mean([each.fit.posterior.mean_at(encoding.features(seen.U)) for each in belief.hyperparameter_samples], axis=0)
    assert belief.incumbent == means.min()


def test_the_gain_is_the_mean_over_the_samples(sampled_belief):
    belief, encoding, _ = sampled_belief
    z = encoding.features(np.array([[0.4, 0.3]]))
    gains = []
    for i, each in enumerate(belief.hyperparameter_samples):
        draws = each.objective.sample(z, 200000, np.random.default_rng(i))[:, 0]
        best = float(each.output.inverse(np.array(each.incumbent)))
        gains.append(np.maximum(best - each.output.inverse(draws), 0.0).mean())
    assert belief.gain(z) == pytest.approx(np.mean(gains), rel=0.05)


def test_the_most_probable_hyperparameters_are_one_belief_without_samples():
    belief, encoding, _ = belief_of(told_study(plane(), bowl, 9))
    assert belief.samples == (belief,)
    assert "sets" not in belief.to_warm_start(9)
    X = encoding.features(np.random.default_rng(0).random((5, 2)))
    for mixed, own in zip(belief.moments(X), belief.objective.mean_and_variance(X), strict=True):
        np.testing.assert_array_equal(mixed, own)


# -- in a study ----------------------------------------------------------------------------------------------------------

PROBLEMS = {"plane": (plane(), bowl), "mixed": (mixed_space(), mixed_value)}
each_problem = pytest.mark.parametrize(("space", "value"), [
    pytest.param(*PROBLEMS["plane"], id="plane", marks=pytest.mark.slow), pytest.param(*PROBLEMS["mixed"], id="mixed"),
])  # fmt: skip


def outcomes(study):
    return [(trial.config, trial.value, trial.suggestion) for trial in study.history]


def paid(value):
    return lambda config: st.Outcome(value(config), cost=1.0)


@each_problem
def test_k_trials_and_the_rest_are_the_same_trials_and_so_is_another_study(space, value):
    whole, again, part = (st.Study(space, seed=1, initial=4, model=MCMC) for _ in range(3))
    whole.minimize(paid(value), 7)
    again.minimize(paid(value), 7)
    part.minimize(paid(value), 5)
    rest = st.Study.from_json(part.to_json(), model=MCMC)
    rest.minimize(paid(value), 7)
    assert outcomes(whole) == outcomes(again)
    assert outcomes(whole) == outcomes(rest)
    assert len({space.key(trial.config) for trial in whole.history}) == 7


def test_the_samples_are_kept_with_a_suggestion_and_are_few_and_short():
    study = st.Study(plane(), initial=4, model=st.GP(inference="mcmc"))
    study.minimize(bowl, 6)
    sets = study.history[-1].suggestion["model"]["sets"]
    assert np.array(sets).shape == (10, 4)
    assert len(json.dumps(sets)) < 10 * 4 * 10


def test_another_seed_draws_other_samples():
    study, again = (st.Study(plane(), seed=seed, model=MCMC, initial=4) for seed in (0, 5))
    for trial in told_study(plane(), bowl, 9).history:
        study.add(trial.config, trial.value, cost=1.0)
        again.add(trial.config, trial.value, cost=1.0)
    one, other = study.ask().suggestion["model"], again.ask().suggestion["model"]
    assert one["theta"] == other["theta"]
    assert one["sets"] != other["sets"]


def test_failed_and_pending_trials():
    study = told_study(plane(), bowl, 16, error_where=lambda config: config["x0"] > 0.7, model=MCMC)
    asked = [study.ask() for _ in range(3)]
    assert len({tuple(trial.config.values()) for trial in asked}) == 3
    belief, encoding, seen = belief_of(study, MCMC)
    waiting = encoding.features(seen.pending)
    for each in belief.hyperparameter_samples:
        assert each.feasibility is belief.feasibility
        assert (each.objective.mean_and_variance(waiting)[1] < each.fit.posterior.mean_and_variance(waiting)[1]).all()


@pytest.mark.parametrize(
    "values", [[1.0], [1.0] * 4, [-1e300, 1e300, 0.0], *(
        pytest.param(values, marks=pytest.mark.slow) for values in ([1.0] * 6, [1e300, 1.0, 2.0], list(range(6)))
    )], ids=["one", "constant", "both huge", "long constant", "huge", "line"],
)
@pytest.mark.parametrize("direction", ["minimize", pytest.param("maximize", marks=pytest.mark.slow)])
def test_degenerate_values_give_a_point_and_a_recommendation(values, direction):
    study = st.Study(plane(), initial=1, model=MCMC, direction=direction)
    for value in values:
        study.tell(study.ask(), float(value), cost=1.0)
    assert all(0 <= x <= 1 for x in study.ask().config.values())
    assert np.isfinite(study.recommend().value)
    assert study.recommend(tried=True).config in [trial.config for trial in study.history]


def test_a_finite_space_is_searched_whole():
    space = st.Space(n=st.Int(1, 3), c=st.Choice("a", "b", "c"))
    result = st.minimize(lambda config: config["n"] + (config["c"] == "a"), space, 9, model=MCMC, initial=4)
    assert len({space.key(trial.config) for trial in result.history}) == 9


def test_what_is_predicted_and_recommended_comes_from_all_samples():
    study = told_study(plane(), bowl, 9, model=MCMC, initial=4)
    belief = study.context.belief(costs=False)
    trial = study.ask()
    z = belief.encoding.features(study.space.encode(trial.config)[None, :])
    assert trial.suggestion["predicted"] == float(belief.output.inverse(belief.moments(z)[0])[0])
    assert trial.suggestion["gain"] == belief.gain(z)
    study.tell(trial, bowl(trial.config), cost=1.0)
    belief = study.context.belief(costs=False)
    U = np.array([study.space.encode(trial.config) for trial in study.history])
    means = belief.fitted_mean(belief.encoding.features(U))
    assert study.recommend(tried=True).number == int(np.argmin(means))


@pytest.mark.parametrize("sets", [0, -1, 2.5, True, "ten", None, 10**6])
def test_a_wrong_number_of_samples_is_refused_and_the_right_ones_named(sets):
    with pytest.raises(st.MethodError, match="GP: sets") as refused:
        st.GP(inference="mcmc", sets=sets)
    assert repr(sets) in str(refused.value)


def test_an_unknown_inference_is_refused_and_the_known_ones_named():
    with pytest.raises(st.MethodError, match="'map', 'mcmc'"):
        st.GP(inference="nuts")


@pytest.mark.slow
def test_it_stays_usable_at_100_trials_in_10_dimensions():
    study = told_study(plane(10), bowl, 100, model=st.GP(inference="mcmc"))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        trial = study.ask()
        seconds.append(time.perf_counter() - began)
        study.tell(trial, bowl(trial.config), cost=1.0)
    assert seconds[0] < 10.0  # 1 s on a quiet machine
    assert max(seconds[1:]) < 5.0
