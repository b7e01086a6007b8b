import numpy as np
import pytest
from scipy.optimize import minimize

from shoestring.acquisition.optimize.batched_bfgs import ascend


def quadratic(dimensions, condition, seed):
    """-(x - peak)' H (x - peak) / 2 with the peak perhaps outside the cube."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))
    H = Q @ np.diag(np.geomspace(1, condition, dimensions)) @ Q.T
    optimum = rng.uniform(-0.5, 1.5, dimensions)

    def value(x):
        off = x - optimum
        return -0.5 * np.einsum("bi,ij,bj->b", off, H, off), -off @ H

    return value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dimensions", "condition"), [(1, 1), (2, 10), (5, 100), (10, 30)])
def test_it_reaches_the_maximum_of_concave_quadratics_with_bounds_active(dimensions, condition, seed):
    value = quadratic(dimensions, condition, seed)
    starts = np.random.default_rng(seed + 100).random((6, dimensions))
    _, f = ascend(value, starts, np.ones(dimensions, dtype=bool), steps=300, tolerance=1e-12)
    reference = minimize(
        lambda x: tuple(-part[0] for part in value(x[None, :])), starts[0], jac=True, method="L-BFGS-B",
        bounds=[(0, 1)] * dimensions, options={"ftol": 1e-15, "gtol": 1e-10},
    )
    drop = -reference.fun - value(starts)[0]
    assert (-reference.fun - f <= 1e-4 * np.maximum(drop, 1e-9) + 1e-7).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_start_ends_lower_than_it_began_and_none_ever_leaves_the_cube(seed):
    rng = np.random.default_rng(seed)
    visited = []

    def bumpy(x):
        visited.append(x.copy())
        return np.sin(15 * x).sum(axis=1) + 3 * x.sum(axis=1), 15 * np.cos(15 * x) + 3

    starts = rng.random((8, 4))
    ends, f = ascend(bumpy, starts, np.ones(4, dtype=bool))
    assert (f >= bumpy(starts)[0]).all()
    np.testing.assert_allclose(f, bumpy(ends)[0])
    everywhere = np.vstack(visited)
    assert everywhere.min() >= 0
    assert everywhere.max() <= 1


def test_coordinates_that_are_not_free_stay():
    value = quadratic(3, 10, 0)
    starts = np.random.default_rng(0).random((4, 3))
    ends, _ = ascend(value, starts, np.array([True, False, True]))
    np.testing.assert_array_equal(ends[:, 1], starts[:, 1])
    assert (ends[:, 0] != starts[:, 0]).any()


def test_each_start_may_have_its_own_free_coordinates():
    value = quadratic(2, 10, 1)
    starts = np.full((2, 2), 0.5)
    ends, _ = ascend(value, starts, np.array([[True, False], [False, True]]))
    assert ends[0, 1] == ends[1, 0] == 0.5


def test_starts_do_not_disturb_each_other():
    value = quadratic(4, 50, 2)
    starts = np.random.default_rng(1).random((5, 4))
    together, _ = ascend(value, starts, np.ones(4, dtype=bool))
    alone = np.vstack([ascend(value, start[None, :], np.ones(4, dtype=bool))[0] for start in starts])
    np.testing.assert_allclose(together, alone, atol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_walls_that_are_not_finite_are_not_entered(bad):
    def walled(x):
        inside = x[:, 0] < 0.6
        return np.where(inside, x[:, 0], bad), np.ones_like(x)

    ends, f = ascend(walled, np.array([[0.1], [0.9]]), np.ones(1, dtype=bool))
    assert 0.1 < ends[0, 0] < 0.6
    assert f[0] == ends[0, 0]
    assert ends[1, 0] == 0.9
