"""A broken objective ends a run early and loudly; a run in which failing is normal goes on."""

import functools
import re
import traceback

import pytest

import shoestring as st
from shoestring.execution.describe import MAX_TRACEBACK_BYTES, traceback_text
from tests.execution.helpers import SPACE, states

RANDOM = {"method": st.Random(), "progress": False}


def failing(error, *, first=10**6):
    """An objective of which the first calls fail."""
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) <= first:
            raise error
        return config["x"]

    objective.calls = calls
    return objective


def test_a_name_that_the_space_does_not_have_ends_it_after_three_trials():
    with pytest.raises(st.ObjectiveError) as ended:
        st.minimize(lambda config: config["learning_rate"], SPACE, "2s", **RANDOM)
    assert "3 trials in a row have failed in the same way" in str(ended.value)
    assert "KeyError: 'learning_rate'" in str(ended.value)
    assert "the config has these parameters: x" in str(ended.value)
    assert isinstance(ended.value.__cause__, KeyError)
    assert "test_fail_fast.py" in traceback.format_tb(ended.value.__cause__.__traceback__)[-1]
    assert states(ended.value.study.history) == ["failed"] * 3
    assert ended.value.trial.number == 2


@pytest.mark.parametrize("how", [{}, {"threads": True, "workers": 2}, {"timeout": 60}], ids=["here", "threads", "processes"])
def test_it_ends_wherever_trials_are_evaluated_with_the_traceback_of_the_objective(how):
    def objective(config):
        return undefined_name  # noqa: F821

    with pytest.raises(st.ObjectiveError, match="its config is not the cause: NameError") as ended:
        st.minimize(objective, SPACE, 50, **RANDOM, **how)
    assert "undefined_name" in str(ended.value.__cause__)
    study = ended.value.study
    assert study.history.number_of(st.State.FAILED) <= 2
    assert "Traceback" in study.history.having(st.State.FAILED)[0].traceback


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        (3.0, "must be a function, not 3.0 (float)"),
        ("train", "must be a function, not 'train' (str)"),
        (lambda: 0.5, "cannot be called with a config: too many positional arguments"),
        (lambda config, trial, fold: 0.5, "missing a required argument: 'fold'"),
    ],
    ids=["number", "text", "no argument", "three arguments"],
)
def test_what_cannot_be_called_with_a_config_is_refused_before_any_trial(objective, said):
    with pytest.raises(st.ObjectiveError, match=re.escape(said)):
        st.minimize(objective, SPACE, 50, **RANDOM)


def test_parameters_one_by_one_are_refused_with_the_way_to_write_it():
    def train(x, y):
        return x + y

    with pytest.raises(st.ObjectiveError, match=re.escape("give: lambda config: train(**config)")):
        st.minimize(train, st.Space(x=st.Float(0, 1), y=st.Float(0, 1)), 50, **RANDOM)


def test_a_coroutine_is_refused_as_a_function_and_as_a_result():
    async def train(config):
        return 0.5

    with pytest.raises(st.ObjectiveError, match=re.escape("is a coroutine function (async def)")):
        st.minimize(train, SPACE, 50, **RANDOM)
    with pytest.raises(st.ObjectiveError, match="a result must be a number, not a coroutine"):
        st.minimize(lambda config: train(config), SPACE, 50, **RANDOM)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "the objective returned None; end it with: return value"),
        ({"loss": 0.5}, "st.Outcome(value, metrics={...})"),
        ("0.5", "a result must be a number"),
        ((0.5, 3), "st.Outcome(value, metrics={...})"),
        (st.Outcome("low"), "a result must be a number"),
    ],
    ids=["None", "dict", "text", "tuple", "outcome of text"],
)
def test_a_result_of_a_wrong_type_ends_it_at_once(result, said):
    with pytest.raises(st.ObjectiveError, match=re.escape(said)) as ended:
        st.minimize(lambda config: result, SPACE, 50, **RANDOM)
    assert len(ended.value.study.history) == 1


def test_an_objective_written_for_optuna_is_told_how_to_read_the_config():
    with pytest.raises(st.ObjectiveError, match=re.escape('read it with config["x"]; the space says what is searched')):
        st.minimize(lambda trial: trial.suggest_float("x", 0, 1), SPACE, 50, **RANDOM)


def test_after_a_success_failures_are_recorded_and_the_study_goes_on():
    result = st.minimize(failing(ValueError("no"), first=2), SPACE, 8, **RANDOM)
    assert states(result.history) == ["failed"] * 2 + ["done"] * 6
    later = result.study.minimize(failing(ValueError("no")), 14)
    assert states(later.history) == ["failed"] * 2 + ["done"] * 6 + ["failed"] * 6


def test_failures_of_different_kinds_are_no_reason():
    errors = iter([ValueError("a"), MemoryError(), ValueError("b"), ValueError("c"), OSError()])

    def objective(config):
        for error in errors:
            raise error
        return config["x"]

    assert states(st.minimize(objective, SPACE, 7, **RANDOM).history) == ["failed"] * 5 + ["done"] * 2


def test_max_failures_allows_so_many_in_all():
    objective = failing(MemoryError())
    with pytest.raises(st.ObjectiveError, match="6 trials of this run have failed, and max_failures=5"):
        st.minimize(objective, SPACE, 50, max_failures=5, **RANDOM)
    assert len(objective.calls) == 6
    assert len(st.minimize(failing(MemoryError()), SPACE, 5, max_failures=5, **RANDOM).history) == 5
    with pytest.raises(st.MethodError, match="max_failures"):
        st.minimize(objective, SPACE, 5, max_failures=-1, **RANDOM)


def test_without_fail_fast_it_goes_on_in_any_case():
    assert len(st.minimize(lambda config: None, SPACE, 6, fail_fast=False, **RANDOM).history) == 6


def test_a_failure_that_is_tried_again_does_not_count():
    result = st.minimize(failing(OSError(), first=3), SPACE, 6, retries=3, **RANDOM)
    assert states(result.history) == ["failed"] * 3 + ["done"] * 3


def test_results_from_elsewhere_do_not_hide_a_broken_objective():
    study = st.Study(SPACE, st.Random())
    study.add({"x": 0.5}, 0.25)
    with pytest.raises(st.ObjectiveError):
        study.minimize(failing(ValueError()), 50)


def test_the_error_names_the_users_own_line_and_not_a_librarys():
    def objective(config):
        return functools.reduce(lambda one, other: one / other, [1, 0])  # the stdlib raises nothing here; the lambda does

    def in_library(config):
        return re.compile("(")

    for function in (objective, in_library):
        with pytest.raises(st.ObjectiveError) as ended:
            st.minimize(function, SPACE, 50, **RANDOM)
        (error,) = {trial.error for trial in ended.value.study.history}
        assert re.search(r"\(test_fail_fast.py, line \d+\)$", error)
        assert "execution/evaluate.py" not in ended.value.study.history[0].traceback


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    text = traceback_text(ValueError("first" + "x" * 50_000 + "last"))
    assert len(text) <= MAX_TRACEBACK_BYTES
    assert text.startswith("ValueError: first")
    assert "(the middle is left out: the whole text has 50,022 characters)" in text
    assert text.endswith("last\n")


def test_tracebacks_are_stored(database):
    study = st.Study(SPACE, st.Random(), storage=database.open())
    with pytest.raises(st.ObjectiveError):
        study.minimize(lambda config: config["y"], 9)
    (one, *_) = st.Study.load(database.open()).history
    assert one.traceback.splitlines()[-1] == "KeyError: 'y'"
    assert one.traceback == study.history[0].traceback
