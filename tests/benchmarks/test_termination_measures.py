"""What the termination benchmark measures, by hand: equations 10 and 11, stopping times, resampled figures."""

import math

import numpy as np
import pytest

from benchmarks.termination import measures, resampling, stopping

# -- equations 10 and 11 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("final", "stopped", "expected"), [(0.1, 0.2, -0.5), (0.2, 0.1, 0.5), (0.3, 0.3, 0.0), (0.0, 0.0, 0.0)])
def test_ryc_is_positive_where_stopping_was_better(final, stopped, expected):
    assert measures.ryc(final, stopped) == pytest.approx(expected)


def test_rtc_is_the_share_of_cost_that_is_saved():
    assert measures.rtc(10.0, 4.0) == pytest.approx(0.6)


def test_a_stopped_run_is_judged_by_the_test_error_of_its_incumbent():
    values, costs, tests = [3.0, 1.0, 2.0, 0.5], [1.0, 2.0, 3.0, 4.0], [0.9, 0.4, 0.1, 0.5]
    judged = measures.judge(values, costs, tests, 3, optimum=0.25)
    assert judged.ryc == pytest.approx((0.5 - 0.4) / 0.5)  # stopped with the second config: overfitting avoided
    assert judged.rtc == pytest.approx(0.4)
    assert judged.rtc_trials == pytest.approx(0.25)
    assert judged.regret == pytest.approx(0.75)
    assert judged.stopped
    assert judged.within(0.75)
    assert not judged.within(0.7)


def test_a_run_that_is_not_stopped_saves_and_loses_nothing():
    judged = measures.judge([2.0, 1.0], [1.0, 1.0], [0.2, 0.1], None, optimum=0.0)
    assert (judged.ryc, judged.rtc, judged.rtc_trials, judged.stopped) == (0.0, 0.0, 0.0, False)
    assert math.isnan(judged.regret)


# -- stopping times --------------------------------------------------------------------------------------------------


def test_the_first_step_at_or_below_the_threshold_stops():
    steps, values = [20, 22, 24, 26], np.array([3.0, 1.0, 2.0, 0.5])
    assert stopping.first_below(steps, values, 1.0) == 22
    assert stopping.first_below(steps, values, 1.0, strictly=True) == 26
    assert stopping.first_below(steps, values, np.array([2.0, 0.5, 2.0, 2.0])) == 24
    assert stopping.first_below(steps, values, 0.1) is None


def test_patience_agrees_with_the_rule_of_the_library():
    from shoestring import Float, History, Patience, Space, State, Trial

    values = [5.0, 4.0, 4.0, 4.5, 3.0, 3.0, 3.5, 6.0, 2.0, 9.0]
    space = Space(x=Float(0, 1))
    history = History(tuple(Trial(i, {"x": 0.5}, State.DONE, value=v) for i, v in enumerate(values)), space)
    for trials in (1, 2, 3, 4):
        for after in (1, 6):
            stops = [n for n in range(after, len(values) + 1) if Patience(trials).check(history.head(n), space)]
            assert stopping.patience(values, trials, after) == (stops[0] if stops else None)


def test_a_resampled_figure_lies_within_its_interval():
    samples = [np.array([[1.0, 2.0], [0.0, 2.0]]), np.array([[1.0, 1.0]])]
    found = resampling.figure(samples, lambda mean: float(mean[0] / mean[1]))
    assert found["value"] == pytest.approx(0.5)
    assert found["low"] <= 0.5 <= found["high"]


# -- cost-adjusted regret and exact intervals -------------------------------------------------------------------------


def test_cost_adjusted_regret_by_hand():
    values, costs = [4.0, 2.0, 3.0, 1.0], [1.0, 2.0, 3.0, 4.0]
    stopped = measures.judge(values, costs, values, 2, optimum=0.5)
    gain = 2.5 - 1.0  # the median of the first values less the best of all
    assert stopped.cost_adjusted(0.1) == pytest.approx((2.0 - 0.5) / gain + 0.1 * 3 / 10)
    whole = measures.judge(values, costs, values, None, optimum=0.5)
    assert whole.cost_adjusted(0.1) == pytest.approx((1.0 - 0.5) / gain + 0.1)


def test_the_exact_interval_of_a_share_against_the_binomial_distribution():
    from scipy import stats

    from benchmarks.ranks import exact_interval

    low, high = exact_interval(18, 20)
    assert stats.binom.sf(17, 20, low) == pytest.approx(0.025, abs=1e-6)
    assert stats.binom.cdf(18, 20, high) == pytest.approx(0.025, abs=1e-6)
    assert exact_interval(6, 6)[0] == pytest.approx(0.025 ** (1 / 6), abs=1e-6)
