"""Budget and plan of a run: from options, from a TOML file, from both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

import shoestring as st
from shoestring.cli.options import make_budget
from shoestring.cli.run_plan import default_name, make_plan, plan_from_dict
from shoestring.cli.tune_file import read_tune_file
from shoestring.storage import open_storage
from tests.cli.programs import begin, call


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        ({"budget": "10m"}, st.Budget(seconds=600)),
        ({"budget": "10 minutes"}, st.Budget(seconds=600)),
        ({"budget": "40 trials"}, st.Budget(trials=40)),
        ({"budget": "1h 30m"}, st.Budget(seconds=5400)),
        ({"budget": "40"}, st.Budget(trials=40)),
        ({"budget": 40}, st.Budget(trials=40)),
        ({"budget": "20 USD"}, st.Budget(cost=20, unit="USD")),
        ({"budget": "1.5€", "per_hour": 3.2}, st.Budget(cost=1.5, unit="€", per_hour=3.2)),
        ({"budget": "20USD", "unit": "USD"}, st.Budget(cost=20, unit="USD")),
        ({"budget": "40", "unit": "USD", "per_hour": 2.0}, st.Budget(trials=40, unit="USD", per_hour=2.0)),
        ({"budget": "10m", "max_trials": 9}, st.Budget(seconds=600, trials=9)),
        ({"budget": "10m", "max_time": "90s"}, st.Budget(seconds=90)),
        ({"budget": "10m", "max_time": "1h"}, st.Budget(seconds=600)),
        ({"budget": "10m", "unit": "USD", "per_hour": 3.2}, st.Budget(seconds=600, unit="USD", per_hour=3.2)),
        ({"budget": "20 USD", "max_time": "1h"}, st.Budget(cost=20, unit="USD", seconds=3600)),
        ({"budget": "40", "max_trials": 9, "max_time": "2h"}, st.Budget(trials=9, seconds=7200)),
        ({"max_trials": 9}, st.Budget(trials=9)),
        ({"max_time": "90s"}, st.Budget(seconds=90)),
    ],
)
def test_budgets(given: dict[str, Any], budget: st.Budget) -> None:
    assert make_budget(given) == budget


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "--budget 10m"),
        ({"budget": "soon"}, "soon"),
        ({"budget": "0"}, "positive"),
        ({"budget": "20 EUR", "unit": "USD"}, "20 USD"),
        ({"budget": 2.5}, "has no unit"),
        ({"budget": "10m", "per_hour": 3.0}, "price of an hour"),
        ({"budget": "40", "per_hour": 3.0}, "price of an hour"),
        ({"max_time": "now"}, "max-time"),
    ],
)
def test_wrong_budgets_are_rejected(given: dict[str, Any], says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        make_budget(given)


def test_a_study_is_named_after_its_script_or_file() -> None:
    assert default_name(["python", "-u", "src/train.py", "--lr", "{lr}"], None) == "train"
    assert default_name(["./model", "--out=m.pt", "--rate", "0.5"], None) == "model"
    assert default_name(["python", "train.py"], Path("configs/tune.toml")) == "tune"


def test_a_plan_can_be_stored_and_read_back() -> None:
    options = {"command": ["python", "train.py", "{x}"], "budget": "10m", "workers": 3, "timeout": "2m", "retries": 1}
    plan = make_plan(options, None)
    assert (plan.name, plan.address, plan.timeout, plan.logs) == ("train", "shoestring.db", 120.0, "")
    stored = json.loads(json.dumps(plan.to_dict()))
    assert plan_from_dict(plan.name, plan.address, stored, {}) == plan
    assert plan_from_dict(plan.name, plan.address, stored, {"workers": 8}).workers == 8
    assert (plan.fail_fast, plan.max_failures) == (True, None)
    tolerant = make_plan({**options, "max_failures": 20, "no_fail_fast": True, "max_retries": 0}, None)
    assert (tolerant.fail_fast, tolerant.max_failures, tolerant.max_retries) == (False, 20, 0)
    assert plan_from_dict("train", "shoestring.db", json.loads(json.dumps(tolerant.to_dict())), {}) == tolerant
    with pytest.raises(click.UsageError, match="workers"):
        make_plan({**options, "workers": 0}, None)
    with pytest.raises(click.UsageError, match="after --"):
        make_plan({"budget": "10m"}, None)


def test_a_plan_that_an_earlier_version_stored_can_still_be_run() -> None:
    """Then a budget in time was a limit on the cost in seconds, and failures did not end a run early by default."""
    stored = {
        "command": ["python", "train.py", "{x}"], "workers": 1, "timeout": None, "retries": 0, "confirm": False, "logs": "logs",
        "budget": {"trials": None, "seconds": None, "cost": 600.0, "unit": "s", "per_hour": None}, "pass_as_json": False,
    }  # fmt: skip
    plan = plan_from_dict("train", "shoestring.db", stored, {})
    assert (plan.budget, plan.fail_fast, plan.max_failures) == (st.Budget(cost=600, unit="s"), True, None)
    assert plan.max_retries == 4


FILE = """
command = ["python", "train.py", "--lr", "{lr}"]

