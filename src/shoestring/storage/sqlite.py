"""The SQLite backend: a file on this machine, in WAL mode (write-ahead log), so that readers and writers do not block each other.

A transaction that writes takes the lock at its beginning (BEGIN IMMEDIATE), so that it cannot fail half-way for lack of it. When
it returns, what it wrote is on the disk, as with ``synchronous=FULL``. But the log is flushed here, after the lock was released:
so others can write meanwhile, and one flush can serve several of them. With SQLite's own flush, inside the lock, 8 processes tell
520 results a second in place of 750 on a disk that takes 4 ms for a flush, and 1,280 in place of 1,410 on one that takes 0.5 ms
(medians; 2 cores, ext4); one process is as fast either way. Where this is not possible, SQLite flushes in its own way. A flush
that fails is an error.

While a database is open, its log (-wal) and shared memory (-shm) lie beside it. SQLite merges and removes them when the last
connection is closed, but an interpreter that ends does not close connections. So they are closed at exit, and then the file is
alone and complete. The log is merged at the end of each run as well (``merge_log``).

A process that is suspended in the middle of a write keeps the file locked. Those who wait log which one it is (``lock_holder``).

SQLite goes on writing to a file that has no name any more. So each transaction compares the file at the path with the one that
its connection has opened (device and inode), and each flush does the same for the log.
"""

from __future__ import annotations

import atexit
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from ..errors import StorageError
from .boot_clock import SteadyClock
from .connections import Transaction
from .lock_holder import describe_holder
from .locks import FileAskLocks, FileLock, LockFiles
from .schema import SQLITE_CLOCK
from .transactions import DEFAULT_WAIT_SECONDS, pause_rng, wait_seconds
from .write_ahead_log import require_whole_log

log = logging.getLogger("shoestring")

POLL_SECONDS = 0.0005  # between two tries to get the write lock
MAX_HOLD_SECONDS = 0.5  # of the write lock on a file by one process: many times what a transaction takes; then it is suspended
UNUSUAL_WAIT_SECONDS = 3.0  # for SQLite's own lock; after that it is said who holds it
FLUSH_HERE = os.name == "posix"  # or else SQLite does it, before it releases its lock

TRANSIENT_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
FLUSH_FAILED = "what was written could not be flushed to the disk"
CANNOT_OPEN = "it could not be opened; check that its folder is there and that you may write to both"
LOCKED = "another program keeps it locked; end that program, or wait for it"
ADVICE = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_READONLY: "it cannot be written to; make it, its folder and its -wal and -shm files writable (chmod u+w)",
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_PERM: CANNOT_OPEN,
    sqlite3.SQLITE_AUTH: CANNOT_OPEN,
    sqlite3.SQLITE_FULL: "its disk is full; nothing that was stored is lost: make room and go on",
    sqlite3.SQLITE_IOERR: "its disk cannot be written or read, perhaps because it is full; nothing that was stored is lost: "
    "check the disk and go on",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database, or its beginning is damaged; give another place, or restore a backup",
    sqlite3.SQLITE_CORRUPT: "it is damaged; keep it, restore a backup, or rescue what can be read with: sqlite3 FILE .recover",
}


class SQLiteFile:
    """A SQLite file as a backend of ``SQLStorage``."""

    read_options: ClassVar[Mapping[str, Any]] = {}
    write_options: ClassVar[Mapping[str, Any]] = {"writing": True}
    first_wait_seconds = DEFAULT_WAIT_SECONDS
    closes_before_fork = True  # SQLite counts its locks in memory, and a child would inherit the parent's count

    def __init__(self, path: Path) -> None:
        self.path = path
        self.real_path = os.path.realpath(path)  # SQLite keeps the log beside the file that a link leads to
        self.url = str(path) if "?" in str(path) else f"sqlite:///{path}"
        self._lock_files = LockFiles(path)
        self._ask_locks = FileAskLocks(self._lock_files)
        self._clock = SteadyClock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    # -- connections -------------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        return self.url

    def place(self) -> tuple[int, int] | None:
        with suppress(OSError):
            return _identity(os.stat(self.path))
        return None

    def guard(self, connection: Connection) -> AbstractContextManager[None]:
        """Nothing to do: there is no server."""
        return nullcontext()

    def was_silent_within(self, seconds: float) -> bool:
        return False

    def engine(self) -> Engine:
        require_whole_log(self.real_path)  # before SQLite opens it, and drops what does not fit
        engine = create_engine(
            URL.create("sqlite", database=self.real_path),
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": DEFAULT_WAIT_SECONDS},
            poolclass=QueuePool,
            pool_size=8,
            max_overflow=-1,  # one for each thread at work
        )
        name, real = str(self.path), self.real_path
        event.listen(engine, "connect", lambda connection, record: _on_connect(connection, record, name, real))
        clock = self._clock.now
        event.listen(engine, "connect", lambda connection, _: connection.create_function(SQLITE_CLOCK, 0, clock))
        event.listen(engine, "begin", lambda connection: _on_begin(connection, name, real))
        remove = self._lock_files.remove
        event.listen(engine, "engine_disposed", lambda _: _on_dispose(remove))
        weakref.finalize(engine, remove).atexit = False  # at exit it is disposed
        _engines[engine] = os.getpid()
        return engine

    def set_up(self, engine: Engine) -> None:
        """Turn on WAL mode. It is a property of the file, and to change it takes a moment without readers."""
        with engine.connect() as connection:
            raw = _raw(connection)
            if _in_wal_mode(raw):
                return
            _execute_when_free(raw, "PRAGMA journal_mode = WAL")  # a file system without shared memory keeps its mode
        engine.dispose()  # the next connection chooses how to flush by the new mode

    def start_clock(self, read: Transaction, write: Transaction) -> None:
        self._clock.start(read, write)

    def write_lock(self) -> FileLock:
        """A lock on a file, which writers try more often than SQLite tries its own.

        SQLite's wait grows to 100 ms between two tries, so that of 16 writers one may wait for seconds. The lock only orders the
        writers: one that is suspended before or after its transaction does not keep the others waiting.
        """
        _thread.closings = _closings
        return self._lock_files.lock("write", wait_seconds(), POLL_SECONDS, MAX_HOLD_SECONDS)

    def flush(self) -> None:
        """Flush the log. Another log than that of the writes before is an error: those were written to a deleted file."""
        if self.real_path not in _flushed_here:
            return
        try:
            descriptor = os.open(f"{self.real_path}-wal", os.O_RDWR)
            try:
                getattr(os, "fdatasync", os.fsync)(descriptor)
                found = _identity(os.fstat(descriptor))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            if getattr(_thread, "closings", _closings) != _closings:  # closed meanwhile: SQLite has merged the log and flushed
                return
            raise StorageError(_log_is_gone(self.path)) from None
        except OSError as error:
            raise StorageError(
                f"{self.path}: {FLUSH_FAILED} ({error}); what was written last may be lost if the power fails: check the disk"
            ) from None
        if _logs.setdefault(self.real_path, found) != found:
            raise StorageError(_log_is_gone(self.path))

    def merge_log(self, engine: Engine) -> None:
        """Copy what is in the log to the file, so that the file alone is complete if no other process writes or reads."""
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    def lock_creation(self, connection: Connection) -> None:
        """Nothing to do: only one transaction writes at a time."""

    def ask_lock(self, engine: Engine, study: int) -> AbstractContextManager[None]:
        return self._ask_locks.ask_lock(study)

    # -- errors ------------------------------------------------------------------------------------------------------

    def is_transient(self, error: DBAPIError) -> bool:
        return error.connection_invalidated or _code(error) in TRANSIENT_CODES

    def has_lost_connection(self, error: DBAPIError) -> bool:
        return error.connection_invalidated

    def allow_slowness(self, connection: Connection, losses: int | None = None) -> None:
        """Nothing to do: there is no server."""

    def explain(self, error: DBAPIError) -> StorageError:
        advice = ADVICE.get(_code(error), "the database refused")
        if _code(error) == sqlite3.SQLITE_CANTOPEN and not self.path.parent.is_dir():
            advice = f"there is no folder {self.path.parent}; make it with: mkdir -p {self.path.parent}"
        if advice is LOCKED:
            advice = describe_holder(self.real_path) or LOCKED
        return StorageError(f"{self.path}: {advice} ({error.orig})")

    # -- maintenance -------------------------------------------------------------------------------------------------

    def backup_before_upgrade(self, version: int) -> str:
        name, others = f"{self.path.name}.v{version}-backup", 0
        while (path := self.path.with_name(f"{name}-{others}" if others else name)).exists():
            others += 1
        self._copy(path)
        return str(path)

    def backup(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        try:
            target = Path(path).expanduser().absolute()
            taken = target.exists() and (not overwrite or target.samefile(self.path))
            has_folder = target.parent.is_dir()
        except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, or ~ of an unknown user
            reason = getattr(error, "strerror", None) or error
            raise StorageError(f"{os.fspath(path)[:80]!r} cannot be the name of a backup: {reason}; give another name") from None
        if taken:
            raise StorageError(f"{target} is there already; give the name of a new file for the backup")
        if not has_folder:
            raise StorageError(f"{target}: there is no folder {target.parent}; make it with: mkdir -p {target.parent}")
        self._copy(target)

    def _copy(self, path: Path) -> None:
        """Copy all that was committed, as a whole or not at all. Others may write meanwhile."""
        unfinished = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
        try:
            os.close(os.open(unfinished, os.O_CREAT | os.O_RDWR, 0o600))  # it holds what the database holds: for this user alone
            with (
                closing(sqlite3.connect(self.real_path, timeout=DEFAULT_WAIT_SECONDS)) as source,
                closing(sqlite3.connect(unfinished)) as target,
            ):
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, not three
            os.replace(unfinished, path)
        except (sqlite3.Error, OSError, ValueError) as error:
            with suppress(OSError, ValueError):
                unfinished.unlink(missing_ok=True)
            raise StorageError(f"{self.path} could not be copied to {path}: {error}; nothing was changed") from None

    def integrity_errors(self, connection: Connection) -> list[str]:
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        found += [f"a row of {row[0]} belongs to no study" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")]
        return [each for each in found if each != "ok"]


_engines: weakref.WeakKeyDictionary[Engine, int] = weakref.WeakKeyDictionary()  # with the process that made each one
_logs: dict[str, tuple[int, int]] = {}  # the log of each database since its last new connection: device and inode
_flushed_here: set[str] = set()  # databases whose log is flushed by ``flush``, and not by SQLite
_said: dict[str, str] = {}  # what was logged last about the holder of a lock, by database
_closings = 0  # how often this process has closed all connections of an engine
_thread = threading.local()  # ``closings``: their number when this thread began its last write


@atexit.register
def _close_all() -> None:
    """Close the connections of this process; those of a parent are not to be touched."""
    for engine, process in list(_engines.items()):
        if process == os.getpid():
            with suppress(Exception):  # what was told is on the disk already
                engine.dispose()


def _on_dispose(remove_lock_files: Callable[[], None]) -> None:
    global _closings
    _closings += 1
    remove_lock_files()


def _on_connect(connection: sqlite3.Connection, record: Any, name: str, real: str) -> None:
    here = FLUSH_HERE and _in_wal_mode(connection)
    (_flushed_here.add if here else _flushed_here.discard)(real)
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if here else 'FULL'}")
    connection.execute("PRAGMA foreign_keys = ON")
    _logs.pop(real, None)  # if this is the first connection, SQLite makes a new log
    with suppress(FileNotFoundError):  # the first transaction says so
        record.info["file"] = _identity(os.stat(real))


def _on_begin(connection: Connection, name: str, real: str) -> None:
    raw, allowed = _raw(connection), wait_seconds()
    raw.execute(f"PRAGMA busy_timeout = {round(1000 * min(allowed, UNUSUAL_WAIT_SECONDS))}")
    try:
        replaced = _identity(os.stat(name)) != connection.info.get("file")
    except FileNotFoundError:
        raise StorageError(f"{name}: it was deleted or moved while it was in use; put it back, or start again") from None
    if replaced:
        raise StorageError(
            f"{name}: another file was put in its place while it was in use; nothing was written to it; put the first one back, "
            "or end this program and start again to go on with the new one"
        )
    if not connection.get_execution_options().get("writing"):
        raw.execute("BEGIN")
        return
    try:
        try:
            raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or allowed <= UNUSUAL_WAIT_SECONDS:
                raise
            _say_who_holds(name, real)
            raw.execute(f"PRAGMA busy_timeout = {round(1000 * (allowed - UNUSUAL_WAIT_SECONDS))}")
            raw.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        raise DBAPIError.instance("BEGIN IMMEDIATE", None, error, sqlite3.Error) from None


def _say_who_holds(name: str, real: str) -> None:
    """Log it, once for each holder: the user may be the one who has suspended it."""
    said = describe_holder(real)
    if said is not None and _said.get(real) != said:
        _said[real] = said
        log.warning("%s: %s; this program waits for it", name, said)


def _identity(status: os.stat_result) -> tuple[int, int]:
    """Which file it is, whatever its name."""
    return status.st_dev, status.st_ino


def _log_is_gone(path: Path) -> str:
    lost = "what was written last is in no file that has a name"
    return (
        f"{path}-wal, which belongs to {path}, was deleted or replaced while it was in use, and {lost}; "
        f"end all programs that use it, and restore a backup, or see what is left: shoestring db check --storage {path}"
    )


def _in_wal_mode(raw: sqlite3.Connection) -> bool:
    return bool(raw.execute("PRAGMA journal_mode").fetchone() == ("wal",))


def _raw(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _execute_when_free(raw: sqlite3.Connection, statement: str) -> None:
    """Execute a statement as soon as the lock that it needs is free."""
    deadline = time.monotonic() + wait_seconds()
    while True:
        try:
            raw.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in TRANSIENT_CODES or time.monotonic() > deadline:
                raise DBAPIError.instance(statement, None, error, sqlite3.Error) from None
        time.sleep(pause_rng.uniform(0.5, 1.5) * POLL_SECONDS)


def _code(error: DBAPIError) -> int:
    """The primary result code of SQLite; 0 if the error comes from Python's sqlite3 module."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF
