"""``RegretBelow``: the probability that much is left to gain, each part against an independent computation."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.errors import MethodError
from shoestring.surrogate.gp import layout_for, likelihood_of
from shoestring.surrogate.mcmc import draw_hyperparameters
from shoestring.surrogate.posterior import Posterior
from shoestring.termination.base import belief_of
from shoestring.termination.regret_probability import (
    INITIAL_TRIALS,
    PRIOR_WEIGHT,
    GainModel,
    hyperparameter_samples,
    laplace_samples,
    percent,
    surprise_scale,
)
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study


def waves(config):
    return math.sin(9 * config["x0"]) + config["x0"]


@pytest.fixture(scope="module")
def found():
    """A study whose optimum is found, to seven digits."""
    study = st.Study(plane(2), method=st.EI(), seed=0, stop=None)
    study.minimize(bowl, budget=30)
    return study.log


@pytest.mark.parametrize("seed", [0, 1])
def test_the_gain_is_that_of_joint_draws_on_a_fine_grid(seed):
    study = told_study(plane(1), waves, 7, seed=seed)
    model = GainModel.of(study.log, belief_of(study.log, st.GP(output="standard")))
    belief, rng = model.belief, np.random.default_rng(5)
    U = np.vstack([model.best, np.linspace(0, 1, 601)[:, None]])
    Z = belief.encoding.features(U)
    mean = belief.objective.mean_at(Z)
    f = mean + surprise_scale(belief.objective) * (belief.objective.sample(Z, 4000, rng) - mean)
    expected = belief.output.scale * (f[:, 0] - f.min(axis=1))
    gains = model.draws_under(belief, model.pool(rng), 4000, rng)
    assert gains.mean() == pytest.approx(expected.mean(), rel=0.1)
    for share in (0.5, 0.9):
        level = np.quantile(expected, share)
        assert np.mean(gains > level) == pytest.approx(1 - share, abs=0.04)


def test_forecasts_are_those_of_models_of_the_earlier_trials():
    study = told_study(plane(2), bowl, 20)
    known = belief_of(study.log, st.GP(output="standard")).fit.posterior
    errors = []
    for i in range(INITIAL_TRIALS, 20):
        earlier = Posterior.given(known.kernel, known.noise, known.Z[:i], known.y[:i], mean=known.mean)
        mean, variance = earlier.mean_and_variance(known.Z[i : i + 1])
        errors.append((known.y[i] - mean[0]) / math.sqrt(variance[0] + known.noise))
    good = sum(min(error, 0.0) ** 2 for error in errors)
    assert surprise_scale(known) == pytest.approx(math.sqrt((PRIOR_WEIGHT + 2 * good) / (PRIOR_WEIGHT + 12)), rel=1e-6)


def test_a_model_that_is_right_is_left_as_it_is():
    """Values drawn from the model itself: the scale is near 1."""
    rng = np.random.default_rng(0)
    known = belief_of(told_study(plane(2), bowl, 200).log, st.GP(output="standard")).fit.posterior
    covariance = known.basis.covariance() + known.noise * np.eye(200)
    scales = [
        surprise_scale(Posterior.given(known.kernel, known.noise, known.Z, np.linalg.cholesky(covariance) @ rng.normal(size=200)))
        for _ in range(6)
    ]
    assert np.mean(scales) == pytest.approx(1.0, abs=0.06)


@pytest.mark.slow
def test_hyperparameter_samples_are_those_of_mcmc():
    belief = belief_of(told_study(plane(2), bowl, 25).log, st.GP(output="standard"))
    fit, model = belief.fit, belief.model
    layout = layout_for(model, belief.encoding.groups, (), None)
    likelihood = likelihood_of(fit.posterior.Z, fit.posterior.y, None, layout, model.kernel)
    by_mcmc, _ = draw_hyperparameters(likelihood, fit.theta, 200, np.random.default_rng(0))
    drawn = np.vstack([laplace_samples(likelihood, fit.theta, 8, np.random.default_rng(k)) for k in range(25)])
    width = by_mcmc.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - by_mcmc.mean(axis=0)) < 0.5 * width).all()
    assert ((drawn.std(axis=0) > 0.5 * width) & (drawn.std(axis=0) < 2.0 * width)).all()


def test_a_belief_for_each_hyperparameter_sample():
    belief = belief_of(told_study(plane(2), bowl, 25).log, st.GP())
    samples = hyperparameter_samples(belief, 8, np.random.default_rng(0))
    assert len(samples) == 8
    assert len({one.objective.kernel.variance for one in samples}) > 1


def test_it_stops_when_the_optimum_is_found_and_says_how_sure_it_is(found):
    verdict = st.RegretBelow(1e-3).check(found)
    assert verdict.stop
    assert verdict.evidence["chance"] <= 0.05
    assert verdict.evidence["bound"] <= 1e-3
    assert verdict.reason.startswith("no more than the tolerance of 0.001 is left to gain, with a probability of ")
    assert verdict.reason.endswith(" by the model")


def test_it_goes_on_while_much_may_be_left(found):
    verdict = st.RegretBelow(1e-3).check(told_study(plane(2), bowl, 25).log)
    assert not verdict.stop
    assert verdict.evidence["chance"] > 0.05
    assert not st.RegretBelow(1e-14).check(found).stop


def test_what_looks_like_noise_may_be_real(found):
    plain, rough = (GainModel.of(found, None, roughness).draws() for roughness in (0.0, 2.0))
    assert np.median(rough) > np.median(plain)


def test_it_works_on_mixed_spaces_with_failures_pending_trials_and_fidelities():
    study = told_study(mixed_space(), mixed_value, 25, error_where=lambda config: config["depth"] == 1)
    study.ask()
    assert not st.RegretBelow(1e-9, after=15).check(study.log).stop
    levels = st.Study(st.Space(x=st.Float(0, 1), rows=st.Fidelity(1, 100)))
    for i in range(12):
        levels.add({"x": i / 12, "rows": 100 if i % 2 else 10}, (i / 12 - 0.3) ** 2)
    assert st.RegretBelow(10.0, after=3).check(levels.log).stop


def test_equal_values_say_nothing():
    assert "equal" in st.RegretBelow(1.0).check(told_study(plane(2), lambda config: 3.0, 25).log).reason


def test_the_best_evaluation_is_the_first_point(found):
    data = to_dataset(found)
    assert np.array_equal(GainModel.of(found, None, 1.0).pool(np.random.default_rng(0))[0], data.U[data.best(1)[0]])


def test_the_best_of_noisy_values_is_the_one_with_the_lowest_mean():
    study, rng = st.Study(plane(1), seed=0), np.random.default_rng(0)
    for x in rng.random(40):
        study.add({"x0": float(x)}, 4.0 * (x - 0.5) ** 2 + 0.3 * float(rng.standard_normal()))
    model = GainModel.of(study.log, None)
    Z = model.belief.encoding.features(to_dataset(study.log).U)
    mean = model.belief.objective.mean_at
    assert mean(model.belief.encoding.features(model.best))[0] == pytest.approx(mean(Z).min())


def test_no_probability_is_called_certain():
    shares = {0.5: "50 %", 0.954: "95 %", 0.995: "over 99 %", 1.0: "over 99.9 %", 0.004: "under 1 %"}
    assert {share: percent(share) for share in shares} == shares


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"confidence": 1.0}, {"confidence": 0.2}, {"after": 1}, {"roughness": -1}])
def test_bad_input(options):
    with pytest.raises(MethodError, match="RegretBelow"):
        st.RegretBelow(**{"tolerance": 0.1} | options)
