"""``ask``, ``tell``, ``enqueue``, ``stop`` and ``rm``: a study that a shell script works on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shoestring as st
from tests.cli.programs import BOWL, begin, call, read


@pytest.fixture
def study(here: Path) -> st.Study:
    space = st.Space(x=st.Float(0, 1), act=st.Choice("relu", "1", 1))
    return st.Study(space, storage="shoestring.db", name="hand", method=st.Random())


def test_ask_and_tell(study: st.Study) -> None:
    run = call("ask", "hand")
    assert run.exit_code == 0, run.output
    asked = json.loads(run.stdout)
    assert (asked["study"], asked["number"], set(asked["config"])) == ("hand", 0, {"x", "act"})
    reported = call("tell", "hand", "0", "-0.5", "--cost", "12.5")
    assert reported.exit_code == 0, reported.output
    assert reported.stdout == "trial 0 is done: -0.5\nnext: shoestring ask hand\n"
    assert call("tell", "hand", "0", "-0.5", "--cost", "12.5").exit_code == 0  # the same result again changes nothing
    again = call("tell", "hand", "0", "0.7")
    assert again.exit_code == 1
    assert "already done" in again.stderr
    assert read("ask", "hand")["number"] == 1
    assert read("tell", "hand", "1", "--folds", "1,2,-3")["value"] == 0.0
    read("ask", "hand")
    assert read("tell", "hand", "2", "--error", "out of memory")["state"] == "failed"
    read("ask", "hand")
    assert read("tell", "hand", "3", "nan")["state"] == "failed"
    assert read("show", "hand")["spent"] > 12.5


def test_tell_keeps_metrics_and_attributes(study: st.Study) -> None:
    call("ask", "hand")
    told = ["--metric", "accuracy=0.93", "--metric", "loss=-1", "--attr", "host=gpu3", "--attr", "sizes=[1, 2]"]
    assert read("tell", "hand", "0", "0.5", *told)["metrics"] == {"accuracy": 0.93, "loss": -1.0}
    trial = st.Study.load("shoestring.db", "hand").history[0]
    assert (trial.metrics, trial.attrs) == ({"accuracy": 0.93, "loss": -1.0}, {"host": "gpu3", "sizes": [1, 2]})


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["tell", "hand", "0"], 2, "VALUE, --folds or --error"),
        (["tell", "hand", "0", "low"], 2, "must be a number"),
        (["tell", "hand", "0", "--cots", "3"], 2, "--cots"),
        (["tell", "hand", "0", "--folds", "1,b"], 2, "must be a number"),
        (["tell", "hand", "-1", "3"], 2, "NUMBER"),
        (["tell", "hand", "5", "3"], 1, "no trial 5"),
        (["tell", "hand", "0", "1", "--cost", "-3"], 1, "cost"),
        (["tell", "no", "0", "1"], 1, "no study 'no'"),
        (["enqueue", "hand"], 2, "JSON"),
        (["enqueue", "hand", "{"], 2, "not JSON"),
        (["enqueue", "hand", "{}"], 2, "no parameter is given; write for example lr=0.01"),
        (["enqueue", "hand", "x"], 2, "KEY=VALUE"),
        (["enqueue", "hand", "x=0.5", "axt=relu"], 1, "axt"),
        (["tell", "hand", "0", "1", "--error", "no"], 2, "a value or an error, not both"),
        (["tell", "hand", "0", "--folds", "1,2", "--error", "no"], 2, "a value or an error, not both"),
        (["tell", "hand", "0", "1", "--metric", "accuracy"], 2, "write NAME=VALUE"),
        (["tell", "hand", "0", "1", "--metric", "accuracy=high"], 2, "--metric accuracy must be a number"),
        (["enqueue", "hand", "x=7", "act=relu"], 1, "outside its bounds"),
        (["ask", "hand", "--lease", "soon"], 2, "soon"),
    ],
)
def test_bad_input_is_rejected_and_the_trial_stays_open(study: st.Study, words: list[str], code: int, says: str) -> None:
    call("ask", "hand")
    run = call(*words)
    assert (run.exit_code, run.stdout) == (code, ""), run.output
    assert says in run.stderr
    assert read("show", "hand")["states"] == {"running": 1}
    assert read("show", "hand")["waiting"] == 0


def test_enqueue(study: st.Study) -> None:
    run = call("enqueue", "hand", '{"x": 0.25, "act": "1"}')
    assert run.exit_code == 0, run.output
    assert run.stdout.splitlines()[-1] == "next: shoestring ask hand"
    assert read("enqueue", "hand", "x=0.5", "act=1")["waiting"] == 2
    assert read("ask", "hand")["config"] == {"x": 0.25, "act": "1"}
    assert read("ask", "hand")["config"] == {"x": 0.5, "act": 1}
    run = call("enqueue", "hand", "x=0.75")
    assert run.stdout.splitlines()[0] == "enqueued: x = 0.75; the other parameters are suggested when it is asked"
    found = read("ask", "hand")["config"]
    assert (found["x"], set(found)) == (0.75, {"x", "act"})


def test_an_asked_trial_stays_reserved_while_a_run_works_on_the_study(here: Path) -> None:
    begin(here, trials=2)
    asked = read("ask", "train")
    assert call("resume", "train", "--budget", "5").exit_code == 0
    assert read("show", "train")["states"] == {"done": 4, "running": 1}
    assert read("tell", "train", str(asked["number"]), "0.5")["config"] == asked["config"]


def test_an_asked_trial_stays_reserved_after_the_process_that_asked_has_ended(here: Path) -> None:
    begin(here, trials=2)
    asking = "from shoestring import Study; Study.load('shoestring.db', 'train').ask(lease='24h')"
    subprocess.run([sys.executable, "-c", asking], check=True, timeout=60)
    assert call("resume", "train", "--budget", "4").exit_code == 0
    assert read("show", "train")["states"] == {"done": 3, "running": 1}


def test_the_settings_of_a_trial_whose_lease_has_expired_are_asked_again(here: Path) -> None:
    begin(here, trials=1)
    asked = read("ask", "train", "--lease", "100ms")
    time.sleep(0.15)
    again = read("ask", "train")
    assert (again["number"], again["config"]) == (2, asked["config"])
    assert read("tell", "train", "1", "0.5")["state"] == "done"  # late, and still a result


def test_a_stop_request_is_stored_until_the_study_is_resumed(here: Path) -> None:
    begin(here, trials=2)
    run = call("stop", "train", "--reason", "lunch")
    assert run.stdout.splitlines()[-1] == "next: shoestring resume train"
    assert read("ls")[0]["halted"] == "lunch"
    assert "stopped: lunch" in call("ls").stdout
    assert call("resume", "--budget", "4").exit_code == 0
    assert read("show")["trials"] == 4


def test_stop_reaches_a_run_in_another_process(here: Path) -> None:
    code = BOWL + """
