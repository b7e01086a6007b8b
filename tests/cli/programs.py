"""Small programs to tune, and ways to call the command line on them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from shoestring.cli.main import main

BOWL = """
import sys
x, y = float(sys.argv[1]), float(sys.argv[2])
print("training")
print((x - 0.3) ** 2 + (y - 0.6) ** 2)
"""
SPACE = ["--param", "x=0:1", "--param", "y=0:1"]
QUICK = ["--method", "random"]  # a model is not what is tested here


def script(folder: Path, code: str = BOWL, name: str = "train.py") -> list[str]:
    """A program, as one would write it after --."""
    (folder / name).write_text(code, encoding="utf-8")
    return [sys.executable, name]


def call(*words: str, **options: Any) -> Result:
    return CliRunner().invoke(main, words, **options)


def read(*words: str) -> Any:
    """The JSON that a command prints, which has to succeed."""
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def begin(folder: Path, *words: str, code: str = BOWL, trials: int = 3, arguments: Sequence[str] = ("{x}", "{y}")) -> Result:
    """A study called train with some trials."""
    program = script(folder, code)
    return call("run", *SPACE, *QUICK, "--budget", str(trials), *words, "--", *program, *arguments)


def environment() -> dict[str, str]:
    """For real processes: warnings are errors, one thread."""
    return {**os.environ, "PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"}
