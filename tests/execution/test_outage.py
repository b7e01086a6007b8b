"""A storage that does not answer for a while: what runs goes on, and what was found is kept once it answers again."""

import logging
import os
import shlex
import signal
import sqlite3
import threading
import time

import pytest
from click.testing import CliRunner

import shoestring as st
from shoestring.cli.main import main
from shoestring.data.trial import State
from shoestring.execution import retry as outage
from tests.execution.helpers import SPACE, alive, script, states, until
from tests.storage.server import Server, missing


class Lock:
    """A program that keeps a SQLite file to itself."""

    def __init__(self, path):
        self.path, self.connection = path, None

    def take(self):
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        self.connection.execute("BEGIN IMMEDIATE")

    def free(self):
        if self.connection is not None:
            self.connection.execute("ROLLBACK")
            self.connection.close()
            self.connection = None


@pytest.fixture
def lock(tmp_path):
    found = Lock(tmp_path / "tune.db")
    yield found
    found.free()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(outage, "SHORT_WAIT_SECONDS", 0.1)
    monkeypatch.setattr("shoestring.execution.runner.SHORT_WAIT_SECONDS", 0.1)
    monkeypatch.setattr("shoestring.state.study_state.SHORT_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(outage, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(outage, "SILENT_SECONDS", 0.0)


@pytest.mark.parametrize("how", [{}, {"workers": 2, "threads": True}])
def test_results_are_held_until_the_storage_answers(lock, caplog, how):
    study, seen = st.Study(SPACE, st.Random(), storage=lock.path), []

    def objective(config):
        seen.append(config["x"])
        if len(seen) == 3:
            lock.take()
            threading.Timer(0.6, lock.free).start()
        return config["x"]

    result = study.minimize(objective, 8, **how)
    assert result.stop.kind == "budget"
    assert sorted(trial.config["x"] for trial in result.history) == sorted(seen)
    assert states(st.Study.load(lock.path).history) == ["done"] * 8
    said = [record.getMessage() for record in caplog.records]
    assert any("keeps it locked" in text and "results are held" in text for text in said)
    assert any("answers again" in text for text in said)


@pytest.mark.slow  # it starts a server of its own, as tests of the storage do
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_server_that_is_down_for_longer_than_a_transaction_waits():
    server, seen = Server(), []

    def restart():
        time.sleep(0.5)
        server.start()

    def objective(config):
        seen.append(config["x"])
        if len(seen) == 3:
            server.halt()
            again.start()
        return config["x"]

    again, storage = threading.Thread(target=restart), st.open_storage(server.address)
    try:
        result = st.Study(SPACE, st.Random(), storage=storage).minimize(objective, 8, workers=2, threads=True)
        assert states(st.Study.load(storage).history) == ["done"] * 8
        assert sorted(trial.config["x"] for trial in result.history) == sorted(seen)
        again.join()
    finally:
        storage.close_connections()
        server.stop()


def test_the_timeout_of_other_trials_is_kept_during_an_outage(lock, tmp_path):
    """While the result of the first trial cannot be recorded, the second one reaches its timeout."""
    study, folder = st.Study(SPACE, st.Random(), storage=lock.path), tmp_path / "running"
    folder.mkdir()
    study.enqueue({"x": 0.25})
    study.enqueue({"x": 0.75})
    locked, ended_during_the_outage = tmp_path / "locked", []

    def objective(config):
        if config["x"] == 0.75:
            (folder / str(os.getpid())).touch()
            time.sleep(1000)
        until(locked.exists)
        return config["x"]

    def outage_until_the_timeout():
        until(lambda: list(folder.iterdir()))
        (pid,) = [int(path.name) for path in folder.iterdir()]
        lock.take()
        try:
            locked.touch()
            until(lambda: not alive(pid), seconds=20)
            ended_during_the_outage.append(pid)
        finally:
            lock.free()

    other = threading.Thread(target=outage_until_the_timeout)
    other.start()
    result = study.minimize(objective, 2, workers=2, timeout=1.0)
    other.join()
    slow = next(trial for trial in result.history if trial.config["x"] == 0.75)
    assert (slow.state, slow.censored) == (State.FAILED, True)
    assert ended_during_the_outage


def test_one_that_never_answers_again_ends_the_run_and_every_result_is_said(lock, monkeypatch, caplog):
    monkeypatch.setattr(outage, "MAX_OUTAGE_SECONDS", 0.3)
    study = st.Study(SPACE, st.Random(), storage=lock.path, name="a study")

    def objective(config):
        lock.take()
        return st.Outcome(config["x"], cost=2.5)

    with pytest.raises(st.Away, match="keeps it locked"):
        study.minimize(objective, 8)
    (told,) = [
        record.getMessage().partition("to tell it later: ")[2] for record in caplog.records if record.levelno == logging.ERROR
    ]
    lock.free()
    assert CliRunner().invoke(main, shlex.split(told)[1:]).exit_code == 0
    (trial,) = st.Study.load(lock.path).history
    assert (trial.state, trial.value, trial.cost) == (State.DONE, trial.config["x"], 2.5)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (0.5, ["0.5", "--cost"]),
        (st.Outcome(None, folds=[0.25, 0.5], cost=1.0), ["--folds", "0.25,0.5", "--cost", "1.0"]),
        (None, ["--error"]),
    ],
)
def test_the_command_tells_whatever_it_was(lock, monkeypatch, caplog, returned, words):
    monkeypatch.setattr(outage, "MAX_OUTAGE_SECONDS", 0.0)

    def objective(config):
        lock.take()
        return returned

    with pytest.raises(st.Away):
        st.Study(SPACE, st.Random(), storage=lock.path).minimize(objective, 8)
    (told,) = [shlex.split(record.getMessage()) for record in caplog.records if record.levelno == logging.ERROR]
    assert [word for word in words if word not in told] == []