import os, subprocess
if os.environ["SHOESTRING_TRIAL"] == "1":
    subprocess.run([sys.executable, "-m", "shoestring", "stop", "train", "--reason", "enough"], check=True, stdout=sys.stderr)
"""
    run = begin(here, code=code, trials=50)
    assert run.exit_code == 0, run.output
    assert "stopped      enough" in run.stdout
    assert read("show")["trials"] == 2


def test_rm_needs_a_yes(study: st.Study) -> None:
    call("ask", "hand")
    run = call("rm", "hand")
    assert run.exit_code == 1
    assert "1 trial" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring rm hand --yes"
    assert len(read("ls")) == 1
    assert call("rm", "hand", "--yes").exit_code == 0
    assert read("ls") == []
    assert call("ls").stdout.splitlines()[-1] == "next: shoestring run --help"


@pytest.mark.parametrize("name", ["a'; DROP TABLE studies; --", 'a"b', "a b", "--json", "ünï/cødé", "%s{x}", "a\nb"])
def test_any_name_is_only_a_name(here: Path, name: str) -> None:
    """A name is never read as SQL."""
    space = st.Space({"x'; DROP TABLE trials; --": st.Float(0, 1)})
    made = st.Study(space, storage="shoestring.db", name=name, method=st.Random())
    made.tell(made.ask(), 1.0, cost=1.0)
    for words in (["show"], ["best"], ["export"], ["ask"]):
        run = call(*words, "--", name)
        assert run.exit_code == 0, run.output
    assert read("ls")[0]["name"] == name
    assert read("ls")[0]["trials"] == 2
    assert call("show", "--", "x' OR '1'='1").exit_code == 1
