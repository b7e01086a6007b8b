"""Several processes at work on one study: killed, suspended, with clocks that are wrong, and all at once."""

import contextlib
import os
import signal
import time

import pytest

import shoestring as st
from tests.storage.crowd import crowd, worker
from tests.stored_study import bowl, configs, configs_in_memory, study

SMALL = st.Space(a=st.Choice(1, 2, 3), b=st.Choice(1, 2, 3), c=st.Choice(1, 2, 3))
LEASE = 0.6  # seconds
on_a_server_too = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


# -- killed ------------------------------------------------------------------------------------------------------------


def _ask_and_wait(pipe, address):
    pipe.send(study(address, lease=LEASE).ask().config)
    pipe.recv()


@on_a_server_too
def test_what_a_killed_process_had_asked_is_asked_again_within_a_lease(database):
    with worker(_ask_and_wait, database.address) as (process, pipe):
        lost = pipe.recv()
        process.kill()
    time.sleep(LEASE)
    going_on = study(database)
    again = going_on.ask()
    assert again.config == lost
    going_on.tell(again, bowl(again.config), cost=1.0)
    assert [str(trial.state) for trial in going_on.history] == ["abandoned", "done"]
    assert database.open().check() == []


def _die_in_a_trial(pipe, address):
    def objective(config, trial):
        if trial.number == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return bowl(config)

    study(address).minimize(objective, 11)


def test_a_killed_worker_leaves_its_trial_to_others(database):
    with worker(_die_in_a_trial, database.address) as (process, _):
        process.join()
        assert process.exitcode == -signal.SIGKILL
    going_on = study(database)
    assert going_on.history[9].state is st.State.RUNNING
    going_on.minimize(bowl, 11)  # at once: it can be seen that the worker is dead
    assert going_on.history[9].state is st.State.ABANDONED
    assert configs(going_on) == configs_in_memory(11)
    assert len(going_on.history.having(st.State.DONE)) == 11


def _report_and_die(pipe, address):
    def train(config, trial):
        trial.report(0.5, s=0.25)
        os.kill(os.getpid(), signal.SIGKILL)

    space = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
    st.Study(space, method=st.EI(), stop=None, name="curve", storage=address).minimize(train, 5)


def test_what_a_killed_worker_had_reported_is_kept(database):
    with worker(_report_and_die, database.address) as (process, _):
        process.join()
        assert process.exitcode == -signal.SIGKILL
    going_on = st.Study.load(database.open())
    going_on.minimize(lambda config: config["x"], 3)
    assert going_on.history[0].state is st.State.ABANDONED
    assert [report["value"] for report in going_on.history[0].reports] == [0.5]


# -- suspended ---------------------------------------------------------------------------------------------------------


def _run_slowly(pipe, address):
    def objective(config, trial):
        if trial.number == 0:
            pipe.send(config)
            pipe.recv()
        return st.Outcome(0.5, cost=3.0)

    result = study(address, method=st.Random(), lease=LEASE, unit="USD").minimize(objective, 3)
    pipe.send((result.stop.kind, result.spent))


def test_a_worker_that_is_suspended_past_its_lease_goes_on_and_both_costs_are_charged(database):
    other = study(database, method=st.Random(), unit="USD")
    with worker(_run_slowly, database.address) as (process, pipe):
        config = pipe.recv()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.2 * LEASE)
        again = other.ask()
        assert again.config == config
        other.tell(again, 0.25, cost=4.0)
        os.kill(process.pid, signal.SIGCONT)
        pipe.send("go on")
        assert pipe.recv() == ("budget", 10.0)
        process.join()
        assert process.exitcode == 0
    history = other.history
    assert [(str(trial.state), trial.value, trial.cost) for trial in history] == [
        ("done", 0.5, 3.0), ("done", 0.25, 4.0), ("done", 0.5, 3.0)
    ]  # fmt: skip
    assert history.spent == 10.0
    assert database.open().check() == []


# -- clocks ------------------------------------------------------------------------------------------------------------


def _ask_with_a_clock_that_is_wrong(address, hours, zone):
    os.environ["TZ"] = zone
    time.tzset()
    right = time.time
    time.time = lambda: right() + 3600.0 * hours
    mine = study(address, method=st.Random())
    config = mine.ask(lease="30s").config
    mine.storage.close_connections()
    return config


@on_a_server_too
def test_clocks_that_differ_take_no_trial_from_anybody(database):
    owner = study(database, method=st.Random())
    asked = [owner.ask(lease="30s").config]
    calls = [(-1.0, "UTC"), (1.0, "Europe/Berlin"), (24.0 * 365, "America/New_York")]
    asked += crowd(_ask_with_a_clock_that_is_wrong, [(database.address, *call) for call in calls])
    asked.append(owner.ask().config)
    assert len({str(config) for config in asked}) == 5
    assert {str(trial.state) for trial in owner.history} == {"running"}


# -- all at once -------------------------------------------------------------------------------------------------------


def _take_part(address, budget):
    """The numbers of the trials that this process has evaluated."""
    mine, numbers = study(address, method=st.Random(), unit="USD"), []
    paid = lambda config: st.Outcome(bowl(config), cost=1.0 + 3.0 * config["x"])  # noqa: E731
    mine.minimize(paid, budget, callbacks=lambda study, trial: numbers.append(trial.number))
    mine.storage.close_connections()
    return numbers


def share_a_budget(database, processes, trials, cost):
    def evaluated(budget):
        parts = crowd(_take_part, [(database.address, budget)] * processes, seconds=280.0)
        return sorted(number for part in parts for number in part)

    assert evaluated(st.Budget(trials=trials)) == list(range(trials))
    spent = study(database).history.spent
    assert evaluated(st.Budget(cost=spent + cost, unit="USD"))[0] == trials
    history = study(database).history
    assert {str(trial.state) for trial in history} == {"done"}
    assert history.spent - spent <= cost + 4.0 * processes
    assert database.open().check() == []


each_database = pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)


@each_database
def test_a_budget_is_shared_by_several_processes(database):
    share_a_budget(database, 4, 20, 20.0)


@pytest.mark.slow
def test_a_budget_is_shared_by_sixteen_processes(database):
    share_a_budget(database, 16, 100, 60.0)


def _ask_sixteen_times(address):
    mine, found = st.Study(SMALL, st.Random(), storage=address, name="small", stop=None), []
    for _ in range(16):
        with contextlib.suppress(st.SpaceExhausted):
            found.append(str(mine.ask().config))
    mine.storage.close_connections()
    return found


@each_database
def test_sixty_four_asks_at_once_in_a_space_of_twenty_seven(database):
    found = [config for part in crowd(_ask_sixteen_times, [(database.address,)] * 4) for config in part]
    assert len(set(found)) == len(found) == 27
    with pytest.raises(st.SpaceExhausted, match="27"):
        st.Study.load(database.open()).ask()