def test_the_lease_of_a_result_that_is_held_is_renewed(lock, monkeypatch):
    """Else the config would be given to another worker although its result is here."""
    study = st.Study(SPACE, st.Random(), storage=lock.path)
    trial = study.ask()
    lock.take()
    with pytest.raises(st.Away), st.storage.transactions.wait_limit(0.05):
        study.tell(trial, 1.0)
    assert study.state.heartbeat.token(trial.number) is not None
    assert trial.number in study.state.own_running
    lock.free()
    assert study.tell(trial, 1.0).state is State.DONE
    assert study.state.heartbeat.token(trial.number) is None


def test_after_an_outage_the_others_get_time_to_renew_their_leases(lock):
    study, other = (st.Study(SPACE, st.Random(), storage=lock.path, lease=0.3) for _ in range(2))
    trial = other.ask()
    other.state.heartbeat.let_go(trial.number)  # as if it could not be renewed
    time.sleep(0.4)
    study.state.after_outage(0.2)
    study.ask()
    assert study.history[0].state is State.RUNNING
    time.sleep(0.4)
    study.ask()
    assert study.history[0].state is State.ABANDONED


SCRIPT = """
import sqlite3, sys, time
from pathlib import Path
import shoestring as st

def objective(config):
    other = sqlite3.connect(sys.argv[1], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    Path("locked").touch()
    WAIT
    return config["x"]

result = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=sys.argv[1]).minimize(
    objective, 8, on_interrupt="return"
)
print(result.stop.kind)
"""


@pytest.mark.parametrize("wait", [
    pytest.param("time.sleep(1000)", id="while it runs", marks=pytest.mark.slow),
    pytest.param("globals().update(kept=other)", id="while it is told"),
])  # fmt: skip
def test_an_interruption_does_not_wait_for_the_storage(tmp_path, wait):
    with script(SCRIPT.replace("WAIT", wait), tmp_path, str(tmp_path / "tune.db")) as process:
        until((tmp_path / "locked").exists)
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 10  # 3 s on a machine that has nothing else to do; the lock is never let go
    assert out.split() == ["interrupted"]


def test_a_config_that_kills_every_process_that_evaluates_it_is_not_asked_for_ever(tmp_path):
    """The processes die, so that none is left to report the failure. They are forks of one that has imported the library."""
    text = """
import os, sys
import shoestring as st
import shoestring.storage.sqlite  # once, and not in each fork

st.set_verbosity("error")

def run():
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=sys.argv[1])
    if not len(study.history):
        study.enqueue({"x": 0.5})
    study.minimize(lambda config: os.kill(os.getpid(), 9) if config["x"] == 0.5 else config["x"], 3)

for _ in range(6):
    if (child := os.fork()) == 0:
        run()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
    with script(text, tmp_path, str(tmp_path / "tune.db")) as process:
        out, err = process.communicate(timeout=60)
    assert ([int(code) for code in out.split()], err) == ([-signal.SIGKILL] * 5 + [0], "")
    history = st.Study.load(tmp_path / "tune.db").history
    assert states(history)[:5] == ["abandoned"] * 4 + ["failed"]
    assert "lost 5 times" in history[4].error
    assert states(history)[5:] == ["done"] * 2


def test_what_could_not_be_given_back_is_no_longer_held(lock):
    """Else it would run for ever in a process that goes on, a notebook for example."""
    study = st.Study(SPACE, st.Random(), storage=lock.path, lease=0.5)

    def objective(config):
        lock.take()
        raise KeyboardInterrupt

    assert study.minimize(objective, 3, on_interrupt="return").stop.kind == "interrupted"
    lock.free()
    time.sleep(0.6)
    result = study.minimize(lambda config: config["x"], 3)
    assert states(result.history) == ["abandoned"] + ["done"] * 3
    assert result.history[1].config == result.history[0].config


@pytest.mark.parametrize("number", [1, 3], ids=["in the middle", "the last of the budget"])
def test_a_trial_that_was_opened_when_the_answer_was_lost_is_found_again(lock, monkeypatch, number):
    study = st.Study(SPACE, st.Random(), storage=lock.path)
    write, lost = study.storage.write, []

    def cut_off(*arguments, **options):
        stored = write(*arguments, **options)
        if stored.trial.number == number and not lost:
            lost.append(stored)
            raise st.Away("no answer")
        return stored

    monkeypatch.setattr(study.storage, "write", cut_off)
    result = study.minimize(lambda config: config["x"], 4)
    assert lost
    assert states(result.history) == ["done"] * 4
    assert study.state.own_running == set()


def test_leases_that_are_overdue_by_the_time_of_day_are_renewed_before_others_are_looked_at(lock, monkeypatch):
    """A machine that has slept: its clock went on, its processes did not."""
    monkeypatch.setattr("shoestring.storage.heartbeat.Heartbeat._beat", lambda heart: None)
    study = st.Study(SPACE, st.Random(), storage=lock.path, lease=0.3)
    study.ask()
    time.sleep(0.5)
    study.ask()
    assert states(study.history) == ["running"] * 2
