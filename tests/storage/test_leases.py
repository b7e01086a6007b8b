"""Leases go by the database's clock, whatever the clocks of the workers say, and a trial that comes back late is kept."""

import datetime
import os
import signal
import time

import pytest

from shoestring.data.trial import State
from shoestring.storage import Lease, open_storage, rows
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
        connection.execute(rows.LOCK_STUDY, {"study_": study})
        assert storage.reap(study, 1.0) == []
        assert storage.changes_since(study, 0).clock == 1
        assert storage.best(study, False) is None
