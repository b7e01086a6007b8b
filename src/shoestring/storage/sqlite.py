"""A file on this machine: SQLite, with a log ahead of the file (WAL) so that readers and writers do not wait for each other.

One that writes takes the lock at its beginning (BEGIN IMMEDIATE), so that it cannot fail half-way for want of it. What it wrote
is on the disk when it returns, as with synchronous=FULL, but it flushes the log itself, after it has let go of the lock: so
others write in the meantime, and one flush may serve several of them. Where that cannot be, SQLite does it in its own way.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from ..errors import StorageError
from .locks import FileTurns, file_lock
from .patience import USUAL, dice, seconds_of_patience

PAUSE = 0.0005  # seconds between two looks at it
WE_FLUSH = os.name == "posix"

PASSES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
CANNOT_OPEN = "it could not be opened; check that its folder is there and that you may write to both"
LOCKED = "another program keeps it locked; end that program, or wait for it"
MENDING = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_READONLY: "it cannot be written to; make it, its folder and its -wal and -shm files writable (chmod u+w)",
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_PERM: CANNOT_OPEN,
    sqlite3.SQLITE_AUTH: CANNOT_OPEN,
    sqlite3.SQLITE_FULL: "its disk is full; nothing that was stored is lost: make room and go on",
    sqlite3.SQLITE_IOERR: "its disk cannot be written or read, perhaps because it is full; nothing that was stored is lost: "
    "see to the disk and go on",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database, or its beginning is damaged; give another place, or restore a backup",
    sqlite3.SQLITE_CORRUPT: "it is damaged; keep it, restore a backup, or rescue what can be read with: sqlite3 FILE .recover",
}


class SQLiteFile:
    reading: ClassVar[Mapping[str, Any]] = {}
    writing: ClassVar[Mapping[str, Any]] = {"writing": True}
    first_patience = USUAL

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path) if "?" in str(path) else f"sqlite:///{path}"
        self._turns = FileTurns(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    # -- connections -------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self.path)),
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": USUAL},
            poolclass=QueuePool,
            pool_size=8,
            max_overflow=-1,  # as many as there are threads at work
        )
        event.listen(engine, "connect", _connected)
        event.listen(engine, "begin", _begun)
        return engine

    def settle(self, engine: Engine) -> None:
        """The log ahead of the file is a property of the file, and changing it takes a moment without readers."""
        with engine.connect() as connection:
            raw = _raw(connection)
            if raw.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                return
            _insist(raw, "PRAGMA journal_mode = WAL")  # a file system without shared memory keeps the mode it has
        engine.dispose()  # the next connection flushes as the mode wants it

    def door(self) -> AbstractContextManager[None]:
        """Writers queue at a file of its own. SQLite's own queue is for those who do not know it: there, whoever has waited long
        looks every 100 ms only, and of 16 writers one may wait for seconds.
        """
        return file_lock(f"{self.path}.lock", seconds_of_patience(), PAUSE)

    def flush(self) -> None:
        if not WE_FLUSH:
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
            raise StorageError(f"{self.path}: {MENDING[sqlite3.SQLITE_IOERR]} ({error})") from None

    def alone(self, connection: Connection) -> None:
        """Whoever writes is alone."""

    def turn(self, engine: Engine, study: int) -> AbstractContextManager[None]:
        return self._turns.turn(study)

    # -- failures ----------------------------------------------------------------------------------------------------

    def passes(self, error: DBAPIError) -> bool:
        return error.connection_invalidated or _code(error) in PASSES

    def explain(self, error: DBAPIError) -> StorageError:
        mending = MENDING.get(_code(error), "the database refused")
        if _code(error) == sqlite3.SQLITE_CANTOPEN and not self.path.parent.is_dir():
            mending = f"there is no folder {self.path.parent}; make it with: mkdir -p {self.path.parent}"
        return StorageError(f"{self.path}: {mending} ({error.orig})")

    # -- upkeep ------------------------------------------------------------------------------------------------------

    def keep_copy(self, version: int) -> str:
        name, others = f"{self.path.name}.v{version}-backup", 0
        while (path := self.path.with_name(f"{name}-{others}" if others else name)).exists():
            others += 1
        self._copy(path)
        return str(path)

    def copy(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        target = Path(path).expanduser().absolute()
        if target.exists() and (not overwrite or target.samefile(self.path)):
            raise StorageError(f"{target} is there already; give the name of a new file for the backup")
        if not target.parent.is_dir():
            raise StorageError(f"{target}: there is no folder {target.parent}; make it with: mkdir -p {target.parent}")
        self._copy(target)

    def _copy(self, path: Path) -> None:
        """What has been committed, whole or not at all, while others go on writing."""
        unfinished = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
        try:
            with closing(sqlite3.connect(self.path, timeout=USUAL)) as source, closing(sqlite3.connect(unfinished)) as target:
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, not three
            os.replace(unfinished, path)
        except (sqlite3.Error, OSError) as error:
            unfinished.unlink(missing_ok=True)
            raise StorageError(f"{self.path} could not be copied to {path}: {error}; nothing was changed") from None

    def examine(self, connection: Connection) -> list[str]:
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        found += [f"a row of {row[0]} belongs to no study" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")]
        return [each for each in found if each != "ok"]


def _connected(connection: sqlite3.Connection, record: Any) -> None:
    ahead = connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if ahead and WE_FLUSH else 'FULL'}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begun(connection: Connection) -> None:
    raw = _raw(connection)
    raw.execute(f"PRAGMA busy_timeout = {round(1000 * seconds_of_patience())}")
    if not connection.get_execution_options().get("writing"):
        raw.execute("BEGIN")
        return
    path = connection.engine.url.database or ""
    if not os.path.exists(path):  # SQLite would go on writing to what can be found no more
        raise StorageError(f"{path}: it was deleted or moved while it was in use; put it back, or start again")
    try:
        raw.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        raise DBAPIError.instance("BEGIN IMMEDIATE", None, error, sqlite3.Error) from None


def _raw(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _insist(raw: sqlite3.Connection, statement: str) -> None:
    """Carry out a statement as soon as the lock that it needs is free."""
    until = time.monotonic() + seconds_of_patience()
    while True:
        try:
            raw.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in PASSES or time.monotonic() > until:
                raise DBAPIError.instance(statement, None, error, sqlite3.Error) from None
        time.sleep(dice.uniform(0.5, 1.5) * PAUSE)


def _code(error: DBAPIError) -> int:
    """The primary result code, 0 if there is none: Python itself found fault."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF
