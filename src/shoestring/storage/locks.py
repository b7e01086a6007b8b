"""The ask lock, and locks on files.

Threads of one process exclude each other by a ``threading.Lock``, processes on one machine by a lock on a file (flock), which the
system releases when the process ends. Correctness depends on neither. The locks save work, and give each of many writers its
turn.

A process that holds a lock may be suspended. So one who has waited for the same holder for half a lease (for the write lock of a
SQLite file: for half a second) takes the lock over: it removes the file and locks a new one. The others find the new file, and
wait no longer for the suspended process. When that process goes on, it works without a lock, and ``Storage.write`` tells it that
others were faster. No process waits for the ask lock for longer than a lease in all, also if several processes are suspended.

The lock files are not beside the database but in a private folder among the temporary files, under a hash of the database's
path. A process removes them when it closes the database; one that is killed may leave an empty file there. So only processes of
the same user with the same temporary folder share these locks. Those in another container, or with another TMPDIR, have only the
database's own lock: this is correct too, but they compute more suggestions in vain.

The file lock is not filelock's. It is also the write lock of SQLite files, and each trial takes it several times: a free lock
takes 0.01 ms here and 0.12 ms there. And it goes on without a lock where a file system has none.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .transactions import hold_seconds, pause_rng

MAX_HOLD = 0.5  # of a lease, by one worker: many times what a suggestion takes; then the ask lock is taken over
POLL_SECONDS = 0.01
MAX_OPENS = 100  # of a file that others keep removing, before a lock goes on without it
HASH_DIGITS = 20
OPEN_FLAGS = os.O_RDWR | os.O_CREAT

try:
    import fcntl

    LOCK_FLAGS = fcntl.LOCK_EX | fcntl.LOCK_NB
except ImportError:  # Windows: threads exclude each other, processes do not
    fcntl = None  # type: ignore[assignment]


class ThreadAskLocks:
    """The ask locks of the studies in this process: one lock for each study."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, int], threading.Lock] = {}  # by process too: a lock that was held at a fork stays locked

    @contextmanager
    def ask_lock(self, study: int) -> Iterator[None]:
        """Threads of one process are suspended together, so that one wait for all of them is enough."""
        lock = self._locks.setdefault((os.getpid(), study), threading.Lock())
        held = lock.acquire(timeout=hold_seconds())
        try:
            yield
        finally:
            if held:
                lock.release()


class FileAskLocks(ThreadAskLocks):
    """The ask locks of the studies in a file, for all processes that share its lock files."""

    def __init__(self, files: LockFiles) -> None:
        super().__init__()
        self._files = files

    @contextmanager
    def ask_lock(self, study: int) -> Iterator[None]:
        start, lease = time.monotonic(), hold_seconds()
        with super().ask_lock(study):
            left = max(0.0, lease - (time.monotonic() - start))
            with AskFileLock(self._files, f"ask-{study}", MAX_HOLD * lease, left):
                yield


