import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.entropy_search import (
    ConditionalMoments,
    Representers,
    information_surface,
    select_representers,
    with_exact_moments,
)
from tests.differences import gradients_of
from tests.information import GRID, brute_force, line, ranked, wavy
from tests.reference.entropy_by_sampling import entropy_of_minimiser, entropy_search_by_sampling


@pytest.mark.slow
def test_on_a_line_it_ranks_points_as_brute_force_does():
    found = []
    for noise in (1e-4, 0.01, 0.1):
        for count in (3, 6):
            found.append(ranked(st.ES(), count, noise, 0))
    ranks, highest = np.array(found).T
    assert ranks.mean() >= 0.97
    assert ranks.min() >= 0.95
    assert highest.min() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.1])
def test_many_lines(noise):
    found = []
    for count in (1, 3, 6, 10):
        for seed in range(5):
            found.append(ranked(st.ES(), count, noise, seed))
    assert np.mean(found, axis=0).min() >= 0.95


def test_the_value_is_that_of_brute_force_to_some_per_cent():
    belief, optimizer = line(4, 0.01, 2)
    truth = brute_force(belief)
    found = np.exp(st.ES().log_information(belief, optimizer)(GRID, False)[0])
    assert found.max() == pytest.approx(truth.max(), rel=0.1)


def test_it_agrees_with_the_pseudocode_of_the_slides():
    belief, optimizer = line(4, 0.05, 1)
    representers = select_representers(belief, optimizer, 12)
    R = belief.encoding.features(representers.points)
    fast = information_surface(representers, ConditionalMoments.from_draws(representers, 20_000, np.random.default_rng(0)))
    candidates = np.linspace(0.05, 0.95, 6)[:, None]
    rng = np.random.default_rng(5)
    slow = np.array([
        entropy_search_by_sampling(belief.objective, x, R, 100, 1000, rng) for x in belief.encoding.features(candidates)
    ])
    np.testing.assert_allclose(np.exp(fast(candidates, False)[0]), slow, atol=0.06, rtol=0.1)


def test_the_entropy_of_a_minimum_that_is_known():
    belief, _ = line(4, 1e-4, 1)
    one = np.array([[0.3]])
    rng = np.random.default_rng(0)
    assert entropy_of_minimiser(belief.objective, one, 50, rng) == 0.0
    alike = np.array([[0.3], [0.3 + 1e-3]])
    assert 0.0 <= entropy_of_minimiser(belief.objective, alike, 4000, rng) <= math.log(2) + 0.01


def test_draws_have_exact_moments():
    w = with_exact_moments(np.random.default_rng(0).standard_normal((300, 7)))
    np.testing.assert_allclose(w.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(w.T @ w / 300, np.eye(7), atol=1e-10)


def test_information_is_not_negative_however_few_the_draws():
    belief, optimizer = line(5, 0.01, 3)
    representers = select_representers(belief, optimizer, 40)
    moments = ConditionalMoments.from_draws(representers, 170, np.random.default_rng(0))
    assert moments.p.sum() == pytest.approx(1.0)
    b = representers.loadings(belief.encoding.features(GRID))
    assert (np.einsum("nkr,nr,k->n", moments.times(b), b, moments.p) >= -1e-9).all()


@pytest.mark.parametrize("dimensions", [1, 4])
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_gradients_are_those_of_differences(dimensions, noise):
    belief, optimizer = wavy(dimensions, noise)
    surface = st.ES(representers=30, samples=1000).log_information(belief, optimizer)
    U = np.random.default_rng(0).uniform(0.05, 0.95, (6, dimensions))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0], rtol=1e-6)
    expected = gradients_of(lambda points: surface(points, False)[0], U, step=1e-5)
    np.testing.assert_allclose(slope, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


def test_representers_cover_the_places_of_the_minimum():
    """Of 4000 joint draws over a fine grid, nearly all have their minimum next to a representer."""
    belief, optimizer = line(5, 0.01, 4)
    representers = select_representers(belief, optimizer, 50)
    assert len(representers) <= 50
    fine = np.linspace(0, 1, 300)[:, None]
    draws = belief.objective.sample(belief.encoding.features(fine), 4000, np.random.default_rng(0))
    places = fine[draws.argmin(axis=1), 0]
    gaps = np.abs(places[:, None] - representers.points[:, 0]).min(axis=1)
    assert np.mean(gaps < 0.02) > 0.95


def test_loadings_explain_the_variance_at_the_representers():
    belief, optimizer = wavy(3)
    representers = Representers.over(belief, select_representers(belief, optimizer, 20).points)
    Z = belief.encoding.features(representers.points)
    b = representers.loadings(Z)
    np.testing.assert_allclose((b * b).sum(axis=1), belief.objective.mean_and_variance(Z)[1], rtol=1e-2, atol=1e-6)


def test_bad_options_are_refused():
    for options in ({"representers": 1}, {"samples": 3}, {"samples": 100.0}):
        with pytest.raises(st.MethodError, match="ES"):
            st.ES(**options)
