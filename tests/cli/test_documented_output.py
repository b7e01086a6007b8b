"""The console blocks of the docs: every command runs and prints what the page shows, except for the numbers."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.programs import call

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(?P<kind>python|toml|console)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(text: str) -> list[tuple[list[str], list[str]]]:
    """(words of the command, lines that it prints) for each ``$`` of a block."""
    found: list[tuple[list[str], list[str]]] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.replace("\\\n", " ").splitlines()
        found.append((shlex.split(command), lines))
    return found


def bare(line: str) -> str:
    """A line without its numbers, the identity of its study and the width of its columns."""
    line = re.sub(r"-[0-9a-f]{8}\b", "-#", line)
    return re.sub(r"\s+", " ", re.sub(r"[-+\d.e]*\d[\d.e+-]*( m?s\b)?", "#", line)).strip()


@pytest.mark.parametrize("page", ["command-line.md", "workflow.md"])
def test_commands_print_what_the_page_shows(page: str, here: Path) -> None:
    for block in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        if block["kind"] == "python":
            if block["text"].startswith("# train.py"):
                (here / "train.py").write_text(block["text"])
        elif block["kind"] == "toml":
            (here / "tune.toml").write_text(block["text"].replace('"python"', f'"{sys.executable}"'))
        else:
            for words, lines in steps(block["text"]):
                assert words[0] == "shoestring"
                run = call(*(sys.executable if word == "python" else word for word in words[1:]))
                assert run.exit_code == 0, run.output
                printed = [bare(line) for line in run.stdout.splitlines()]
                for line in lines:
                    whole, wanted = not line.endswith("..."), bare(line.removesuffix("..."))
                    assert any(each == wanted if whole else each.startswith(wanted) for each in printed), (line, run.stdout)
