"""The drill of kills and suspensions at chosen moments: its accounts are right, on made-up journals, and a small drill."""

import json
import os

import pytest

from benchmarks.reliability import __main__ as command
from benchmarks.reliability import attacked, moment_accounts, moments, places

LEASE = 2.0


def trial(number, value=None, at=None, state="done", **more):
    config = {"x": number if at is None else at}
    found = {"number": number, "state": state, "value": value, "config": config, "asked_at": float(number), "given_up": False}
    return found | more


def life(number, value, by=1, start=0.0, at=None):
    """The lines of a worker that has evaluated one trial."""
    config = {"x": number if at is None else at}
    lines = [{"asked": number, "config": config}, {"evaluated": number, "value": value}, {"told": number, "value": value}]
    return [{"by": by, "study": "s", "at": start + place} | line for place, line in enumerate(lines)]


def call(moment, began, at, by=1, **more):
    return {"by": by, "study": "s", "moment": moment, "began": began, "at": at, **more}


def kill(at, by=1, moment="ask", began=0.0):
    return {"killed": by, "by": by, "study": "s", "moment": moment, "began": began, "at": at}


def stop(at, until, by=1, moment="ask", locks=()):
    return {"stopped": by, "by": by, "study": "s", "moment": moment, "began": at, "at": at, "until": until, "locks": [*locks]}


def judge(trials, lines, attacks=(), waiting=0, damage=()):
    return moment_accounts.judge([*attacks], lines, (trials, waiting, [*damage]), LEASE)


def wrong(*arguments, **more):
    return {name: count for name, count in judge(*arguments, **more)["wrong"].items() if count}


def test_what_was_told_is_stored_with_its_value():
    trials, lines = [trial(0, 0.5), trial(1, 0.25)], [*life(0, 0.5), *life(1, 0.25, by=2)]
    assert wrong(trials, lines) == {}
    assert wrong(trials[:1], lines) == {"lost": 1, "thrown_away": 1}
    assert wrong([trials[0], trial(1, 0.75)], lines) == {"lost": 1, "thrown_away": 1, "made_up": 1}
    assert wrong(trials, lines, waiting=1) == {"left_open": 1}
    assert wrong([*trials, trial(2, state="running")], lines) == {"left_open": 1}
    assert wrong(trials, lines, damage=["a page"]) == {"damage": 1}
    assert wrong(trials, [*lines, {"by": 3, "at": 0.0, "error": "ValueError: no"}]) == {"errors": 1}
    assert wrong(trials, [*lines, {"by": 3, "at": 0.0, "strange": "path"}]) == {"strange_checkpoints": 1}


def test_a_result_that_was_not_told_may_be_gone_with_its_worker_but_not_otherwise():
    lines = life(0, 0.5)[:2]
    gone = [trial(0, state="abandoned", given_up=True), trial(1, 0.25, at=0)]
    again = life(1, 0.25, by=2, start=3.0, at=0)
    assert wrong(gone, [*lines, *again], [kill(1.5)]) == {}
    assert wrong(gone, [*lines, *again]) == {"thrown_away": 1}  # it was not killed
    assert wrong(gone[:1], lines, [kill(1.5)]) == {"forgotten": 1}
    assert wrong([gone[0] | {"state": "failed", "for_good": True}], lines, [kill(1.5)]) == {}


def test_nothing_is_there_twice_unless_it_was_given_up():
    twins = [trial(0, 0.5), trial(1, 0.25, at=0)]
    lines = [*life(0, 0.5), *life(1, 0.25, by=2, at=0)]
    assert wrong(twins, lines) == {"doubled": 1}
    assert wrong([trial(0, 0.5, given_up=True), twins[1]], lines) == {}  # a late result
    assert wrong([twins[0]], [*life(0, 0.5), *life(0, 0.5, by=2)]) == {"doubled": 2}  # evaluated and told


def test_a_call_is_stuck_after_two_leases_but_for_its_own_suspension_and_a_busy_machine():
    assert wrong([], [call("ask", 0.0, 3.9)]) == {}
    assert wrong([], [call("ask", 0.0, 4.1)]) == {"stuck": 1}
    assert wrong([], [call("ask", 0.0, 4.1, queued=0.2)]) == {}
    assert wrong([], [call("ask", 0.0, 9.0)], [stop(1.0, 7.0)]) == {}
    assert wrong([], [call("ask", 0.0, 9.0)], [stop(1.0, 7.0, by=2)]) == {"stuck": 1}
    assert wrong([], [], [kill(5.0, began=0.5)]) == {"stuck": 1}
    assert wrong([], [], [{"stuck": 1, "by": 1, "moment": "tell", "began": 0.0, "at": 30.0}]) == {"stuck": 1}
    found = judge([], [call("ask", 0.0, 3.0, queued=1.0)])
    assert (found["longest_call"], found["longest_call_by_clock"]) == (2.0, 3.0)


