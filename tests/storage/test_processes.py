"""Many processes, one storage: nothing is lost, nothing is done twice, no process is refused."""

import os
import random
import signal
import time

import pytest

from shoestring.data.trial import State
from shoestring.storage import Limits, open_storage
from tests.storage.crowd import begin, context, crowd, empty_queue, read_slowly, tell, tell_for_ever, work_on
from tests.storage.places import done, lease, running


def open_together(database, processes):
    answers = crowd(begin, [(database.address, "study")] * processes)
    assert len({study for study, _ in answers}) == 1
    assert sum(made for _, made in answers) == 1
    assert database.open().check() == []


def test_a_crowd_opens_a_new_database(database):
    open_together(database, 12)


@pytest.mark.slow
def test_a_large_crowd_opens_a_new_database(database):
    open_together(database, 32)


def give_numbers(database, processes, trials):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    asked = crowd(work_on, [(database.address, Limits(trials=trials))] * processes, seconds=280.0)
    assert sorted(number for each in asked for number in each) == list(range(trials))
    stored = storage.changes_since(study, 0).trials
    assert [each.trial.value for each in stored] == [float(number) for number in range(trials)]
    clocks = sorted(clock for each in stored for clock in (each.opened, each.closed))
    assert clocks == list(range(1, 2 * trials + 1))
    assert storage.check() == []


def test_each_number_is_given_once_and_the_budget_is_kept(database):
    give_numbers(database, 8, 40)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "trials"), [(16, 100), (32, 1000)])
def test_each_of_many_numbers_is_given_once_and_the_budget_is_kept(database, processes, trials):
    give_numbers(database, processes, trials)


def test_a_cost_budget_is_overshot_by_no_more_than_what_was_in_flight(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    crowd(work_on, [(database.address, Limits(cost=60.0), 4.0)] * 8)
    spent = sum(each.trial.cost for each in storage.changes_since(study, 0).trials)
    assert spent == 60.0  # what is expected is what it costs: not overshot at all


def run_the_queue(database, processes, jobs):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    for job in range(jobs):
        storage.enqueue(study, {"job": job}, {})
    found = crowd(empty_queue, [(database.address,)] * processes, seconds=280.0)
    assert sorted(job for each in found for job in each) == list(range(jobs))
    assert storage.find("study").trials == jobs
    assert storage.check() == []


def test_each_waiting_config_runs_once(database):
    run_the_queue(database, 8, 30)


@pytest.mark.slow
def test_each_of_many_waiting_configs_runs_once(database):
    run_the_queue(database, 32, 200)


def write_past_a_reader(database, writers, each):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    trials = writers * each
    for number in range(trials):
        storage.write(study, running(number), lease=lease())
    calls = [(tell, database.address, list(range(first, trials, writers))) for first in range(writers)]
    answers = crowd(_call, [*calls, (read_slowly, database.address, 0.5)])
    assert answers == [each] * writers + [trials]
    assert all(stored.trial.state is State.DONE for stored in storage.changes_since(study, 0).trials)


def test_writers_do_not_wait_for_a_slow_reader(database):
    write_past_a_reader(database, 8, 4)


@pytest.mark.slow
def test_many_writers_do_not_wait_for_a_slow_reader(database):
    write_past_a_reader(database, 16, 25)


def _call(work, *arguments):
    return work(*arguments)


def kill_while_it_tells(database, kills):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    luck = random.Random(0)
    for _ in range(kills):
        first = storage.find("study").trials
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as said, os.fdopen(writer, "wb") as says:
            process = context.Process(target=tell_for_ever, args=(database.address, Pipe(says.fileno()), first))
            process.start()
            says.close()
            kept = [int(said.readline())]
            time.sleep(luck.uniform(0.0, 0.1))
            os.kill(process.pid, signal.SIGKILL)
            kept += [int(line) for line in said.readlines()]
        process.join()
        process.close()
        stored = storage.changes_since(study, 0).trials
        assert kept == list(range(first, first + len(kept)))
        assert [each.trial.value for each in stored[first : first + len(kept)]] == [float(number) for number in kept]
        assert len(stored) <= first + len(kept) + 1  # at most one more: killed before it could write its number
    assert storage.check() == []


class Pipe:
    """The writing end of a pipe, for another process."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def fileno(self):
        return self.descriptor

    def __reduce__(self):
        from multiprocessing.reduction import DupFd

        return _rebuilt, (DupFd(self.descriptor),)


def _rebuilt(duplicate):
    return Pipe(duplicate.detach())


def test_what_was_told_survives_a_kill(database):
    kill_while_it_tells(database, 4)


@pytest.mark.slow
def test_what_was_told_survives_two_hundred_kills(database):
    kill_while_it_tells(database, 200)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_connections_of_its_own(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease())
    child = os.fork()
    if child == 0:
        try:
            storage.close(study, done(0, 5.0))
            storage.close_connections()
            os._exit(0)
        except BaseException:
            os._exit(1)
    for number in range(1, 20):  # at the same time, on the connection that the child has inherited
        storage.write(study, running(number), lease=lease())
    assert os.waitpid(child, 0)[1] == 0
    assert storage.changes_since(study, 0).trials[0].trial.value == 5.0
    storage.write(study, running(20), lease=lease())
    assert storage.check() == []


def test_a_storage_travels_to_another_process(database):
    storage = database.open()
    storage.begin("study", {})
    (found,) = crowd(_names, [(storage,)])
    assert found == ["study"]


def _names(storage):
    names = [record.name for record in storage.studies()]
    storage.close_connections()
    return names


def test_the_ask_lock_ends_with_its_process(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as said, os.fdopen(writer, "wb") as says:
        process = context.Process(target=_keep_the_ask_lock, args=(database.address, study, Pipe(says.fileno())))
        process.start()
        says.close()
        assert said.read(1) == b"!"
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        process.close()
    with storage.ask_lock(study):
        pass


def _keep_the_ask_lock(address, study, pipe):
    storage = open_storage(address)
    with storage.ask_lock(study):
        os.write(pipe.fileno(), b"!")
        time.sleep(600)
