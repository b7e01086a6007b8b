"""The report of the benchmark: a file of rows, and of the commits that they were made by.

Several programs may add to it at the same time: what others have stored meanwhile is kept.
"""

import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.machine import facts

ROOT = Path(__file__).parent.parent.parent


@cache
def commit() -> str:
    """The commit of the working tree, with a plus if files were changed since."""
    words = ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    found = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A lock that leaves no file behind, and that ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Report:
    """What was found so far, by part and key."""

    def __init__(self, path: Path, again: bool = False) -> None:
        self.path, self.again = path, again
        self.found = self._read()
        self.done: set[tuple[str, str]] = set()  # by this program, whatever was stored before

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return found

    def lacks(self, part: str, key: str) -> bool:
        return (self.again and (part, key) not in self.done) or key not in self.found.get(part, {})

    def do(self, part: str, key: str, work: Callable[[], Any]) -> Any:
        """Do it unless it is stored, and store it."""
        if self.lacks(part, key):
            self.keep(part, {key: work()})
        return self.found[part][key]

    def keep(self, part: str, found: dict[str, Any]) -> None:
        """Store rows; None stands for a row that there cannot be."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.path.parent):
            self.found = self._read()
            self.found.setdefault(part, {}).update(found)
            self.found.setdefault("commits", {}).setdefault(part, {}).update(dict.fromkeys(found, commit()))
            self.found["machine"] = facts()
            unfinished = self.path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(self.found, indent=1) + "\n")
            os.replace(unfinished, self.path)
        self.done |= {(part, key) for key in found}
