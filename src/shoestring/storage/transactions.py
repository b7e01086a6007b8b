"""Database transactions that are atomic and are retried after transient errors.

Transient errors end by themselves: a dropped connection, a server that restarts, a lock that another program holds. After a pause
the whole transaction is tried again. An earlier try may have been carried out, with only its answer lost. So every write stores
something by which a second try recognizes the first: an idempotency key. If the error lasts longer than the wait limit, the call
raises ``StorageUnavailable``.

The wait limit is a minute. A caller that has other work to do meanwhile sets a shorter one: ``with wait_limit(seconds): ...``.

Each process has its own connections. After a fork, those of the parent are neither used nor closed.

The retry loop is not tenacity's: it is a dozen lines, its deadline comes from the caller's context, and its random pauses must
not draw from the user's seeded generator. SQLAlchemy is imported when a database is used, so that studies in memory start fast.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import ShoestringError, StorageError, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

DEFAULT_WAIT_SECONDS = 60.0
SHORT_WAIT_SECONDS = 1.0  # for a loop that keeps what it could not write, looks after its workers, and tries again
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 1.0  # between two tries

pause_rng = random.Random()  # for random pauses, so that waiting processes do not all try at once

_wait_seconds: ContextVar[float] = ContextVar("shoestring_wait_seconds", default=DEFAULT_WAIT_SECONDS)

Result = TypeVar("Result")


# -- the wait limit ----------------------------------------------------------------------------------------------------


@contextmanager
def wait_limit(seconds: float) -> Iterator[None]:
    """Sets how long each storage call inside the block waits for a storage that does not answer."""
    before = _wait_seconds.set(seconds)
    try:
        yield
    finally:
        _wait_seconds.reset(before)


def wait_seconds() -> float:
    """The wait limit that holds here and now."""
    return _wait_seconds.get()


# -- databases ---------------------------------------------------------------------------------------------------------


class Backend(Protocol):
    """What differs between SQLite and PostgreSQL."""

    @property
    def url(self) -> str:
        """The address, without a password."""
        ...

    @property
    def read_options(self) -> Mapping[str, Any]:
        """SQLAlchemy's execution options for a transaction that reads from one snapshot."""
        ...

    @property
    def write_options(self) -> Mapping[str, Any]:
        """SQLAlchemy's execution options for a transaction that writes."""
        ...

    @property
    def first_wait_seconds(self) -> float:
        """The wait limit of the first call, when the address may be wrong."""
        ...

    def engine(self) -> Engine:
        """A new SQLAlchemy engine, without connections yet."""
        ...

    def is_transient(self, error: DBAPIError) -> bool:
        """Whether the error may end by itself, so that the transaction is worth a retry."""
        ...

    def explain(self, error: DBAPIError) -> StorageError:
        """An error that says what went wrong, where, and how to fix it."""
        ...

    def set_up(self, engine: Engine) -> None:
        """Settings of the database that are made once, outside of a transaction."""
        ...

    def write_lock(self) -> AbstractContextManager[Any]:
        """A lock that writers wait for before they begin a transaction, where the database's own lock is not enough."""
        ...

    def flush(self) -> None:
        """Return when all that was committed is on the disk."""
        ...

    def lock_creation(self, connection: Connection) -> None:
        """Until the end of the transaction, no other transaction creates tables or studies."""
        ...

    def backup_before_upgrade(self, version: int) -> str | None:
        """Copy the database before its tables are changed. Returns the path, or None if the transaction is protection enough."""
        ...

    def backup(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        """Copy the database to a file. The file must not exist unless it may be overwritten."""
        ...

    def ask_lock(self, engine: Engine, study: int) -> AbstractContextManager[None]:
        """The ask lock of a study, shared by all users of the database. See ``Storage.ask_lock``."""
        ...

    def integrity_errors(self, connection: Connection) -> list[str]:
        """What the database's own integrity check finds."""
        ...


class Database:
    """A backend together with the connections of this process."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._engines: dict[int, Engine] = {}  # by process id; those of a parent are kept, so that nothing closes them

    @property
    def engine(self) -> Engine:
        process = os.getpid()
        return self._engines.get(process) or self._engines.setdefault(process, self.backend.engine())

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` in a transaction that sees one snapshot of the database."""
        return self._retry(work, self.backend.read_options, nullcontext)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` in a transaction that writes. It may run more than once, and must recognize what it did before."""
        result = self._retry(work, self.backend.write_options, self.backend.write_lock)
        self.backend.flush()
        return result

    def _retry(
        self,
        work: Callable[[Connection], Result],
        options: Mapping[str, Any],
        lock: Callable[[], AbstractContextManager[Any]],
    ) -> Result:
        from sqlalchemy.exc import DBAPIError

        deadline, pause = time.monotonic() + wait_seconds(), FIRST_PAUSE_SECONDS
        while True:
            try:
                with self.engine.connect().execution_options(**options) as connection, lock(), connection.begin():
                    return work(connection)
            except DBAPIError as error:
                if not self.backend.is_transient(error):
                    raise self.backend.explain(error) from None
                if time.monotonic() > deadline:
                    raise StorageUnavailable(str(self.backend.explain(error))) from None
            except (TypeError, ValueError, OverflowError, RecursionError) as error:  # a cell with a value of a wrong kind
                if isinstance(error, ShoestringError):
                    raise
                where = self.backend.url
                raise StorageError(f"{where}: what is stored cannot be read: {type(error).__name__}: {error}") from error
            time.sleep(pause * pause_rng.uniform(0.5, 1.0))
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connections of this process."""
        engine = self._engines.pop(os.getpid(), None)
        if engine is not None:
            engine.dispose()
