"""``top``: follow a stored study, once, in lines, and in a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from shoestring.cli import top as module
from shoestring.errors import StorageUnavailable
from shoestring.report import progress
from shoestring.report.progress import PlainLines
from shoestring.state.study_state import StudyState
from tests.cli.programs import begin, call, environment, read


@pytest.fixture
def study(here: Path) -> st.Study:
    made = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage="shoestring.db", name="demo", budget=9, unit="USD")
    made.tell(made.ask(), 0.5, cost=2.0)
    made.tell(made.ask(), error="postgresql://me:s3cret@host/db is away", cost=1.0)
    made.ask()
    return made


def follow(monkeypatch: pytest.MonkeyPatch, *steps: Any) -> Any:
    """Call ``top``: between two looks a step happens, and after the last one Ctrl-C."""
    waiting = iter(steps)

    def wait(seconds: float) -> None:
        step = next(waiting, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(module, "wait", wait)
    return call("top", "demo")


def test_once_prints_the_table_and_the_next_command(study: st.Study) -> None:
    run = call("top", "--once")
    assert run.exit_code == 0, run.output
    lines = run.stdout.splitlines()
    assert lines[0] == "study demo in shoestring.db, to minimize"
    assert "running" in lines[4]
    assert "2 trials of 9, 1 failed | best 0.5" in run.stdout
    assert lines[-1] == "next: shoestring show demo"
    assert "s3cret" not in run.stdout


def test_json_is_one_document_with_the_facts_of_the_page(study: st.Study) -> None:
    document = read("top", "demo")
    facts = {fact["label"]: fact for fact in document["facts"]}
    assert (facts["spent"]["value"], facts["trials"]["limit"], facts["best"]["value"]) == (3.0, 9, 0.5)
    assert [trial["number"] for trial in document["running"]] == [2]
    assert [trial["number"] for trial in document["last"]] == [0, 1, 2]
    assert document["best"]["value"] == 0.5


def test_in_a_pipe_a_line_is_printed_when_something_has_changed(study: st.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = follow(monkeypatch, lambda: None, lambda: study.tell(2, 0.25, cost=1.0), lambda: None, lambda: study.halt("enough"))
    assert run.exit_code == 0, run.output
    *lines, last = run.stdout.splitlines()
    assert [line.partition("shoestring: ")[2].partition(" |")[0] for line in lines] == [
        "2 trials of 9, 1 failed", "3 trials of 9, 1 failed", "3 trials of 9, 1 failed",
    ]  # fmt: skip
    assert last == "next: shoestring show demo"


def test_a_storage_that_does_not_answer_is_asked_again(study: st.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, refresh = [True], st.Study.refresh

    def maybe(self: st.Study) -> None:
        if not answers[-1]:
            raise StorageUnavailable("postgresql://me:s3cret@host/db does not answer")
        refresh(self)

    monkeypatch.setattr(st.Study, "refresh", maybe)
    run = follow(monkeypatch, lambda: answers.append(False), lambda: answers.append(True))
    assert run.exit_code == 0, run.output
    assert len(run.stdout.splitlines()) == 4  # before, during, after, next
    assert "trying again: postgresql://me:***@host/db does not answer" in run.stdout
    assert "s3cret" not in run.stdout


def test_a_study_that_is_deleted_is_an_error(study: st.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = follow(monkeypatch, lambda: call("rm", "demo", "--yes"))
    assert run.exit_code == 1
    assert "study 'demo' was deleted" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring ls"


def test_without_a_budget_and_without_trials(here: Path) -> None:
    st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="new")
    assert "0 trials | no result yet | spent 0 s" in call("top", "--once").stdout


def test_run_shows_the_same_table_in_a_terminal(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    class Recorder(PlainLines):
        def update(self, state: StudyState, budget: st.Budget) -> None:
            shown.append(budget.trials)

    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    monkeypatch.setattr(progress, "TerminalTable", Recorder)
    assert begin(here, trials=1).exit_code == 0
    assert set(shown) == {1}


def test_in_a_terminal_the_last_table_stays_and_the_next_command_follows(
    study: st.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "can_redraw", lambda: True)
    run = follow(monkeypatch, lambda: study.tell(2, 0.25, cost=1.0))
    assert run.exit_code == 0, run.output
    assert run.stdout.count("3 trials of 9, 1 failed | best 0.25") == 1
    assert run.stdout.endswith("next: shoestring show demo\n")


@pytest.mark.slow
def test_the_table_moves_in_a_real_terminal_until_ctrl_c(study: st.Study, here: Path) -> None:
    leader, follower = pty.openpty()
    words = [sys.executable, "-m", "shoestring", "top", "demo", "--every", "20ms"]
    variables = environment() | {"TERM": "xterm", "COLUMNS": "60", "LINES": "20", "NO_COLOR": "1"}
    process = subprocess.Popen(words, stdout=follower, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=variables, cwd=here)
    os.close(follower)

    def seen(text: str) -> bool:
        nonlocal output
        end = time.monotonic() + 30.0
        while text not in output and time.monotonic() < end:
            try:
                output += os.read(leader, 65536).decode(errors="replace")
            except OSError:
                break
        return text in output

    output = ""
    try:
        assert seen("2 trials of 9, 1 failed")
        study.tell(2, 0.25, cost=1.0)
        assert seen("3 trials of 9, 1 failed"), output
        process.send_signal(2)
        assert seen("next: "), output
        assert process.wait(20) == 0, output
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        os.close(leader)
    assert max(len(line) for line in output.splitlines() if "trial  state" in line) < 80
