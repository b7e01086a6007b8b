"""Results and log files of the programs that are tuned.

The result of a trial is a number or a JSON object:

    0.0312
    {"value": 0.0312, "cost": 12.5}
    {"folds": [0.31, 0.28, 0.35], "gradient": {"lr": -0.2}}
    {"value": 0.0312, "metrics": {"accuracy": 0.93}, "attrs": {"host": "gpu3"}}
    {"error": "out of memory", "cost": 3.0}

It is read from the file that SHOESTRING_RESULT names, if the program wrote one. Otherwise it is the last line of standard output
that is not empty. Other keys of the object belong to the program and are ignored.

The output of each trial is kept in ``DIR/trial-00017.out``, ``.err`` and, if the program writes it, ``.result``. The folder has a
marker, a file that names the study that it belongs to: no other study writes there. Only the user may read these files.
"""

from __future__ import annotations

import json
import math
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .._validation import is_number
from ..data.outcome import Outcome
from ..errors import StudyError
from ..state.checkpoints import PRIVATE_FILE, PRIVATE_FOLDER, Checkpoints, read_marker, write_marker

MAX_RESULT_BYTES = 1 << 24  # of a result file: it is read as a whole, and what it holds is stored
MAX_LAST_LINE_BYTES = 1 << 20  # how much of the end of the output is searched for its last line
RESULT_KEYS = ("value", "cost", "folds", "gradient", "metrics", "attrs", "error")
NO_RESULT = "no result"  # the kind of failure of a program that reports nothing that can be read
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)

TRIAL_NUMBER_DIGITS = 5
SHORT_ID_CHARACTERS = 8  # of a study's identity, in the name of its folder
MARKER_FILE = "study.json"
MAX_NAME_CHARACTERS = 60  # of a study's name, in the name of its folder: file systems take 255 bytes
CHECKPOINT_FOLDER = "checkpoints"


@dataclass(frozen=True)
class ProgramResult:
    """The outcome of one run, or the error that it reported; ``outcome.cost`` may be known in both cases.

    kind   of the error: errors of one kind are taken for the same
    """

    outcome: Outcome
    error: str | None = None
    kind: str | None = None


def read_result(result: Path, output: Path) -> ProgramResult:
    """Read the result file if it has any content, otherwise the last line of the output."""
    written = b""
    if result.is_file():
        with suppress(OSError):  # it may belong to another user
            result.chmod(PRIVATE_FILE)
        with result.open("rb") as file:
            written = file.read(MAX_RESULT_BYTES + 1)
        if len(written) > MAX_RESULT_BYTES:
            most = f"more than {MAX_RESULT_BYTES >> 20} MB; write a number or a short JSON object there, and other data elsewhere"
            return ProgramResult(Outcome(None), f"the file {result.name} has {most}", NO_RESULT)
    if text := written.decode("utf-8", "replace").strip():
        return parse_result(text, f"the file {result.name}")
    line = last_line(output)
    if line is None:
        reason = "it printed no result: its last line should be a number or JSON such as {\"value\": 0.03}"
        return ProgramResult(Outcome(None), reason, NO_RESULT)
    return parse_result(line, "the last line of its output")


def parse_result(text: str, source: str) -> ProgramResult:
    """Parse a number or a JSON object; ``source`` says in the error message where the text was found."""
    if _NUMBER.fullmatch(text):
        return ProgramResult(Outcome(float(text)))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return ProgramResult(Outcome(None), f"{source} is neither a number nor a JSON object: {shorten(text)!r}", NO_RESULT)
    fields: dict[str, Any] = {key: document[key] for key in RESULT_KEYS if document.get(key) is not None}
    if wrong := wrong_field(fields):
        return ProgramResult(Outcome(None), f"{source} has {wrong}", NO_RESULT)
    error = fields.pop("error", None)
    outcome = Outcome(fields.pop("value", None), **fields)
    if error is not None:
        return ProgramResult(outcome, str(error), str(error))
    if outcome.value is None and outcome.folds is None:
        return ProgramResult(outcome, f'{source} has no "value", "folds" or "error" in it: {shorten(text)!r}', NO_RESULT)
    return ProgramResult(outcome)


def wrong_field(fields: dict[str, Any]) -> str | None:
    """What is wrong with the type of a field, in words; None if nothing is."""
    value = fields.get("value", 0.0)
    if not is_number(value):
        return f'"value": {shorten(json.dumps(value))}, which is not a number; put further numbers into "metrics"'
    for key, example in (("metrics", '{"accuracy": 0.93}'), ("attrs", '{"host": "gpu3"}')):
        if not isinstance(fields.get(key, {}), dict):
            return f'"{key}": {shorten(json.dumps(fields[key]))}; write it like {example}'
    return None


