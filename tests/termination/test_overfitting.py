"""The check of the folds: whether what the search found is luck."""

import numpy as np
import pytest

import shoestring as st
from shoestring.termination.overfitting import check_folds, compare_halves, honest_value
from tests.problems import plane


def told(F, direction="minimize"):
    study = st.Study(plane(1), seed=0, direction=direction)
    for i, row in enumerate(F):
        study.add({"x0": i / len(F)}, float(np.mean(row)), folds=[float(value) for value in row])
    return study


def test_the_honest_value_by_hand():
    F = np.array([[1.0, 5.0, 3.0], [2.0, 2.0, 4.0], [9.0, 0.0, 0.0]])
    assert honest_value(F) == pytest.approx((9.0 + 5.0 + 4.0) / 3)  # chosen by the others: rows 2, 0, 1


def test_the_best_of_pure_luck_has_an_honest_value_of_no_gain():
    rng = np.random.default_rng(0)
    gaps = [honest_value(rng.normal(size=(200, 5))) for _ in range(300)]
    assert np.mean(gaps) == pytest.approx(0.0, abs=4 / np.sqrt(300 * 5))


def overfitted():
    """The second half of the trials is good on four folds of five, each time on others, and worse on the fifth."""
    F = np.full((40, 5), 0.3)
    for i in range(20, 40):
        F[i] = 0.28
        F[i, i % 5] = 0.36
    return F


def test_a_search_that_only_fits_its_folds_is_warned_of():
    check = check_folds(told(overfitted()).log)
    assert check.apparent == pytest.approx(0.3 - (4 * 0.28 + 0.36) / 5)
    assert check.honest == pytest.approx(0.3 - 0.36)  # the others choose a config that is bad on the one left out
    assert check.overfits
    assert "no part in the choice" in check.text
    assert "data that no fold has seen" in check.text


def test_pure_luck_is_warned_of_more_often_than_a_real_gain():
    def warnings(gain):
        found = 0
        for seed in range(30):
            F = np.random.default_rng(seed).normal(0.3, 0.02, (40, 5)) - gain * np.arange(40)[:, None] / 40
            found += compare_halves(F).overfits
        return found

    assert warnings(0.0) >= 6
    assert warnings(0.1) == 0


def test_luck_is_what_the_best_of_equal_configs_gains():
    """By simulation: z_m is the mean of the highest of m standard normal numbers."""
    rng = np.random.default_rng(0)
    check = compare_halves(overfitted())
    s = np.std([0.02] * 4 + [-0.06], ddof=1)
    highest = rng.standard_normal((20000, 20)).max(axis=1).mean()
    assert check.luck * np.sqrt(5) / s == pytest.approx(highest, rel=0.02)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_real_improvement_is_confirmed(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    F = sign * (np.linspace(1.0, 0.5, 40)[:, None] + np.random.default_rng(0).normal(0, 0.01, (40, 5)))
    check = check_folds(told(F, direction).log)
    assert check.honest > 0.2
    assert check.text == ""


@pytest.mark.parametrize("F", [np.ones((10, 5)), np.ones((30, 2)), np.full((30, 5), np.nan)])
def test_too_few_trials_or_folds_say_nothing(F):
    study = st.Study(plane(1))
    for i, row in enumerate(F):
        study.add({"x0": i / len(F)}, 1.0, folds=list(row))
    assert check_folds(study.log) is None


def test_the_summary_carries_the_warning():
    assert "no part in the choice" in dict(told(overfitted()).result.rows())["overfitting"]
    assert "overfitting" not in dict(told(np.linspace(1, 0.5, 40)[:, None] + np.zeros(5)).result.rows())
