"""``run`` and ``resume``: tune a program, store the study, continue it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shoestring as st
from shoestring.storage import open_storage
from tests.cli.programs import BOWL, QUICK, SPACE, begin, call, log_folder, read, script


def test_a_run_from_beginning_to_end(here: Path) -> None:
    run = begin(here, trials=4)
    assert run.exit_code == 0, run.output
    assert run.stderr == ""  # no progress line in a pipe
    assert "\x1b" not in run.output
    assert "x        real number from 0 to 1" in run.stdout
    assert "4 trials" in run.stdout
    assert "shoestring.db; logs in shoestring-logs/train-" in run.stdout
    assert run.stdout.splitlines()[-1] == "next: shoestring best train"
    assert "shoestring resume train --budget MORE" in run.stdout
    assert (here / "shoestring.db").is_file()
    assert len(list(log_folder(here).glob("trial-*.out"))) == 4
    shown = read("show", "train")
    assert (shown["trials"], shown["states"], shown["unit"]) == (4, {"done": 4}, "s")
    assert shown["run"]["command"][1:] == ["train.py", "{x}", "{y}"]
    assert (log_folder(here) / "trial-00002.out").read_text().startswith("training\n0.")


def test_the_same_command_again_continues_the_study(anywhere: Path) -> None:
    begin(anywhere, trials=3)
    again = begin(anywhere, trials=5)
    assert "resuming study train: 3 trials so far" in again.stdout
    assert read("show")["trials"] == 5
    done = begin(anywhere, trials=5)  # the budget is used up: no error
    assert done.exit_code == 0
    assert read("show")["trials"] == 5


def test_a_resumed_study_makes_the_same_suggestions_as_an_uninterrupted_one(anywhere: Path) -> None:
    begin(anywhere, "--name", "whole", "--method", "ei", "--initial", "3", trials=7)
    begin(anywhere, "--name", "parts", "--method", "ei", "--initial", "3", trials=4)
    assert call("resume", "parts", "--budget", "7").exit_code == 0
    whole, parts = (
        [trial["config"] for trial in read("export", name)["trials"]] for name in ("whole", "parts")
    )
    assert whole == parts
    assert len(whole) == 7


def test_resume_takes_the_program_from_the_study(anywhere: Path) -> None:
    begin(anywhere, "--workers", "2", "--timeout", "30s", trials=2)
    run = call("resume", "train", "--budget", "4", "--workers", "1")
    assert run.exit_code == 0, run.output
    assert "resuming study train: 2 trials so far" in run.stdout
    kept = read("show", "train")["run"]
    assert (kept["budget"]["trials"], kept["workers"], kept["timeout"]) == (4, 1, 30.0)
    assert read("show", "train")["trials"] == 4


def test_resume_without_a_program_or_a_study(here: Path) -> None:
    run = call("resume")
    assert run.exit_code == 1
    assert "there is no file shoestring.db here" in run.stderr
    assert not (here / "shoestring.db").exists()
    st.Study(st.Space(x=st.Float(0, 1)), storage="shoestring.db", name="by hand")
    run = call("resume", "by hand")
    assert run.exit_code == 1
    assert "has no program" in run.stderr
    assert "next: shoestring run --name 'by hand'" in run.stderr


def test_a_program_that_only_the_database_names_needs_yes(here: Path) -> None:
    """Write access to the database must not decide what runs here."""
    begin(here, trials=2)
    storage = open_storage("shoestring.db")
    record = storage.find("train")
    assert record is not None
    bomb = {**record.settings["run"], "command": ["touch", "boom-{x}-{y}"]}
    storage.revise(record.id, settings={**record.settings, "run": bomb})
    storage.close_connections()
    run = call("resume", "train", "--budget", "3")
    assert run.exit_code == 1
    assert "touch 'boom-{x}-{y}'" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring resume train --yes"
    assert list(here.glob("boom*")) == []
    assert call("resume", "train", "--budget", "3", "--yes").exit_code == 0
    assert len(list(here.glob("boom*"))) == 1


def test_several_programs_run_at_once(here: Path) -> None:
    code = """
