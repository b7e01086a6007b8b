import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.entropy_search import select_representers
from shoestring.acquisition.pes import Minimisers, moments_given_lowest
from tests.differences import gradients_of
from tests.information import GRID, line, ranked, wavy


def test_on_a_line_it_ranks_points_as_brute_force_does():
    found = []
    for noise in (1e-4, 0.01, 0.1):
        for count in (3, 6):
            found.append(ranked(st.PES(), count, noise, 0))
    ranks, highest = np.array(found).T
    assert ranks.mean() >= 0.97
    assert ranks.min() >= 0.95
    assert highest.min() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.1])
def test_many_lines(noise):
    found = []
    for count in (3, 6, 10):
        for seed in range(5):
            found.append(ranked(st.PES(), count, noise, seed))
    assert np.mean(found, axis=0).min() >= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_moments_given_the_lowest_component_are_those_of_rejection(seed):
    rng = np.random.default_rng(seed)
    mean, factor = rng.normal(size=5), np.tril(rng.normal(size=(5, 5)))
    w = rng.standard_normal((400_000, 5))
    lowest = (mean + w @ factor.T).argmin(axis=1)
    cases = np.flatnonzero(np.bincount(lowest, minlength=5) > 4000)
    m, T = moments_given_lowest(mean, factor, cases)
    for row, case in enumerate(cases):
        kept = w[lowest == case]
        np.testing.assert_allclose(m[row], kept.mean(axis=0), atol=0.07)
        np.testing.assert_allclose(T[row], np.cov(kept.T), atol=0.1)


def test_one_constraint_is_exact():
    """Of two components the difference is truncated, and nothing else is: moments in closed form."""
    factor = np.array([[1.0, 0.0], [0.0, 1.0]])
    m, T = moments_given_lowest(np.zeros(2), factor, np.array([0]))
    share = np.sqrt(1 / np.pi)  # E|d| / 2 with d ~ N(0, 2)
    np.testing.assert_allclose(m[0], [-share, share], atol=1e-9)
    np.testing.assert_allclose(np.diag(T[0]), 1 - 1 / np.pi, atol=1e-9)


def test_knowing_the_minimiser_never_widens_a_prediction():
    belief, optimizer = line(5, 0.01, 2)
    minimisers = Minimisers.among(select_representers(belief, optimizer, 40), 32, np.random.default_rng(0))
    Z = belief.encoding.features(GRID)
    mean, variance = belief.objective.mean_and_variance(Z)
    V = minimisers.truncated(minimisers.representers.loadings(Z), mean, variance).V
    assert (variance[:, None] * (1 + 1e-6) >= V).all()
    assert (V >= -1e-9).all()
    assert minimisers.p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("dimensions", [1, 4])
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_gradients_are_those_of_differences(dimensions, noise):
    belief, optimizer = wavy(dimensions, noise)
    surface = st.PES(representers=30).log_information(belief, optimizer)
    U = np.random.default_rng(0).uniform(0.05, 0.95, (6, dimensions))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0], rtol=1e-6)
    expected = gradients_of(lambda points: surface(points, False)[0], U, step=1e-5)
    np.testing.assert_allclose(slope, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


def test_bad_options_are_refused():
    for options in ({"representers": 1}, {"minimisers": 0}):
        with pytest.raises(st.MethodError, match="PES"):
            st.PES(**options)
