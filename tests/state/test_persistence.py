"""Studies in a storage: opened again, shared by several processes, resumed, extended."""

import os
import random
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import shoestring as st
from tests.stored_study import SPACE, WIDER, bowl, configs, configs_in_memory, study

on_a_server_too = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


def test_a_study_is_saved_before_its_first_trial(database):
    study(database)
    assert [record.name for record in database.open().studies()] == ["bowl"]


@pytest.mark.parametrize(
    "method", ["auto", st.Random(), *(pytest.param(method, marks=pytest.mark.slow) for method in (st.EI(), st.Sobol()))]
)
def test_the_trials_are_those_of_a_study_in_memory_however_it_is_divided(database, method):
    for count in (3, 10, 13):
        study(database, method=method).minimize(bowl, count)
    assert configs(study(database)) == configs_in_memory(13, method)
    assert [trial.value for trial in study(database).history] == [bowl(config) for config in configs_in_memory(13, method)]


def in_another_process(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


MORE = """
    import sys
    import shoestring as st
    space = st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))
    bowl = lambda c: (c["x"] - 0.3) ** 2 + (c["y"] - 0.2) ** 2 + 0.1 * (c["kind"] == "a")
    st.Study(space, seed=3, stop=None, name="bowl", storage=sys.argv[1]).minimize(bowl, int(sys.argv[2]))
"""


@pytest.mark.slow  # test_resume.py has another process in every run
def test_another_process_goes_on_as_this_one_would_have(database):
    study(database).minimize(bowl, 6)
    assert in_another_process(MORE, database.address, 13).returncode == 0
    assert configs(study(database)) == configs_in_memory(13)


@on_a_server_too
def test_what_another_process_tells_is_known_here(database):
    one, other = study(database), study(database)
    first, second = one.ask(), other.ask()
    assert (first.number, second.number) == (0, 1)
    assert first.config != second.config
    one.tell(first, 0.5, cost=1.0)
    other.tell(second, 0.25, cost=1.0)
    assert one.best.value == other.best.value == 0.25
    one.tell(1, 0.25, cost=1.0)  # once more, by another process: nothing changes
    with pytest.raises(st.TrialError, match="already done"):
        one.tell(1, 0.1, cost=1.0)
    assert one.ask().number == 2


def test_a_result_that_another_process_reports_for_a_running_trial_does_not_end_the_run(database, caplog):
    kept = study(database, method=st.Random())

    def told_by_hand(config, trial):
        if trial.number == 1:
            study(database).tell(1, 0.125, cost=1.0)
        return 0.5

    assert [trial.value for trial in kept.minimize(told_by_hand, 3).history] == [0.5, 0.125, 0.5]
    assert "trial 1 is already done with value 0.125" in caplog.text


def test_a_storage_that_does_not_take_a_report_fails_no_trial(database, monkeypatch, caplog):
    def away(*arguments):
        raise st.StorageError("it is away")

    kept = study(database, method=st.Random())
    monkeypatch.setattr(kept.storage, "report", away)
    [trial] = kept.minimize(lambda config, trial: trial.report(1.0) or 0.5, 1).history
    assert (trial.value, len(trial.reports)) == (0.5, 1)
    assert "it is away" in caplog.text


def test_what_is_enqueued_here_is_asked_there_once(database):
    one, other = study(database), study(database)
    one.enqueue({"x": 0.5, "y": 0.5, "kind": "a"})
    assert other.ask().config == {"x": 0.5, "y": 0.5, "kind": "a"}
    assert one.ask().config != {"x": 0.5, "y": 0.5, "kind": "a"}


def test_a_stop_is_heard_by_all(database):
    one, other = study(database), study(database)
    result = one.minimize(lambda config: other.halt("enough") or bowl(config), 50)
    assert len(result.history) == 1
    assert result.stop.reason == "enough"


def test_a_budget_is_that_of_the_study_not_of_the_process(database):
    study(database).minimize(bowl, 5)
    assert len(study(database).minimize(bowl, 5).history) == 5
    limited = study(database)
    other = study(database)

    def greedy(config):
        other.tell(other.ask(), 1.0, cost=1.0)
        return bowl(config)

    assert len(limited.minimize(greedy, 8).history) in (8, 9)  # the last one that the other asked had no budget to keep to


@on_a_server_too
def test_the_trial_of_a_worker_that_is_gone_comes_back(database, monkeypatch):
    database.use_fake_clock(monkeypatch)
    gone = study(database)
    lost = gone.ask(lease=20)
    database.wait(60)
    going_on = study(database)
    again = going_on.ask()
    assert again.config == lost.config
    assert (again.number, going_on.history[lost.number].state) == (1, st.State.ABANDONED)


def test_a_late_result_is_kept_and_both_costs_are_charged(database, monkeypatch):
    database.use_fake_clock(monkeypatch)
    slow, quick = study(database, unit="USD"), study(database, unit="USD")
    first = slow.ask(lease=10)
    database.wait(30)
    second = quick.ask()
    assert second.config == first.config
    slow.tell(first, 0.5, cost=3.0)
    quick.tell(second, 0.4, cost=2.0)
    assert [trial.value for trial in quick.history] == [0.5, 0.4]
    assert quick.history.spent == 5.0


@on_a_server_too
def test_a_living_worker_keeps_its_trial(database):
    owner, other = study(database, lease=0.4), study(database)
    mine = owner.ask()
    time.sleep(0.9)  # more than two leases
    assert other.ask().config != mine.config
    assert other.history[mine.number].state is st.State.RUNNING


def test_more_at_once_than_there_are_gives_those_that_there_are(sqlite_place):
    space = st.Space(a=st.Choice(1, 2, 3), b=st.Choice(1, 2, 3))
    kept = st.Study(space, storage=sqlite_place.open(), name="small", stop=None)
    batch = kept.ask_many(16)
    assert len({tuple(trial.config.values()) for trial in batch}) == len(batch) == 9
    with pytest.raises(st.SpaceExhausted):
        kept.ask_many(2)
    assert kept.replay().first_difference is None


@pytest.mark.parametrize(
    "wide", [{"x": 0.5, "y": 0.5, "kind": "c"}, {"x": 2.0, "y": 0.5, "kind": "a"}, {"x": 1, "y": 1e-4, "kind": "a"}]
)
def test_a_process_that_runs_while_the_space_is_extended_goes_on_in_it(database, wide):
    old = study(database)
    before = old.ask()
    wider = st.Study(WIDER, storage=database.open(), name="bowl", stop=None, extend=True)
    wider.add(wide, 0.3, cost=1.0)
    wider.enqueue(wide | {"x": 1.5})
    assert old.ask().config["x"] == 1.5
    assert old.space == WIDER
    assert old.tell(before, 0.2).value == 0.2
    np.testing.assert_array_equal(old.log.table.U[1], WIDER.encode(wide))
    assert WIDER.check(old.ask().config)
    assert old.best.number == before.number


def falls(config):
    return -config["x"]


def test_what_was_suggested_before_an_extension_is_computed_again_in_the_space_of_then(database):
    old = study(database, initial=4)
    old.minimize(falls, 8)
    wider = st.Study(WIDER, storage=database.open(), name="bowl", seed=3, stop=None, extend=True)
    asked = old.ask()  # in a process that was there before
    old.tell(asked, falls(asked.config))
    wider.minimize(falls, 11)
    assert any(trial.config["x"] > 1 for trial in wider.history)
    for each in (old, wider, st.Study.load(database.open())):
        replayed = each.replay()
        assert (replayed.checked, replayed.first_difference) == (11, None)


@pytest.mark.parametrize("lease", [0, -1, "soon", True])
def test_a_lease_is_a_positive_time(sqlite_place, lease):
    with pytest.raises(st.ShoestringError):
        study(sqlite_place, lease=lease)


def test_a_study_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(st.StorageError, match="nowhere"):
        st.Study(SPACE, storage=tmp_path / "nowhere" / "tune.db")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_its_own_hands(database):
    parent = study(database, lease=0.6)
    held = parent.ask()
    child = os.fork()
    if child == 0:
        try:
            mine = parent.ask()
            parent.tell(mine, 1.0, cost=1.0)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert parent.history[1].value == 1.0
    parent.tell(held, 2.0, cost=1.0)
    assert [trial.value for trial in parent.history] == [2.0, 1.0]


def test_the_unit_of_costs_that_are_there_is_kept(database):
    study(database, method=st.Random()).minimize(bowl, 3)
    with pytest.raises(st.BudgetError, match="counts cost in s"):
        study(database, method=st.Random()).minimize(bowl, st.Budget(cost=5, unit="USD"))


def test_what_another_process_has_settled_is_taken_over(database):
    first, second = study(database, method=st.Random()), study(database, method=st.Random())
    best = first.maximize(bowl, 5).best
    assert second.best.number == best.number
    with pytest.raises(st.MethodError, match="begun to maximize"):
        second.minimize(bowl, 8)
    assert st.Study.load(database.open()).best.number == best.number


def test_the_worker_of_a_config_that_has_failed_by_its_losses_may_be_alive_after_all(database, monkeypatch):
    monkeypatch.setattr("shoestring.storage.trial_lifecycle.MAX_LOST_WORKERS", 1)
    owner, other = (study(database, method=st.Random(), lease=0.2) for _ in range(2))
    trial = owner.ask()
    owner.state.heartbeat.let_go(trial.number)
    time.sleep(0.3)
    other.ask()
    assert other.history[trial.number].state is st.State.FAILED
    assert owner.tell(trial, 0.25).value == 0.25
    assert other.history[trial.number].state is st.State.DONE
    with pytest.raises(st.TrialError):
        owner.tell(trial, 0.5)


def test_a_space_is_not_extended_from_1_to_true(database):
    st.Study(st.Space(a=st.Choice(1, 2)), storage=database.open())
    with pytest.raises(st.StudyError, match="cannot be extended"):
        st.Study(st.Space(a=st.Choice(True, 2, 3)), storage=database.open(), extend=True)


def test_the_random_numbers_of_the_user_are_left_alone(database):
    """Also by the thread that renews leases and by waiting for locks: a seeded program must stay the same."""
    random.seed(5)
    before = random.getstate()
    kept = [study(database, method=st.Random(), lease=0.1) for _ in range(2)]
    trials = [each.ask() for each in kept]
    threads = [threading.Thread(target=each.minimize, args=(bowl, 12), kwargs={"progress": False}) for each in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each, trial in zip(kept, trials, strict=True):
        each.tell(trial, 0.5)
    assert random.getstate() == before
