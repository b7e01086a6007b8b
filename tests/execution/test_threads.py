"""Threads: the same loop, sharing memory with the caller."""

import contextlib
import queue
import threading
import time

import pytest

import shoestring as st
from shoestring.execution.executor import SIGNAL_CHECK_SECONDS, next_item
from tests.execution.helpers import RUNG, SPACE, Late, good_then_bad, states


def test_threads_share_memory_and_never_wait_for_a_slow_one():
    here, others = [], threading.Semaphore(0)

    def objective(config):
        here.append(threading.current_thread())
        if len(here) == 1:
            for _ in range(5):
                others.acquire()
        else:
            others.release()
        return config["x"]

    ended = []
    study = st.Study(SPACE, st.Random())
    result = study.minimize(objective, 6, workers=2, threads=True, callbacks=lambda study, trial: ended.append(trial.number))
    assert states(result.history) == ["done"] * 6
    assert ended[-1] == 0
    assert threading.main_thread() not in here


def test_in_a_finite_space_nothing_is_asked_twice_and_the_end_is_said():
    space = st.Space(a=st.Int(0, 2), b=st.Int(0, 2), c=st.Choice("x", "y", "z"))
    result = st.minimize(lambda config: config["a"], space, 100, workers=64, threads=True, stop=None)
    assert len({str(trial.config) for trial in result.history}) == len(result.history) == 27
    assert "all 27" in result.stop.reason


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_the_budget_of_trials_is_exact_and_failures_are_recorded(database):
    def objective(config):
        if config["x"] < 0.5:
            raise ValueError("low")
        return config["x"]

    study = st.Study(SPACE, st.Random(), storage=database.open())
    result = study.minimize(objective, 50, workers=16, threads=True)
    assert len(result.history) == 50
    assert {str(trial.state) for trial in result.history} == {"done", "failed"}


def test_a_budget_in_cost_is_not_overshot_by_more_than_what_ran(database):
    objective = lambda config: st.Outcome(config["x"], cost=4.0)  # noqa: E731
    study = st.Study(SPACE, storage=database.open())
    result = study.minimize(objective, st.Budget(cost=20, unit="u"), workers=3, threads=True)
    assert 20.0 - 4.0 < result.spent <= 20.0 + 2 * 4.0


def test_a_halt_lets_those_that_run_finish():
    objective = lambda config: config["x"]  # noqa: E731
    study = st.Study(SPACE, st.Random())
    result = study.minimize(objective, 20, workers=2, threads=True, callbacks=lambda study, trial: study.halt("enough"))
    assert result.stop.reason == "enough"
    assert states(result.history) == ["done"] * len(result.history)
    assert len(result.history) <= 3


def test_an_error_in_a_callback_ends_the_others_and_keeps_what_came():
    def callback(study, trial):
        if trial.number == 1:
            raise RuntimeError("in the callback")

    study, release = st.Study(SPACE, st.Random()), threading.Event()
    objective = lambda config, trial: release.wait(60 * (trial.number == 0)) or 0.5  # noqa: E731
    with pytest.raises(RuntimeError, match="in the callback"):
        study.minimize(objective, 5, workers=2, threads=True, callbacks=callback)
    release.set()
    assert states(study.history) == ["abandoned", "done"]


def test_a_rule_ends_the_search_and_those_that_run_are_waited_for():
    class Enough:
        def check(self, history, belief):
            return st.Verdict(len(history.having(st.State.DONE)) >= 5, "five are done", kind="rule")

    result = st.Study(SPACE, st.Random(), stop=Enough()).minimize(lambda config: config["x"], 50, workers=3, threads=True)
    assert result.stop.reason == "five are done"
    assert states(result.history) == ["done"] * len(result.history)
    assert 5 <= len(result.history) <= 5 + 2


def test_reports_questions_and_folders():
    def objective(config, trial):
        trial.report(0.9, epochs=1, cost=1.0)
        assert trial.checkpoint_dir.is_dir()
        assert not trial.should_stop()
        return st.Outcome(0.9, cost=1.0)

    result = st.Study(RUNG, st.Random()).minimize(objective, st.Budget(trials=4, cost=100), workers=2, threads=True)
    assert states(result.history) == ["done"] * 4
    assert all(len(trial.reports) == 1 for trial in result.history)


def test_an_interruption_inside_an_objective_ends_the_run_and_gives_the_trials_back():
    release, stopped = threading.Event(), []

    def objective(config, trial):
        if trial.number == 0:
            release.wait(60)
            stopped.append(trial.should_stop())
            return 0.5
        raise KeyboardInterrupt

    study = st.Study(SPACE, st.Random())
    result = study.minimize(objective, 4, workers=2, threads=True, on_interrupt="return")
    assert result.stop.kind == "interrupted"
    assert states(study.history) == ["abandoned"] * 2
    release.set()  # a thread cannot be ended: should_stop() is True, and its result is ignored
    while not stopped:
        time.sleep(0.01)
    assert stopped == [True]
    assert states(study.history) == ["abandoned"] * 2


def test_raise_errors():
    with pytest.raises(ZeroDivisionError):
        st.minimize(lambda config: 1 / 0, SPACE, 4, workers=2, threads=True, raise_errors=True)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_result_that_came_before_an_error_is_kept(tmp_path, error):
    study = st.Study(SPACE, Late(tmp_path))
    with contextlib.suppress(ZeroDivisionError, KeyboardInterrupt):
        study.minimize(good_then_bad(tmp_path, error), 9, workers=4, threads=True, raise_errors=True)
    assert states(study.history) == ["done"] + ["abandoned"] * 3


class SlowQueue:
    """A queue whose first ``empty`` waits find nothing. It remembers how long each wait was allowed to take."""

    def __init__(self, empty):
        self.empty, self.waits = empty, []

    def get(self, block, timeout):
        self.waits.append(timeout if block else 0.0)
        if len(self.waits) <= self.empty:
            raise queue.Empty
        return "result"


def test_no_wait_is_so_long_that_a_signal_which_came_just_before_it_is_without_effect():
    """Python calls the handler of a signal that arrives right before a wait only after that wait."""
    slow = SlowQueue(3)
    assert next_item(slow, None) == "result"
    assert slow.waits == [SIGNAL_CHECK_SECONDS] * 4

    with pytest.raises(queue.Empty):
        next_item(slow := SlowQueue(9), 0.0)
    assert slow.waits == [0.0]
    with pytest.raises(queue.Empty):
        next_item(queue.SimpleQueue(), SIGNAL_CHECK_SECONDS + 0.05)
