"""The clock of a run: the time during which at least one process was at work on a study, however many there were."""

import threading
import time

import pytest

import shoestring as st
from shoestring.execution.runner import RunClock
from shoestring.execution.simulated import simulate
from tests.stored_study import bowl, study


class FakeTime:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def now():
    return FakeTime()


def worker(place, now):
    kept = study(place)
    kept.refresh()
    clock = RunClock(kept.state.run_status, now)
    clock.study = kept
    return clock


def look(clock):
    """What a run does now and then."""
    clock.study.refresh()
    clock.tick()
    return clock.study.seconds


def at_end(place):
    kept = study(place)
    kept.refresh()
    return kept.seconds


def test_one_after_the_other_adds_up(sqlite_place, now):
    for _ in range(3):
        clock = worker(sqlite_place, now)
        for _ in range(4):
            now.now += 2.5
            look(clock)
        clock.study.state.run_status.save_seconds()
        now.now += 100.0  # nobody is at work
    assert at_end(sqlite_place) == 30.0


def test_at_the_same_time_does_not(sqlite_place, now):
    clocks = [worker(sqlite_place, now) for _ in range(4)]
    for _ in range(10):
        now.now += 6.0
        assert [look(clock) for clock in clocks] == [now.now] * 4
    assert at_end(sqlite_place) == 60.0


def test_a_process_that_starts_later_or_ends_earlier_changes_nothing(sqlite_place, now):
    first = worker(sqlite_place, now)
    now.now = 5.0
    look(first)
    second = worker(sqlite_place, now)
    for now.now in (7.0, 10.0):
        look(first)
        look(second)
    for now.now in (12.0, 16.0, 20.0):  # the first has gone home
        look(second)
    assert at_end(sqlite_place) == 20.0


def test_the_time_of_a_process_that_was_silent_for_long_counts(sqlite_place, now):
    """A long trial: its process writes nothing until it is done. What others counted meanwhile goes on from there."""
    slow = worker(sqlite_place, now)
    now.now = 30.0
    quick = worker(sqlite_place, now)
    now.now = 38.0
    assert look(quick) == 8.0
    now.now = 40.0
    assert look(slow) == 40.0
    assert look(quick) == 40.0
    now.now = 70.0  # the slow one is gone
    assert look(quick) == 70.0


def test_no_time_is_counted_twice_between_two_updates(sqlite_place, now):
    one, other = worker(sqlite_place, now), worker(sqlite_place, now)
    now.now = 10.0
    look(one)
    other.study.refresh()  # knows of the 10 s, but has not ticked since the beginning
    now.now = 11.0
    assert look(other) == 11.0
    assert other.total == 11.0


def test_a_second_run_of_the_same_study_goes_on(now):
    kept = study(None)
    for expected in (8.0, 16.0):
        clock = RunClock(kept.state.run_status, now)
        now.now += 8.0
        clock.tick()
        assert kept.seconds == expected
        now.now += 50.0


def test_less_than_a_second_is_not_lost(sqlite_place, now, monkeypatch):
    clock = worker(sqlite_place, now)
    writes = []
    revise = clock.study.storage.revise
    monkeypatch.setattr(clock.study.storage, "revise", lambda *words, **options: writes.append(1) or revise(*words, **options))
    for _ in range(30):
        now.now += 0.125
        clock.tick()
    assert len(writes) == 3
    assert clock.study.seconds == 3.75
    clock.study.state.run_status.save_seconds()
    clock.study.state.run_status.save_seconds()
    assert len(writes) == 4
    assert at_end(sqlite_place) == 3.75


def test_time_during_an_outage_of_the_storage_is_written_later(sqlite_place, now, monkeypatch, caplog):
    clock = worker(sqlite_place, now)

    def away(*words, **options):
        raise st.StorageError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(clock.study.storage, "revise", away)
        for _ in range(3):
            now.now += 4.0
            clock.tick()
        with pytest.raises(st.StorageError):
            clock.study.state.run_status.save_seconds()
    assert caplog.text == ""
    assert clock.study.seconds == 12.0
    clock.study.refresh()
    assert clock.study.seconds == 12.0
    now.now += 0.5
    clock.tick()
    assert at_end(sqlite_place) == 12.5


def test_simulated_time_adds_up_too(sqlite_place):
    for count in (4, 8):
        simulate(study(sqlite_place, method=st.Random()), lambda config: st.Outcome(bowl(config), cost=10.0), count, workers=2)
    assert at_end(sqlite_place) == 40.0  # two at once, ten seconds each


def test_a_study_as_text_keeps_its_time(now):
    kept = study(None)
    clock = RunClock(kept.state.run_status, now)
    now.now = 7.25
    clock.tick()
    again = st.Study.from_json(kept.to_json())
    assert again.seconds == 7.25
    again.refresh()
    assert again.seconds == 7.25


def test_a_budget_in_seconds_is_not_used_up_sooner_by_many(sqlite_place):
    def objective(config):
        time.sleep(0.05)
        return bowl(config)

    def work():
        study(sqlite_place, method=st.Random()).minimize(objective, st.Budget(seconds=1.5))

    threads = [threading.Thread(target=work) for _ in range(3)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    assert took > 1.4
    assert 1.4 < at_end(sqlite_place) < took + 0.1
