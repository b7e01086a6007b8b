"""A stop ends the runs that are at work when it is asked for, and no later one."""

import threading

import pytest

import shoestring as st
from tests.stored_study import bowl, study


def opened(place):
    return study(place, method=st.Random())


def test_a_run_that_begins_does_not_cancel_a_stop_that_another_run_has_not_seen(database):
    running, stopping, beginning = opened(database), opened(database), opened(database)
    later = []

    def objective(config):
        stopping.halt("enough")
        later.append(beginning.minimize(bowl, 3))
        return bowl(config)

    result = running.minimize(objective, 50)
    assert len(later) == 1
    assert later[0].stop.kind == "budget"
    assert (result.stop.kind, result.stop.reason) == ("halted", "halted by request")
    assert len(result.history) == 3


def test_the_reason_can_be_read_after_the_run(database):
    running, stopping = opened(database), opened(database)
    result = running.minimize(lambda config: stopping.halt("lunch") or 1.0, 50)
    assert (result.stop.kind, result.stop.reason) == ("halted", "lunch")
    assert running.halted == "lunch"


def test_all_that_run_are_ended_and_the_next_run_is_not(database):
    ready, stopped = threading.Barrier(4, timeout=60), threading.Event()
    results = []

    def objective(config):
        if not stopped.is_set():
            ready.wait()
            stopped.wait(60)
        return bowl(config)

    runners = [opened(database) for _ in range(3)]
    threads = [threading.Thread(target=lambda each=each: results.append(each.minimize(objective, 50))) for each in runners]
    for thread in threads:
        thread.start()
    ready.wait()
    opened(database).halt("enough")
    stopped.set()
    for thread in threads:
        thread.join()
    assert [result.stop.reason for result in results] == ["enough"] * 3
    assert len(opened(database).history) == 3
    assert len(opened(database).minimize(bowl, 5).history) == 5
    assert opened(database).halted is None


def test_a_stop_of_before_does_not_end_a_run_however_often_it_was_asked(database):
    for _ in range(3):
        opened(database).halt("enough")
    assert opened(database).storage.find("bowl").halts == 3
    again = opened(database)
    assert again.minimize(bowl, 2).stop.kind == "budget"
    again.refresh()
    assert again.halted is None
    assert again.storage.find("bowl").halts == 3


@pytest.mark.parametrize("how", ["callback", "objective", "thread"])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_process_ends_its_own_run(sqlite_place, where, how):
    kept = opened(None if where == "memory" else sqlite_place)

    def stop():
        worker = threading.Thread(target=kept.halt, args=("mine",))
        worker.start()
        worker.join(60)

    def objective(config):
        if how == "objective":
            kept.halt("mine")
        elif how == "thread":
            stop()
        return bowl(config)

    callbacks = [lambda study, trial: study.halt("mine")] if how == "callback" else []
    result = kept.minimize(objective, 50, callbacks=callbacks)
    assert (len(result.history), result.stop.reason) == (1, "mine")
    assert len(kept.minimize(bowl, 4).history) == 4


def test_the_same_reason_again_is_another_stop(database):
    one, other = opened(database), opened(database)
    other.halt("enough")
    one.refresh()  # it has seen the text
    for count in (1, 2):
        assert len(one.minimize(lambda config: other.halt("enough") or 1.0, 50).history) == count
