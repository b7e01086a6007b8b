"""Processes that are suspended (SIGSTOP, Ctrl-Z) while they hold a lock: nobody waits for long, or it is said for whom."""

import logging
import os
import signal
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest

from shoestring.errors import StorageUnavailable
from shoestring.storage import lock_holder, locks, open_storage, postgres, rows, sqlite, watchdog
from shoestring.storage.locks import LockFiles
from shoestring.storage.transactions import Suspension, hold_limit, wait_limit
from tests.storage.crowd import worker
from tests.storage.test_failures import END_ALL

pytest.importorskip("fcntl")
linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the holder of a lock is known on Linux only")
DAY = 86_400.0


@pytest.fixture
def storage(tmp_path):
    found = open_storage(tmp_path / "tune.db")
    found.begin("study", {})
    yield found
    found.close_connections()


# -- SQLite files ------------------------------------------------------------------------------------------------------


def test_a_process_that_is_suspended_outside_its_transaction_does_not_hold_up_other_writers(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "MAX_HOLD_SECONDS", 0.02, raising=False)
    with LockFiles(tmp_path / "tune.db").lock("write", 1.0, 0.001) as held, wait_limit(1.0):
        assert held  # and it goes on to be, as if this were another process that is suspended
        start = time.monotonic()
        for number in range(4):
            storage.enqueue(1, {"x": number}, {})
        assert time.monotonic() - start < 2.0  # not a second each
    assert len(storage.changes_since(1, 0).queue) == 4


def test_a_lock_that_was_taken_over_is_exclusive_and_its_former_holder_releases_nothing(tmp_path):
    one, other = LockFiles(tmp_path / "tune.db"), LockFiles(tmp_path / "tune.db")
    suspended = one.lock("write", 1.0, 0.001, 0.01)
    assert suspended.__enter__()
    with other.lock("write", 1.0, 0.001, 0.01) as held:
        assert held
        suspended.__exit__()
        with one.lock("write", 0.0, 0.0) as third:
            assert not third
    with one.lock("write", 0.0, 0.0) as third:
        assert third


