"""Objectives that end their process, or try to: a failed trial, recorded, and a run that goes on; and workers that are lost."""

import contextlib
import pickle
import signal
import socket
import sys
import time
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import pytest

import shoestring as st
from shoestring.budget import Allowance
from shoestring.data.trial import Trial
from shoestring.execution.executor import SerialExecutor
from shoestring.execution.futures import Task, run_task
from shoestring.execution.serialization import serialize_objective
from shoestring.execution.signals import raised_by_signal_handler
from shoestring.execution.worker import Channel, evaluate_trial, load_objective
from tests.execution.helpers import SPACE, states

PAIR = "\ud83d\ude00"  # one character in two halves, as wrong decoding leaves it


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Exits(Exception):
    def __str__(self):
        sys.exit(5)


def raising(error):
    def objective(config):
        if config["x"] == 0.5:
            raise error
        return config["x"]

    return objective


def enqueued(*numbers, **options):
    found = st.Study(SPACE, st.Random(), **options)
    for x in numbers:
        found.enqueue({"x": x})
    return found


# -- a failed trial, and the run goes on -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["serial", "threads", "thread pool"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3 (test_exiting_objectives.py, line "),
        (GeneratorExit(), "GeneratorExit (test_exiting"),
        (Unprintable(), "Unprintable (test_exiting"),
        (Exits(), "Exits (test_exiting"),
    ],
    ids=["sys.exit", "other base exception", "str raises", "str exits"],
)
def test_an_objective_that_exits_fails_its_trial_and_the_run_goes_on(how, error, said):
    with ThreadPoolExecutor(1) as pool:
        options = {"serial": {}, "threads": {"threads": True}, "thread pool": {"executor": pool}}[how]
        history = enqueued(0.25, 0.5).minimize(raising(error), 3, **options).history
    assert states(history) == ["done", "failed", "done"]
    assert history[1].error.startswith(said)


def test_an_exit_on_a_pool_of_processes_is_a_failure_of_its_trial():
    task = Task(serialize_objective(raising(SystemExit(3))), Trial(0, {"x": 0.5}), SPACE, Allowance())
    kind, evaluation = pickle.loads(run_task(pickle.dumps(task), "token"))  # what a process of the pool does
    assert kind == "done"
    assert evaluation.error.startswith("SystemExit: 3")
    assert evaluation.transient


def test_an_objective_that_always_exits_is_broken_and_the_error_says_what_to_do():
    with pytest.raises(st.ObjectiveError, match=r"SystemExit: 3 .*raise an exception in place of sys.exit\(\)"):
        st.minimize(lambda config: sys.exit(3), SPACE, 9, method=st.Random())


def test_with_raise_errors_an_exit_is_raised():
    with pytest.raises(SystemExit):
        enqueued(0.5).minimize(raising(SystemExit(3)), 1, raise_errors=True)


@pytest.mark.parametrize("kind", ["function", "method", "callable"])
def test_a_signal_handler_of_the_user_may_still_end_the_process(kind):
    class Handlers:
        def method(self, number, frame):
            sys.exit(7)

        def __call__(self, number, frame):
            sys.exit(7)

    handler = {"function": lambda number, frame: sys.exit(7), "method": Handlers().method, "callable": Handlers()}[kind]
    before = signal.signal(signal.SIGTERM, handler)
    try:
        found = enqueued(0.5)
        with pytest.raises(SystemExit) as ended:
            found.minimize(lambda config: signal.raise_signal(signal.SIGTERM), 1)
        assert ended.value.code == 7
        assert states(found.history) == ["abandoned"]  # it is asked again
        assert not raised_by_signal_handler(SystemExit(7))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_texts_with_characters_in_two_halves_are_stored(database):
    def objective(config, trial):
        trial.set_attr(f"host {PAIR}", f"gpu {PAIR}")
        if config["x"] == 0.5:
            raise ValueError(PAIR)
        return st.Outcome(config["x"], metrics={PAIR: 1.0}, attrs={"note": PAIR})

    enqueued(0.25, 0.5, storage=database.open()).minimize(objective, 3)
    history = st.Study.load(database.open()).history
    assert states(history) == ["done", "failed", "done"]
    assert history[1].error.startswith("ValueError: \U0001f600 (")
    assert history[0].metrics == {"\U0001f600": 1.0}
    assert history[0].attrs == {"host \U0001f600": "gpu \U0001f600", "note": "\U0001f600"}


