"""What a program says came of a trial: a number or a JSON object.

    0.0312
    {"value": 0.0312, "cost": 12.5}
    {"folds": [0.31, 0.28, 0.35], "gradient": {"lr": -0.2}}
    {"error": "out of memory", "cost": 3.0}

It is the file that SHOESTRING_RESULT names, if the program wrote it, or else the last line of its output that is not empty. Other
keys of the object are the program's own and are ignored.

Where the output of each trial is kept: ``DIR/trial-00017.out``, ``.err`` and, if the program writes it, ``.result``.

The folder also knows the program that was run last, by somebody who typed it (or a file of his) on this machine.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.outcome import Outcome
from ..errors import StudyError

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


DIGITS = 5
COMMAND = "command.json"


@dataclass(frozen=True)
class TrialFiles:
    """The files of one trial."""

    out: Path
    err: Path
    result: Path

    def fresh(self) -> None:
        """Keep what an earlier attempt at the same trial left: ``trial-00017.out`` becomes ``trial-00017.1.out``."""
        for path in (self.out, self.err, self.result):
            if path.exists():
                attempt = 1
                while (kept := path.with_suffix(f".{attempt}{path.suffix}")).exists():
                    attempt += 1
                path.rename(kept)


@dataclass(frozen=True)
class Logs:
    """The logs of one study, in a folder that is made when the first trial runs."""

    folder: Path

    def of(self, number: int) -> TrialFiles:
        stem = self.folder / f"trial-{number:0{DIGITS}d}"
        return TrialFiles(stem.with_suffix(".out"), stem.with_suffix(".err"), stem.with_suffix(".result"))

    def prepare(self) -> None:
        """Make the folder, or say before anything is spent that it cannot be written to."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"the logs cannot be kept in {self.folder}: {error.strerror}"
            raise StudyError(f"{reason}; give another folder by --logs") from None
        if not os.access(self.folder, os.W_OK):
            raise StudyError(f"the logs cannot be kept in {self.folder}, which is read-only; give another folder by --logs")

    def remember(self, command: Sequence[str]) -> None:
        """Note which program somebody has run here himself."""
        (self.folder / COMMAND).write_text(json.dumps(list(command)), encoding="utf-8")

    def has_model(self, command: Sequence[str]) -> bool:
        """Whether it is this one. A database says what to run as well, but whoever can write to it should not decide that."""
        try:
            return bool(json.loads((self.folder / COMMAND).read_text(encoding="utf-8")) == list(command))
        except (OSError, ValueError):
            return False


def folder_for(name: str) -> Path:
    """``shoestring-logs/NAME``, whatever characters a study's name has."""
    safe = re.sub(r"[^\w.+-]+", "-", name).strip(".-") or "study"
    return Path("shoestring-logs") / safe
