"""The SQLite backend: a file on this machine, in WAL mode (write-ahead log), so that readers and writers do not block each other.

A transaction that writes takes the lock at its beginning (BEGIN IMMEDIATE), so that it cannot fail half-way for lack of it. When
it returns, what it wrote is on the disk, as with ``synchronous=FULL``. But the log is flushed here, after the lock was released:
so others can write meanwhile, and one flush can serve several of them. Where this is not possible, SQLite flushes in its own way.

While a database is open, its log (-wal) and shared memory (-shm) lie beside it. SQLite merges and removes them when the last
connection is closed, but an interpreter that ends does not close connections. So they are closed at exit, and then the file is
alone and complete.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import time
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from ..errors import StorageError
from .locks import FileAskLocks, FileLock, LockFiles
from .transactions import DEFAULT_WAIT_SECONDS, pause_rng, wait_seconds

POLL_SECONDS = 0.0005  # between two tries to get the write lock
FLUSH_HERE = os.name == "posix"  # or else SQLite does it, before it releases its lock

TRANSIENT_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
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

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path) if "?" in str(path) else f"sqlite:///{path}"
        self._lock_files = LockFiles(path)
        self._ask_locks = FileAskLocks(self._lock_files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    # -- connections -------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self.path)),
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": DEFAULT_WAIT_SECONDS},
            poolclass=QueuePool,
            pool_size=8,
            max_overflow=-1,  # one for each thread at work
        )
        event.listen(engine, "connect", _on_connect)
        event.listen(engine, "begin", _on_begin)
        remove = self._lock_files.remove
        event.listen(engine, "engine_disposed", lambda _: remove())
        weakref.finalize(engine, remove).atexit = False  # at exit it is disposed
        _engines[engine] = os.getpid()
        return engine

    def set_up(self, engine: Engine) -> None:
        """Turn on WAL mode. It is a property of the file, and to change it takes a moment without readers."""
        with engine.connect() as connection:
            raw = _raw(connection)
            if raw.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                return
            _execute_when_free(raw, "PRAGMA journal_mode = WAL")  # a file system without shared memory keeps its mode
        engine.dispose()  # the next connection chooses how to flush by the new mode

    def write_lock(self) -> FileLock:
        """A lock on a file, which writers try more often than SQLite tries its own.

        SQLite's wait grows to 100 ms between two tries, so that of 16 writers one may wait for seconds.
        """
        return self._lock_files.lock("write", wait_seconds(), POLL_SECONDS)

    def flush(self) -> None:
        if not FLUSH_HERE:
            return
        try:
            descriptor = os.open(f"{self.path}-wal", os.O_RDWR)
            try:
                getattr(os, "fdatasync", os.fsync)(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:  # there is no log, or it was merged into the file: SQLite has flushed that
            return
        except OSError as error:
            raise StorageError(f"{self.path}: {ADVICE[sqlite3.SQLITE_IOERR]} ({error})") from None

    def lock_creation(self, connection: Connection) -> None:
        """Nothing to do: only one transaction writes at a time."""

    def ask_lock(self, engine: Engine, study: int) -> AbstractContextManager[None]:
        return self._ask_locks.ask_lock(study)

    # -- errors ------------------------------------------------------------------------------------------------------

    def is_transient(self, error: DBAPIError) -> bool:
        return error.connection_invalidated or _code(error) in TRANSIENT_CODES

    def explain(self, error: DBAPIError) -> StorageError:
        advice = ADVICE.get(_code(error), "the database refused")
        if _code(error) == sqlite3.SQLITE_CANTOPEN and not self.path.parent.is_dir():
            advice = f"there is no folder {self.path.parent}; make it with: mkdir -p {self.path.parent}"
        return StorageError(f"{self.path}: {advice} ({error.orig})")

    # -- maintenance -------------------------------------------------------------------------------------------------

    def backup_before_upgrade(self, version: int) -> str:
        name, others = f"{self.path.name}.v{version}-backup", 0
        while (path := self.path.with_name(f"{name}-{others}" if others else name)).exists():
            others += 1
        self._copy(path)
        return str(path)

    def backup(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        target = Path(path).expanduser().absolute()
        if target.exists() and (not overwrite or target.samefile(self.path)):
            raise StorageError(f"{target} is there already; give the name of a new file for the backup")
        if not target.parent.is_dir():
            raise StorageError(f"{target}: there is no folder {target.parent}; make it with: mkdir -p {target.parent}")
        self._copy(target)

    def _copy(self, path: Path) -> None:
        """Copy all that was committed, as a whole or not at all. Others may write meanwhile."""
        unfinished = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
        try:
            with (
                closing(sqlite3.connect(self.path, timeout=DEFAULT_WAIT_SECONDS)) as source,
                closing(sqlite3.connect(unfinished)) as target,
            ):
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, not three
            os.replace(unfinished, path)
        except (sqlite3.Error, OSError) as error:
            unfinished.unlink(missing_ok=True)
            raise StorageError(f"{self.path} could not be copied to {path}: {error}; nothing was changed") from None

    def integrity_errors(self, connection: Connection) -> list[str]:
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        found += [f"a row of {row[0]} belongs to no study" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")]
        return [each for each in found if each != "ok"]


_engines: weakref.WeakKeyDictionary[Engine, int] = weakref.WeakKeyDictionary()  # with the process that made each one


@atexit.register
def _close_all() -> None:
    """Close the connections of this process; those of a parent are not to be touched."""
    for engine, process in list(_engines.items()):
        if process == os.getpid():
            with suppress(Exception):  # what was told is on the disk already
                engine.dispose()


def _on_connect(connection: sqlite3.Connection, record: Any) -> None:
    wal = connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if wal and FLUSH_HERE else 'FULL'}")
    connection.execute("PRAGMA foreign_keys = ON")


def _on_begin(connection: Connection) -> None:
    raw = _raw(connection)
    raw.execute(f"PRAGMA busy_timeout = {round(1000 * wait_seconds())}")
    if not connection.get_execution_options().get("writing"):
        raw.execute("BEGIN")
        return
    path = connection.engine.url.database or ""
    if not os.path.exists(path):  # SQLite would go on writing to a file that has no name any more
        raise StorageError(f"{path}: it was deleted or moved while it was in use; put it back, or start again")
    try:
        raw.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        raise DBAPIError.instance("BEGIN IMMEDIATE", None, error, sqlite3.Error) from None


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
