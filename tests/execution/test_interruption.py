"""Ctrl-C, SIGTERM and kill -9 of the coordinator: the run ends at once, no worker stays, and no trial is lost."""

import json
import os
import signal
import threading
import time

import pytest

import shoestring as st
from shoestring.execution.signals import Terminated, interruptible, shielded
from tests.execution.helpers import SPACE, alive, script, states, until

SCRIPT = """
import json, os, subprocess, sys, time
from pathlib import Path
import shoestring as st

folder = Path(sys.argv[1])

def objective(config):  # no guard around what follows: worker processes do not run this script
    child = subprocess.Popen(["sleep", "1000"])
    (folder / f"{os.getpid()}-{child.pid}").touch()
    time.sleep(1000)

study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=sys.argv[2])
st.set_verbosity("error")
try:
    study.minimize(objective, 10, WORKERS)
except KeyboardInterrupt as interruption:
    result = interruption.result
print(json.dumps({"stop": result.stop.reason, "kind": result.stop.kind, "states": [str(t.state) for t in result.history],
                  "again": [study.ask().config == t.config for t in result.history], "costs": [t.cost for t in result.history]}))
sys.exit(130)
"""


def running(folder):
    """The workers and their children, once two trials run."""
    until(lambda: len(list(folder.iterdir())) == 2)
    return [int(number) for path in folder.iterdir() for number in path.name.split("-")]


@pytest.mark.parametrize(
    ("database", "number"),
    [
        ("sqlite", signal.SIGINT),
        pytest.param("postgresql", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("sqlite", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("postgresql", signal.SIGINT, marks=pytest.mark.slow),
    ],
    indirect=["database"],
)
def test_a_signal_ends_it_at_once_and_gives_the_trials_back(database, tmp_path, number):
    folder = tmp_path / "running"
    folder.mkdir()
    with script(SCRIPT.replace("WORKERS", "workers=2"), tmp_path, str(folder), database.address) as process:
        pids = running(folder)
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10  # 3 s on a machine that has nothing else to do
    how = "interrupted by SIGTERM" if number == signal.SIGTERM else "interrupted"
    assert f"{how}; trials 0 and 1 will be asked again" in err  # the summary
    until(lambda: not any(alive(pid) for pid in pids))
    history = st.Study.load(database.open()).history
    assert states(history)[:2] == ["abandoned"] * 2
    assert all(trial.cost > 0 for trial in history[:2])
    assert database.open().check() == []
    if number == signal.SIGTERM:  # the process ends as the signal would have ended it: nothing of the script runs after it
        assert (process.returncode, out) == (-signal.SIGTERM, "")
        return
    assert process.returncode == 130
    said = json.loads(out)
    assert said["kind"] == "interrupted"
    assert said["states"] == ["abandoned"] * 2
    assert said["again"] == [True, True]


@pytest.mark.slow
def test_a_signal_does_not_wait_for_a_server_that_is_down(own_server_place, tmp_path):
    folder = tmp_path / "running"
    folder.mkdir()
    text = SCRIPT.replace("WORKERS", "workers=2").partition("print")[0]  # afterwards the server does not answer
    with script(text, tmp_path, str(folder), own_server_place.address) as process:
        until(lambda: list(folder.iterdir()))
        own_server_place.server.halt()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert time.monotonic() - began < 10  # 3 s on a machine that has nothing else to do


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_workers_and_what_they_have_started_end_with_a_coordinator_that_is_killed(database, tmp_path):
    folder = tmp_path / "running"
    folder.mkdir()
    with script(SCRIPT.replace("WORKERS", "workers=2"), tmp_path, str(folder), database.address):
        pids = running(folder)
    until(lambda: not any(alive(pid) for pid in pids))
    study = st.Study.load(database.open())
    lost = [trial.config for trial in study.history]
    assert [trial.config for trial in study.minimize(lambda config: 0.5, 2).history.having(st.State.DONE)] == lost


def test_with_one_worker_sigterm_ends_the_process_too_once_all_is_saved(tmp_path):
    folder = tmp_path / "running"
    folder.mkdir()
    text = SCRIPT.replace("WORKERS", "").replace('["sleep", "1000"]', '["true"]').replace("child.pid", "child.wait()")
    with script(text, tmp_path, str(folder), "tune.db") as process:
        until(lambda: list(folder.iterdir()))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (-signal.SIGTERM, "")
    assert "interrupted by SIGTERM; trial 0 will be asked again" in err
    assert states(st.Study.load(tmp_path / "tune.db").history) == ["abandoned"]


def test_results_that_have_arrived_are_kept_when_the_optimizer_is_interrupted():
    evaluated = []

    class Impatient:
        def suggest(self, context):
            if context.number == 3:
                until(lambda: len(evaluated) == 3)
                time.sleep(0.2)  # the threads put their results into the queue
                raise KeyboardInterrupt
            return st.Random().suggest(context)

    study = st.Study(SPACE, Impatient())
    how = {"workers": 4, "threads": True, "on_interrupt": "return"}
    result = study.minimize(lambda config: evaluated.append(True) or config["x"], 10, **how)
    assert result.stop.reason == "interrupted"
    assert states(study.history) == ["done"] * 3


# -- signals -----------------------------------------------------------------------------------------------------------


def raised_by(number):
    os.kill(os.getpid(), number)
    time.sleep(0.05)  # the main thread sees it within


def test_signals_are_interruptions_inside_and_what_they_were_outside():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)):
        with pytest.raises(kind), interruptible(), interruptible():
            raised_by(number)
        assert {number: signal.getsignal(number) for number in before} == before


def test_a_terminal_that_closes_counts_as_sigterm_where_that_is_wanted():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with pytest.raises(Terminated), interruptible(hangup=True):
            raised_by(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
        with interruptible(hangup=True):
            raised_by(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_handler_of_the_user_is_left_alone():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
            until(lambda: seen)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_is_deferred_until_a_shielded_step_is_complete():
    done = []

    def whole(forget):
        with interruptible(), shielded(forget):
            raised_by(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        whole(False)
    whole(True)
    assert done == [True, True]


def test_in_other_threads_than_the_main_one_handlers_stay_as_they_are():
    found = []

    def there():
        with interruptible(), shielded():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_a_study_may_run_in_another_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(st.minimize(lambda config: config["x"], SPACE, 3, timeout=60)))
    thread.start()
    thread.join()
    assert states(found[0].history) == ["done"] * 3