def _write_and_wait(pipe, path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    pipe.send("writing")
    pipe.recv()


@linux
def test_it_is_said_which_process_is_suspended_in_a_write_and_how_it_goes_on(storage, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sqlite, "UNUSUAL_WAIT_SECONDS", 0.01, raising=False)
    monkeypatch.setattr(sqlite, "MAX_HOLD_SECONDS", 0.01, raising=False)
    with worker(_write_and_wait, tmp_path / "tune.db") as (process, pipe):
        pid = process.pid
        assert pipe.recv() == "writing"
        locked = rf"process {pid} \(.*keeps it locked; wait for it, or end it"
        with wait_limit(0.02), pytest.raises(StorageUnavailable, match=locked):
            storage.enqueue(1, {"x": 0}, {})
        os.kill(pid, signal.SIGSTOP)
        _wait_until_stopped(pid)
        suspended = rf"process {pid} \(.*\) is suspended in the middle of a write.*kill -CONT {pid}"
        for _ in range(2):
            with caplog.at_level(logging.WARNING), wait_limit(0.02), pytest.raises(StorageUnavailable, match=suspended):
                storage.enqueue(1, {"x": 1}, {})
        assert sum("is suspended in the middle of a write" in message for message in caplog.messages) == 1
        os.kill(pid, signal.SIGCONT)
    storage.enqueue(1, {"x": 2}, {})
    assert lock_holder.find_holder(str(tmp_path / "tune.db")) is None
    assert [entry.config for entry in storage.changes_since(1, 0).queue] == [{"x": 2}]


def _wait_until_stopped(pid):
    while (lock_holder.PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)


@linux
def test_the_holder_of_a_lock_is_found_in_other_journal_modes_and_only_in_open_files(tmp_path):
    path = str(tmp_path / "plain.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.execute("SELECT * FROM t").fetchall()
    with worker(_write_and_wait, path) as (process, pipe):
        assert pipe.recv() == "writing"
        assert lock_holder.find_holder(path) == process.pid
        connection.close()
        assert lock_holder.find_holder(path) is None  # to open it here would end the locks of this process
    assert lock_holder.describe_holder(path) is None


def test_the_ask_lock_of_a_file_is_taken_over_after_half_a_lease_and_waited_for_no_longer_than_one(storage, monkeypatch):
    limits = []

    class Recorded(locks.AskFileLock):
        def __init__(self, files, purpose, *seconds):
            limits.append(seconds)
            super().__init__(files, purpose, *seconds)

    monkeypatch.setattr(locks, "AskFileLock", Recorded)
    with hold_limit(8.0), storage.ask_lock(1):
        pass
    ((limit, most),) = limits
    assert limit == 4.0
    assert 4.0 < most <= 8.0


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def test_the_server_ends_the_transaction_and_the_ask_lock_of_a_suspended_worker(postgres_place, monkeypatch):
    limits, set_timeouts = [], postgres._set_timeouts
    monkeypatch.setattr(postgres, "_set_timeouts", lambda c, *seconds: limits.append(seconds) or set_timeouts(c, *seconds))
    storage = postgres_place.open()
    with hold_limit(8.0), storage.ask_lock(1):
        pass
    assert limits[0] == (8.0, 4.0)  # the most that is waited for it, and that it is held
    with storage._database.engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "500ms"


def test_a_worker_whose_time_was_over_while_it_was_suspended_tries_again(postgres_place):
    storage = postgres_place.open()
    study = storage.begin("study", {})[0].id
    postgres_place.server.execute(END_ALL)  # as it does with the transaction of a suspended worker
    with wait_limit(0.0):
        storage.enqueue(study, {"x": 1}, {})
    assert len(storage.changes_since(study, 0).queue) == 1


def test_time_in_which_this_process_was_suspended_is_not_time_that_it_has_waited(postgres_place, monkeypatch):
    monkeypatch.setattr(Suspension, "seconds", 0.0)
    storage, tries = postgres_place.open(), []

    def work(connection):
        tries.append(None)
        if len(tries) < 4:
            watchdog.note_suspension(DAY)
            postgres_place.server.execute(END_ALL)
        connection.exec_driver_sql("SELECT 1")

    with wait_limit(0.0):
        storage._database.write(work)
    assert len(tries) == 4


def test_a_transaction_that_reads_much_may_take_its_time(postgres_place, monkeypatch):
    storage, limits = postgres_place.open(), []
    study = storage.begin("study", {})[0].id
    for number in range(3):
        storage.enqueue(study, {"x": number}, {})
    read = rows.read_trials_since
    ask = "SHOW idle_in_transaction_session_timeout"
    seen = lambda connection, *rest: limits.append(connection.exec_driver_sql(ask).scalar()) or read(connection, *rest)  # noqa: E731
    monkeypatch.setattr(rows, "read_trials_since", seen)
    storage.changes_since(study, 0)
    monkeypatch.setattr(rows, "ROWS_PER_READ", 2)
    storage.changes_since(study, 0)
    assert limits == ["500ms", "0"]


def test_a_worker_whose_transaction_stood_still_is_given_more_time(postgres_place):
    storage, waited = postgres_place.open(), []

    def work(connection):
        waited.append(connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar())
        if len(waited) < 4:
            postgres_place.server.execute(END_ALL)
        connection.exec_driver_sql("SELECT 1")

    storage._database.write(work)
    assert waited == ["500ms", "2s", "8s", "8s"]


def clock(monkeypatch, *readings):
    """The watchdog's clock reads so in this thread, and goes on with the last; other threads see the time."""
    left, here = list(readings), threading.get_ident()

    def monotonic():
        if threading.get_ident() != here:
            return time.monotonic()
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))


def test_a_server_is_not_called_silent_for_a_time_in_which_this_process_was_suspended(monkeypatch):
    silence = watchdog.Silence()
    guard = watchdog.SilenceGuard(None, silence, 10.0, strict=True)
    monkeypatch.setattr(watchdog._Thread, "alive", True)  # no thread: the looks are taken here
    clock(monkeypatch, 0.0)
    with guard:
        clock(monkeypatch, DAY)
        watchdog._look_at_all(DAY - 0.1)
        assert silence.at < 0
        clock(monkeypatch, DAY + 11.0)
        watchdog._look_at_all(0.05)
        assert silence.at == DAY + 11.0


def test_a_suspension_is_noticed_when_the_connection_is_lost_by_it(monkeypatch):
    monkeypatch.setattr(Suspension, "seconds", 0.0)
    monkeypatch.setattr(watchdog._Thread, "alive", True)
    monkeypatch.setattr(watchdog._Thread, "ticked", 1.0)
    clock(monkeypatch, 0.5)
    guard = watchdog.SilenceGuard(None, watchdog.Silence(), 10.0)
    guard.__enter__()
    clock(monkeypatch, DAY)
    guard.__exit__(OSError, OSError("lost"), None)
    assert Suspension.seconds == DAY - 1.0


def test_a_connection_that_came_while_this_process_was_suspended_is_used(monkeypatch):
    clock(monkeypatch, 0.0, 0.0, DAY, DAY)
    assert watchdog.within(1.0, lambda: time.sleep(0.06) or "connected", discard, TimeoutError) == "connected"


def discard(answer):
    raise AssertionError("it was given up")
