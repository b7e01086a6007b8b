import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

import shoestring as st
from shoestring.acquisition.mes import gumbel_fit, log_mes, log_mes_with_gradient, sample_minimum
from tests.differences import gradients_of
from tests.information import line, ranked, wavy


def information_by_integration(g, kappa):
    """H(y) - H(y | f >= m) with f ~ N(0, 1), m = -g and noise kappa^2: both entropies from densities of y."""
    spread = math.sqrt(1 + kappa * kappa)

    def density(y):
        return math.exp(-0.5 * (y / spread) ** 2) / (spread * math.sqrt(2 * math.pi)) * ndtr(
            (y / spread**2 + g) * spread / kappa
        ) / ndtr(g)

    def piece(y):
        p = density(y)
        return -p * math.log(p) if p > 1e-300 else 0.0

    edge = -g * spread**2
    entropy = quad(piece, -14 * spread, 14 * spread, points=[edge - 3 * kappa, edge, edge + 3 * kappa], limit=500)[0]
    return 0.5 * math.log(2 * math.pi * math.e * spread**2) - entropy


@pytest.mark.parametrize("kappa", [0.02, 0.1, 0.3, 0.59, 0.61, 1.0, 1.49, 1.51, 4.0, 30.0])
def test_the_information_is_that_of_entropies_by_integration(kappa):
    for g in (-1.0, 0.0, 0.5, 1.5, 3.0, 4.5):
        found = math.exp(log_mes(np.array([g]), np.ones(1), kappa**2, np.zeros(1))[0])
        assert found == pytest.approx(information_by_integration(g, kappa), rel=2e-4, abs=1e-9)


def test_without_noise_it_is_the_formula_of_wang_and_jegelka():
    g = np.linspace(-2, 8, 41)
    ratio = np.exp(-0.5 * g * g - 0.5 * math.log(2 * math.pi) - log_ndtr(g))
    expected = 0.5 * g * ratio - log_ndtr(g)
    found = [math.exp(log_mes(np.array([x]), np.ones(1), 0.0, np.zeros(1))[0]) for x in g]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.01, 1.0, 100.0])
def test_gradients_with_respect_to_mean_and_deviation(noise):
    rng = np.random.default_rng(0)
    mean, deviation, m = rng.normal(1.5, 1.0, 60), np.exp(rng.normal(0, 1.5, 60)), -np.abs(rng.normal(size=5))
    value, by_mean, by_deviation = log_mes_with_gradient(mean, deviation, noise, m)
    np.testing.assert_allclose(value, log_mes(mean, deviation, noise, m))
    h = 1e-6
    forward, backward = (log_mes(mean + step, deviation, noise, m) for step in (h, -h))
    np.testing.assert_allclose(by_mean, (forward - backward) / (2 * h), rtol=1e-5, atol=1e-6)
    forward, backward = (log_mes(mean, deviation * (1 + step), noise, m) for step in (h, -h))
    np.testing.assert_allclose(by_deviation * deviation, (forward - backward) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-2, 1e4])
def test_it_is_finite_everywhere_and_falls_with_the_mean(noise):
    mean = np.concatenate([[-3.0, -1.0], np.geomspace(1e-3, 1e8, 60)])
    for deviation in (1e-9, 1e-4, 1.0, 1e6):
        value, by_mean, by_deviation = log_mes_with_gradient(
            mean, np.full(len(mean), deviation), noise, np.array([-0.5, -1e-3, 0.0])
        )
        assert np.isfinite(value).all()
        assert np.isfinite(by_mean).all()
        assert np.isfinite(by_deviation).all()
        assert (np.diff(value[2:]) <= 1e-3).all()


def test_the_gumbel_fit_has_the_quartiles_of_independent_points():
    rng = np.random.default_rng(0)
    mean, deviation = rng.normal(size=50), rng.uniform(0.2, 1.0, 50)
    a, b = gumbel_fit(mean, deviation)
    drawn = (mean + deviation * rng.standard_normal((100_000, 50))).min(axis=1)
    for share in (0.25, 0.5, 0.75):
        quantile = a + b * math.log(-math.log(1 - share))
        assert np.mean(drawn < quantile) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("how", ["gumbel", "sampled"])
def test_no_sample_of_the_minimum_is_above_the_lowest_mean(how):
    belief, _ = line(5, 0.01, 0)
    Z = np.linspace(0, 1, 100)[:, None]
    m = sample_minimum(belief.objective, Z, how, 32, np.random.default_rng(0))
    assert m.shape == (32,)
    assert m.max() <= belief.objective.mean_at(Z).min()
    assert m.std() > 0


@pytest.mark.parametrize("how", ["gumbel", "sampled"])
def test_on_a_line_it_ranks_points_about_as_brute_force_does(how):
    """MES is about the value of the minimum and not its place; under some noise the two rank alike."""
    found = []
    for noise in (0.01, 0.1):
        for count in (3, 6):
            found.append(ranked(st.MES(how=how), count, noise, 0))
    assert np.mean(found, axis=0)[0] >= 0.9
    assert np.mean(found, axis=0)[1] >= 0.9


@pytest.mark.parametrize("dimensions", [1, 4])
@pytest.mark.parametrize("noise", [1e-5, 0.3])
def test_gradients_are_those_of_differences(dimensions, noise):
    belief, optimizer = wavy(dimensions, noise)
    surface = st.MES().log_information(belief, optimizer)
    U = np.random.default_rng(0).uniform(0.05, 0.95, (6, dimensions))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    expected = gradients_of(lambda points: surface(points, False)[0], U, step=1e-6)
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_noise_lowers_the_information_of_every_observation():
    belief, optimizer = line(6, 1e-4, 1)
    noisy = dataclasses.replace(belief, objective=dataclasses.replace(belief.objective, noise=0.1))
    m = st.MES().minimum_samples(belief, optimizer)
    mean, variance = belief.objective.mean_and_variance(np.linspace(0, 1, 50)[:, None])
    clean = log_mes(mean, np.sqrt(variance), belief.objective.noise, m)
    assert (log_mes(mean, np.sqrt(variance), noisy.objective.noise, m) < clean).all()


def test_bad_options_are_refused():
    for options in ({"samples": 0}, {"samples": True}, {"how": "guess"}):
        with pytest.raises(st.MethodError, match="MES"):
            st.MES(**options)


def test_by_default_the_minima_are_drawn_jointly():
    """With them the choice has 98 % of the information of the best one, with a Gumbel distribution 84 %."""
    assert st.MES() == st.MES(how="sampled")
