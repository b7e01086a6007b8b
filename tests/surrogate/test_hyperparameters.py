import numpy as np
import pytest

from shoestring.surrogate.marginal_likelihood import Layout
from tests.differences import gradient_of

GROUPS = [np.arange(3), np.array([0, 1, 1, 1, 2]), np.array([0])]


@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=["separate", "shared", "single"])
def test_the_gradient_of_the_prior(groups, warped):
    layout = Layout(groups, warped)
    theta = layout.centre + np.random.default_rng(0).normal(size=layout.size)
    _, slope = layout.log_prior(theta)
    np.testing.assert_allclose(slope, gradient_of(lambda t: layout.log_prior(t)[0], theta), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("warped", [False, True])
def test_the_centre_lies_within_the_bounds_and_clip_keeps_to_them(warped):
    layout = Layout(np.array([0, 1, 1, 1, 2]), warped)
    low, high = np.array(layout.bounds).T
    assert len(layout.bounds) == layout.size == len(layout.centre)
    assert ((low < layout.centre) & (layout.centre < high)).all()
    np.testing.assert_array_equal(layout.clip(np.full(layout.size, 1e9)), high)
    np.testing.assert_array_equal(layout.clip(np.full(layout.size, -1e9)), low)


def test_columns_of_one_parameter_share_its_length_scale():
    layout = Layout(np.array([0, 1, 1, 1, 2]))
    theta = layout.centre.copy()
    theta[:3] = np.log([0.5, 2.0, 4.0])
    np.testing.assert_allclose(layout.kernel(theta, "se").inverse_lengths, [2.0, 0.5, 0.5, 0.5, 0.25])
    np.testing.assert_array_equal(layout.per_group(np.array([1.0, 2, 3, 4, 5])), [1, 9, 5])


def test_warping_starts_as_the_identity():
    layout = Layout(np.arange(2), warped=True)
    warp = layout.warp(layout.centre)
    np.testing.assert_allclose([warp.a, warp.b], 1.0)
    assert Layout(np.arange(2)).warp(layout.centre) is None
