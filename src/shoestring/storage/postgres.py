"""The PostgreSQL backend: a server for several machines, through psycopg 3.

A transaction that writes to a study locks the study's row first, so that the study's clock advances in the order of the commits.
Readers see one snapshot (REPEATABLE READ) and wait for nothing. If a worker is suspended in the middle of a transaction, the
server ends the transaction after a while and releases its locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ..errors import StorageError
from .transactions import wait_seconds

FIRST_WAIT_SECONDS = 3.0  # a wrong address is reported soon; later on, a server that restarts is waited for
LOCK_WAIT_SECONDS = 1  # for a row's lock in one try; the transaction is retried until the wait limit
MAX_IDLE_SECONDS = 60  # for an open transaction that does nothing, and for the holder of the ask lock
CONNECT_OPTIONS = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip
CREATION_LOCK_KEY = 4_207_849_484  # of the lock under which tables and studies are created: a number that others do not use
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
REFUSED = (  # errors before there is a connection have no code: words in their message
    ("password authentication failed", ADVICE["28"]),
    ("no password supplied", ADVICE["28"]),
    ("no pg_hba.conf entry", ADVICE["28"]),
    ("does not exist", "there is no such user or database; make it with: createuser, createdb"),
    ("permission denied", ADVICE["28"]),
)


class PostgresServer:
    """A PostgreSQL database as a backend of ``SQLStorage``. Its address holds the password; only ``url`` may be shown."""

    read_options: ClassVar[Mapping[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    write_options: ClassVar[Mapping[str, Any]] = {}
    first_wait_seconds = FIRST_WAIT_SECONDS

    def __init__(self, address: URL) -> None:
        self._address = address.set(drivername="postgresql+psycopg")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._address,)

    @property
    def url(self) -> str:
        """The address without the password, and without options that hold a secret."""
        full = self._address
        query = {name: value for name, value in full.query.items() if not _is_secret(name)}
        return URL.create("postgresql", full.username, None, full.host, full.port, full.database, query).render_as_string()

    # -- connections -------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        try:
            engine = create_engine(
                self._address,
                connect_args={name: value for name, value in CONNECT_OPTIONS.items() if name not in self._address.query},
                isolation_level="READ COMMITTED",
                use_native_hstore=False,  # one query less for a new connection
                poolclass=QueuePool,
                pool_size=4,
                max_overflow=-1,  # one for each thread at work
            )
        except ImportError as error:
            advice = "PostgreSQL needs psycopg, which is not there: pip install 'shoestring[postgres]'"
            raise StorageError(f"{advice} ({error})") from None
        event.listen(engine, "do_connect", _limit_connect_timeout)
        event.listen(engine, "connect", _on_connect)
        return engine

    def set_up(self, engine: Engine) -> None:
        """Nothing to do."""

    def write_lock(self) -> AbstractContextManager[None]:
        """None: the server has a queue for those who wait for a lock."""
        return nullcontext()

    def flush(self) -> None:
        """Nothing to do: the server flushes before a commit returns."""

    def lock_creation(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION_LOCK_KEY})")

    @contextmanager
    def ask_lock(self, engine: Engine, study: int) -> Iterator[None]:
        """An advisory lock of a connection, which ends with the connection."""
        with ExitStack() as at_the_end:
            with suppress(SQLAlchemyError):  # it took too long, or there is no server: the next write will report that
                connection = at_the_end.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
                at_the_end.callback(_release_ask_lock, connection, study)  # first, in case of an interruption in between
                wait = _set_lock_timeout(MAX_IDLE_SECONDS)
                connection.exec_driver_sql(f"SELECT {wait}, pg_advisory_lock({ASK_LOCK_KEY}, %s)", (study,))
            yield

    # -- errors ------------------------------------------------------------------------------------------------------

    def is_transient(self, error: DBAPIError) -> bool:
        if _is_unconnected(error):
            return not any(words in str(error.orig) for words, _ in REFUSED)
        return error.connection_invalidated or _look_up(TRANSIENT_CODES, _code(error)) is not None

    def explain(self, error: DBAPIError) -> StorageError:
        message = str(error.orig).strip()
        code = "25006" if "during recovery" in message else _code(error)  # a standby has several codes for it
        advice = _look_up(TRANSIENT_CODES, code) or _look_up(ADVICE, code) or "the database refused"
        if _is_unconnected(error) or error.connection_invalidated:
            unreachable = "the server cannot be reached; check that it runs and that host and port are right"
            advice = next((advice for words, advice in REFUSED if words in message), unreachable)
        return StorageError(f"{self.url}: {advice} ({self._without_secrets(message)})")

    def _without_secrets(self, text: str) -> str:
        """The message of a driver, in case that it repeats a password."""
        hidden = [value for name, value in self._address.query.items() if _is_secret(name)]
        for secret in (self._address.password, *hidden):
            text = text.replace(secret, "***") if isinstance(secret, str) and secret else text
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


def _is_secret(option: str) -> bool:
    return any(word in option for word in ("password", "secret", "scram"))


def _set_lock_timeout(seconds: float) -> str:
    """Part of a query that sets how long the connection waits for locks."""
    return f"set_config('lock_timeout', '{seconds}s', false)"


def _limit_connect_timeout(dialect: Any, record: Any, args: Any, options: dict[str, Any]) -> None:
    """Do not wait for a silent server longer than the wait limit; psycopg takes 2 s or more."""
    options["connect_timeout"] = max(2, min(int(options["connect_timeout"]), round(wait_seconds())))


def _on_connect(connection: Any, record: Any) -> None:
    connection.autocommit = True
    connection.execute(
        f"SET lock_timeout = '{LOCK_WAIT_SECONDS}s'; SET idle_in_transaction_session_timeout = '{MAX_IDLE_SECONDS}s'"
    )
    connection.autocommit = False


def _release_ask_lock(connection: Connection, study: int) -> None:
    try:
        wait = _set_lock_timeout(LOCK_WAIT_SECONDS)
        connection.exec_driver_sql(f"SELECT {wait}, pg_advisory_unlock({ASK_LOCK_KEY}, %s)", (study,))
    except SQLAlchemyError:  # also if the connection is of no use any more
        connection.invalidate()  # the lock ends with the connection


def _is_unconnected(error: DBAPIError) -> bool:
    """Whether the connection could not be made."""
    return isinstance(error, OperationalError) and _code(error) == "" and not error.connection_invalidated


def _code(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _look_up(table: Mapping[str, str], code: str) -> str | None:
    return table.get(code, table.get(code[:2]))
