import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import norm

from shoestring.acquisition.kg_envelope import LOG_NO_DROP, log_expected_drop, log_expected_drop_with_gradient
from tests.differences import gradients_of


def lines(m, rows=4, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, m)), spread * rng.normal(size=(rows, m))


def by_quadrature(a, b):
    w = np.linspace(-9, 9, 40001)
    density = np.exp(-0.5 * w * w) / np.sqrt(2 * np.pi)
    lowest = [(row[:, None] + slopes[:, None] * w).min(axis=0) for row, slopes in zip(a, b, strict=True)]
    return a.min(axis=1) - np.array([np.trapezoid(values * density, w) for values in lowest])


@pytest.mark.parametrize("m", [2, 5, 60])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_the_drop_is_that_of_quadrature(m, spread):
    a, b = lines(m, spread=spread)
    np.testing.assert_allclose(np.exp(log_expected_drop(a, b)), by_quadrature(a, b), rtol=2e-3, atol=1e-7)


def test_two_lines_by_hand():
    """min(0, 1 - 2 w): the kink is at 1/2, and the slope drops by 2."""
    expected = 2 * (norm.pdf(0.5) - 0.5 * norm.sf(0.5))
    assert np.exp(log_expected_drop(np.array([[0.0, 1.0]]), np.array([[0.0, -2.0]])))[0] == pytest.approx(expected, rel=1e-12)


@given(some.integers(2, 12), some.integers(0, 1000))
def test_it_is_that_of_quadrature_whatever_the_lines(m, seed):
    a, b = lines(m, seed=seed)
    np.testing.assert_allclose(np.exp(log_expected_drop(a, b)), by_quadrature(a, b), rtol=1e-4, atol=1e-7)


def test_no_kink_is_missed_however_far_out_it_lies():
    """min(0, 3.2 - w, 8.5 - 2 w): kinks at 3.2 and 5.3, each counted by the closed form."""
    found = np.exp(log_expected_drop(np.array([[0.0, 3.2, 8.5]]), np.array([[0.0, -1.0, -2.0]])))[0]
    assert found == pytest.approx(sum(norm.pdf(c) - c * norm.sf(c) for c in (3.2, 5.3)), rel=1e-9)


def test_lines_that_tie_at_zero_make_a_kink_there():
    """E|w| = sqrt(2 / pi)."""
    drop = log_expected_drop_with_gradient(np.zeros((1, 2)), np.array([[1.0, -1.0]]))
    assert np.exp(drop.value[0]) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-12)
    np.testing.assert_allclose(drop.by_b, [[0.5, -0.5]])


@pytest.mark.parametrize("m", [2, 6, 20])
def test_gradients_are_those_of_differences(m):
    a, b = lines(m, seed=3)
    drop = log_expected_drop_with_gradient(a, b)
    np.testing.assert_allclose(drop.value, log_expected_drop(a, b))
    for row in range(len(a)):
        one, other = a[row : row + 1], b[row : row + 1]
        by_a = gradients_of(lambda x, other=other: log_expected_drop(x, other), one)
        by_b = gradients_of(lambda x, one=one: log_expected_drop(one, x), other)
        np.testing.assert_allclose(drop.by_a[row], by_a[0], atol=1e-5)
        np.testing.assert_allclose(drop.by_b[row], by_b[0], atol=1e-5)


def test_a_drop_too_small_for_a_float_still_has_a_logarithm_and_a_slope():
    a, b = np.array([[0.0, 45.0]]), np.array([[0.0, -1.0]])
    drop = log_expected_drop_with_gradient(a, b)
    assert -1100 < drop.value[0] < -1000  # exp of it is 0
    assert drop.by_a[0, 1] == pytest.approx(-45, rel=0.01)
    assert drop.by_b[0, 1] < 0


@pytest.mark.parametrize("b", [np.zeros((1, 4)), np.ones((1, 4))])
def test_lines_that_move_together_drop_nothing(b):
    drop = log_expected_drop_with_gradient(np.arange(4.0)[None, :], b)
    assert drop.value[0] == LOG_NO_DROP
    assert not drop.by_a.any()
    assert not drop.by_b.any()
