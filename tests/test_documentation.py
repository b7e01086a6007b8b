"""Every Python block in README.md and docs/, and every example, runs as it stands.

The blocks of one page run in order in one namespace, in an empty folder. A block that is not meant to run has the
comment ``<!-- not run -->`` on the line above it (an empty line may stand between).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"(?P<skip><!-- not run -->\n\n?)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(text: str) -> list[tuple[int, str]]:
    """(line number, code) of each block that is to run."""
    return [(text.count("\n", 0, found.start("code")), found["code"]) for found in BLOCK.finditer(text) if not found["skip"]]


def test_the_extractor_finds_blocks_and_skips_marked_ones() -> None:
    text = "a\n```python\nx = 1\n```\n<!-- not run -->\n```python\nx = 2\n```\n```\nx = 3\n```\n"
    assert blocks(text) == [(2, "x = 1\n")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "page"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        exec(compile("\n" * line + code, str(page), "exec"), space)  # the lines of an error are those of the page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    arguments = ["1s"] if example.stem == "sklearn_tuning" else []
    run = subprocess.run(
        [sys.executable, "-W", "error", str(example), *arguments],
        cwd=tmp_path, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "best" in run.stdout
    assert run.stderr == ""
