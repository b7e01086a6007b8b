"""``plot``: a study as a picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import shoestring as st
from shoestring.cli import doctor as packages
from shoestring.cli.plot import KINDS
from tests.cli.programs import call, read

pytest.importorskip("matplotlib")


@pytest.fixture
def study(here: Path) -> st.Study:
    made = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)), storage="shoestring.db", name="a/b c", method=st.Random())
    for _ in range(2):
        made.tell(made.ask(), 0.5, cost=2.0)
    return made


def test_there_is_a_command_for_every_plot() -> None:
    for_one_study = {name for name in st.plot.__all__ if callable(getattr(st.plot, name))} - {"new_axes", "compare"}
    assert set(KINDS) == for_one_study
    shown = call("plot", "--help").output
    assert all(f"  {kind} " in shown for kind in KINDS)


def test_the_path_of_the_file_is_printed(here: Path, study: st.Study) -> None:
    run = call("plot", "history")
    assert run.stdout.splitlines() == ["a-b-c-history.png", "next: shoestring show 'a/b c'"], run.output
    assert (here / "a-b-c-history.png").stat().st_size > 5_000
    found = read("plot", "a/b c", "contour", "--param", "y", "--param", "x", "--out", "map.svg")
    assert found == {"study": "a/b c", "kind": "contour", "file": "map.svg"}
    assert (here / "map.svg").is_file()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plot", "KIND"),
        ("plot histogram", "there is no plot 'histogram'; choose from history, convergence"),
        ("plot history hand", "the kind comes last: plot hand history"),
        ("plot a b history", "at most one study"),
        ("plot history --param x", "--param is for slice, contour, lookahead"),
        ("plot lookahead --param x --param y", "give --param once"),
        ("plot contour --param x", "contour is drawn over two parameters, not 1; give --param twice"),
        ("plot history --out picture.txt", "must end in one of .png"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(here: Path, line: str, message: str) -> None:
    run = call(*line.split(), "--json")
    assert run.exit_code == 2
    assert message in json.loads(run.stdout)["error"]


def test_errors_about_parameters_have_no_words_of_python(here: Path) -> None:
    space = st.Space(x=st.Float(0, 1), act=st.Choice("a", "b"))
    made = st.Study(space, storage="shoestring.db", method=st.Random())
    for act in ("a", "b"):
        made.add({"x": 0.5, "act": act}, 1.0)
    run = call("plot", "lookahead", "--param", "act")
    assert run.exit_code == 1
    assert "error: --param act is not a number; choose one of x" in run.stderr
    assert run.stderr.splitlines()[-1] == "next: shoestring plot --help"


def test_errors_of_the_study_are_reported(here: Path, study: st.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = call("plot", "contour", "--param", "x", "--param", "lr")
    assert (run.exit_code, "--param lr: study 'a/b c' has no such parameter; choose from x, y" in run.stderr) == (1, True)
    (here / "a-b-c-timeline.png").mkdir()
    run = call("plot", "timeline", "--json")
    assert (run.exit_code, "could not be saved" in json.loads(run.stdout)["error"]) == (1, True)
    monkeypatch.setattr(packages, "is_installed", lambda module: False)
    run = call("plot", "history", "--json")
    assert run.exit_code == 1
    assert "needs matplotlib" in json.loads(run.stdout)["error"]
    assert "pip install" in json.loads(run.stdout)["next"]


def test_help_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert call("plot", "--help").exit_code == 0
