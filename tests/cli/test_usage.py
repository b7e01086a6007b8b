"""A wrong command line: exit code 2, a message on standard error and, with --json, a JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoestring.cli import demo
from shoestring.cli import doctor as packages
from tests.cli.programs import QUICK, SPACE, begin, call, read, script

WRONG = [
    "ls --bogus --json",
    "ls --json --bogus",
    "bogus --json",
    "--bogus --json",
    "--json",
    "--json ls",
    "db bogus --json",
    "db --json",
    "tell --json",
    "stop a b --json",
    "ls --json --storage",
    "show a b --json",
    "run --workers many --json",
    "run --json --workers many -- python train.py",
    "ask --lease soon --json",
    "run --param x=0:1 --budget 3 --json",
    "run --json --param x=0:1 --budget 3 -- no-such-program {x}",
    "tell a 1 --json",
    "run tune.toml --json",
    "completion --json",
]


@pytest.mark.parametrize("line", WRONG)
def test_with_json_the_error_is_one_document(here: Path, line: str) -> None:
    run = call(*line.split())
    assert run.exit_code == 2, run.output
    document = json.loads(run.stdout)
    assert set(document) == {"error", "next"}
    assert document["error"] in run.stderr
    assert document["next"].startswith("shoestring ")
    assert call(*document["next"].split()[1:]).exit_code == 0
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("line", ["ls --bogus", "bogus", "tell", "run --budget 3 -- python train.py --json"])
def test_without_json_there_is_nothing_on_standard_output(here: Path, line: str) -> None:
    run = call(*line.split())
    assert run.exit_code == 2
    assert run.stdout == ""
    assert "Error: " in run.stderr


def test_json_after_the_dashes_belongs_to_the_program(here: Path) -> None:
    run = call("run", *SPACE, *QUICK, "--budget", "2", "--", *script(here), "{x}", "{y}", "--json")
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("study train")


def test_passwords_are_hidden_in_these_errors_too(here: Path) -> None:
    run = call("ls", "postgresql://me:s3cret@host/db", "--json")
    assert run.exit_code == 2
    assert "s3cret" not in run.output
    assert "me:***@host" in json.loads(run.stdout)["error"]


def test_a_missing_package_is_reported_as_json(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda module: False)
    monkeypatch.setattr(demo, "is_installed", lambda module: False)
    run = call("demo", "--json")
    assert run.exit_code == 1
    assert "pip install" in json.loads(run.stdout)["next"]


def test_a_check_that_finds_damage_prints_it_and_exits_with_1(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(here, trials=2)
    assert read("db", "check")["ok"]
    monkeypatch.setattr("shoestring.storage.sql.SQLStorage.check", lambda self: ["broken"])
    run = call("db", "check", "--json")
    assert (run.exit_code, json.loads(run.stdout)["problems"]) == (1, ["broken"])
