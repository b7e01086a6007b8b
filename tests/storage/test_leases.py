"""Leases go by the database's clock, whatever the clocks of the workers say, and a trial that comes back late is kept."""

import datetime
import os
import signal
import time

import pytest

from shoestring.data.trial import State
from shoestring.storage import Lease, boot_clock, open_storage, rows
from shoestring.storage.heartbeat import worker_name
from tests.storage.crowd import context, crowd
from tests.storage.places import done, lease, running


def _with_a_clock_that_is_wrong(address, hours, zone):
    """A worker whose clock is off by hours, in a zone that is about to change to summer time."""
    os.environ["TZ"] = zone
    time.tzset()
    right = time.time
    time.time = lambda: right() + 3600.0 * hours
    storage = open_storage(address)
    study = storage.find("study").id
    reaped = [trial.number for trial in storage.reap(study, 1.0)]
    lost = storage.renew(study, {0: "token"}, 30.0)
    storage.close_connections()
    return reaped, lost


def test_no_lease_ends_early_because_clocks_differ(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=Lease("worker", "token", 30.0))
    zones = ["UTC", "Europe/Berlin", "America/New_York"]
    calls = [(database.address, hours, zone) for hours, zone in zip((-1.0, 1.0, 24.0 * 365), zones, strict=True)]
    assert crowd(_with_a_clock_that_is_wrong, calls) == [([], set())] * 3
    assert storage.changes_since(study, 0).trials[0].trial.state is State.RUNNING


def test_the_clock_is_that_of_the_machine_in_seconds(database):
    storage = database.open()
    made = storage.begin("study", {})[0].created_at
    assert abs(made - datetime.datetime.now(datetime.UTC).timestamp()) < 3600.0


def _open_and_wait(address, pipe):
    storage = open_storage(address)
    study = storage.find("study").id
    storage.write(study, running(0), lease=lease(0.2))
    pipe.send("opened")
    pipe.recv()
    closed = storage.close(study, done(0, 0.5, cost=3.0))
    storage.close_connections()
    pipe.send((closed.trial.state, closed.trial.value))


def lone_worker(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    ours, theirs = context.Pipe()
    worker = context.Process(target=_open_and_wait, args=(database.address, theirs))
    worker.start()
    assert ours.recv() == "opened"
    return storage, study, worker, ours


def reaped(storage, study):
    for _ in range(600):
        gone = storage.reap(study, 2.0)
        if gone:
            return gone
        time.sleep(0.05)
    return pytest.fail("the lease did not end")


def test_the_trial_of_a_killed_worker_comes_back(database):
    storage, study, worker, pipe = lone_worker(database)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    worker.close()
    pipe.close()
    (gone,) = reaped(storage, study)
    assert (gone.number, gone.state, gone.censored) == (0, State.ABANDONED, True)
    assert gone.cost == 2.0 * gone.seconds > 0.0
    assert [entry.config for entry in storage.changes_since(study, 0).queue] == [running(0).config]


def test_the_result_of_a_suspended_worker_is_kept_once_and_both_are_charged(database):
    storage, study, worker, pipe = lone_worker(database)
    os.kill(worker.pid, signal.SIGSTOP)
    reaped(storage, study)
    (entry,) = storage.changes_since(study, 0).queue
    storage.write(study, running(1), lease=lease(), queued=entry.id)
    storage.close(study, done(1, 0.25, cost=4.0))
    os.kill(worker.pid, signal.SIGCONT)
    pipe.send("go on")
    assert pipe.recv() == (State.DONE, 0.5)
    worker.join()
    worker.close()
    pipe.close()
    trials = [each.trial for each in storage.changes_since(study, 0).trials]
    assert [(trial.value, trial.cost) for trial in trials] == [(0.5, 3.0), (0.25, 4.0)]
    assert storage.check() == []


def test_looking_for_late_trials_takes_no_lock(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease(600.0))
    other = database.open()
    options = other._database.backend.write_options
    with other._database.engine.connect().execution_options(**options) as connection, connection.begin():
        if connection.dialect.name == "postgresql":  # on a busy machine the calls below may take longer than a writer may idle
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute(rows.LOCK_STUDY, {"study_": study})
        assert storage.reap(study, 1.0) == []
        assert storage.changes_since(study, 0).clock == 1
        assert storage.best(study, False) is None


# -- clocks that are set -----------------------------------------------------------------------------------------------


def opened_by_two_workers(place, monkeypatch, seconds=60.0):
    """A storage at a place with a fake clock, and two trials of workers that renew their leases."""
    place.use_fake_clock(monkeypatch)
    storage = place.open()
    study = storage.begin("study", {})[0].id
    for number in range(2):
        storage.write(study, running(number), lease=Lease(worker_name(seconds), f"token {number}", seconds))
    assert storage.reap(study, None) == []
    return storage, study


def test_a_clock_that_is_set_forward_gives_no_trial_of_a_living_worker_away(database, monkeypatch):
    storage, study = opened_by_two_workers(database, monkeypatch)
    database.set_clock_forward(3600.0)
    assert storage.reap(study, None) == []
    database.wait(20.0)
    assert storage.renew(study, {0: "token 0"}, 60.0) == set()  # the other worker is dead
    assert storage.reap(study, None) == []
    database.wait(45.0)
    assert [trial.number for trial in storage.reap(study, None)] == [1]


def test_a_clock_that_is_set_back_keeps_no_dead_worker_for_longer_than_two_leases(database, monkeypatch):
    storage, study = opened_by_two_workers(database, monkeypatch)
    database.set_clock_forward(-3600.0)
    for _ in range(5):
        database.wait(20.0)
        assert storage.renew(study, {0: "token 0"}, 60.0) == set()
        gone = [trial.number for trial in storage.reap(study, None)]
    assert gone == [1]
    assert storage.changes_since(study, 0).trials[0].trial.state is State.RUNNING


def test_a_lease_that_nobody_renews_lasts_as_long_as_it_says(database, monkeypatch):
    database.use_fake_clock(monkeypatch)
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=Lease("asked on this host", "token", 86400.0))
    for _ in range(5):
        assert storage.reap(study, None) == []
        database.wait(86400.0 / 6)
    database.wait(86400.0)
    assert [trial.number for trial in storage.reap(study, None)] == [0]


def test_the_clock_of_a_file_is_not_the_time_of_day_that_somebody_sets(sqlite_place, monkeypatch):
    """Each process that opens the file after the time of day was set goes by the same clock as before."""
    right, off = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: right() + off)
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=Lease("worker", "token", 0.05))
    storage.write(study, running(1), lease=Lease("worker", "token", 60.0))
    time.sleep(0.06)
    for off in (3600.0, -3600.0):  # noqa: B007 - the clock reads it
        storage.close_connections()
        storage = open_storage(sqlite_place.path)
        storage.renew(study, {1: "token"}, 60.0)
        clock = storage._database.read(lambda connection: connection.exec_driver_sql("SELECT shoestring_clock()").scalar())
        assert abs(clock - right()) < 60.0
    assert [trial.number for trial in storage.reap(study, None)] == [0]
    storage.close_connections()


def test_the_clock_of_a_file_does_not_go_back_when_a_machine_boots_with_a_wrong_time(sqlite_place, monkeypatch):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=Lease("worker", "token", 0.0))
    storage.close_connections()
    monkeypatch.setattr(boot_clock, "boot_name", lambda: "another boot")
    monkeypatch.setattr(time, "time", lambda: 0.0)  # 1970
    assert [trial.number for trial in open_storage(sqlite_place.path).reap(study, None)] == [0]
