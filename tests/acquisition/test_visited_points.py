"""Which points were visited: the same by another way, for few and for many."""

import numpy as np
import pytest

from shoestring.acquisition.optimize.candidates import is_visited


@pytest.mark.parametrize("count", [0, 3, 40, 3000])
@pytest.mark.parametrize("steps", [3, 1000])
def test_visited_points_are_those_in_the_list(count, steps):
    rng = np.random.default_rng([count, steps])
    visited = rng.integers(0, steps, (count, 3)) / steps
    U = np.vstack([rng.integers(0, steps, (20, 3)) / steps, visited[:5]])
    expected = [any(np.array_equal(u, point) for point in visited) for u in U]
    np.testing.assert_array_equal(is_visited(U, visited), expected)


def test_a_point_moved_by_rounding_is_visited():
    visited = np.random.default_rng(0).random((500, 4))
    assert is_visited(visited[:7] * (1 + 1e-15), visited).all()
    assert not is_visited(visited[:7] + 1e-3, visited).any()
