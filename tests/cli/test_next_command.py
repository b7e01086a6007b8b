"""Every error and every summary ends with the next command. All commands are enumerated, so that no new one forgets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import shoestring as st
from shoestring.cli.main import main
from tests.cli.programs import call

# What a command needs after its name to reach its work, with a study "a". A new command with required words has to be here.
WORDS = {
    "run": ["--param", "x=0:1", "--budget", "1", "--", "no-such-program"], "tell": ["a", "0", "0.5"], "enqueue": ["a", "x=0.5"],
    "plot": ["a", "slice", "--param", "nosuch"], "rm": ["a"], "import optuna": ["nowhere.db"],
    "completion": ["bash"], "show": ["a"],
}  # fmt: skip
NOT_CALLED = {"demo", "mcp", "serve"}  # they run for long, or until their standard input ends
PRINTS_FOR_A_PROGRAM = {"export", "completion", "ask"}  # their output is the input of another program


def leaves(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*before, name))
        else:
            yield (*before, name), command


COMMANDS = dict(leaves(main))
NAMES = [" ".join(path) for path in COMMANDS]
CALLED = [name for name in NAMES if name not in NOT_CALLED]


def last_line(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_option_ends_with_the_help_of_its_command(here: Path, name: str) -> None:
    run = call(*name.split(), "--no-such-option")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "Error: No such option" in run.stderr
    following = last_line(run.stderr)
    assert following == f"next: shoestring {name} --help"
    assert call(*following.split()[2:]).exit_code == 0


@pytest.mark.parametrize("name", CALLED)
def test_without_any_study_the_error_ends_with_the_next_command(here: Path, name: str) -> None:
    run = call(*name.split(), *WORDS.get(name, []))
    if run.exit_code == 0:
        assert name in ("doctor", "completion")
        return
    assert last_line(run.stderr).startswith(("next: shoestring ", "next: pip install ")), run.output
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("name", CALLED)
def test_with_a_study_without_results_too(here: Path, name: str) -> None:
    st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage="shoestring.db", name="a").close()
    words = [*name.split(), *WORDS.get(name, [])]
    run = call(*words, *(["--once"] if name == "top" else []))
    said = run.stdout if run.exit_code == 0 else run.stderr
    if run.exit_code == 0 and name in PRINTS_FOR_A_PROGRAM:
        return
    assert last_line(said).startswith(("next: shoestring ", "next: pip install ")), run.output


def test_required_words_of_every_command_are_known() -> None:
    for path, command in COMMANDS.items():
        needed = [each for each in command.params if isinstance(each, click.Argument) and each.required]
        name = " ".join(path)
        assert not needed or name in WORDS or name in NOT_CALLED, name