class LockFiles:
    """The lock files of one database: empty files, one for each purpose.

    A file may be removed while another process is about to lock it. Then that process has locked a file without a name, which
    the next one cannot find. So a lock counts only if its file still has a name (``st_nlink``), and only who holds the lock
    removes the file.
    """

    def __init__(self, database: Path) -> None:
        real = os.path.realpath(database)  # the same for relative paths and symbolic links
        self._name = hashlib.sha256(os.fsencode(real)).hexdigest()[:HASH_DIGITS] + "."
        self._folder: str | None = None  # once it was used

    def lock(self, purpose: str, max_wait: float, poll: float, limit: float = math.inf) -> FileLock:
        """An exclusive lock as a context manager: see ``FileLock``."""
        return FileLock(self, purpose, max_wait, poll, limit)

    def open(self, purpose: str) -> int | None:
        """The descriptor of a file; None where there can be none."""
        if fcntl is None:
            return None
        for _ in range(MAX_OPENS):
            try:
                folder = self._folder or private_folder()
                descriptor = os.open(f"{folder}/{self._name}{purpose}", OPEN_FLAGS, 0o600)
                self._folder = folder
                return descriptor
            except FileNotFoundError:  # the folder was removed: by a process that has ended, or by the system
                self._folder = None
            except OSError:  # a temporary folder that cannot be used
                return None
        return None

    def discard(self, purpose: str, descriptor: int) -> bool:
        """Remove the file of this descriptor, though another process holds its lock. Whether it has no name any more."""
        path = f"{self._folder}/{self._name}{purpose}"
        try:
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):  # and not a new file of a faster process
                os.unlink(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the files that are free now, also those of killed processes. A process that holds one removes it later."""
        folder = self._folder
        if folder is None:
            return
        with suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith(self._name):
                    with self.lock(name.removeprefix(self._name), 0.0, 0.0) as held:
                        if held:
                            os.unlink(f"{folder}/{name}")
            os.rmdir(folder)  # if no files of other databases are in it


class FileLock:
    """An exclusive lock on a file. Goes on without it after ``max_wait`` seconds, or where there can be none.

    poll    the pause between the first tries in seconds. It grows to four times that. (flock itself can only wait forever.)
    limit   for how many seconds one process may hold it. After that it is taken over.

    Who gets the lock changes the file's time, if there is a limit. So those who wait can see whether it is still the same holder.
    A class, since a generator with ``contextmanager`` takes 0.001 ms longer.
    """

    __slots__ = ("_deadline", "_descriptor", "_files", "_limit", "_max_pause", "_max_wait", "_poll", "_process", "_purpose")

    def __init__(self, files: LockFiles, purpose: str, max_wait: float, poll: float, limit: float = math.inf) -> None:
        self._files, self._purpose, self._max_wait, self._poll, self._limit = files, purpose, max_wait, poll, limit
        self._max_pause = 4 * poll
        self._descriptor: int | None = None
        self._deadline: float | None = None  # once it waits
        self._process = os.getpid()

    def __enter__(self) -> bool:
        """Whether the lock is held."""
        for _ in range(MAX_OPENS):
            descriptor = self._files.open(self._purpose)
            if descriptor is None:
                return False
            held = False
            try:
                held = self._wait_for(descriptor)
                if held and os.fstat(descriptor).st_nlink:
                    self._descriptor = descriptor
                    _held.add(descriptor)
                    return True
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
            if not held:
                return False
        return False

    def __exit__(self, *error: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None and self._process == os.getpid():  # the lock of a parent stays the parent's
            _held.discard(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough if the process was forked meanwhile
            os.close(descriptor)

    def _wait_for(self, descriptor: int) -> bool:
        """True also if the file has no name any more: then the caller opens the new one."""
        start, since, holder = 0.0, 0.0, -1
        while True:
            try:
                fcntl.flock(descriptor, LOCK_FLAGS)
                if self._limit < math.inf:
                    stamp = time.monotonic_ns()
                    os.utime(descriptor, ns=(stamp, stamp))
                return True
            except BlockingIOError:
                now, found = time.monotonic(), os.fstat(descriptor)
                start = start or now
                self._deadline = self._deadline or now + self._max_wait
                if not found.st_nlink:
                    return True
                if found.st_mtime_ns != holder:
                    since, holder = now, found.st_mtime_ns
                if now - since >= self._limit:
                    return self._files.discard(self._purpose, descriptor)
                if now >= self._deadline:
                    return False
                pause = min(max((now - start) / 8, self._poll), self._max_pause)
                time.sleep(min(pause_rng.uniform(0.5, 1.5) * pause, self._limit))
            except OSError:  # a file system without locks
                return False


class AskFileLock(FileLock):
    """The lock on a file that a worker holds while it asks. Taken over from one that holds it after ``limit`` seconds."""

    __slots__ = ()

    def __init__(self, files: LockFiles, purpose: str, limit: float, max_wait: float) -> None:
        super().__init__(files, purpose, max_wait, POLL_SECONDS, limit)
        self._max_pause = POLL_SECONDS  # it is held for longer than the write lock, and waited for by fewer


_held: set[int] = set()  # descriptors of the locks that this process holds


def _after_fork_in_child() -> None:
    """Close what the parent has locked: else its locks would stay when it is killed. Its own descriptors keep them."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def private_folder() -> str:
    """The folder of this user's lock files; OSError where no folder is safe from other users."""
    folder = os.path.join(tempfile.gettempdir(), f"shoestring-locks-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)  # not of what a symbolic link leads to, which another user may have put there
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not a private folder")
    return folder
