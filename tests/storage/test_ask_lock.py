"""The ask lock: a worker that is suspended while it holds the lock delays the others by one lease, once."""

import os
import signal
import threading
import time

import pytest

import shoestring as st
from shoestring.state import study_state
from shoestring.storage import open_storage
from shoestring.storage.transactions import hold_limit
from tests.storage.crowd import worker

LEASE = 0.15
SPACE = st.Space(x=st.Float(0, 1))


def _hold_the_lock(pipe, address, study):
    storage = open_storage(address)
    with hold_limit(LEASE), storage.ask_lock(study):
        pipe.send("held")
        pipe.recv()
    storage.enqueue(study, {"x": 1}, {})  # after it went on
    storage.close_connections()
    pipe.send("done")


def seconds_to_ask(storage, study):
    start = time.monotonic()
    with hold_limit(LEASE), storage.ask_lock(study):
        return time.monotonic() - start


def test_a_suspended_holder_of_the_ask_lock_is_waited_for_once_and_not_longer_than_a_lease(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    with worker(_hold_the_lock, database.address, study) as (process, pipe):
        assert pipe.recv() == "held"
        os.kill(process.pid, signal.SIGSTOP)
        first, *others = (seconds_to_ask(storage, study) for _ in range(4))
        os.kill(process.pid, signal.SIGCONT)
        pipe.send("go on")
        assert pipe.recv() == "done"
    assert first < 2 * LEASE + 1.0  # a busy machine
    assert max(others) < LEASE  # they do not wait again
    assert len(storage.changes_since(study, 0).queue) == 1
    assert seconds_to_ask(storage, study) < LEASE


def test_the_ask_lock_is_exclusive_again_after_it_was_taken_over(database):
    storage, other = database.open(), open_storage(database.address)
    study = storage.begin("study", {})[0].id
    with worker(_hold_the_lock, database.address, study) as (process, pipe):
        assert pipe.recv() == "held"
        os.kill(process.pid, signal.SIGSTOP)
        together, inside = [], threading.Semaphore(1)

        def ask(place):
            with hold_limit(1.0), place.ask_lock(study):
                together.append(not inside.acquire(blocking=False))
                time.sleep(0.02)
                inside.release()

        seconds_to_ask(storage, study)
        threads = [threading.Thread(target=ask, args=(place,)) for place in (storage, other) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert together == [False] * 4
    other.close_connections()


def test_a_study_with_a_short_lease_does_not_wait_for_a_suspended_worker_that_asks(database):
    study = st.Study(SPACE, st.Random(), storage=database.open(), lease=LEASE)
    with worker(_hold_the_lock, database.address, study.state.study) as (process, pipe):
        assert pipe.recv() == "held"
        os.kill(process.pid, signal.SIGSTOP)
        start = time.monotonic()
        for _ in range(3):
            study.tell(study.ask(), 1.0)
        assert time.monotonic() - start < 2 * LEASE + 1.0


def test_a_thread_that_never_ends_its_turn_is_an_error_for_the_others(monkeypatch):
    monkeypatch.setattr(study_state, "MAX_THREAD_SECONDS", 0.02)
    study, inside, enough = st.Study(SPACE, st.Random(), name="stuck"), threading.Event(), threading.Event()

    def stay():
        with study.state.asking():
            inside.set()
            enough.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(st.StudyError, match="another thread of this process has been at work on study 'stuck'"):
            study.ask()
    finally:
        enough.set()
        thread.join()
    assert study.ask().number == 0


def test_a_thread_that_never_returns_does_not_hold_up_the_others(place):
    storage, inside, enough = place.open(), threading.Event(), threading.Event()
    study = storage.begin("study", {})[0].id

    def stay():
        with storage.ask_lock(study):
            inside.set()
            enough.wait()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    inside.wait()
    start = time.monotonic()
    with hold_limit(0.02), storage.ask_lock(study):
        waited = time.monotonic() - start
    enough.set()
    thread.join()
    assert 0.02 <= waited < 1.0  # a busy machine
    with hold_limit(5.0), storage.ask_lock(study):
        assert time.monotonic() - start < 4.0