[study]
name = "xgb"
budget = "10m"
max-trials = 40
per-hour = 3
maximize = true
max-retries = 1
max-failures = 20
no-fail-fast = true

[params]
lr = "log:1e-5:1e-1"
act = ["relu", "tanh"]
drop = {low = 0, high = 0.5, when = {act = "relu"}}

[fidelities]
epochs = "1:50"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tune.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_means_the_same_as_the_options(tmp_path: Path) -> None:
    options, parameters = read_tune_file(write(tmp_path, FILE))
    assert options == {
        "command": ["python", "train.py", "--lr", "{lr}"], "name": "xgb", "budget": "10m", "max_trials": 40, "per_hour": 3,
        "maximize": True, "max_retries": 1, "max_failures": 20, "no_fail_fast": True,
    }  # fmt: skip
    assert list(parameters) == ["lr", "act", "drop", "epochs"]
    assert st.Space(parameters)["epochs"].fidelity


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("budget = '10m'", "budget: is not known here; put it under [study]"),
        ("[studdy]\nname = 'a'", "studdy: is not known here; did you mean study?"),
        ("params = 3", "params: should be a table"),
        ("[study]\nbugdet = '10m'", "[study] bugdet: is not known; did you mean budget?"),
        ("[study]\nmax_trials = 3", "did you mean max-trials?"),
        ("[study]\nworkers = '4'", "[study] workers: must be a whole number, not '4'"),
        ("[study]\nconfirm = 1", "[study] confirm: must be true or false"),
        ("command = 'python train.py'", "command: must be a list of texts"),
        ("[params]\nlr = '1e-5..1'", "[params] lr: '1e-5..1' is one option only"),
        ("[params]\nlr = {low = 1, hihg = 2}", "[params] lr: 'hihg' is not known here"),
        ("[params]\nlr = {low = 2, high = 1}", "[params] lr: low (2) must be below high (1)"),
        ("[params]\nlr = '0:1'\n[fidelities]\nepochs = '1:9'\ncommand = ['a']", "[fidelities] command: move it to the top"),
        ("[params\n", "is not TOML"),
    ],
)
def test_the_error_for_a_mistake_in_a_file_names_the_key(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(click.UsageError) as caught:
        read_tune_file(path)
    assert caught.value.message.startswith(str(path))
    assert says in caught.value.message


def test_a_file_that_does_not_exist_or_is_not_text(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="No such file"):
        read_tune_file(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(click.UsageError, match="UTF-8"):
        read_tune_file(tmp_path / "bytes.toml")


def test_storing_a_plan_keeps_other_settings_of_the_study(here: Path) -> None:
    begin(here, trials=2)
    storage = open_storage("shoestring.db")
    study = storage.find("train").id
    storage.revise(study, {"note": "mine", "budget": None})
    assert call("resume", "--budget", "3", "--workers", "2").exit_code == 0
    settings = storage.find("train").settings
    assert settings["note"] == "mine"
    assert (settings["run"]["workers"], settings["run"]["budget"]["trials"], settings["budget"]["trials"]) == (2, 3, 3)
    clock = storage.find("train").clock
    assert call("resume").exit_code == 0  # the budget is used up: nothing is written
    assert storage.find("train").clock == clock
    storage.close_connections()
