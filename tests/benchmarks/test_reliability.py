"""The benchmark of reliability: its tests are there, its accounts are right, and a small run from end to end."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.reliability import __main__ as command
from benchmarks.reliability import (
    accounts,
    attacks,
    choosing,
    drills,
    items,
    large,
    places,
    processes,
    stored,
    suite,
    table,
    team,
)
from shoestring.data.trial import State, Trial
from shoestring.storage.base import StoredTrial

BOTH = {name: set(places.KINDS) for name in ("database", "anywhere", "commits", "place", "storage")}  # fixtures


def test_every_item_has_its_tests_on_each_storage():
    assert [item.number for item in items.ITEMS] == list(range(1, 33))
    assert [attack.number for attack in attacks.ATTACKS] == [f"a{number}" for number in range(1, 19)]
    kinds = BOTH | {name: {kind} for name, kind in choosing.BY_FIXTURE.items()}
    for item in (*items.ITEMS, *attacks.ATTACKS):
        proven = set()
        for test in item.tests:
            file, name = test.split("::")
            text = (suite.ROOT / file).read_text()
            found = re.search(rf"^def {name}\((.*)\)", text, re.MULTILINE)
            assert found, (file, name)
            own = re.findall(r"^@pytest.fixture(?!.*postgresql).*\ndef (\w+)", text, re.MULTILINE)  # it may mean another thing
            fixtures = set(re.findall(r"\w+", found[1])) - (set(own) - set(choosing.BY_FIXTURE))
            used = [kind for fixture, kind in kinds.items() if fixture in fixtures]
            used += [{kind} for start, kind in choosing.BY_NAME.items() if test.startswith(start)]
            proven |= used[0] if used and not test.startswith(choosing.PAGE) else set()
        assert proven == set(item.storages), item.number
        assert item.tests or item.note or item.number in drills.DRILLS


# -- accounts --------------------------------------------------------------------------------------------------------


def done(number, value, at=None):
    config = {"x": number if at is None else at}
    return StoredTrial(Trial(number, config, State.DONE, value=value), 2 * number, None, 2 * number + 1)


def said(*trials):
    told = [{"acknowledged": t.number, "state": str(t.state), "value": t.value, "config": dict(t.config)} for t in trials]
    return told + [{"evaluated": t.number, "value": t.value, "config": dict(t.config)} for t in trials if t.state is State.DONE]


def wrong(trials, lines, goal, waiting=0):
    return {name: count for name, count in accounts.judge(trials, waiting, lines, goal)["wrong"].items() if count}


def test_what_was_acknowledged_is_there_or_lost():
    trials = [done(0, 0.5), done(1, 0.25)]
    lines = said(*(each.trial for each in trials))
    assert wrong(trials, lines, 2) == {}
    assert wrong(trials[:1], lines, 1) == {"lost": 1}
    assert wrong([trials[0], done(1, 0.75)], lines, 2) == {"lost": 1, "made_up": 1}
    assert wrong(trials, lines, 3) == {"budget": 1}
    assert wrong(trials, lines, 1) == {"budget": 1}
    assert wrong(trials, lines, 2, waiting=1) == {"left_open": 1}


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


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
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
    kept = json.loads((tmp_path / "report_quick.json").read_text())
    said = f"what was run said:\n{kept['items']}"  # without it a failure on another machine cannot be understood
    assert json.loads(first.splitlines()[-1])["items"] == {"tried": 1, "survived": 1, "lost": 0, "of": [20]}, said
    assert set(kept) == {"items", "commits", "machine"}
    assert set(kept["commits"]["items"]) == {"20 none", "20 sqlite"}
    command.main(arguments)
    assert capsys.readouterr().out == first
    assert json.loads((tmp_path / "report_quick.json").read_text()) == kept


def test_the_table_has_a_line_for_every_attack_whether_it_was_tried_or_not(tmp_path, capsys):
    found = {
        "items": {
            "1 sqlite": suite.row(1, "opened (tests)", "sqlite", 2, 2, 0.1), "1 none": None,
            "1 postgresql": suite.row(1, "opened (tests)", "postgresql", 3, 2, 0.1),
            "a2 sqlite": suite.row("a2", "a | b", "sqlite", 1_000, 1_000, 0.1),
        },
        "moments": {
            "ours sqlite": suite.row("moments", "kill -9", "sqlite", 500, 500, 1.0, library="shoestring", wrong={"lost": 0}),
            "theirs": suite.row("moments", "theirs", "sqlite", 9, 6, 1.0, library="optuna", wrong={"left_open": 3, "lost": 0}),
        },
        "throughput": {"tells": {"per_second": 1}},
        "commits": {"items": {"1 sqlite": "abc"}},
    }  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text(f"before\n<!-- {table.MARKER}:begin -->\nold\n<!-- {table.MARKER}:end -->\n")
    table.publish(found, page)
    text = page.read_text()
    assert capsys.readouterr().out.strip() in text
    assert "| 1 | opened (tests) |  | 2 of 2 | 2 of 3 |" in text
    assert "| a2 | a \\| b |  | 1,000 of 1,000 |  |" in text
    assert "| moments | kill -9 |  | 500 of 500 |  |" in text
    assert "| moments | theirs |  | 6 of 9 (3 left open) |  |" in text
    assert "|  | **all of Shoestring** | 0 of 0 | 500 of 500 | 0 of 0 |" in text
    assert len(re.findall(r"^\| a?\d+ \|", text, re.MULTILINE)) == 32 + 18
    assert text.count(table.EMPTY) == 32 - 2 + 18
    assert "|  | **all of Shoestring** | 0 of 0 | 2 of 2 | 2 of 3 |" in text


def test_what_another_program_has_stored_meanwhile_is_kept(tmp_path):
    first, second = (stored.Report(tmp_path / "report.json") for _ in range(2))
    first.keep("items", {"1 sqlite": {"tried": 1}})
    second.keep("moments", {"ours": {"tried": 2}})
    assert second.found["items"] == {"1 sqlite": {"tried": 1}}
    assert set(second.found["commits"]) == {"items", "moments"}
    again = stored.Report(tmp_path / "report.json", again=True)
    assert again.lacks("items", "1 sqlite")
    again.keep("items", {"1 sqlite": {"tried": 3}})
    assert not again.lacks("items", "1 sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("storage", places.KINDS)
def test_kills(tmp_path, capsys, storage):
    if why := places.absent(storage):
        pytest.skip(why)
    command.main(["--quick", "--json", "--part", "kills", "--storage", storage, "--kills", "6", "--results", str(tmp_path)])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["kills"][storage]
    assert (found["tried"], found["survived"], found["lost"]) == (6, 6, 0)