import sys, time
began = time.time()
time.sleep(0.8)
print(began, time.time(), file=sys.stderr)
print(float(sys.argv[1]) + float(sys.argv[2]))
"""
    run = begin(here, "--workers", "4", code=code, trials=4)
    assert run.exit_code == 0, run.output
    spans = [tuple(map(float, path.read_text().split())) for path in log_folder(here).glob("*.err")]
    assert len(spans) == 4
    assert max(began for began, _ in spans) < min(ended for _, ended in spans)


def test_json_is_one_document(here: Path) -> None:
    program = script(here)
    run = call("run", *SPACE, *QUICK, "--budget", "3", "--json", "--", *program, "{x}", "{y}")
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert run.stderr == ""
    assert (found["study"], found["trials"], found["stop_kind"]) == ("train", 3, "budget")
    assert found["resume"] == "shoestring resume train"
    best = found["best"]["config"]
    assert found["best"]["value"] == pytest.approx((best["x"] - 0.3) ** 2 + (best["y"] - 0.6) ** 2)
    assert set(found["recommended"]["config"]) == {"x", "y"}


def test_quiet_prints_only_the_result(here: Path) -> None:
    loud, quiet = begin(here, "--name", "a"), begin(here, "--name", "b", "--quiet")
    assert loud.stdout.startswith("study a")
    assert quiet.stdout.startswith("trials")


def test_maximize_with_a_budget_in_money(here: Path) -> None:
    code = 'import json, sys\nprint(json.dumps({"value": float(sys.argv[1]), "cost": 0.5}))'
    program = script(here, code)
    run = call("run", "--param", "x=0:1", *QUICK, "--maximize", "--budget", "2USD", "--name", "m", "--", *program, "{x}")
    assert run.exit_code == 0, run.output
    assert "2 USD of 2 USD" in run.stdout
    shown, values = read("show", "m"), [trial["value"] for trial in read("export", "m")["trials"]]
    assert (shown["unit"], shown["spent"], shown["direction"]) == ("USD", 2.0, "maximize")
    assert shown["best"]["value"] == max(values)
    more = call("resume", "m", "--budget", "3 USD")
    assert more.exit_code == 0, more.output
    assert read("show", "m")["spent"] == 3.0
    wrong = call("resume", "m", "--budget", "4 EUR")
    assert wrong.exit_code == 2
    assert "20 USD" in wrong.stderr


def test_folds_gradients_and_results_in_a_file(here: Path) -> None:
    code = """
import json, os, sys
x = json.loads(os.environ["SHOESTRING_CONFIG"])["x"]
with open(os.environ["SHOESTRING_RESULT"], "w") as file:
    json.dump({"folds": [x, x + 0.5], "gradient": {"x": 1.0}, "cost": 2.0}, file)
