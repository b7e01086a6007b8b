"""``ls``, ``show``, ``best``, ``export`` and ``replay``: a study as text and as JSON."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
from pathlib import Path

import pytest

import shoestring as st
from tests.cli.programs import begin, call, read, script


@pytest.fixture
def study(here: Path) -> st.Study:
    """Two trials done, one failed, one running, one enqueued."""
    space = st.Space(x=st.Float(0, 1), act=st.Choice("relu", "tanh"))
    made = st.Study(space, storage="shoestring.db", name="hand", method=st.Random())
    made.tell(made.ask(), 0.5, cost=2.0)
    made.tell(made.ask(), 0.25, cost=3.0)
    made.tell(made.ask(), error="out of memory\nat line 3", cost=1.0)
    made.ask()
    made.enqueue({"x": 0.5, "act": "tanh"})
    return made


def test_ls(here: Path, study: st.Study) -> None:
    st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="empty", direction="maximize")
    run = call("ls")
    assert run.exit_code == 0, run.output
    lines = run.stdout.splitlines()
    assert lines[0].split() == ["study", "trials", "best", "created"]
    assert lines[1].split()[:3] == ["hand", "4", "0.25"]
    assert "1 enqueued" in lines[1]
    assert lines[2].split()[:3] == ["empty", "0", "-"]
    assert lines[-1] == "next: shoestring show empty"
    found = read("ls")
    assert [(each["name"], each["trials"], each["waiting"]) for each in found] == [("hand", 4, 1), ("empty", 0, 0)]
    assert found[0]["best"]["value"] == 0.25


def test_show_a_study(here: Path, study: st.Study) -> None:
    run = call("show", "hand")
    assert run.exit_code == 0, run.output
    for text in ("real number from 0 to 1", "one of relu, tanh", "4, 1 failed, 1 running", "6 s", "0.25 (trial 1)"):
        assert text in run.stdout
    assert "out of memory" in run.stdout
    assert "at line 3" not in run.stdout  # an error has one line here
    assert run.stdout.splitlines()[-1] == "next: shoestring ask hand"
    shown = read("show")  # the only study there is
    assert (shown["study"], shown["spent"], shown["waiting"]) == ("hand", 6.0, 1)
    assert shown["states"] == {"done": 2, "failed": 1, "running": 1}
    assert shown["last"][2]["error"].startswith("out of memory")


def test_show_a_trial(here: Path, study: st.Study) -> None:
    run = call("show", "hand", "2")
    assert "out of memory" in run.stdout
    assert "at line 3" in run.stdout
    assert "1 s" in run.stdout
    trial = read("show", "hand", "1")
    assert (trial["number"], trial["value"], trial["config"]) == (1, 0.25, study.history[1].config)
    wrong = call("show", "hand", "99")
    assert wrong.exit_code == 1
    assert "has 4 trials" in wrong.stderr
    assert wrong.stderr.splitlines()[-1] == "next: shoestring show hand"


def test_a_study_whose_code_could_not_be_stored_can_still_be_shown(here: Path) -> None:
    made = st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="own", cost_model=st.KnownCost(lambda config: 1.0))
    made.tell(made.ask(), 0.5, cost=1.0)
    assert read("show", "own")["trials"] == 1
    assert call("export", "own").exit_code == 0
    run = call("ask", "own")
    assert run.exit_code == 1
    assert "cost_model" in run.stderr


def test_best(here: Path, study: st.Study) -> None:
    run = call("best", "hand")
    assert "0.25 (trial 1 of hand)" in run.stdout
    assert run.stdout.splitlines()[-1] == "next: shoestring show hand 1"
    assert read("best")["config"] == study.history[1].config
    assert set(read("best", "hand", "--recommend")["recommended"]["config"]) == {"x", "act"}
    st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="empty")
    wrong = call("best", "empty", "--json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.stdout) == {"error": "no trial of study 'empty' has succeeded yet", "next": "shoestring show empty"}


def test_metrics_attributes_and_tracebacks_are_shown_and_exported(here: Path, study: st.Study) -> None:
    def objective(config: dict[str, object], trial: st.Trial) -> st.Outcome:
        if trial.number == 5:
            raise ValueError("no such thing")
        return st.Outcome(0.125, metrics={"accuracy": 0.93}, attrs={"host": "gpu3", "sizes": [1, 2]})

    study.attrs["data"] = "v3"
    study.minimize(objective, 6)
    shown = call("show", "hand")
    assert "attributes  data = v3" in shown.stdout
    assert "2 times: " not in shown.stdout  # the two errors are of different kinds
    assert "1 time: ValueError: no such thing (test_show.py, line " in " ".join(shown.stdout.split())
    assert read("show", "hand")["attrs"] == {"data": "v3"}
    text = call("show", "hand", "4").stdout
    assert "metrics     accuracy = 0.93" in text
    assert "attributes  host = gpu3, sizes = [1, 2]" in text
    assert read("best")["metrics"] == {"accuracy": 0.93}
    assert "metrics     accuracy = 0.93" in call("best").stdout
    failed = call("show", "hand", "5").stdout
    assert "Traceback (most recent call last):" in failed
    assert "  ValueError: no such thing" in failed
    rows = list(csv.DictReader(io.StringIO(call("export", "hand").stdout)))
    assert (rows[4]["metric_accuracy"], rows[4]["attr_host"], rows[4]["attr_sizes"]) == ("0.93", "gpu3", "[1, 2]")
    records = [json.loads(line) for line in call("export", "hand", "--format", "jsonl").stdout.splitlines()]
    assert (records[4]["metrics"], records[4]["attrs"]["host"]) == ({"accuracy": 0.93}, "gpu3")
    assert records[5]["traceback"].endswith("ValueError: no such thing\n")


def test_explain_says_what_chooses_the_next_trial(here: Path, study: st.Study) -> None:
    run = call("explain", "hand")
    assert run.exit_code == 0, run.output
    assert "you chose it: method=Random()" in run.stdout
    assert run.stdout.splitlines()[-1] == "next: shoestring show hand"
    assert read("explain", "hand") == study.explain().to_dict()


def test_best_command_is_the_ready_command_line(here: Path) -> None:
    program = script(here, "import os; print(-int(os.environ['SHOESTRING_TRIAL']))")
    space = ["--param", "x=0:1", "--param", "act=a b,c", "--param", "drop=0:1 when act=c", "--fidelity", "n=1:9"]
    words = [*program, "--act={act}", "{x}", "--drop", "{drop}", "--n", "{n}", "--out", "m-{trial}", "{{x}}"]
    assert call("run", *space, "--method", "hyperband", "--budget", "1", "--", *words).exit_code == 0
    call("enqueue", "train", "x=0.5", "act=a b", "n=3")
    assert call("resume", "--budget", "2", "--quiet").exit_code == 0
    expected = [*program, "--act=a b", "0.5", "--n", "9", "--out", "m-1", "{x}"]  # at the target fidelity
    assert call("best", "--command").stdout == shlex.join(expected) + "\n"
    assert read("best", "--command")["command"] == expected
    assert call("best", "--command", "--recommend").exit_code == 2


def test_best_command_of_a_program_that_reads_its_environment(here: Path) -> None:
    program = script(here, "import json, os; print(json.loads(os.environ['SHOESTRING_CONFIG'])['x'])")
    assert call("run", "--param", "x=0:1", "--method", "random", "--budget", "1", "--", *program).exit_code == 0
    best = read("best")
    line = call("best", "--command").stdout
    assert shlex.split(line) == ["env", f'SHOESTRING_CONFIG={{"x": {best["value"]}}}', *program]
    assert subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout == f"{best['value']}\n"


def test_best_command_of_a_study_without_a_program_says_so(here: Path, study: st.Study) -> None:
    run = call("best", "--command")
    assert (run.exit_code, run.stdout) == (1, "")
    config = study.history[1].config
    assert "has no program" in run.stderr
    assert f"--x {config['x']} --act {config['act']}" in run.stderr


def test_export(here: Path, study: st.Study) -> None:
    rows = list(csv.DictReader(io.StringIO(call("export", "hand").stdout)))
    assert [row["state"] for row in rows] == ["done", "done", "failed", "running"]
    lines = call("export", "hand", "--format", "jsonl").stdout.splitlines()
    assert [st.Trial.from_dict(json.loads(line)) for line in lines] == list(study.history)
    assert call("export", "hand", "-o", "out.jsonl").exit_code == 0
    assert (here / "out.jsonl").read_text().splitlines() == lines
    again = call("export", "hand", "-o", "out.jsonl")
    assert again.exit_code == 1
    assert "--yes" in again.stderr.splitlines()[-1]
    assert call("export", "hand", "-o", "out.jsonl", "--yes", "--format", "csv").exit_code == 0
    assert (here / "out.jsonl").read_text().startswith("number,state")
    assert call("export", "hand", "-o", "nowhere/out.csv").exit_code == 1


def test_replay(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(here, trials=4)
    run = call("replay", "train")
    assert run.exit_code == 0, run.output
    assert "4 suggestions checked, all the same" in run.stdout
    assert read("replay", "train") == {"study": "train", "checked": 4, "identical": 4, "first_difference": None}

    class Different:
        checked, identical, first_difference = 3, 2, (2, "x is 0.5, and was 0.25")

    monkeypatch.setattr(st.Study, "replay", lambda self: Different)
    run = call("replay", "train")
    assert run.exit_code == 1
    assert "trial 2 differs: x is 0.5, and was 0.25" in run.stdout
    assert run.stdout.splitlines()[-1] == "next: shoestring show train 2"


def test_a_name_is_needed_if_there_are_several_studies_and_the_error_lists_them(here: Path, study: st.Study) -> None:
    st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="other")
    for words in (["show"], ["best"], ["export"], ["ask"], ["stop"], ["resume"]):
        run = call(*words)
        assert run.exit_code == 1
        assert "2 studies" in run.stderr
        assert "'hand', 'other'" in run.stderr
    run = call("show", "ohter")
    assert run.exit_code == 1
    assert "there is no study 'ohter'" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring ls"


@pytest.mark.parametrize(
    "words",
    [["ls"], ["show", "a"], ["best", "a"], ["ask", "a"], ["tell", "a", "1", "2"], ["enqueue", "a", "x=1"], ["stop", "a"],
     ["rm", "a"], ["export", "a"], ["replay", "a"], ["db", "check"], ["db", "backup"], ["db", "upgrade"], ["resume", "a"]],
)  # fmt: skip
def test_commands_that_only_read_create_no_database(here: Path, words: list[str]) -> None:
    run = call(*words)
    assert run.exit_code == 1
    assert "there is no file shoestring.db here" in run.stderr
    assert "next: shoestring run" in run.stderr
    assert list(here.iterdir()) == []


def test_the_storage_may_be_given_by_the_environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(here, "--storage", "sqlite:///other.db")
    assert "next: shoestring show train --storage sqlite:///other.db" in call("ls", "--storage", "sqlite:///other.db").stdout
    monkeypatch.setenv("SHOESTRING_STORAGE", "other.db")
    assert call("ls").stdout.splitlines()[-1] == "next: shoestring show train"


def test_control_characters_in_stored_text_do_not_reach_the_terminal(here: Path, study: st.Study) -> None:
    study.tell(3, error="\x1b[2J\x1b]0;pwned\x07 gone")
    run = call("show", "hand")
    assert "\x1b" not in run.output
    assert "gone" in run.output
