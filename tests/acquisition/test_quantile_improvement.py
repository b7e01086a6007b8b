"""Expected quantile improvement: against quadrature over the noisy value of the next trial, and its gradient."""

from dataclasses import replace

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.improvement import log_expected_improvement
from shoestring.acquisition.quantile_improvement import log_quantile_improvement
from shoestring.surrogate.posterior import Posterior
from tests.differences import gradient_of


def noisy_study(noise=0.3, method=None, count=40, seed=0):
    rng = np.random.default_rng(seed)
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), c=st.Choice("a", "b"))
    study = st.Study(space, method or st.EQI(), seed=seed)
    for _ in range(count):
        config = {"x": float(rng.random()), "y": float(rng.random()), "c": "ab"[int(rng.integers(2))]}
        value = 3 * (config["x"] - 0.3) ** 2 + config["y"] + noise * float(rng.normal())
        study.add(config, value, cost=1.0 + 9 * config["x"])
    return study


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_improvement_of_the_posterior_mean_after_one_more_trial(seed):
    """By quadrature over that trial's value, on which the posterior is conditioned."""
    belief = noisy_study(seed=seed).context.belief(costs=False)
    rng, old = np.random.default_rng(seed), belief.objective
    posterior = Posterior.given(old.kernel, 0.3, old.Z, old.y)
    belief = replace(belief, objective=posterior)
    for u in rng.random((3, 3)):
        Z = belief.encoding.features(u[None, :])
        mean, variance = (float(each[0]) for each in posterior.mean_and_variance(Z))
        z = np.linspace(-12, 12, 24001)
        y = mean + np.sqrt(variance + posterior.noise) * z
        ends = [float(posterior.condition(Z, each).mean_and_variance(Z)[0][0]) for each in (y[:1], y[-1:])]
        after = np.interp(y, y[[0, -1]], ends)  # the mean after a trial is linear in its value
        weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
        found = np.exp(st.EQI().surface(belief, rng)(u[None, :], False)[0][0])
        assert found == pytest.approx(float(np.maximum(belief.incumbent - after, 0.0) @ weights), rel=1e-3)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.01, 1.0, 100.0])
def test_derivatives_by_mean_and_deviation(noise):
    for mean, deviation in ((0.3, 0.5), (-1.0, 0.2), (2.0, 0.05), (0.0, 3.0)):
        value, by_mean, by_deviation = (
            float(each[0]) for each in log_quantile_improvement(np.array([mean]), np.array([deviation]), 0.1, noise)
        )
        numeric = gradient_of(
            lambda p: float(log_quantile_improvement(p[:1], p[1:], 0.1, noise)[0][0]), np.array([mean, deviation]), 1e-6
        )
        np.testing.assert_allclose([by_mean, by_deviation], numeric, rtol=1e-4, atol=1e-5 * (1 + abs(value)))


def test_without_noise_it_is_expected_improvement():
    mean, deviation = np.array([0.3, -0.2]), np.array([0.5, 0.1])
    for own, plain in zip(
        log_quantile_improvement(mean, deviation, 0.1, 0.0), log_expected_improvement(mean, deviation, 0.1), strict=True
    ):
        np.testing.assert_allclose(own, plain, rtol=1e-12)


def test_the_gradient_of_the_surface_with_costs():
    belief = noisy_study().context.belief(costs=True)
    surface = st.EQI(0.7).surface(belief, np.random.default_rng(0))
    for u in np.random.default_rng(1).uniform(0.1, 0.9, (4, 3)):
        slope = surface(u[None, :], True)[1][0]
        numeric = gradient_of(lambda v: float(surface(v[None, :], False)[0][0]), u, 1e-5)
        np.testing.assert_allclose(slope[:2], numeric[:2], rtol=1e-4, atol=1e-5)


def test_where_the_place_of_the_best_is_known_but_for_noise_it_looks_elsewhere_sooner_than_ei():
    mean, deviation = np.array([0.0, 0.4]), np.array([0.01, 0.17])  # tried often; uncertain and worse by 2.4 deviations
    ei = log_expected_improvement(mean, deviation, 0.0)[0]
    eqi = log_quantile_improvement(mean, deviation, 0.0, 0.035**2)[0]
    assert ei[0] > ei[1]
    assert eqi[0] - eqi[1] < ei[0] - ei[1] - 1.0
    many = log_quantile_improvement(mean, np.array([0.003, 0.17]), 0.0, 0.035**2)[0]
    assert many[0] < many[1]


@pytest.mark.parametrize("alpha", [-1, "x", float("nan"), True])
def test_a_wrong_exponent_is_refused(alpha):
    with pytest.raises(st.MethodError, match="EQI: alpha"):
        st.EQI(alpha)


def test_it_can_be_written_as_text():
    assert st.Study(st.Space(x=st.Float(0, 1)), "EQI(0.5)").method.acquisition == st.EQI(0.5)
