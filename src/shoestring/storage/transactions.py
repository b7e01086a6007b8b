"""Transactions that happen wholly or not at all, and are tried again when what stopped them passes by itself.

A dropped connection, a server that restarts, a lock that somebody else holds: after a pause the whole transaction is done again.
That its first try may have been carried out, only the answer being lost, is for the transaction to find out: every write here
leaves something by which its repetition knows. When patience ends, that is ``Away``: nothing is wrong but that nobody answers.

Each process has connections of its own: after a fork those of the parent are left alone, neither used nor closed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from ..errors import Away, ShoestringError, StorageError
from .patience import dice, seconds_of_patience

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0

Result = TypeVar("Result")


class Backend(Protocol):
    """What differs between databases."""

    @property
    def url(self) -> str:
        """Without a password."""
        ...

    @property
    def reading(self) -> Mapping[str, Any]:
        """SQLAlchemy's execution options of a transaction that sees one moment."""
        ...

    @property
    def writing(self) -> Mapping[str, Any]:
        """Those of one that writes."""
        ...

    @property
    def first_patience(self) -> float:
        """Seconds for which an address that was never used before is tried."""
        ...

    def engine(self) -> Engine:
        """A new one, without connections yet."""
        ...

    def passes(self, error: DBAPIError) -> bool:
        """Whether what went wrong may be over in a moment."""
        ...

    def explain(self, error: DBAPIError) -> StorageError:
        """What went wrong, where, and how to mend it."""
        ...

    def settle(self, engine: Engine) -> None:
        """What has to be set up once and for all, outside of a transaction."""
        ...

    def door(self) -> AbstractContextManager[None]:
        """Where those who want to write wait for each other."""
        ...

    def flush(self) -> None:
        """Return when all that has been committed is on the disk."""
        ...

    def alone(self, connection: Connection) -> None:
        """For the rest of the transaction, no other one makes tables or studies."""
        ...

    def keep_copy(self, version: int) -> str | None:
        """Before tables are changed: a copy of all that there is, and where; None if the transaction itself is safe enough."""
        ...

    def copy(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        """All that there is, to a file, which must be new unless it is to be overwritten."""
        ...

    def turn(self, engine: Engine, study: int) -> AbstractContextManager[None]:
        """One at a time among all that use the database."""
        ...

    def examine(self, connection: Connection) -> list[str]:
        """What the database itself finds to be wrong with its files."""
        ...


class Database:
    """A backend, and this process's connections to it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._engines: dict[int, Engine] = {}  # by process; those of a parent are kept, so that nothing closes them

    @property
    def engine(self) -> Engine:
        process = os.getpid()
        return self._engines.get(process) or self._engines.setdefault(process, self.backend.engine())

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """All that ``work`` reads is of one moment."""
        return self._try(work, self.backend.reading, nullcontext)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """``work`` may be done again, and must notice what it did the first time."""
        result = self._try(work, self.backend.writing, self.backend.door)
        self.backend.flush()
        return result

    def _try(
        self,
        work: Callable[[Connection], Result],
        options: Mapping[str, Any],
        door: Callable[[], AbstractContextManager[None]],
    ) -> Result:
        until, pause = time.monotonic() + seconds_of_patience(), FIRST_PAUSE
        while True:
            try:
                with self.engine.connect().execution_options(**options) as connection, door(), connection.begin():
                    return work(connection)
            except DBAPIError as error:
                if not self.backend.passes(error):
                    raise self.backend.explain(error) from None
                if time.monotonic() > until:
                    raise Away(str(self.backend.explain(error))) from None
            except (TypeError, ValueError, OverflowError, RecursionError) as error:  # a cell that holds what it should not
                if isinstance(error, ShoestringError):
                    raise
                where = self.backend.url
                raise StorageError(f"{where}: what is stored cannot be read: {type(error).__name__}: {error}") from error
            time.sleep(pause * dice.uniform(0.5, 1.0))  # not all at the same moment again
            pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        engine = self._engines.pop(os.getpid(), None)
        if engine is not None:
            engine.dispose()
