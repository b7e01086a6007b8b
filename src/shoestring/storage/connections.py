"""The connections of this process to databases: one pool for each database, shared by all storages that use it.

A pool is closed when the last storage that uses it is closed or forgotten. So a program may open the same study as often as it
likes. A storage that is used after it was closed opens the pool again.

A fork copies the memory of a process, but only the thread that forks. So in the child a lock that another thread held stays
locked, and a connection is shared with the parent. Three things are done about it:

    before a fork   Transactions of other threads are waited for, for a second at most. Then connections to SQLite files are
                    closed: SQLite counts its locks in memory, and the count of the parent would be wrong in the child. They are
                    opened again when they are needed.
    in the child    There are new pools. The old ones are neither used nor closed, since that would end the parent's sessions.
    an error        for a SQLite file on which another thread was still at work at the fork: it cannot be used in the child.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..errors import StorageError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

MAX_FORK_WAIT_SECONDS = 1.0  # for transactions of other threads; one takes some milliseconds
POLL_SECONDS = 0.0005


Transaction = Callable[[Callable[["Connection"], Any]], Any]  # does some work in a transaction


class Backend(Protocol):
    """What differs between SQLite and PostgreSQL."""

    @property
    def url(self) -> str:
        """The address, without a password."""
        ...

    @property
    def key(self) -> Hashable:
        """What all backends of the same database have in common."""
        ...

    @property
    def closes_before_fork(self) -> bool:
        """Whether a child process must not inherit connections."""
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

    def place(self) -> Hashable:
        """What tells a file from another one that has replaced it under the same name; None if there is none."""
        ...

    def guard(self, connection: Connection) -> AbstractContextManager[Any]:
        """Inside, a server that does not answer for too long is an error."""
        ...

    def was_silent_within(self, seconds: float) -> bool:
        """Whether the server was cut off in the last seconds since it did not answer."""
        ...

    def is_transient(self, error: DBAPIError) -> bool:
        """Whether the error may end by itself, so that the transaction is worth a retry."""
        ...

    def has_lost_connection(self, error: DBAPIError) -> bool:
        """Whether the error is that of a connection, which could not be made or is lost."""
        ...

    def allow_slowness(self, connection: Connection, losses: int | None = None) -> None:
        """Give a transaction more time than usual: after so many tries whose connection was lost, or since it has much to do."""
        ...

    def explain(self, error: DBAPIError) -> StorageError:
        """An error that says what went wrong, where, and how to fix it."""
        ...

    def set_up(self, engine: Engine) -> None:
        """Settings of the database that are made once, outside of a transaction."""
        ...

    def start_clock(self, read: Transaction, write: Transaction) -> None:
        """Make ``schema.now`` the same for all processes, once there are tables."""
        ...

    def write_lock(self) -> AbstractContextManager[Any]:
        """A lock that writers wait for before they begin a transaction, where the database's own lock is not enough."""
        ...

    def flush(self) -> None:
        """Return when all that was committed is on the disk."""
        ...

    def merge_log(self, engine: Engine) -> None:
        """Where a file has a log beside it, copy the log to the file."""
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


class Pool:
    """The connections of this process to one database. As a context manager: a transaction of this thread is under way.

    users    one object for each storage that uses it;   at_work  the threads that are in a transaction
    place    which file it is, once there was a connection: another file of the same name needs another pool
    """

    def __init__(self, backend: Backend) -> None:
        self.backend, self.key, self.process = backend, backend.key, os.getpid()
        self.engine = backend.engine()
        self.place: Hashable = None
        self.users: set[object] = set()
        self.at_work: set[int] = set()
        self._abandoned: list[Any] = []  # pools of SQLAlchemy that were closed while a thread still had a connection

    def __enter__(self) -> Pool:
        thread = threading.get_ident()
        while True:
            self.at_work.add(thread)  # first, and then a look whether there is a fork: which looks in the other order
            if not _Forks.under_way or self.process != os.getpid():
                return self
            self.at_work.discard(thread)
            time.sleep(POLL_SECONDS)

    def __exit__(self, *error: object) -> None:
        self.at_work.discard(threading.get_ident())
        if self._abandoned and not self.at_work:
            while self._abandoned:
                self._abandoned.pop().dispose()

    def is_same_place(self) -> bool:
        return self.place is None or self.place == self.backend.place()

    def answered(self) -> None:
        """A transaction has ended well."""
        if self.place is None:
            self.place = self.backend.place()

    def close(self) -> None:
        """Close all connections; those that are in use when they are given back."""
        if self.at_work:
            self._abandoned.append(self.engine.pool)
        self.engine.dispose()

    def close_before_fork(self) -> None:
        """Wait until no other thread is at work, and close all connections. If that takes too long, the child cannot use them."""
        deadline = time.monotonic() + MAX_FORK_WAIT_SECONDS
        while self.at_work and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if self.at_work or self.engine.pool.checkedout():  # type: ignore[attr-defined]
            _Forks.busy.add(self.key)
        else:
            self.engine.dispose()


class _Forks:
    """The forks of this process that are under way, and what its parent has left."""

    under_way = 0
    busy: ClassVar[set[Hashable]] = set()  # keys of databases on which threads are at work at the fork
    unusable: ClassVar[set[Hashable]] = set()  # keys of those on which threads of the parent were
    inherited: ClassVar[list[Pool]] = []  # kept for ever, so that nothing closes the parent's connections


_lock = threading.RLock()  # a storage may be forgotten, and its pool closed, at any moment of the same thread
_pools: dict[Hashable, Pool] = {}


def join(user: object, backend: Backend) -> tuple[Pool, weakref.finalize[Any, Any]]:
    """The pool of a database, shared by its users, and a function by which this user leaves it: called when it is forgotten."""
    with _lock:
        if backend.key in _Forks.unusable:
            raise StorageError(
                f"{backend.url}: another thread was at work on it when this process was forked, so it cannot be used here; "
                'start the process in another way, as multiprocessing.get_context("spawn") does, or fork while no thread uses it'
            )
        pool = _pools.get(backend.key)
        if pool is None or pool.process != os.getpid() or not pool.is_same_place():
            pool = _pools[backend.key] = Pool(backend)
        token = object()
        pool.users.add(token)
        leave = weakref.finalize(user, _leave, pool, token)
        leave.atexit = False
        return pool, leave


def _leave(pool: Pool, token: object) -> None:
    if pool.process != os.getpid():
        return
    with _lock:
        pool.users.discard(token)
        if pool.users:
            return
        if _pools.get(pool.key) is pool:
            del _pools[pool.key]
    pool.close()


# -- forks -------------------------------------------------------------------------------------------------------------


def _before_fork() -> None:
    with _lock:
        _Forks.under_way += 1
        pools = [pool for pool in _pools.values() if pool.backend.closes_before_fork and pool.process == os.getpid()]
    for pool in pools:
        with suppress(Exception):
            pool.close_before_fork()


def _after_fork_in_parent() -> None:
    with _lock:
        _Forks.under_way -= 1
        if not _Forks.under_way:
            _Forks.busy.clear()


def _after_fork_in_child() -> None:
    global _lock, _pools
    _lock, _Forks.under_way = threading.RLock(), 0
    _Forks.unusable |= _Forks.busy
    _Forks.busy.clear()
    _Forks.inherited += list(_pools.values())
    _pools = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
