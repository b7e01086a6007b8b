"""``AutoStop``: by the folds where there are some, by the price where there is one, else when little is left to gain."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.errors import MethodError
from shoestring.surrogate.output_transform import OutputTransform
from shoestring.termination.auto import DEFAULT_SHARE, gained_so_far, noise_of, repeated_deviation, small_gain
from shoestring.termination.base import belief_of
from tests.problems import bowl, plane, told_study


def test_auto_takes_the_price_of_the_method():
    study = st.Study(plane(1), method=st.Gittins(price=0.5))
    assert study.rule == st.AutoStop(price=0.5)
    assert not st.Study(plane(1)).rule.check(told_study(plane(1), bowl, 3).log).stop


def test_auto_stops_by_the_folds():
    def noisy(config):
        rng = np.random.default_rng(int(1e6 * config["x0"]))
        folds = bowl(config) + rng.normal(0, 0.05, 5)
        return st.Outcome(float(folds.mean()), folds=[float(fold) for fold in folds])

    result = st.minimize(noisy, plane(2), budget=100, seed=0)
    assert result.stop.kind == "rule"
    assert len(result.history) < 100
    assert "cross-validation error" in result.stop.reason
    assert st.minimize(noisy, plane(2), budget=25, seed=0, stop=None).stop.kind == "budget"


# -- plain numbers -----------------------------------------------------------------------------------------------------


def test_a_study_of_plain_numbers_ends_when_little_is_left_to_gain_and_says_how_sure_it_is():
    result = st.minimize(bowl, plane(2), budget=60, seed=0)
    assert result.stop.kind == "rule"
    assert 40 <= len(result.history) < 60
    assert "% of what was gained" in result.stop.reason
    assert "probability of over 99" in dict(result.rows())["stopped"]
    assert "of the budget" in dict(result.rows())["saved"]
    assert result.stop.evidence["chance"] <= 0.01


def test_a_small_budget_is_never_cut():
    rule = st.Study(plane(1)).rule
    assert rule == st.AutoStop(share=DEFAULT_SHARE)
    history = told_study(plane(2), bowl, 39).log
    assert not rule.needs_belief(history)
    assert "39 of the 40" in rule.check(history).reason


def test_a_method_without_a_model_is_not_slowed_down_by_one():
    for method in (st.Random(), st.Sobol(), st.TPE()):
        assert st.Study(plane(1), method=method).rule == st.AutoStop()
    assert not st.AutoStop().needs_belief(told_study(plane(2), bowl, 60).log)


def test_written_out_without_a_share_the_budget_alone_decides():
    """Studies that were stored by earlier versions say ``AutoStop(price=None, ...)``: they go on as they did."""
    verdict = st.AutoStop().check(told_study(plane(2), bowl, 60).log)
    assert not verdict.stop
    assert "budget alone" in verdict.reason


def test_where_nothing_but_noise_is_left_the_study_ends():
    rng = np.random.default_rng(0)
    study = st.Study(plane(1), seed=0)
    for x in rng.random(80):
        study.add({"x0": float(x)}, 4.0 * (x - 0.5) ** 2 + 0.1 * float(rng.standard_normal()))
    verdict = st.AutoStop(share=0.01).check(study.log)
    assert verdict.stop
    assert "the noise of one evaluation" in verdict.reason
    assert verdict.evidence["noise"] == pytest.approx(0.1, rel=0.4)


def test_the_noise_of_repeated_configs_by_hand():
    study = st.Study(plane(1))
    for x, value in ((0.1, 1.0), (0.1, 3.0), (0.5, 7.0), (0.7, 2.0), (0.7, 2.0), (0.7, 5.0)):
        study.add({"x0": x}, value)
    data = to_dataset(study.log)
    assert repeated_deviation(data) == pytest.approx(math.sqrt((2 * 1.0 + 2 * 1.0 + 4.0) / 3))
    assert noise_of(data, belief_of(study.log, st.GP())) >= repeated_deviation(data)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_what_was_gained_is_counted_from_the_best_of_the_first_trials(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    study = st.Study(plane(1), direction=direction)
    for i, value in enumerate([9, 5, 8, 7, 6, 9, 9, 8, 3, 4, 2, 6]):
        study.add({"x0": i / 12}, sign * value)
    assert gained_so_far(to_dataset(study.log)) == 3.0


def test_a_share_of_the_gain_is_one_in_the_units_that_the_model_sees():
    study = st.Study(plane(1))
    for i, value in enumerate([0.1, 0.2, 0.15, 0.3, 0.11, 0.4, 0.25, 0.5, 0.001, 0.0001]):
        study.add({"x0": i / 12}, value)
    data = to_dataset(study.log)
    plain, logs = (small_gain(data, OutputTransform.of(data.y, kind), 0.01) for kind in ("standard", "log"))
    assert plain == pytest.approx(0.01 * (0.1 - 0.0001))
    assert logs == pytest.approx(0.0001 * (1 - math.exp(-0.01 * math.log(1000))))


def test_equal_values_do_not_end_a_study():
    assert "equal" in st.AutoStop(share=0.01).check(told_study(plane(2), lambda config: 1.0, 45).log).reason


@pytest.mark.parametrize("options", [{"price": -1}, {"share": 0}, {"confidence": 1.0}, {"after": 1}])
def test_bad_input(options):
    with pytest.raises(MethodError, match="AutoStop"):
        st.AutoStop(**options)
