"""The benchmark of reliability: its tests are there, its accounts are right, and a small run from end to end."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.reliability import __main__ as command
from benchmarks.reliability import accounts, choosing, items, large, places, processes, suite, team
from shoestring.data.trial import State, Trial
from shoestring.storage.base import StoredTrial

BOTH = {name: set(places.KINDS) for name in ("database", "anywhere", "commits", "place", "storage")}  # fixtures


def test_every_item_has_its_tests_on_each_storage():
    assert [item.number for item in items.ITEMS] == list(range(1, 26))
    kinds = BOTH | {name: {kind} for name, kind in choosing.BY_FIXTURE.items()}
    for item in items.ITEMS:
        proven = set()
        for file, name in (test.split("::") for test in item.tests):
            found = re.search(rf"^def {name}\((.*)\)", (suite.ROOT / file).read_text(), re.MULTILINE)
            assert found, (file, name)
            proven |= set().union(*(kinds.get(fixture, ()) for fixture in re.findall(r"\w+", found[1])))
        assert proven == (set() if item.number in items.WITHOUT_STORAGE else set(places.KINDS)), item.number


# -- accounts --------------------------------------------------------------------------------------------------------


def done(number, value, at=None):
    config = {"x": number if at is None else at}
    return StoredTrial(Trial(number, config, State.DONE, value=value), 2 * number, None, 2 * number + 1)


def said(*trials):
    told = [{"acknowledged": t.number, "state": str(t.state), "value": t.value, "config": dict(t.config)} for t in trials]
    return told + [{"evaluated": t.number, "value": t.value, "config": dict(t.config)} for t in trials if t.state is State.DONE]


def wrong(stored, lines, goal, waiting=0):
    return {name: count for name, count in accounts.judge(stored, waiting, lines, goal)["wrong"].items() if count}


def test_what_was_acknowledged_is_there_or_lost():
    stored = [done(0, 0.5), done(1, 0.25)]
    lines = said(*(each.trial for each in stored))
    assert wrong(stored, lines, 2) == {}
    assert wrong(stored[:1], lines, 1) == {"lost": 1}
    assert wrong([stored[0], done(1, 0.75)], lines, 2) == {"lost": 1, "made_up": 1}
    assert wrong(stored, lines, 3) == {"budget": 1}
    assert wrong(stored, lines, 1) == {"budget": 1}
    assert wrong(stored, lines, 2, waiting=1) == {"left_open": 1}


def test_nothing_is_there_twice_unless_it_was_abandoned():
    twins = [done(0, 0.5), done(1, 0.25, at=0)]
    lines = said(*(each.trial for each in twins))
    assert wrong(twins, lines, 2) == {"duplicated": 1}
    late = [replace(twins[0], abandoned=1), twins[1]]
    assert wrong(late, lines, 2) == {}
    assert wrong(late, lines, 1) == {}  # a late result may be one too many
    assert wrong(twins[:1], [*said(twins[0].trial), *said(twins[0].trial)], 1) == {"duplicated": 2}  # evaluated, acknowledged
    gone = StoredTrial(Trial(0, {"x": 0}, State.ABANDONED), 1, 2)
    assert wrong([gone, twins[1]], said(twins[1].trial), 1) == {}
    assert wrong([StoredTrial(Trial(0, {"x": 0}), 1)], [], 1) == {"left_open": 1, "budget": 1}


def test_a_journal_may_end_in_the_middle_of_a_line(tmp_path):
    path = tmp_path / "journal"
    assert accounts.read(path) == []
    path.write_text('{"begun": 1}\n{"acknow')
    assert accounts.read(path) == [{"begun": 1}, {"torn": '{"acknow'}]


# -- processes and studies -------------------------------------------------------------------------------------------


def _work(gate, number):
    if number < 0:
        raise ValueError("negative")
    gate.wait()
    return number


def test_a_team():
    assert team.together(_work, [(1,), (2,)]) == [1, 2]
    found = team.together(_work, [(1,), (-1,)])
    assert team.failures(found)[-1] == "ValueError: negative"


def test_only_marked_processes_are_killed():
    import os

    assert processes.marked("nobody") == []
    assert not processes.kill(os.getpid(), "nobody")
    assert processes.leave_none("nobody", 0.0) == 0


def measured(database, trials):
    large.fill(database.address, trials, 3)
    found = database.open().find(large.NAME)
    assert (found.trials, found.clock) == (trials + 3, trials + 3)
    command = [sys.executable, "-m", "benchmarks.reliability.large", database.address]
    return json.loads(subprocess.run(command, cwd=suite.ROOT, capture_output=True, text=True, check=True).stdout)


def test_a_large_study_is_a_study(database):
    found = measured(database, 50)
    assert found["peak_mb"] > 1
    assert found["ask_seconds"] > 0
    assert database.open().check() == []


@pytest.mark.slow
def test_a_study_of_a_hundred_thousand_trials(database):
    found = measured(database, 100_000)
    assert found["open_seconds"] < 1.0
    assert found["best_seconds"] < 0.05
    assert found["ask_seconds"] < 0.5  # on any machine; how flat it is, the benchmark says
    assert found["peak_mb"] < 300


# -- from end to end -------------------------------------------------------------------------------------------------


def test_items_are_run_once_and_stored(tmp_path, capsys):
    arguments = ["--quick", "--json", "--only", "20", "--storage", "sqlite", "--results", str(tmp_path)]
    command.main(arguments)
    first = capsys.readouterr().out
    assert json.loads(first.splitlines()[-1])["items"] == {"tried": 1, "survived": 1, "lost": 0, "of": [20]}
    stored = json.loads((tmp_path / "report_quick.json").read_text())
    assert set(stored) == {"items", "machine"}
    command.main(arguments)
    assert capsys.readouterr().out == first
    assert json.loads((tmp_path / "report_quick.json").read_text()) == stored


@pytest.mark.slow
@pytest.mark.parametrize("storage", places.KINDS)
def test_kills(tmp_path, capsys, storage):
    if why := places.absent(storage):
        pytest.skip(why)
    command.main(["--quick", "--json", "--part", "kills", "--storage", storage, "--kills", "6", "--results", str(tmp_path)])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["kills"][storage]
    assert (found["tried"], found["survived"], found["lost"]) == (6, 6, 0)
