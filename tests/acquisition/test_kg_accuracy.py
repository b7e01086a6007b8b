"""The knowledge gradient over a fine discretization against a million draws of the outcome."""

import math

import numpy as np
import pytest

from shoestring.acquisition.knowledge_gradient import KG
from tests.reference.accurate_kg import accurate_log_kg
from tests.reference.kg_by_a_million_draws import drawn_from_the_model, kg_by_a_million_draws

MIN_KG = 1e-5  # below, KG depends on outcomes so rare that a million draws do not measure it


def relative_errors(dimensions, count, noise, length, seed, points=3):
    """At the point that KG chooses, at random ones and next to an evaluated one, wherever the truth is well known."""
    belief, optimizer = drawn_from_the_model(dimensions, count, noise, length, seed)
    rng = np.random.default_rng([seed, 99])  # not the points that were evaluated
    near = np.clip(belief.evaluated[0] + 0.01, 0, 1)
    U = np.vstack([KG().select(belief, optimizer).u, rng.random((points, dimensions)), near])
    errors = []
    for u, found in zip(U, np.exp(accurate_log_kg(belief, optimizer, U)), strict=True):
        truth, error, gap = kg_by_a_million_draws(belief, u)
        if truth > MIN_KG and error < 0.002 * truth and gap < 0.002 * truth:
            errors.append(found / truth - 1)
    return errors


def cases(dimensions):
    """(trials, noise, length scale): nearly nothing known, some trials, many; the variance of the function is 1."""
    few, many = 5 * dimensions, 10 * dimensions
    return [(3, 1e-4, 0.3), (few, 1e-6, 0.3), (few, 1e-2, 0.5), (many, 0.1, 0.3), (many, 1e-4, 0.8)]


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2])
def test_it_is_accurate_to_a_per_cent(dimensions):
    errors = [error for case in cases(dimensions)[:3] for error in relative_errors(dimensions, *case, 0, points=1)]
    assert len(errors) >= 5
    assert np.abs(errors).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
def test_it_is_accurate_to_a_per_cent_in_many_cases(dimensions):
    errors = [error for case in cases(dimensions) for seed in range(10, 15) for error in relative_errors(dimensions, *case, seed)]
    assert len(errors) >= 80
    assert np.abs(errors).max() < 0.01


@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_reference_is_that_of_a_fine_grid(dimensions):
    """Without descents, brackets or strata: every future mean over a grid, integrated over the outcome."""
    belief, optimizer = drawn_from_the_model(dimensions, 5, 0.01, 0.4, 2)
    u = KG().select(belief, optimizer).u
    axis = np.linspace(0, 1, 3001 if dimensions == 1 else 121)
    grid = np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)
    posterior, w = belief.objective, np.linspace(-6, 6, 601)
    b = posterior.covariance(grid, u[None, :])[:, 0] / math.sqrt(posterior.covariance(u[None, :])[0, 0] + posterior.noise)
    mean = posterior.mean_at(grid)
    lowest = np.array([(mean + b * each).min() for each in w])
    density = np.exp(-0.5 * w * w) / math.sqrt(2 * math.pi)
    expected = mean.min() - np.trapezoid(lowest * density, w)
    truth, error, gap = kg_by_a_million_draws(belief, u)
    assert truth == pytest.approx(expected, rel=3e-3)
    assert error + gap < 1e-3 * truth