print("nothing of interest")
"""
    program = script(here, code)
    run = call("run", "--param", "x=0:1", *QUICK, "--budget", "2", "--", *program)
    assert run.exit_code == 0, run.output
    assert "in SHOESTRING_CONFIG" in run.stdout
    trial = read("show", "train", "0")
    assert trial["folds"] == [trial["config"]["x"], trial["config"]["x"] + 0.5]
    assert (trial["gradient"], trial["cost"]) == ({"x": 1.0}, 2.0)


def test_conditional_parameters_and_fidelities(here: Path) -> None:
    code = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--booster")
parser.add_argument("--drop", type=float, default=-1.0)
parser.add_argument("--epochs", type=int)
known = vars(parser.parse_args())
assert (known["drop"] >= 0) == (known["booster"] == "dart")
assert 1 <= known["epochs"] <= 9
print(json.dumps({"value": known["drop"] / known["epochs"], "cost": known["epochs"]}))
"""
    program = script(here, code)
    run = call(
        "run", "--param", "booster=gbtree,dart", "--param", "drop=0:0.5 when booster=dart", "--fidelity", "epochs=1:9",
        "--budget", "8", "--method", "hyperband",
        "--", *program, "--booster", "{booster}", "--drop", "{drop}", "--epochs={epochs}",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "drop     real number from 0 to 0.5, when booster = dart" in run.stdout
    trials = read("export")["trials"]
    assert {trial["state"] for trial in trials} == {"done"}
    assert {"drop" in trial["config"] for trial in trials} == {True, False}


def test_options_take_precedence_over_a_file(here: Path) -> None:
    script(here)
    (here / "bowl.toml").write_text("""
command = ["python", "train.py", "{x}", "{y}"]
[study]
budget = 2
method = "Sobol"
storage = "file.db"
seed = 3
[params]
x = "0:1"
y = {low = 0, high = 1}
""")
    run = call("run", "bowl.toml", "--budget", "3", "--param", "y=0.5:1")
    assert run.exit_code == 0, run.output
    assert not (here / "shoestring.db").exists()
    shown = read("show", "bowl", "--storage", "file.db")
    assert shown["trials"] == 3
    assert shown["space"]["y"]["low"] == 0.5
    assert run.stdout.splitlines()[-1] == "next: shoestring best bowl --storage file.db"


def test_the_same_name_with_another_space_is_rejected_and_nothing_is_lost(anywhere: Path) -> None:
    begin(anywhere, trials=2)
    program = script(anywhere)
    other = ["run", "--param", "x=0:2", "--param", "y=0:1", *QUICK, "--budget", "4"]
    run = call(*other, "--", *program, "{x}", "{y}")
    assert run.exit_code == 1
    assert "--extend" in run.stderr
    assert "--name OTHER" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring show train"
    assert read("show", "train")["trials"] == 2
    wider = call(*other, "--extend", "--", *program, "{x}", "{y}")
    assert wider.exit_code == 0, wider.output
    shown = read("show", "train")
    assert (shown["trials"], shown["space"]["x"]["high"]) == (4, 2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--budget", "3"], "nothing to tune"),
        (["--param", "x=0:1"], "a budget is missing"),
        (["--param", "x=0:1", "--budget", "soon"], "soon"),
        (["--param", "x=what", "--budget", "3"], "--param x: 'what' is one option only"),
        (["--param", "x=0:1", "--param", "x=0:2", "--budget", "3"], "given twice"),
        (["--param", "x=0:1", "--param", "z=0:1", "--budget", "3"], "{z}"),
        (["--param", "y=0:1", "--budget", "3"], "{x} is not a parameter; there are {y}"),
        (["--param", "x=0:1", "--budget", "3", "--method", "magic"], "there is no magic; there are Random, "),
        (["--param", "x=0:1", "--budget", "3", "--stop", "Patience"], "Patience"),
        (["--param", "x=0:1", "--budget", "3", "--timeout", "soon"], "timeout"),
        (["--param", "x=0:1 when z=1", "--budget", "3"], "'z', which is not in the space"),
        (["other.toml", "--budget", "3"], "other.toml: cannot be read"),
        (["--param", "x=0:1", "--budget", "3", "--sede", "1"], "No such option"),
    ],
)
def test_wrong_usage_exits_with_2_and_creates_nothing(here: Path, words: list[str], says: str) -> None:
    run = call("run", *words, "--", *script(here), "{x}")
    assert run.exit_code == 2, run.output
    assert says in run.stderr
    assert run.stdout == ""
    assert [path.name for path in here.iterdir()] == ["train.py"]


