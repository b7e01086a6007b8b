import dataclasses
import functools
import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.improvement import log_expected_improvement, log_probability_of_improvement, negative_lower_bound
from tests.differences import gradients_of
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study

SCORES = {
    "log EI": lambda mean, deviation: log_expected_improvement(mean, deviation, 0.0),
    "log PI": lambda mean, deviation: log_probability_of_improvement(mean, deviation, 0.0),
    "LCB": lambda mean, deviation: negative_lower_bound(mean, deviation, 2.0),
}


@pytest.mark.parametrize("name", list(SCORES))
@pytest.mark.parametrize("deviation", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_derivatives_by_mean_and_deviation_over_many_scales(name, deviation):
    score, z = SCORES[name], np.array([-20.0, -5, -1.2, -0.9, -0.1, 0, 0.3, 2, 6, 30])
    if name != "LCB":  # a straight line needs no test far away
        z = np.concatenate([[-2000.0, -900, -100], z])
    s = np.full_like(z, deviation)
    mean = -z * s
    _, by_mean, by_deviation = score(mean, s)
    step = 1e-5 * deviation / np.maximum(1, np.abs(z))
    numeric = (score(mean + step, s)[0] - score(mean - step, s)[0]) / (2 * step)
    np.testing.assert_allclose(by_mean, numeric, rtol=1e-4, atol=1e-7 / deviation)
    step /= np.maximum(1, np.abs(z))
    numeric = (score(mean, s + step)[0] - score(mean, s - step)[0]) / (2 * step)
    np.testing.assert_allclose(by_deviation, numeric, rtol=1e-3, atol=1e-4 / deviation)


@pytest.mark.parametrize("score", [log_expected_improvement, log_probability_of_improvement])
def test_finite_with_finite_slopes_and_falling_in_the_mean_at_any_distance(score):
    mean = np.concatenate([-(10.0 ** np.linspace(100, -3, 300)), 10.0 ** np.linspace(-3, 100, 300)])
    value, by_mean, by_deviation = score(mean, np.ones_like(mean), 0.0)
    assert np.isfinite(value).all()
    assert np.isfinite(by_mean).all()
    assert np.isfinite(by_deviation).all()
    assert (np.diff(value) <= 0).all()
    assert (np.diff(value)[mean[1:] > -5] < 0).all()
    assert (by_mean <= 0).all()


@pytest.mark.parametrize("deviation", [1e-100, 1e-8, 1e8, 1e100])
def test_log_ei_is_finite_at_any_deviation(deviation):
    value, by_mean, by_deviation = log_expected_improvement(np.array([0.0]), np.array([deviation]), 0.0)
    assert value[0] == pytest.approx(math.log(deviation) - 0.5 * math.log(2 * math.pi))
    assert np.isfinite([by_mean[0], by_deviation[0]]).all()


@functools.cache
def fitted(failures):
    return belief_of(told_study(plane(3), bowl, 30, error_where=(lambda config: config["x1"] > 0.75) if failures else None))


@pytest.mark.parametrize("acquisition", [st.LogEI(), st.EI(), st.PI(), st.LCB()], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("failures", [False, True])
def test_the_gradient_of_a_surface_on_a_real_belief(acquisition, failures):
    belief, encoding, _ = fitted(failures)
    assert (belief.feasibility is not None) == failures
    surface = acquisition.surface(belief, np.random.default_rng(0))
    X = encoding.features(np.random.default_rng(1).uniform(0.02, 0.98, (40, 3)))
    value, slope = surface(X, True)
    plain, nothing = surface(X, False)
    assert nothing is None
    np.testing.assert_allclose(value, plain, rtol=1e-5, atol=1e-6)
    numeric = gradients_of(lambda x: surface(x, False)[0], X, 1e-6)
    assert (np.abs(slope - numeric).max(axis=1) <= 2e-3 * (1 + np.abs(slope).max(axis=1))).all()


@pytest.mark.parametrize("warp", [False, True])
def test_the_gradient_of_a_surface_over_the_points_of_a_mixed_space(warp):
    study = told_study(mixed_space(), mixed_value, 30)
    belief, encoding, _ = belief_of(study, st.GP(warp=warp))
    surface, space = st.LogEI().surface(belief, np.random.default_rng(0)), study.space
    U = space.snap(np.random.default_rng(2).random((25, len(space))))
    U[:, 0] = np.clip(U[:, 0], 0.05, 0.95)
    slope = surface(U, True)[1]
    numeric = gradients_of(lambda u: surface(u, False)[0], U, 1e-6)
    inner = encoding.numeric & np.array([name not in ("extra", "deep", "depth") for name in space])
    np.testing.assert_allclose(slope[:, inner], numeric[:, inner], rtol=1e-3, atol=1e-3 * (1 + np.abs(numeric[:, inner]).max()))


def test_failures_lower_the_value_where_they_happened():
    bad = told_study(plane(), bowl, 40, error_where=lambda config: config["x0"] > 0.7)
    belief, encoding, _ = belief_of(bad)
    with_failures = st.LogEI().surface(belief, None)
    without = st.LogEI().surface(dataclasses.replace(belief, feasibility=None), None)
    X = encoding.features(np.array([[0.95, 0.5], [0.2, 0.5]]))
    drop = without(X, False)[0] - with_failures(X, False)[0]
    assert drop[0] > 1.0
    assert 0 <= drop[1] < 0.5


@pytest.mark.parametrize("make", [lambda: st.PI(-1), lambda: st.PI(math.nan), lambda: st.LCB(-0.1), lambda: st.LCB(math.inf)])
def test_options_out_of_range_are_refused(make):
    with pytest.raises(st.MethodError, match="must be"):
        make()


def test_a_larger_margin_and_a_larger_beta_explore_more():
    belief, encoding, _ = belief_of(told_study(plane(1), bowl, 6))
    X = encoding.features(np.linspace(0, 1, 201)[:, None])
    deviation = np.sqrt(belief.objective.mean_and_variance(X)[1])

    def chosen(acquisition):
        return deviation[np.argmax(acquisition.surface(belief, None)(X, False)[0])]

    assert chosen(st.PI(1.0)) >= chosen(st.PI(0.0))
    assert chosen(st.LCB(100.0)) >= chosen(st.LCB(0.0))
    assert chosen(st.LCB(1e6)) == pytest.approx(deviation.max(), rel=1e-3)
