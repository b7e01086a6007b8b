"""The benchmark of reliability: its tests are there, its accounts are right, and a small run from end to end."""

import json
import re
from dataclasses import replace

import pytest

from benchmarks.reliability import __main__ as command
from benchmarks.reliability import accounts, items, large, processes, suite, team
from shoestring.storage import open_storage
from shoestring.storage.base import Stored
from shoestring.trial import State, Trial


def test_every_item_has_its_tests():
    assert [item.number for item in items.ITEMS] == list(range(1, 26))
    for file, name in {tuple(test.split("::")) for item in items.ITEMS for test in item.tests}:
        assert re.search(rf"^def {name}\(", (suite.ROOT / file).read_text(), re.MULTILINE), (file, name)


# -- accounts --------------------------------------------------------------------------------------------------------


def done(number, value, at=None):
    config = {"x": number if at is None else at}
    return Stored(Trial(number, config, State.DONE, value=value), 2 * number, None, 2 * number + 1)


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
    gone = Stored(Trial(0, {"x": 0}, State.ABANDONED), 1, 2)
    assert wrong([gone, twins[1]], said(twins[1].trial), 1) == {}
    assert wrong([Stored(Trial(0, {"x": 0}), 1)], [], 1) == {"left_open": 1, "budget": 1}


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


def test_a_large_study_is_a_study(tmp_path):
    address = f"sqlite:///{tmp_path}/large.db"
    large.fill(address, 50, 3)
    storage = open_storage(address)
    assert storage.check() == []
    assert (storage.find(large.NAME).trials, storage.find(large.NAME).clock) == (53, 53)
    storage.close_connections()
    found = large.measure(address)
    assert found["peak_mb"] > 1
    assert found["ask_seconds"] > 0


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
def test_kills(tmp_path, capsys):
    command.main(["--quick", "--json", "--part", "kills", "--storage", "sqlite", "--kills", "6", "--results", str(tmp_path)])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["kills"]["sqlite"]
    assert (found["tried"], found["survived"], found["lost"]) == (6, 6, 0)