def test_a_forgotten_dash_dash_is_explained(here: Path) -> None:
    for words in (["python", "train.py", "{x}"], ["python", "train.py", "--lr", "{x}"], ["train.py"]):
        run = call("run", "--param", "x=0:1", "--budget", "3", *words)
        assert run.exit_code == 2
        assert "write the program after --" in run.stderr
    run = call("run", "--param", "x=0:1", "--budget", "3", "--", "no-such-program", "{x}")
    assert run.exit_code == 2
    assert "there is no program 'no-such-program'" in run.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys\nprint('oh no', file=sys.stderr)\nsys.exit(7)", "exit code 7: oh no"),
        ("print('{\"value\": [1]}')", '"value": [1], which is not a number'),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (  # tests of the objective and of the reader have them too
            ("print('loss: 3')", "neither a number nor a JSON object: 'loss: 3'"),
            ("pass", "printed no result"),
            ("print('nan')", "the value was nan"),
            ("print('{\"value\": null}')", 'no "value"'),
            ("print('{\"value\": 1, \"cost\": -1}')", "cost must be a finite number of 0 or more"),
        )),
    ],
)
def test_failing_programs_are_failed_trials_with_a_reason(here: Path, code: str, says: str) -> None:
    run = begin(here, code=code, trials=2)
    assert run.exit_code == 1
    assert "to see the output of trial 0: shoestring show train 0" in run.stderr
    assert says in run.stderr
    assert "no trial has succeeded" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring show train 1"
    again = call("resume", "--json")  # the budget is used up
    assert again.exit_code == 1
    assert "no trial has succeeded" in json.loads(again.stdout)["error"]
    trials = read("export", "train")["trials"]
    assert [trial["state"] for trial in trials] == ["failed", "failed"]
    assert all(says in trial["error"] for trial in trials)
    assert all(trial["cost"] > 0 for trial in trials)


def test_failures_are_listed_and_the_study_continues(here: Path) -> None:
    run = begin(here, code=BOWL + "\nimport os\nif os.environ['SHOESTRING_TRIAL'] in '12': 1 / 0", trials=5)
    assert run.exit_code == 0, run.output
    assert run.stderr == "to see the output of trial 1: shoestring show train 1\n"  # once; the log has a line for each
    assert "failed 2 times: exit code 1: ZeroDivisionError: division by zero, first in trial 1" in " ".join(run.stdout.split())
    assert "result.study" not in run.stdout  # that advice is for Python users
    assert read("show", "train")["states"] == {"done": 3, "failed": 2}
    shown = call("show", "train", "2")
    assert "ZeroDivisionError" in shown.stdout
    assert "trial-00002.err" in shown.stdout


def test_a_timeout_fails_the_trial_and_its_cost_is_a_lower_bound(here: Path) -> None:
    code = BOWL + "\nimport os, time\nif os.environ['SHOESTRING_TRIAL'] == '1': print('slow', flush=True); time.sleep(60)"
    run = begin(here, "--timeout", "1s", code=code, trials=3)
    assert run.exit_code == 0, run.output
    trial = read("show", "train", "1")
    assert (trial["state"], trial["censored"]) == ("failed", True)
    assert "longer than its timeout of 1 s" in trial["error"]
    assert 1.0 <= trial["cost"] < 4.0
    assert "or more" in call("show", "train", "1").stdout


def test_retries_are_trials_of_their_own(here: Path) -> None:
    code = BOWL + "\nimport os\nif not os.path.exists('tried'): open('tried', 'w').close(); 1 / 0"
    run = begin(here, "--retries", "1", code=code, trials=4)
    assert run.exit_code == 0, run.output
    trials = read("export", "train")["trials"]
    assert [trial["state"] for trial in trials] == ["failed", "done", "done", "done"]
    assert trials[0]["config"] == trials[1]["config"]


def test_checkpoints_are_shared_by_the_trials_of_a_configuration(here: Path) -> None:
    code = """
import os, sys
folder = os.environ["SHOESTRING_CHECKPOINT_DIR"]
print(len(os.listdir(folder)))
open(os.path.join(folder, sys.argv[2]), "w").close()
print(1.0)
"""
    program = script(here, code)
    space = ["--param", "x=1,2", "--fidelity", "n=1:9"]
    assert call("run", *space, *QUICK, "--budget", "2", "--", *program, "{x}", "{n}").exit_code == 0
    for n in (3, 9):
        call("enqueue", "train", "x=2", f"n={n}")
    run = call("resume", "--budget", "4")
    assert run.exit_code == 0, run.output
    first, second = ((log_folder(here) / f"trial-0000{k}.out").read_text().split()[0] for k in (2, 3))
    assert int(second) == int(first) + 1
