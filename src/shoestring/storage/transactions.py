"""Database transactions that are atomic and are retried after transient errors.

Transient errors end by themselves: a dropped connection, a server that restarts, a lock that another program holds. After a pause
the whole transaction is tried again. An earlier try may have been carried out, with only its answer lost. So every write stores
something by which a second try recognizes the first: an idempotency key. If the error lasts longer than the wait limit, the call
raises ``StorageUnavailable``.

The wait limit is a minute. A caller that has other work to do meanwhile sets a shorter one: ``with wait_limit(seconds): ...``.

A server may accept a request and never answer. So a silent connection is cut off after ``silence_seconds``, and the transaction
is retried like after any other loss of a connection. After Ctrl-C that is a second: see ``is_late``.

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
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ShoestringError, StorageError, StorageUnavailable
from ..execution.signals import seconds_deferred
from .connections import Backend, Pool, join

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

DEFAULT_WAIT_SECONDS = 60.0
SHORT_WAIT_SECONDS = 1.0  # for a loop that keeps what it could not write, looks after its workers, and tries again
MIN_SILENCE_SECONDS = 10.0  # that a server may take for one answer, however short the wait limit is: it may be busy
SILENT_RECENTLY_SECONDS = 2.0  # after a server was silent, one who cannot wait does not ask it again
SILENT = "the server lets you connect and does not answer; check it, and restart it if it stands still"
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 1.0  # between two tries

pause_rng = random.Random()  # for random pauses, so that waiting processes do not all try at once

_wait_seconds: ContextVar[float] = ContextVar("shoestring_wait_seconds", default=DEFAULT_WAIT_SECONDS)
_strict: ContextVar[bool] = ContextVar("shoestring_strict_wait", default=False)
_hold_seconds: ContextVar[float] = ContextVar("shoestring_hold_seconds", default=DEFAULT_WAIT_SECONDS)

Result = TypeVar("Result")


# -- the wait limit ----------------------------------------------------------------------------------------------------


@contextmanager
def wait_limit(seconds: float, *, strict: bool = False) -> Iterator[None]:
    """Sets how long each storage call inside the block waits for a storage that does not answer.

    A server that is silent gets more time, since it may be busy, unless the limit is ``strict``.
    """
    before, strict_before = _wait_seconds.set(seconds), _strict.set(strict)
    try:
        yield
    finally:
        _strict.reset(strict_before)
        _wait_seconds.reset(before)


def wait_seconds() -> float:
    """The wait limit that holds here and now."""
    return _wait_seconds.get()


def silence_seconds() -> float:
    """How long a server may be silent here and now before its connection is cut off."""
    return wait_seconds() if is_strict() else max(wait_seconds(), MIN_SILENCE_SECONDS)


def is_strict() -> bool:
    """Whether a silent server gets no more time than the wait limit here and now."""
    return _strict.get()


def is_late() -> bool:
    """Whether Ctrl-C was pressed a second ago, and a step that it must not interrupt still waits for the storage."""
    deferred = seconds_deferred()
    return deferred is not None and deferred >= SHORT_WAIT_SECONDS


@contextmanager
def hold_limit(seconds: float) -> Iterator[None]:
    """Sets how long a worker may hold the ask lock before another one takes it over: a lease."""
    before = _hold_seconds.set(seconds)
    try:
        yield
    finally:
        _hold_seconds.reset(before)


def hold_seconds() -> float:
    """How long the ask lock may be held here and now."""
    return _hold_seconds.get()


class Suspension:
    """For how many seconds this process was suspended, as far as it was noticed (see ``watchdog``)."""

    seconds = 0.0


# -- databases ---------------------------------------------------------------------------------------------------------


class Database:
    """A backend together with the connections of this process, which all databases of the same address share."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._pool: Pool | None = None
        self._leave: Callable[[], Any] | None = None

    @property
    def pool(self) -> Pool:
        pool = self._pool
        if pool is None or pool.process != os.getpid():
            pool, self._leave = join(self, self.backend)
            self._pool, self.backend = pool, pool.backend
        return pool

    @property
    def engine(self) -> Engine:
        return self.pool.engine

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

        deadline, pause, backend, tries = time.monotonic() + wait_seconds(), FIRST_PAUSE_SECONDS, self.backend, 0
        losses = 0  # of connections
        if is_strict() and backend.was_silent_within(SILENT_RECENTLY_SECONDS):
            raise StorageUnavailable(f"{backend.url}: {SILENT}")
        while True:
            tries, suspended = tries + 1, Suspension.seconds
            try:
                with (
                    self.pool as pool,
                    pool.engine.connect().execution_options(**options) as connection,
                    backend.guard(connection),
                    lock(),
                    connection.begin(),
                ):
                    if losses:
                        backend.allow_slowness(connection, losses)
                    result = work(connection)
                pool.answered()
                return result
            except DBAPIError as error:
                if not backend.is_transient(error):
                    raise backend.explain(error) from None
                was_silent = backend.was_silent_within(SILENT_RECENTLY_SECONDS)
                # This process itself may have been suspended meanwhile, so that its time is over and its connection lost.
                deadline += Suspension.seconds - suspended
                losses += (lost := backend.has_lost_connection(error))
                may_be_suspension = tries == 1 and lost and not was_silent
                if (time.monotonic() > deadline and not may_be_suspension) or is_late():
                    raise StorageUnavailable(f"{backend.url}: {SILENT}" if was_silent else str(backend.explain(error))) from None
            except (TypeError, ValueError, OverflowError, RecursionError) as error:  # a cell with a value of a wrong kind
                if isinstance(error, ShoestringError):
                    raise
                raise StorageError(f"{backend.url}: what is stored cannot be read: {type(error).__name__}: {error}") from error
            time.sleep(pause * pause_rng.uniform(0.5, 1.0))
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connections of this process, unless another storage uses them. They are opened again when they are needed."""
        leave, self._pool, self._leave = self._leave, None, None
        if leave is not None:
            leave()