@contextlib.contextmanager
def no_output():
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def test_an_objective_that_takes_the_output_away_leaves_its_worker_alive():
    def objective(config):
        sys.stdout = sys.stderr = None
        return 0.25

    ours, theirs = socket.socketpair()
    with ours, theirs, no_output():
        evaluate_trial(objective, Trial(0, {"x": 0.5}), ".", SPACE, False, Channel(theirs))
        *_, (_, kind, evaluation) = Channel(ours).received()
    assert (kind, evaluation.outcome.value) == ("done", 0.25)


def test_an_objective_that_cannot_be_loaded_says_why_even_if_its_error_has_no_text():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pickled = serialize_objective(LoadsBadly())
        assert load_objective(pickled, Channel(theirs)) is None
        assert list(Channel(ours).received()) == [(None, "load_error", "Unprintable: ")]


def fail_to_load():
    raise Unprintable


class LoadsBadly:
    def __reduce__(self):
        return fail_to_load, ()


# -- workers that are lost ---------------------------------------------------------------------------------------------


class Breaks:
    """An executor whose processes die as soon as two trials run."""

    def __init__(self):
        self.running = []

    def submit(self, *task):
        future = Future()
        self.running.append(future)
        if len(self.running) == 2:
            for each in self.running:
                each.set_exception(BrokenExecutor("a process has died"))
        return future


def test_a_config_on_which_the_users_executor_breaks_is_not_asked_for_ever(database):
    found = enqueued(0.25, 0.5, storage=database.open())
    for _ in range(3):
        with pytest.raises(st.ExecutionError, match="broke while 2 trials ran"):
            found.minimize(raising(None), 3, executor=Breaks(), workers=2, max_retries=2)
    assert states(found.history) == ["abandoned"] * 4 + ["failed"] * 2
    assert found.history[5].error == "its worker was lost 3 times; perhaps this config is the cause"
    assert not found.state.queue


def test_how_often_a_lost_worker_is_forgiven_is_the_users_to_say(database, monkeypatch):
    monkeypatch.setattr("shoestring.state.study_state.surely_dead", lambda worker: True)
    for max_retries, expected in ((0, ["failed", "done"]), (1, ["abandoned", "done", "done"])):
        name = str(max_retries)
        enqueued(0.5, storage=database.open(), name=name).ask()  # and its process dies
        found = st.Study(SPACE, st.Random(), storage=database.open(), name=name)
        found.minimize(lambda config: config["x"], 2, max_retries=max_retries)
        assert states(found.history) == expected
    with pytest.raises(st.ShoestringError, match="max_retries"):
        found.minimize(lambda config: 0.0, 3, max_retries=-1)


def test_the_process_that_finds_a_worker_lost_knows_how_often_its_run_forgives_that(database):
    class Stops(SerialExecutor):
        def start(self, trial, live):
            raise KeyboardInterrupt

        def cancel(self):
            found.state.release(0)  # as if its process had died: no trial is given back

    found = st.Study(SPACE, st.Random(), storage=database.open(), lease=0.05)
    with contextlib.suppress(KeyboardInterrupt):
        found.run(Stops(lambda config: 0.0), 3, max_retries=0, progress=False)
    time.sleep(0.1)
    other = st.Study(SPACE, st.Random(), storage=database.open(), lease=0.05)
    other.tell(other.ask(), 0.5)
    assert states(other.history) == ["failed", "done"]
    assert other.history[0].error == "its worker was lost once; perhaps this config is the cause"
