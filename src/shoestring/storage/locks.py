"""The ask lock, and locks on files.

Threads of one process exclude each other by a ``threading.Lock``, processes on one machine by a lock on a file (flock), which the
system releases when the process ends. Correctness depends on neither: a worker that has waited for long goes on without the lock,
since its holder may be suspended.

The file lock is not filelock's. It is also the write lock of SQLite files, and each trial takes it several times: a free lock
takes 0.006 ms here and 0.12 ms there. And it is forty lines that go on without a lock where a file system has none.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .transactions import pause_rng

MAX_WAIT_SECONDS = 60.0  # for the ask lock
POLL_SECONDS = 0.01

try:
    import fcntl
except ImportError:  # Windows: threads exclude each other, processes do not
    fcntl = None  # type: ignore[assignment]


class ThreadAskLocks:
    """The ask locks of the studies in this process: one lock for each study."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, int], threading.Lock] = {}  # by process too: a lock that was held at a fork stays locked

    @contextmanager
    def ask_lock(self, study: int) -> Iterator[None]:
        lock = self._locks.setdefault((os.getpid(), study), threading.Lock())
        held = lock.acquire(timeout=MAX_WAIT_SECONDS)
        try:
            yield
        finally:
            if held:
                lock.release()


class FileAskLocks(ThreadAskLocks):
    """The ask locks of the studies in a file, for all processes that can see the file."""

    def __init__(self, database: Path) -> None:
        super().__init__()
        self.database = database

    @contextmanager
    def ask_lock(self, study: int) -> Iterator[None]:
        with super().ask_lock(study), file_lock(f"{self.database}.asking-{study}", MAX_WAIT_SECONDS, POLL_SECONDS):
            yield


@contextmanager
def file_lock(path: str, max_wait: float, poll: float) -> Iterator[None]:
    """An exclusive lock on an empty file, which stays. Goes on without it after ``max_wait`` seconds, or where there can be none.

    ``poll`` is the pause between the first tries in seconds. It grows to four times that. (flock itself can only wait forever.)
    """
    descriptor, held = _open(path), False
    try:
        held = descriptor is not None and _acquire(descriptor, max_wait, poll)
        yield
    finally:
        if descriptor is not None:
            if held:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough if the process was forked meanwhile
            os.close(descriptor)


def _open(path: str) -> int | None:
    try:
        return None if fcntl is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a folder without write permission: the transaction itself will say so
        return None


def _acquire(descriptor: int, max_wait: float, poll: float) -> bool:
    start = time.monotonic()
    while (waited := time.monotonic() - start) < max_wait:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause_rng.uniform(0.5, 1.5) * min(max(waited / 8, poll), 4 * poll))
        except OSError:  # a file system without locks
            return False
    return False
