import math

import numpy as np
import pytest

import shoestring as st
from shoestring.data.outcome import finish_trial, read_value

TRIAL = st.Trial(3, {"x": 0.5, "n": 2, "c": "a", "on": True})


def finished(value=None, error=None, seconds=0.5, **results):
    return finish_trial(TRIAL, st.Outcome(value, **results), error, seconds)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int64(1), np.array(1.0), np.array([1.0]), np.array([[1]])])
def test_any_number_is_read_as_a_float(value):
    assert read_value(value) == 1.0
    assert type(read_value(value)) is float


@pytest.mark.parametrize("value", [None, "1", True, np.True_, [1.0], np.array([1.0, 2.0]), {}, 1j, object()])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(st.OutcomeError):
        read_value(value)


class Tensor:
    """As PyTorch's: ``size`` is a function, ``item`` refuses several elements."""

    def __init__(self, *elements):
        self.elements = elements

    def size(self):
        return (len(self.elements),)

    def item(self):
        if len(self.elements) != 1:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.elements[0]


class EagerTensor:
    """As TensorFlow's: an array is in it."""

    def numpy(self):
        return np.float32(0.5)


def test_the_tensor_of_a_loss_is_read_as_its_number():
    assert read_value(Tensor(0.25)) == 0.25
    assert read_value(EagerTensor()) == 0.5
    with pytest.raises(st.OutcomeError, match="must be a number"):
        read_value(Tensor(0.25, 0.5))
    with pytest.raises(st.OutcomeError, match="must be a number"):
        read_value(np.zeros(2))


def test_a_whole_number_beyond_all_floats_is_infinite():
    assert read_value(10**400) == math.inf
    assert read_value(-(10**400)) == -math.inf


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_a_value_that_is_not_finite_is_a_failure_with_its_reason(value):
    trial = finished(value, cost=2.0)
    assert trial.state is st.State.FAILED
    assert trial.value is None
    assert trial.cost == 2.0
    assert "inf" in trial.error or "nan" in trial.error


def test_seconds_are_the_cost_unless_one_is_given():
    assert finished(1.0).cost == 0.5
    assert finished(1.0, cost=np.float32(4)).cost == 4.0
    assert finished(1.0, cost=4.0).seconds == 0.5


def test_without_a_value_the_mean_of_the_folds_is_the_value():
    assert finished(folds=[1.0, 2.0, 6.0]).value == 3.0
    assert finished(2.5, folds=np.array([1.0, 2.0])).value == 2.5
    assert finished(folds=(1, 2)).folds == (1.0, 2.0)
    assert finished(folds=[1.0, math.nan]).state is st.State.FAILED


def test_a_gradient_is_kept_by_name():
    assert finished(1.0, gradient={"x": np.float64(2), "n": -1}).gradient == {"x": 2.0, "n": -1.0}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({}, "value"),
        ({"value": "low"}, "low"),
        ({"value": 1.0, "cost": -2}, "cost"),
        ({"value": 1.0, "cost": math.nan}, "cost"),
        ({"value": 1.0, "cost": "3"}, "3"),
        ({"folds": [1.0]}, "folds"),
        ({"folds": []}, "folds"),
        ({"folds": ["a", "b"]}, "a"),
        ({"value": 1.0, "gradient": {"z": 1.0}}, "z"),
        ({"value": 1.0, "gradient": {"c": 1.0}}, "c"),
        ({"value": 1.0, "gradient": {"on": 1.0}}, "on"),
        ({"value": 1.0, "gradient": {"x": math.nan}}, "x"),
        ({"value": 1.0, "gradient": {"x": [1.0, 2.0]}}, "one number for 'x'"),
        ({"value": 1.0, "gradient": {"x": np.ones(3)}}, "one number for 'x'"),
        ({"value": 1.0, "gradient": [1.0]}, "dict"),
    ],
)
def test_bad_input_is_refused_with_a_message(results, message):
    with pytest.raises(st.OutcomeError, match=message):
        finished(**results)


def test_an_error_is_a_failure_and_is_charged():
    trial = finished(error="out of memory", cost=3.0)
    assert (trial.state, trial.error, trial.cost, trial.value) == (st.State.FAILED, "out of memory", 3.0, None)


def test_a_choice_of_numbers_has_no_derivative():
    study = st.Study(st.Space(x=st.Float(0, 1), size=st.Choice(16, 32)))
    with pytest.raises(st.OutcomeError, match=r"'size', which is a choice"):
        study.add({"x": 0.5, "size": 32}, 1.0, gradient={"size": 0.1})
    trial = study.ask()
    with pytest.raises(st.OutcomeError, match=r"'size', which is a choice"):
        study.tell(trial, 1.0, gradient={"size": 0.1})
    assert study.tell(trial, 1.0, gradient={"x": 0.1}).gradient == {"x": 0.1}  # the trial had stayed open
    study.minimize(lambda config: st.Outcome(1.0, gradient={"size": 1.0}), 2)
    assert "which is a choice" in study.history[1].error
