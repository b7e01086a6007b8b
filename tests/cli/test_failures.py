"""Programs that fail: a mistake ends a run early, and says what to do; where failing is normal, the run goes on."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

import shoestring as st
from shoestring.cli.execute_plan import check_program, script_of
from shoestring.report import trial_log
from shoestring.storage import open_storage
from tests.cli.programs import QUICK, SPACE, begin, call, read, script

BROKEN = "import sys\nprint('loading', file=sys.stderr)\nraise ValueError('no such thing')"
HALF = "import os, sys\nif int(os.environ['SHOESTRING_TRIAL']) % 2: raise ValueError('no such thing')\nprint(sys.argv[1])"


def test_a_typo_in_the_name_of_the_script_runs_nothing(here: Path) -> None:
    script(here)
    for words, says in ((["-u", "trian.py"], "did you mean 'train.py'?"), (["nothing.py"], "there is no file 'nothing.py' here")):
        run = call("run", *SPACE, *QUICK, "--budget", "79", "--", sys.executable, *words, "{x}", "{y}")
        assert (run.exit_code, run.stdout) == (2, "")
        assert says in run.stderr
    assert [path.name for path in here.iterdir()] == ["train.py"]
    begin(here, trials=1)
    (here / "train.py").rename(here / "other.py")
    assert call("resume", "--budget", "3").exit_code == 2
    assert read("show")["trials"] == 1


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python train.py {x}", "train.py"),
        ("/usr/bin/python3.11 -u -W error src/train.py", "src/train.py"),
        ("python -m train {x}", None),
        ("python -c print({x})", None),
        ("python -um train", None),
        ("python {script}", None),
        ("python -", None),
        ("bash tune.sh", "tune.sh"),
        ("bash -c tune.sh", None),
        ("./train.py {x}", None),
        ("srun python train.py", None),
    ],
)
def test_the_script_of_a_command_line(command: str, found: str | None) -> None:
    assert script_of(command.split()) == found


def test_a_script_that_is_a_folder_or_on_the_path_is_there(here: Path) -> None:
    (here / "package").mkdir()
    check_program([sys.executable, "package"])
    check_program(["sh", "ls"])


def test_a_program_that_always_fails_ends_after_three_trials(here: Path) -> None:
    run = begin(here, code=BROKEN, trials=79)
    assert run.exit_code == 1
    assert "error: 3 trials in a row have failed in the same way, and none has succeeded: exit code 1: ValueError" in run.stderr
    assert "or give --max-failures N if it is normal that trials fail, or --no-fail-fast to go on" in run.stderr
    assert "\n  ValueError: no such thing\n" in run.stderr  # the end of its output
    assert run.stderr.splitlines()[-1] == "next: shoestring show train 2"
    assert read("show")["states"] == {"failed": 3}
    trial = read("show", "train", "2")
    assert trial["traceback"].startswith("loading\nTraceback")
    assert "\n" not in trial["error"]
    again = call("resume", "--json")  # the count begins again
    document = json.loads(again.stdout)
    assert (again.exit_code, document["stop_kind"], document["states"]) == (1, "failures", {"failed": 6})
    assert document["next"] == "shoestring show train 5"


def test_max_failures_is_for_programs_that_often_fail(here: Path) -> None:
    run = begin(here, "--max-failures", "4", code=BROKEN, trials=79)
    assert run.exit_code == 1
    assert "5 trials of this run have failed, and --max-failures 4" in run.stderr
    assert read("show")["run"]["max_failures"] == 4  # stored, so that resume does the same
    assert call("resume").exit_code == 1
    assert read("show")["states"] == {"failed": 10}
    assert call("resume", "--max-failures", "0").exit_code == 1
    assert read("show")["states"] == {"failed": 11}
    fine = begin(here, "--name", "half", "--max-failures", "2", code=HALF, trials=5)
    assert fine.exit_code == 0, fine.output


def test_with_no_fail_fast_failures_never_end_a_run(here: Path) -> None:
    run = begin(here, "--no-fail-fast", code=BROKEN, trials=5)
    assert run.exit_code == 1
    assert "no trial has succeeded; the budget of 5 trials is used up" in run.stderr
    assert read("show")["states"] == {"failed": 5}
    assert call("resume", "--budget", "9").exit_code == 1  # as it was stored
    assert read("show")["states"] == {"failed": 9}


def test_a_tune_file_may_say_what_failures_do(here: Path) -> None:
    script(here, BROKEN)
    (here / "tune.toml").write_text(f"""
command = ["{sys.executable}", "train.py", "{{x}}"]
[study]
budget = 6
method = "Random"
max-failures = 3
[params]
x = "0:1"
""")
    run = call("run", "tune.toml")
    assert "4 trials of this run have failed, and --max-failures 3" in run.stderr


def test_a_study_that_an_earlier_version_stored_is_resumed(here: Path) -> None:
    """Its plan has a budget in seconds of cost, and nothing about failures."""
    begin(here, trials=2)
    storage = open_storage("shoestring.db")
    record = storage.find("train")
    assert record is not None
    stored = {key: value for key, value in record.settings["run"].items() if key not in ("max_failures", "fail_fast")}
    budget = {"trials": None, "seconds": None, "cost": 1e-9, "unit": "s", "per_hour": None}
    storage.revise(record.id, settings={**record.settings, "run": {**stored, "budget": budget}})
    storage.close_connections()
    run = call("resume")
    assert run.exit_code == 0, run.output
    assert "0 new trials: 2 were there" in run.stdout
    assert call("resume", "--budget", "3 trials").exit_code == 0
    assert read("show")["trials"] == 3


@pytest.mark.parametrize(
    ("options", "levels"), [([], {"INFO", "WARNING"}), (["--quiet"], set()), (["--json"], set())], ids=["pipe", "quiet", "json"]
)
def test_there_is_one_log_line_a_trial_in_a_pipe(
    here: Path, caplog: pytest.LogCaptureFixture, options: list[str], levels: set[str]
) -> None:
    with caplog.at_level(logging.INFO, "shoestring"):
        assert begin(here, *options, code=HALF, trials=4).exit_code == 0
        assert trial_log.log.level == logging.INFO  # as it was
    lines = [record for record in caplog.records if record.getMessage().startswith("trial ")]
    assert {record.levelname for record in lines} == levels
    assert len(lines) == (4 if levels else 0)


def test_the_summary_of_a_run_that_a_rule_has_ended_says_how_to_go_on_and_that_works(here: Path) -> None:
    program = [*script(here, "print(1)"), "{x}"]
    words = ["run", "--param", "x=0:1", *QUICK, "--budget", "20", "--quiet"]
    run = call(*words, "--stop", "Patience(3)", "--", *program)
    assert "continue the same shoestring run command with --stop none" in " ".join(run.stdout.split())
    trials = read("show")["trials"]
    assert trials < 20
    assert call(*words, "--stop", "none", "--", *program).exit_code == 0
    assert read("show")["trials"] == 20


def test_results_from_elsewhere_are_not_spent(here: Path) -> None:
    begin(here, trials=1)
    study = st.Study.load("shoestring.db", "train")
    study.add({"x": 0.5, "y": 0.5}, 1.0, cost=1e6)
    run = call("resume", "--budget", "2", "--quiet")
    assert "trials       3, 1 of them from elsewhere" in run.stdout
    assert read("show")["spent"] < 1e6
