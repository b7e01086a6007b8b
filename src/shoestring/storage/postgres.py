"""The PostgreSQL backend: a server for several machines, through psycopg 3.

A transaction that writes to a study locks the study's row first, so that the study's clock advances in the order of the commits.
Readers see one snapshot (REPEATABLE READ) and wait for nothing. If a worker is suspended in the middle of a transaction, the
server ends the transaction after half a second and releases its locks. The worker tries again when it goes on, and then gets more
time: it may be slow and not suspended, for example because another thread keeps Python's global lock.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from multiprocessing.context import get_spawning_popen
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ..errors import StorageError
from .address import HIDDEN, STORAGE_VARIABLE, ServerAddress, parse_server, pickles_may_hold_passwords
from .connections import Transaction
from .locks import MAX_HOLD
from .transactions import SHORT_WAIT_SECONDS, hold_seconds, is_strict, silence_seconds, wait_seconds
from .watchdog import Silence, SilenceGuard, cut_off, within

FIRST_WAIT_SECONDS = 3.0  # a wrong address is reported soon; later on, a server that restarts is waited for
MIN_CONNECT_SECONDS = 2.0  # for a new connection, however short the wait limit is: the server may be busy
LOCK_WAIT_SECONDS = 1  # for a row's lock in one try; the transaction is retried until the wait limit
MAX_IDLE_SECONDS = 0.5  # for an open transaction that does nothing, since its worker is suspended
IDLE_GROWTH, MOST_IDLE_SECONDS = 4.0, 8.0  # after a loss of the connection: the worker may be slow and not suspended
MIN_VERSION_WITH_IDLE_TIMEOUT = 140000  # of the server
CONNECT_OPTIONS = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip
CREATION_LOCK_KEY = 4_207_849_484  # of the lock under which tables and studies are created: a number that others do not use
MAX_MILLISECONDS = 2**31 - 1  # that a setting of the server can hold
ASK_LOCK_KEY = "hashtext('shoestring asking ' || current_schema())"

# SQLSTATE codes, or classes of them: a class is the first two characters of a code.
TRANSIENT_CODES = {
    "08": "the connection broke",
    "40001": "another transaction was in the way",
    "40P01": "another transaction was in the way",
    "55P03": "another program keeps a lock",
    "57P01": "the server was shut down",
    "57P02": "the server crashed",
    "57P03": "the server is starting up",
    "53300": "the server has no connection left",
    "25P03": "the transaction stood still for too long",
}
ADVICE = {
    "42501": "you may not do this there; ask for CREATE on the schema and for the tables' SELECT, INSERT, UPDATE, DELETE",
    "28": "the server does not let you in; check user and password",
    "3D000": "there is no such database; make it with: createdb",
    "53100": "the server's disk is full; nothing that was stored is lost: make room and go on",
    "53200": "the server is out of memory; nothing that was stored is lost",
    "25006": "the server only lets you read, as a standby does; give the address of the primary",
    "XX001": "the server's data are damaged; restore a backup",
    "XX002": "the server's index is damaged; try: reindexdb, or restore a backup",
}
NO_PASSWORD = (
    "the server does not let you in without a password; write it into the address. A storage that is sent to another process "
    "leaves its password behind: set SHOESTRING_STORAGE (the whole address) or PGPASSWORD there, or use a file ~/.pgpass"
)
REFUSED = (  # errors before there is a connection have no code: words in their message
    ("password authentication failed", ADVICE["28"]),
    ("no password supplied", NO_PASSWORD),
    ("no pg_hba.conf entry", ADVICE["28"]),
    ("does not exist", "there is no such user or database; make it with: createuser, createdb"),
    ("permission denied", ADVICE["28"]),
)


class PostgresServer:
    """A PostgreSQL database as a backend of ``SQLStorage``. Its address holds the password; only ``url`` may be shown.

    A pickle of it holds no password. Where it is opened again, the password is that of the same address in SHOESTRING_STORAGE, or
    in this process (also in a fork of it), or the one that PostgreSQL's own library finds: in PGPASSWORD, in ~/.pgpass.
    """

    read_options: ClassVar[Mapping[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    write_options: ClassVar[Mapping[str, Any]] = {}
    first_wait_seconds = FIRST_WAIT_SECONDS
    closes_before_fork = False

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        _known_addresses[self.url] = address
        self._silence = Silence()

    def __reduce__(self) -> tuple[Any, ...]:
        if pickles_may_hold_passwords() or get_spawning_popen() is not None:  # straight to a child process, as its argument
            return type(self), (self._address,)
        return _opened_again, (self.url,)

    @property
    def url(self) -> str:
        """The address without the password, and with those options alone that are known to hold no secret."""
        return self._address.shown

    # -- connections -------------------------------------------------------------------------------------------------

    @property
    def key(self) -> ServerAddress:
        return self._address

    def place(self) -> None:
        """A server is always the same one."""

    def guard(self, connection: Connection) -> SilenceGuard:
        return SilenceGuard(connection.connection.driver_connection, self._silence, silence_seconds(), is_strict())

    def was_silent_within(self, seconds: float) -> bool:
        return self._silence.was_within(seconds)

    def engine(self) -> Engine:
        address = self._address
        options: dict[str, Any] = {name: value for name, value in CONNECT_OPTIONS.items() if name not in dict(address.options)}
        options |= address.secret_options  # as arguments: the repr of an engine shows the options of its URL
        if address.password is not None:
            options["password"] = address.password
        try:
            engine = create_engine(
                _without_login(address),
                connect_args=options,
                isolation_level="READ COMMITTED",
                use_native_hstore=False,  # one query less for a new connection
                poolclass=QueuePool,
                pool_size=4,
                max_overflow=-1,  # one for each thread at work
            )
        except ImportError as error:
            advice = "PostgreSQL needs psycopg, which is not there: pip install 'shoestring[postgres]'"
            raise StorageError(f"{advice} ({error})") from None
        silence = self._silence
        event.listen(engine, "do_connect", lambda dialect, record, args, options: _connect(args, options, silence))
        event.listen(engine, "connect", lambda connection, record: _on_connect(connection, silence))
        return engine

    def set_up(self, engine: Engine) -> None:
        """Nothing to do."""

    def start_clock(self, read: Transaction, write: Transaction) -> None:
        """Nothing to do: all processes ask the server for the time."""

    def write_lock(self) -> AbstractContextManager[None]:
        """None: the server has a queue for those who wait for a lock."""
        return nullcontext()

    def flush(self) -> None:
        """Nothing to do: the server flushes before a commit returns."""

    def merge_log(self, engine: Engine) -> None:
        """Nothing to do: the server does so."""

    def lock_creation(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION_LOCK_KEY})")

    @contextmanager
    def ask_lock(self, engine: Engine, study: int) -> Iterator[None]:
        """An advisory lock of a connection, which ends with the connection.

        The connection does nothing while the lock is held. If that takes longer than half a lease, because the worker is
        suspended, the server ends the connection, and the next one gets the lock. Who has waited for a lease goes on without it.
        """
        lease = hold_seconds()
        with ExitStack() as at_the_end:
            with suppress(SQLAlchemyError):  # it took too long, or there is no server: the next write will report that
                connection = at_the_end.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
                at_the_end.callback(self._release_ask_lock, connection, study)  # first, in case of an interruption in between
                limits, raw = _set_timeouts(connection, lease, MAX_HOLD * lease), connection.connection.driver_connection
                with SilenceGuard(raw, self._silence, lease + silence_seconds()):
                    connection.exec_driver_sql(f"SELECT {limits}, pg_advisory_lock({ASK_LOCK_KEY}, %s)", (study,))
            yield

    def _release_ask_lock(self, connection: Connection, study: int) -> None:
        try:
            if self.was_silent_within(SHORT_WAIT_SECONDS):
                connection.invalidate()
                return
            limits, raw = _set_timeouts(connection, LOCK_WAIT_SECONDS, 0.0), connection.connection.driver_connection
            with SilenceGuard(raw, self._silence, SHORT_WAIT_SECONDS, strict=True):
                connection.exec_driver_sql(f"SELECT {limits}, pg_advisory_unlock({ASK_LOCK_KEY}, %s)", (study,))
        except SQLAlchemyError:  # also if the connection is of no use any more
            connection.invalidate()  # the lock ends with the connection

    # -- errors ------------------------------------------------------------------------------------------------------

    def is_transient(self, error: DBAPIError) -> bool:
        if _is_unconnected(error):
            return not any(words in str(error.orig) for words, _ in REFUSED)
        return error.connection_invalidated or _look_up(TRANSIENT_CODES, _code(error)) is not None

    def has_lost_connection(self, error: DBAPIError) -> bool:
        return error.connection_invalidated or _is_unconnected(error)

    def allow_slowness(self, connection: Connection, losses: int | None = None) -> None:
        seconds = 0.0 if losses is None else min(MAX_IDLE_SECONDS * IDLE_GROWTH**losses, MOST_IDLE_SECONDS)  # 0: no limit
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{_milliseconds(seconds)}ms'")

    def explain(self, error: DBAPIError) -> StorageError:
        message = str(error.orig).strip()
        code = "25006" if "during recovery" in message else _code(error)  # a standby has several codes for it
        advice = _look_up(TRANSIENT_CODES, code) or _look_up(ADVICE, code) or "the database refused"
        if self.has_lost_connection(error):
            unreachable = "the server cannot be reached; check that it runs and that host and port are right"
            advice = next((advice for words, advice in REFUSED if words in message), unreachable)
        return StorageError(f"{self.url}: {advice} ({self._without_secrets(message)})")

    def _without_secrets(self, text: str) -> str:
        """The message of a driver, in case that it repeats a password."""
        for secret in self._address.secrets:
            text = text.replace(secret, HIDDEN)
        return text

    # -- maintenance -------------------------------------------------------------------------------------------------

    def backup_before_upgrade(self, version: int) -> None:
        """Not needed: PostgreSQL changes tables within the transaction, as a whole or not at all."""

    def backup(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        command = f"pg_dump --format=custom --file={os.fspath(path)} {self.url}"
        raise StorageError(f"{self.url}: PostgreSQL makes its own backups: {command}")

    def integrity_errors(self, connection: Connection) -> list[str]:
        """None: PostgreSQL has tools of its own for its files (pg_amcheck)."""
        return []


_known_addresses: dict[str, ServerAddress] = {}  # of this process, by what is shown of them


def _opened_again(url: str) -> PostgresServer:
    """The server of a pickle, with the password that this process knows."""
    given = parse_server(os.environ.get(STORAGE_VARIABLE, ""))
    address = given if given is not None and given.shown == url else _known_addresses.get(url) or parse_server(url)
    if address is None:
        raise StorageError("this storage cannot be opened again: its address cannot be read; open it by its address")
    return PostgresServer(address)


def _without_login(address: ServerAddress) -> URL:
    """The URL for SQLAlchemy, with nothing in it that must not be shown."""
    query: dict[str, tuple[str, ...]] = {}
    for name, value in address.harmless_options:
        query[name] = (*query.get(name, ()), value)
    named = {name: values[0] if len(values) == 1 else values for name, values in query.items()}
    host = address.host.strip("[]") or None
    return URL.create("postgresql+psycopg", address.user or None, None, host, address.port, address.database or None, named)


def _set_timeouts(connection: Connection, lock: float, idle: float) -> str:
    """Part of a query that sets how many seconds the connection waits for locks, and after how many idle ones it ends."""
    wait = f"set_config('lock_timeout', '{_milliseconds(lock)}', false)"
    if connection.connection.driver_connection.info.server_version < MIN_VERSION_WITH_IDLE_TIMEOUT:  # type: ignore[union-attr]
        return wait
    return f"{wait}, set_config('idle_session_timeout', '{_milliseconds(idle)}', false)"


def _milliseconds(seconds: float) -> int:
    return min(max(1, round(1000 * seconds)), MAX_MILLISECONDS) if seconds else 0


def _connect(args: Any, options: dict[str, Any], silence: Silence) -> Any:
    """A new connection. A server that accepts it and does not answer is not waited for longer than the wait limit.

    psycopg waits for 2 s or more, and cannot be interrupted everywhere. So a thread waits for it.
    """
    import psycopg

    allowed = min(int(options["connect_timeout"]), wait_seconds() if is_strict() else max(MIN_CONNECT_SECONDS, wait_seconds()))
    options["connect_timeout"] = max(2, round(allowed))
    connect = _connection_class().connect

    def late() -> Exception:
        silence.at = time.monotonic()
        return psycopg.OperationalError(f"connection timeout expired: no answer within {allowed:g} s")

    return within(allowed, lambda: connect(*args, **options), lambda connection: connection.close(), late)


@cache
def _connection_class() -> Any:
    """psycopg's connection, but Ctrl-C ends a query at once: psycopg would ask the server to cancel it, and wait for that."""
    import psycopg
    from psycopg import waiting

    # The pause between two looks at the socket: its name depends on the version. Without it the processor would be busy.
    pause = list(inspect.signature(psycopg.Connection.wait).parameters.values())[2]

    class InterruptibleConnection(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            if not args:
                options.setdefault(pause.name, pause.default)
            try:
                return waiting.wait(gen, self.pgconn.socket, *args, **options)
            except KeyboardInterrupt:
                cut_off(self)
                raise

    return InterruptibleConnection


def _on_connect(connection: Any, silence: Silence) -> None:
    with SilenceGuard(connection, silence, silence_seconds(), is_strict()):
        connection.autocommit = True
        connection.execute(
            f"SET lock_timeout = '{LOCK_WAIT_SECONDS}s'; "
            f"SET idle_in_transaction_session_timeout = '{_milliseconds(MAX_IDLE_SECONDS)}ms'"
        )
        connection.autocommit = False


def _is_unconnected(error: DBAPIError) -> bool:
    """Whether the connection could not be made."""
    return isinstance(error, OperationalError) and _code(error) == "" and not error.connection_invalidated


def _code(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _look_up(table: Mapping[str, str], code: str) -> str | None:
    return table.get(code, table.get(code[:2]))
