"""Where the output of each trial is kept: ``DIR/trial-00017.out``, ``.err`` and, if the program writes it, ``.result``.

The folder also knows the program that was run last, by somebody who typed it (or a file of his) on this machine.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import StudyError

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

    def remembers(self, command: Sequence[str]) -> bool:
        """Whether it is this one. A database says what to run as well, but whoever can write to it should not decide that."""
        try:
            return bool(json.loads((self.folder / COMMAND).read_text(encoding="utf-8")) == list(command))
        except (OSError, ValueError):
            return False


def folder_for(name: str) -> Path:
    """``shoestring-logs/NAME``, whatever characters a study's name has."""
    safe = re.sub(r"[^\w.+-]+", "-", name).strip(".-") or "study"
    return Path("shoestring-logs") / safe