def test_calls_that_wait_for_a_process_in_the_middle_of_a_write_are_counted_apart():
    attack = stop(1.0, 7.0, by=2, locks=[120])
    found = judge([], [call("tell", 0.0, 7.5), call("ask", 6.0, 7.5, by=3)], [attack])
    assert found["wrong"]["stuck"] == 0
    assert (found["stopped_writers"], found["calls_that_waited"], found["longest_wait"]) == (1, 1, 7.5)
    assert judge([], [call("tell", 0.0, 12.0)], [attack])["wrong"]["stuck"] == 1  # longer than that explains
    two = [attack, stop(2.0, 8.0, by=4, locks=[-1])]
    assert judge([], [call("tell", 0.0, 12.0)], two)["wrong"]["stuck"] == 1  # their time counts once
    assert judge([], [call("tell", 0.0, 10.9)], two)["wrong"]["stuck"] == 0


def test_the_trial_of_an_attacked_worker_is_asked_again_within_two_leases():
    trials = [trial(0, state="abandoned", given_up=True), trial(1, 0.25, at=0)]
    lines = life(0, 0.5)[:1]
    soon, late = (life(1, 0.25, by=2, start=start, at=0) for start in (4.0, 4.6))
    assert wrong(trials, [*lines, *soon], [kill(0.5)]) == {}
    assert wrong(trials, [*lines, *late], [kill(0.5)]) == {"slow_recovery": 1}
    assert wrong(trials, [*lines, *late], [stop(0.5, 2.0)]) == {}  # it went on
    assert wrong(trials, [*lines, *late], [stop(0.5, 6.0)]) == {"slow_recovery": 1}
    unknown = [trials[0] | {"asked_at": 10.0}, trials[1] | {"asked_at": 14.5}]
    assert wrong(unknown, soon, [kill(0.5)]) == {"slow_recovery": 1}  # killed before it could say which trial it had
    named = [trial(0, state="failed", given_up=True) | {"config": {}}, trial(1, 0.25, origin=0)]  # as Optuna keeps it
    assert wrong(named, life(1, 0.25, by=2), [kill(0.0)]) == {}


def test_the_studies_of_a_drill_are_judged_apart():
    attacks = [{"study": name, "begun": 0, "at": 0.0} for name in ("s", "t")]
    lines = [*life(0, 0.5), *(line | {"study": "t"} for line in life(0, 0.25))]
    stored = {"s": ([trial(0, 0.5)], 0, []), "t": ([trial(0, 0.25)], 0, [])}
    found = moment_accounts.judge_all(attacks, lines, stored.get, LEASE)
    assert sum(found["wrong"].values()) == 0
    assert (found["trials"], found["told"]) == (2, 2)
    stored["t"] = stored["s"]
    assert moment_accounts.judge_all(attacks, lines, stored.get, LEASE)["wrong"]["lost"] == 1


def test_the_locks_of_a_process_on_a_file_are_seen(tmp_path):
    import sqlite3

    path = str(tmp_path / "tune.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    assert moments.write_locks(os.getpid(), f"sqlite:///{path}") == []
    connection.execute("BEGIN IMMEDIATE")
    assert moments.write_locks(os.getpid(), f"sqlite:///{path}") == [moments.WAL_WRITE_BYTE]
    assert set(moment_accounts.WRITE_BYTES) & {moments.WAL_WRITE_BYTE}
    assert moments.write_locks(os.getpid() + 1, f"sqlite:///{path}") == []
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("storage", places.KINDS)
@pytest.mark.parametrize("attack", ["kill", "suspend"])
def test_a_small_drill(tmp_path, storage, attack):
    if why := places.absent(storage):
        pytest.skip(why)
    with places.fresh(storage) as address:
        found = moments.drill("shoestring", attack, address(), storage, quick=True, count=8)
    assert found["tried"] >= 8
    assert {name: count for name, count in found["wrong"].items() if count} == {}
    assert found["trials"] > 8


@pytest.mark.slow
def test_drills_are_stored(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(moments, "ATTACKS", {"kill": "kill -9"})
    words = ["--quick", "--json", "--part", "moments", "--storage", "sqlite", "--count", "3", "--results", str(tmp_path)]
    command.main(words)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["moments"]
    assert set(found) == {f"{library} sqlite kill" for library in attacked.LIBRARIES}
    assert found["shoestring sqlite kill"]["lost"] == 0
