"""Taking turns: in one process by a lock, on one machine by a lock on a file, which ends with the process that holds it.

Turns save work and nothing depends on them, so whoever has waited for long goes ahead: the one before may be suspended.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .patience import dice

LONGEST_WAIT = 60.0  # seconds
LOOK_AGAIN = 0.01

try:
    import fcntl
except ImportError:  # not on this system: threads take turns, processes do not
    fcntl = None  # type: ignore[assignment]


class ThreadTurns:
    """At making a suggestion, among the threads of one process, for each study apart."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, int], threading.Lock] = {}  # by process too: a lock that was held at a fork stays so

    @contextmanager
    def turn(self, study: int) -> Iterator[None]:
        lock = self._locks.setdefault((os.getpid(), study), threading.Lock())
        held = lock.acquire(timeout=LONGEST_WAIT)
        try:
            yield
        finally:
            if held:
                lock.release()


class FileTurns(ThreadTurns):
    """Among all processes that can see a file."""

    def __init__(self, database: Path) -> None:
        super().__init__()
        self.database = database

    @contextmanager
    def turn(self, study: int) -> Iterator[None]:
        with super().turn(study), file_lock(f"{self.database}.asking-{study}", LONGEST_WAIT, LOOK_AGAIN):
            yield


@contextmanager
def file_lock(path: str, longest: float, pause: float) -> Iterator[None]:
    """Waits for a lock on a file, which is empty and stays; goes ahead without one where there can be none.

    ``pause`` is the time between the first looks; it grows to four times that. The system's own waiting would have no end, should
    the other one be suspended.
    """
    descriptor, held = _open(path), False
    try:
        held = descriptor is not None and _locked(descriptor, longest, pause)
        yield
    finally:
        if descriptor is not None:
            if held:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough where a process was forked meanwhile
            os.close(descriptor)


def _open(path: str) -> int | None:
    try:
        return None if fcntl is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a folder that cannot be written: the write will say so
        return None


def _locked(descriptor: int, longest: float, pause: float) -> bool:
    began = time.monotonic()
    while (waited := time.monotonic() - began) < longest:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(dice.uniform(0.5, 1.5) * min(max(waited / 8, pause), 4 * pause))
        except OSError:  # a file system without locks
            return False
    return False
