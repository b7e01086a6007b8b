"""The ask lock, and locks on files.

Threads of one process exclude each other by a ``threading.Lock``, processes on one machine by a lock on a file (flock), which the
system releases when the process ends. Correctness depends on neither: a worker that has waited for long goes on without the lock,
since its holder may be suspended. The locks save work, and give each of many writers its turn.

The lock files are not beside the database but in a private folder among the temporary files, under a hash of the database's
path. A process removes them when it closes the database; one that is killed may leave an empty file there. So only processes of
the same user with the same temporary folder share these locks. Those in another container, or with another TMPDIR, have only the
database's own lock: this is correct too, but they compute more suggestions in vain.

The file lock is not filelock's. It is also the write lock of SQLite files, and each trial takes it several times: a free lock
takes 0.007 ms here and 0.12 ms there. And it goes on without a lock where a file system has none.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .transactions import pause_rng

MAX_WAIT_SECONDS = 60.0  # for the ask lock
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
        lock = self._locks.setdefault((os.getpid(), study), threading.Lock())
        held = lock.acquire(timeout=MAX_WAIT_SECONDS)
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
        with super().ask_lock(study), self._files.lock(f"ask-{study}", MAX_WAIT_SECONDS, POLL_SECONDS):
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

    def lock(self, purpose: str, max_wait: float, poll: float) -> FileLock:
        """An exclusive lock as a context manager: see ``FileLock``."""
        return FileLock(self, purpose, max_wait, poll)

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

    def remove(self) -> None:
        """Remove the files that nobody holds now, also those of processes that were killed. Who holds one removes it later."""
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

    ``poll`` is the pause between the first tries in seconds. It grows to four times that. (flock itself can only wait forever.)
    A class, since a generator with ``contextmanager`` takes 0.001 ms longer.
    """

    __slots__ = ("_descriptor", "_files", "_max_wait", "_poll", "_purpose")

    def __init__(self, files: LockFiles, purpose: str, max_wait: float, poll: float) -> None:
        self._files, self._purpose, self._max_wait, self._poll = files, purpose, max_wait, poll
        self._descriptor: int | None = None

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
                    return True
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
            if not held:
                return False
        return False

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing is not enough if the process was forked meanwhile
            os.close(self._descriptor)
            self._descriptor = None

    def _wait_for(self, descriptor: int) -> bool:
        start: float | None = None
        while True:
            try:
                fcntl.flock(descriptor, LOCK_FLAGS)
                return True
            except BlockingIOError:
                now = time.monotonic()
                start = now if start is None else start
                if now - start >= self._max_wait:
                    return False
                time.sleep(pause_rng.uniform(0.5, 1.5) * min(max((now - start) / 8, self._poll), 4 * self._poll))
            except OSError:  # a file system without locks
                return False


def private_folder() -> str:
    """The folder of this user's lock files; OSError where there can be none that nobody else can write to."""
    folder = os.path.join(tempfile.gettempdir(), f"shoestring-locks-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)  # not of what a symbolic link leads to, which somebody else may have put there
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not a private folder")
    return folder
