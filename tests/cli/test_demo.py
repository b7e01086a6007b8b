"""``demo``: its output for people and for programs, its plot, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import shoestring as st
from shoestring.cli import demo as demo_module
from shoestring.cli import doctor as packages
from shoestring.cli.demo import SPACE, Digits, ProgressLines
from shoestring.cli.main import main


class Quick:
    """A replacement for Digits: a smooth error without training."""

    def validation_error(self, config: Mapping[str, Any]) -> float:
        return 7.0 if not config else 3.0 + 4.0 * config["max_features"]

    def test_error(self, config: Mapping[str, Any]) -> float:
        return self.validation_error(config) + 0.5


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The demo with the quick problem, in an empty folder."""
    monkeypatch.setattr(demo_module, "Digits", Quick)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_version_and_help() -> None:
    assert call("--version").output == f"shoestring {st.__version__}\n"
    text = call("--help").output
    assert "shoestring demo" in text
    assert "130" in text
    assert "--picture PATH" in call("demo", "--help").output
    assert "demo" in main.commands


def test_it_prints_an_introduction_then_the_summary_then_what_to_try_next(quick: Path) -> None:
    run = call("demo", "--budget", "12")
    assert run.exit_code == 0, run.output
    lines = run.output.splitlines()
    assert "gradient-boosting" in lines[0]
    assert "12 trials" in run.output
    assert "7.00 % validation error with the default settings" in run.output
    assert "fewer test errors" in run.output
    assert "result.study" not in run.output  # that advice is for Python users
    assert lines[-1].startswith("next, a function of your own: ")
    assert (quick / "shoestring-demo.png").stat().st_size > 10_000
    shown = [line for line in lines if "|" in line]
    assert len(shown) == 3  # at a quarter, half and three quarters
    assert "\x1b" not in run.output


def test_json_is_one_object_and_nothing_else(quick: Path) -> None:
    run = call("demo", "--budget", "8", "--seed", "3", "--json", "--picture", "here.svg")
    found = json.loads(run.stdout)
    assert run.exit_code == 0
    assert (found["trials"], found["seed"], found["stop_kind"]) == (8, 3, "budget")
    assert found["error_percent"]["best"]["validation"] == pytest.approx(3 + 4 * found["config"]["max_features"])
    assert found["error_percent"]["default"] == {"validation": 7.0, "test": 7.5}
    assert found["picture"] == "here.svg"
    assert (quick / "here.svg").is_file()
    assert len(found["history"]) == 8


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "4x"], "4x"),
        (["--budget", "0"], "positive"),
        (["--seed", "-1"], "--seed"),
        (["--picture", "nowhere/at-all.png"], "no folder"),
        (["--picture", "picture.docx"], ".png"),
    ],
)
def test_wrong_usage_exits_with_2_before_anything_is_spent(quick: Path, arguments: list[str], says: str) -> None:
    run = call("demo", *arguments)
    assert run.exit_code == 2
    assert says in run.stderr
    assert run.stdout == ""


def test_missing_packages_are_named_with_the_command_to_install_them(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = packages.find_spec
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "sklearn" else here(name))
    run = call("demo", "--budget", "3")
    assert run.exit_code == 1
    assert 'pip install "shoestring[sklearn,plots]"' in run.stderr
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "matplotlib" else here(name))
    run = call("demo", "--budget", "3")
    assert run.exit_code == 0  # the picture is optional
    assert "pip install" in run.stderr
    assert not (quick / "shoestring-demo.png").exists()
    assert call("demo", "--budget", "3", "--picture", "asked-for.png").exit_code == 1


def test_the_summary_is_printed_even_if_the_picture_cannot_be_saved(quick: Path) -> None:
    (quick / "shoestring-demo.png").mkdir()
    run = call("demo", "--budget", "3")
    assert run.exit_code == 1
    assert "best found" in run.stdout
    assert "could not be saved" in run.stderr


@pytest.mark.parametrize("at", [0, 4])
def test_ctrl_c_keeps_the_results_so_far(quick: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    calls = {"n": -1}

    class Interrupted(Quick):
        def validation_error(self, config: Mapping[str, Any]) -> float:
            calls["n"] += bool(config)
            if calls["n"] == at and config:
                raise KeyboardInterrupt
            return super().validation_error(config)

    monkeypatch.setattr(demo_module, "Digits", Interrupted)
    run = call("demo", "--budget", "20", "--json")
    assert run.exit_code == 130
    found = json.loads(run.stdout)
    assert found["stop_kind"] == "interrupted"
    assert [trial["state"] for trial in found["history"]] == ["done"] * at + ["abandoned"]
    assert (found["picture"] is None) == (at == 0)


def test_ctrl_c_before_the_search_exits_with_130_too(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "Digits", interrupted)
    run = call("demo")
    assert run.exit_code == 130
    assert run.stderr.strip() == "interrupted"


def test_there_are_three_progress_lines_for_any_budget() -> None:
    budget = st.Budget(trials=400, cost=4.0)
    lines: list[str] = []
    show = ProgressLines(budget, lines.append)
    study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random())
    for _ in range(8):
        trial = study.ask()
        show(study, study.tell(trial, 1.0, cost=0.5))
    assert len(lines) == 3


def test_the_problem_is_as_described() -> None:
    digits = Digits()
    assert (len(digits.digits), len(digits.validation_digits), len(digits.test_digits)) == (400, 797, 600)
    config = SPACE.check(
        {"learning_rate": 0.3, "max_iter": 20, "max_leaf_nodes": 4, "min_samples_leaf": 10, "l2_regularization": 0.01,
         "max_features": 0.2, "early_stopping": True, "n_iter_no_change": 5}
    )
    assert 1.0 < digits.validation_error(config) < 40.0
    assert 1.0 < digits.test_error(config) < 40.0


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_real_demo_in_a_pipe(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "shoestring", "demo", "--budget", "1s"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "\x1b" not in run.stdout
    assert "default settings" in run.stdout
    assert (tmp_path / "shoestring-demo.png").is_file()


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.slow
def test_a_real_ctrl_c_ends_the_real_demo_with_its_result(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "shoestring", "demo", "--budget", "16"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=reset_sigint,
    ) as process:
        try:
            assert process.stdout is not None
            next(text for text in process.stdout if "4 trials of 16" in text)  # the first line of progress
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()  # does nothing to a process that has ended
    assert process.returncode == 130, errors
    assert "interrupted" in output
    assert "best found" in output
    assert "Traceback" not in errors


def reset_sigint() -> None:
    """A shell starts background jobs with SIGINT ignored, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
