"""Small programs to tune, and functions that call the command line in this process."""

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
QUICK = ["--method", "random"]  # no model is fitted


def script(folder: Path, code: str = BOWL, name: str = "train.py") -> list[str]:
    """Write a script, and return the words to put after --."""
    (folder / name).write_text(code, encoding="utf-8")
    return [sys.executable, name]


def call(*words: str, **options: Any) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, words, **options)


def read(*words: str) -> Any:
    """The JSON document of a command, which must succeed."""
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def begin(folder: Path, *words: str, code: str = BOWL, trials: int = 3, arguments: Sequence[str] = ("{x}", "{y}")) -> Result:
    """Run the study train until it has so many trials."""
    program = script(folder, code)
    return call("run", *SPACE, *QUICK, "--budget", str(trials), *words, "--", *program, *arguments)


def log_folder(folder: Path, name: str = "train") -> Path:
    """The log folder of the only study of that name."""
    [found] = (folder / "shoestring-logs").glob(f"{name}-????????")
    return found


def environment() -> dict[str, str]:
    """Environment variables for real processes: warnings are errors, one thread."""
    return {**os.environ, "PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"}
