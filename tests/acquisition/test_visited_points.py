"""Which points were seen before: the same by another way, for few and for many."""

import numpy as np
import pytest

from shoestring.acquisition.optimize.candidates import is_visited


@pytest.mark.parametrize("count", [0, 3, 40, 3000])
@pytest.mark.parametrize("steps", [3, 1000])
def test_known_points_are_those_that_stand_there(count, steps):
    rng = np.random.default_rng([count, steps])
    seen = rng.integers(0, steps, (count, 3)) / steps
    U = np.vstack([rng.integers(0, steps, (20, 3)) / steps, seen[:5]])
    expected = [any(np.array_equal(u, point) for point in seen) for u in U]
    np.testing.assert_array_equal(is_visited(U, seen), expected)


def test_a_point_moved_by_rounding_is_known():
    seen = np.random.default_rng(0).random((500, 4))
    assert is_visited(seen[:7] * (1 + 1e-15), seen).all()
    assert not is_visited(seen[:7] + 1e-3, seen).any()
