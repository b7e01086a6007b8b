"""What is tried again, and what is not."""

import dataclasses

import pytest

import shoestring as st
from shoestring.execution.evaluate import Failure
from shoestring.execution.retry import retry_suggestion
from tests.execution.helpers import RUNG, SPACE, states


def test_an_exception_is_tried_again_before_anything_else_and_in_the_same_process_too():
    calls = []

    def objective(config):
        calls.append(config["x"])
        if len(calls) <= 2:
            raise ConnectionError
        return 0.5

    history = st.Study(SPACE, st.Random()).minimize(objective, 5, retries=3).history
    assert states(history) == ["failed", "failed", "done", "done", "done"]
    assert calls[0] == calls[1] == calls[2] != calls[3]
    assert [trial.suggestion.get("retry", 0) for trial in history] == [0, 1, 2, 0, 0]


@pytest.mark.parametrize(
    ("result", "times"),
    [
        (ValueError("no"), 3), (MemoryError(), 3), (Failure("no", 2.0), 3), (Failure("late", 2.0, censored=True), 1),
        (None, 1), ("low", 1),
    ],
    ids=str,
)
def test_how_often(result, times):
    calls = []

    def objective(config):
        calls.append(config["x"])
        if isinstance(result, Exception):
            raise result
        return result

    history = st.Study(SPACE, st.Random()).minimize(objective, 6, retries=2, fail_fast=False).history
    assert len(set(calls)) == 6 // times
    assert states(history) == ["failed"] * 6


def test_a_failure_says_what_it_cost():
    def objective(config):
        raise Failure("cut off", cost=7.0, censored=True)

    trial = st.Study(SPACE, st.Random()).minimize(objective, 1).history[0]
    assert (str(trial.state), trial.error, trial.cost, trial.censored) == ("failed", "cut off", 7.0, True)


def test_nothing_that_has_a_value_is_tried_again():
    study = st.Study(SPACE)
    assert retry_suggestion(study.tell(study.ask(), 0.5), 3) is None
    first = study.tell(study.ask(), error="no")
    again = retry_suggestion(first, 1)
    assert again is not None
    assert again["retry"] == 1
    assert retry_suggestion(dataclasses.replace(first, suggestion=again), 1) is None
    assert retry_suggestion(dataclasses.replace(first, suggestion=again), 2)["retry"] == 2


def test_the_place_in_a_plan_is_kept():
    failed = []

    def objective(config):
        if config["x"] not in failed and len(failed) < 3:
            failed.append(config["x"])
            raise ConnectionError
        return config["x"]

    once = st.Study(RUNG, st.Hyperband(), seed=1).minimize(lambda config: config["x"], 20).history
    again = st.Study(RUNG, st.Hyperband(), seed=1).minimize(objective, 23, retries=1).history
    there, here = ([trial.suggestion["plan"] for trial in each if trial.value is not None] for each in (again, once))
    assert [(plan["bracket"], plan["rung"]) for plan in there] == [(plan["bracket"], plan["rung"]) for plan in here]
    assert [plan["config"] for plan in there[:9]] == list(range(9))
