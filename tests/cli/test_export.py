"""``export`` to files and trackers, and ``run --cost``."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

import shoestring as st
from tests.cli.programs import begin, call, read


@pytest.fixture
def study(here: Path) -> st.Study:
    made = st.Study(st.Space(x=st.Float(0, 1), act=st.Choice("a", 1)), storage="shoestring.db", name="hand")
    made.add({"x": 0.5, "act": "a"}, 0.25, cost=2.0)
    made.add({"x": 0.75, "act": 1}, error="no")
    return made


def test_the_format_is_named_or_follows_from_the_file(here: Path, study: st.Study) -> None:
    assert call("export", "hand", "--to", "csv").stdout == call("export", "hand", "--format", "csv").stdout
    assert call("export", "-o", "a.jsonl").exit_code == 0
    assert [json.loads(line)["value"] for line in (here / "a.jsonl").read_text().splitlines()] == [0.25, None]


def test_parquet_is_written_to_a_file(here: Path, study: st.Study) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert call("export", "-o", "a.parquet").exit_code == 0
    rows = parquet.read_table(here / "a.parquet").to_pylist()
    assert [(row["number"], row["value"], row["x"], row["act"], row["error"]) for row in rows] == [
        (0, 0.25, 0.5, '"a"', None), (1, None, 0.75, "1", "no"),
    ]  # fmt: skip


def test_parquet_without_pyarrow_is_an_error_that_names_it(
    here: Path, study: st.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = call("export", "-o", "a.parquet")
    assert (run.exit_code, run.stderr.splitlines()[-1]) == (1, "next: pip install pyarrow")
    assert not (here / "a.parquet").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "parquet"], "give a file"), (["--to", "mlflow", "-o", "a.csv"], "give --tracking"),
        (["--tracking", "x"], "are for --to mlflow"), (["--to", "excel"], "is not one of"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(here: Path, study: st.Study, words: list[str], message: str) -> None:
    run = call("export", "hand", *words)
    assert run.exit_code == 2
    assert message in run.stderr


def test_trackers_get_the_study_and_say_how_many_trials_are_new(
    here: Path, study: st.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def record(name: str) -> types.ModuleType:
        module = types.ModuleType(name)
        setattr(module, f"to_{name.split('.')[-1].removesuffix('_export')}", lambda *args: (calls.append(args), 2)[1])
        return module

    for name in ("shoestring.integrations.mlflow_export", "shoestring.integrations.wandb_export"):
        monkeypatch.setitem(sys.modules, name, record(name))
    run = call("export", "hand", "--to", "mlflow", "--tracking", "postgresql://me:secret@host/db", "--experiment", "nets")
    assert "2 new trials of study hand written to experiment nets of mlflow" in run.stdout
    assert "secret" not in run.output
    assert read("export", "hand", "--to", "wandb") == {"study": "hand", "to": "wandb", "new": 2, "project": "hand"}
    assert [(args[0].name, *args[1:]) for args in calls] == [
        ("hand", "postgresql://me:secret@host/db", "nets"), ("hand", ".", None),
    ]  # fmt: skip


def test_a_tracker_that_is_missing_or_fails_is_an_error_without_a_traceback(
    here: Path, study: st.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    run = call("export", "hand", "--to", "mlflow")
    assert (run.exit_code, run.stderr.splitlines()[-1]) == (1, "next: pip install mlflow-skinny")
    broken = types.SimpleNamespace(MlflowClient=lambda tracking_uri: (_ for _ in ()).throw(ConnectionError("refused")))
    monkeypatch.setitem(sys.modules, "mlflow", broken)
    run = call("export", "hand", "--to", "mlflow")
    assert "mlflow could not be written: ConnectionError: refused" in run.stderr
    assert "Traceback" not in run.stderr


# -- run --cost ------------------------------------------------------------------------------------------------------


def test_a_run_is_measured_by_its_meter_and_resumed_with_it(here: Path) -> None:
    run = begin(here, "--cost", "cpu", trials=2)
    assert run.exit_code == 0, run.output
    assert "CPU-s" in run.stdout
    shown = read("show", "train")
    assert shown["unit"] == "CPU-s"
    trials = read("export", "train")["trials"]
    assert all(0 < trial["cost"] < 60 for trial in trials)
    assert call("resume", "train", "--budget", "3").exit_code == 0
    assert st.Study.load("shoestring.db").history[-1].cost < 60


def test_a_price_of_the_machine_on_the_command_line(here: Path) -> None:
    run = begin(here, "--cost", "Money(per_hour=3600, unit='EUR')", trials=2)
    assert "EUR" in run.stdout
    trials = read("export", "train")["trials"]
    assert [trial["cost"] for trial in trials] == pytest.approx([trial["seconds"] for trial in trials])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--cost", "nonsense"], 2, "there is no nonsense"), (["--cost", "money"], 2, "needs a price"),
        (["--cost", "cpu", "--unit", "USD"], 2, "costs are in USD, but CPUTime"),
        (["--cost", "Energy(powercap='nowhere', source='rapl')"], 1, "energy cannot be measured here"),
        (["--cost", "cpu", "--workers", "2"], 1, "cannot tell trials in threads of one process apart"),
    ],
)  # fmt: skip
def test_a_meter_that_cannot_work_is_an_error_before_the_program_runs(
    here: Path, words: list[str], code: int, message: str
) -> None:
    run = begin(here, *words, trials=2)
    assert run.exit_code == code, run.output
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert not list(here.glob("shoestring-logs/*/trial-*.out"))