def last_line(path: Path) -> str | None:
    """The last line that is not blank, stripped; None if there is none. Only the end of a long file is read."""
    lines = [line.strip() for line in tail(path, MAX_LAST_LINE_BYTES).splitlines()]
    return next((line for line in reversed(lines) if line), None)


def tail(path: Path, size: int) -> str:
    """The last ``size`` bytes of a file as text; empty if there is no such file."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - size))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def shorten(text: str, length: int = 120) -> str:
    """The text, with its middle replaced by dots if it is longer than ``length``."""
    return text if len(text) <= length else text[: math.ceil(length * 0.75)] + " ... " + text[-math.floor(length * 0.2) :]


@dataclass(frozen=True)
class TrialFiles:
    """The log files of one trial: standard output, standard error, and the result file."""

    out: Path
    err: Path
    result: Path

    def rotate(self) -> None:
        """Rename the files of an earlier attempt at this trial: ``trial-00017.out`` becomes ``trial-00017.1.out``."""
        for path in (self.out, self.err, self.result):
            if path.exists():
                attempt = 1
                while (kept := path.with_suffix(f".{attempt}{path.suffix}")).exists():
                    attempt += 1
                path.rename(kept)

    @property
    def all(self) -> list[Path]:
        """The files that are there, those of earlier attempts included."""
        kinds = (self.out, self.err, self.result)
        return [path for kind in kinds for path in (kind, *kind.parent.glob(f"{kind.stem}.*{kind.suffix}")) if path.is_file()]


def open_private(path: Path) -> IO[bytes]:
    """A new file to write to, which only this user may read."""
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE))


@dataclass(frozen=True)
class Logs:
    """The log folder of one study; it is created before the first trial runs.

    study   the identity of the study; None for a folder that only the caller uses, which gets no marker
    """

    folder: Path
    study: str | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder of the study's checkpoint folders."""
        return self.folder / CHECKPOINT_FOLDER

    @property
    def owner(self) -> str | None:
        """The identity of the study that the folder belongs to; None if nothing says so."""
        found = (read_marker(self.folder / MARKER_FILE) or {}).get("study")
        return found if isinstance(found, str) else None

    def files(self, number: int) -> TrialFiles:
        """The files of a trial by its number."""
        stem = self.folder / f"trial-{number:0{TRIAL_NUMBER_DIGITS}d}"
        return TrialFiles(stem.with_suffix(".out"), stem.with_suffix(".err"), stem.with_suffix(".result"))

    def create(self) -> None:
        """Create the folder; a StudyError if it cannot be created or written to, before any budget is spent."""
        try:
            for folder in (*reversed(self.folder.parents), self.folder):
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        except OSError as error:
            reason = f"the log folder {self.folder} cannot be created: {error.strerror}"
            raise StudyError(f"{reason}; give another one by --logs") from None
        if not os.access(self.folder, os.W_OK):
            raise StudyError(f"the log folder {self.folder} is read-only; give another one by --logs")
        if self.study is None or self.owner == self.study:
            return
        if (self.folder / MARKER_FILE).exists():
            whose = f"it belongs to study {self.owner}" if self.owner else f"its {MARKER_FILE} cannot be read"
            raise StudyError(f"the log folder {self.folder} is not of this study: {whose}; give another one by --logs")
        write_marker(self.folder / MARKER_FILE, {"study": self.study})

    def remove(self) -> bool:
        """Remove the logs and checkpoints of the study, if the folder is the study's. Files that others put there stay."""
        if self.study is None or self.owner != self.study:
            return False
        Checkpoints(self.checkpoints, lambda: str(self.study)).remove()
        for stem in {path.name.partition(".")[0] for path in self.folder.glob("trial-*")}:
            if (number := stem.removeprefix("trial-")).isdecimal():
                for path in self.files(int(number)).all:
                    path.unlink(missing_ok=True)
        (self.folder / MARKER_FILE).unlink(missing_ok=True)
        with suppress(OSError):  # it holds other files
            self.folder.rmdir()
            self.folder.parent.rmdir()
        return True


def default_log_folder(study_name: str, identity: str) -> Path:
    """``shoestring-logs/NAME-1a2b3c4d``: the name without unsafe characters, and the beginning of the study's identity.

    Several names may become the same one, and a study of the same name may have been there before. The identity differs.
    """
    safe = re.sub(r"[^\w.+-]+", "-", study_name).strip(".-")[:MAX_NAME_CHARACTERS] or "study"
    return Path("shoestring-logs") / f"{safe}-{identity[:SHORT_ID_CHARACTERS]}"
