import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from shoestring.errors import MethodError
from shoestring.termination.regret import standard_error

values = some.lists(some.floats(-1e6, 1e6), min_size=2, max_size=12)


def test_ten_folds_by_hand():
    folds = [0.1, 0.3] * 5
    assert standard_error(folds) == pytest.approx(math.sqrt((1 / 10 + 1 / 9) * 0.01))


def test_two_folds():
    assert standard_error([1.0, 3.0]) == pytest.approx(math.sqrt((1 / 2 + 1) * 1.0))


@given(values)
def test_equal_sizes_are_no_sizes(folds):
    assert standard_error(folds, [7] * len(folds)) == pytest.approx(standard_error(folds))


@given(values, some.floats(-10, 10), some.floats(-100, 100))
def test_it_scales_with_the_values(folds, factor, shift):
    changed = [factor * fold + shift for fold in folds]
    assert standard_error(changed) == pytest.approx(abs(factor) * standard_error(folds), rel=1e-6, abs=1e-6)


def test_folds_that_are_not_finite_are_ignored():
    assert standard_error([0.1, math.nan, 0.3, math.inf], [1, 5, 1, 5]) == pytest.approx(math.sqrt((0.5 + 1 / 11) * 0.01))
    assert standard_error([0.1, math.nan]) is None
    assert standard_error([0.1]) is None
    assert standard_error(None) is None


def test_sizes_that_do_not_match():
    with pytest.raises(MethodError, match="one size for each fold"):
        standard_error([0.1, 0.2], [5, 5, 5])


def test_the_correction_is_near_the_truth_for_a_mean_over_shared_data():
    """Monte Carlo: the error of predicting a normal by the training mean, over many data sets of 40 rows and 10 folds."""
    rng = np.random.default_rng(0)
    estimates, errors = [], []
    for _ in range(2000):
        data = rng.normal(size=40)
        folds = []
        for part in data.reshape(10, 4):
            rest = (data.sum() - part.sum()) / 36
            folds.append(float(np.mean((part - rest) ** 2)))
        estimates.append(standard_error(folds))
        errors.append(np.mean(folds) - (1 + 1 / 36))
    assert 0.8 < np.mean(estimates) / np.std(errors) < 1.8  # the plain standard error would be 1 / sqrt(1/10 + 1/9) of that
