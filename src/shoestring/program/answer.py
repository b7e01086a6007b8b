"""What a program says came of a trial: a number or a JSON object.

    0.0312
    {"value": 0.0312, "cost": 12.5}
    {"folds": [0.31, 0.28, 0.35], "gradient": {"lr": -0.2}}
    {"error": "out of memory", "cost": 3.0}

It is the file that SHOESTRING_RESULT names, if the program wrote it, or else the last line of its output that is not empty. Other
keys of the object are the program's own and are ignored.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..outcome import Outcome

LAST = 1 << 20  # bytes of the output that are looked at for its last line
KEYS = ("value", "cost", "folds", "gradient", "error")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """An outcome, or why there is none; ``outcome.cost`` may be known even then."""

    outcome: Outcome
    error: str | None = None


def read_answer(result: Path, output: Path) -> Answer:
    """From the result file if there is something in it, else from the end of the output."""
    written = result.read_bytes() if result.is_file() else b""
    if text := written.decode("utf-8", "replace").strip():
        return parse(text, f"the file {result.name}")
    line = last_line(output)
    if line is None:
        return Answer(Outcome(None), "it printed no result: its last line should be a number or JSON such as {\"value\": 0.03}")
    return parse(line, "the last line of its output")


def parse(text: str, where: str) -> Answer:
    """A number or a JSON object; ``where`` it was found is for the error."""
    if _NUMBER.fullmatch(text):
        return Answer(Outcome(float(text)))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Answer(Outcome(None), f"{where} is neither a number nor a JSON object: {cut(text)!r}")
    told: dict[str, Any] = {key: found[key] for key in KEYS if found.get(key) is not None}
    error = told.pop("error", None)
    outcome = Outcome(told.pop("value", None), **told)
    if error is not None:
        return Answer(outcome, str(error))
    if outcome.value is None and outcome.folds is None:
        return Answer(outcome, f'{where} has no "value", "folds" or "error" in it: {cut(text)!r}')
    return Answer(outcome)


def last_line(path: Path) -> str | None:
    """The last line with something in it, however long the file is; None if there is none."""
    lines = [line.strip() for line in tail(path, LAST).splitlines()]
    return next((line for line in reversed(lines) if line), None)


def tail(path: Path, size: int) -> str:
    """The end of a file as text; empty if there is no such file."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - size))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def cut(text: str, length: int = 120) -> str:
    """No more of a text than fits on a line."""
    return text if len(text) <= length else text[: math.ceil(length * 0.75)] + " ... " + text[-math.floor(length * 0.2) :]
