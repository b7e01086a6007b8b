"""A server for several machines: PostgreSQL, by psycopg 3.

Whoever writes to a study locks its row first, so that its clock moves in the order of the commits. Readers see one moment
(REPEATABLE READ) and wait for nobody. A worker that is suspended in the middle of a transaction loses it after a while, and with
it the lock: the others go on.
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
from .patience import seconds_of_patience

FIRST_PATIENCE = 3.0  # seconds: a wrong address is found out soon, a server that restarts later on is waited for
WAIT = 1  # seconds for a lock, which is then tried for again, as long as there is patience
STANDSTILL = 60  # seconds that a transaction, or the one whose turn it is, may stand still
CONNECT = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip
ALONE = 4_207_849_484  # the key of the lock under which tables and studies are made: any number that others do not use
TURN = "hashtext('shoestring asking ' || current_schema())"

# SQLSTATE classes and codes; a class is its first two characters.
PASSES = {
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
MENDING = {
    "42501": "you may not do this there; ask for CREATE on the schema and for the tables' SELECT, INSERT, UPDATE, DELETE",
    "28": "the server does not let you in; check user and password",
    "3D000": "there is no such database; make it with: createdb",
    "53100": "the server's disk is full; nothing that was stored is lost: make room and go on",
    "53200": "the server is out of memory; nothing that was stored is lost",
    "25006": "the server only lets you read, as a standby does; give the address of the primary",
    "XX001": "the server's data are damaged; restore a backup",
    "XX002": "the server's index is damaged; try: reindexdb, or restore a backup",
}
REFUSED = (  # what a server says before there is a connection comes without a code
    ("password authentication failed", MENDING["28"]),
    ("no password supplied", MENDING["28"]),
    ("no pg_hba.conf entry", MENDING["28"]),
    ("does not exist", "there is no such user or database; make it with: createuser, createdb"),
    ("permission denied", MENDING["28"]),
)


class PostgresServer:
    """Its address holds the password and is not to be shown: ``url`` is."""

    reading: ClassVar[Mapping[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    writing: ClassVar[Mapping[str, Any]] = {}
    first_patience = FIRST_PATIENCE

    def __init__(self, address: URL) -> None:
        self._address = address.set(drivername="postgresql+psycopg")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._address,)

    @property
    def url(self) -> str:
        """Without the password, and without an option that is one."""
        full = self._address
        query = {name: value for name, value in full.query.items() if not _secret(name)}
        return URL.create("postgresql", full.username, None, full.host, full.port, full.database, query).render_as_string()

    # -- connections -------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        try:
            engine = create_engine(
                self._address,
                connect_args={name: value for name, value in CONNECT.items() if name not in self._address.query},
                isolation_level="READ COMMITTED",
                use_native_hstore=False,  # one question less for a new connection
                poolclass=QueuePool,
                pool_size=4,
                max_overflow=-1,  # as many as there are threads at work
            )
        except ImportError as error:
            mending = "PostgreSQL needs psycopg, which is not there: pip install 'shoestring[postgres]'"
            raise StorageError(f"{mending} ({error})") from None
        event.listen(engine, "do_connect", _hurry)
        event.listen(engine, "connect", _connected)
        return engine

    def settle(self, engine: Engine) -> None:
        """There is nothing to set up."""

    def door(self) -> AbstractContextManager[None]:
        """The server lets in whoever is next."""
        return nullcontext()

    def flush(self) -> None:
        """The server has done so when a commit returns."""

    def alone(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ALONE})")

    @contextmanager
    def turn(self, engine: Engine, study: int) -> Iterator[None]:
        """By a lock of a connection's own, which ends with it."""
        with ExitStack() as until_the_end:
            with suppress(SQLAlchemyError):  # it took too long, or there is no server: whoever writes next will hear of it
                connection = until_the_end.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
                until_the_end.callback(_give_up_turn, connection, study)  # first, should an interruption come in between
                connection.exec_driver_sql(f"SELECT {wait_for(STANDSTILL)}, pg_advisory_lock({TURN}, %s)", (study,))
            yield

    # -- failures ----------------------------------------------------------------------------------------------------

    def passes(self, error: DBAPIError) -> bool:
        if _unconnected(error):
            return not any(words in str(error.orig) for words, _ in REFUSED)
        return error.connection_invalidated or _of(PASSES, _code(error)) is not None

    def explain(self, error: DBAPIError) -> StorageError:
        said = str(error.orig).strip()
        code = "25006" if "during recovery" in said else _code(error)  # what a standby says depends on how one begins
        mending = _of(PASSES, code) or _of(MENDING, code) or "the database refused"
        if _unconnected(error) or error.connection_invalidated:
            unreachable = "the server cannot be reached; check that it runs and that host and port are right"
            mending = next((mending for words, mending in REFUSED if words in said), unreachable)
        return StorageError(f"{self.url}: {mending} ({self._without_secrets(said)})")

    def _without_secrets(self, text: str) -> str:
        """A driver should not repeat a password, but then it might."""
        hidden = [value for name, value in self._address.query.items() if _secret(name)]
        for secret in (self._address.password, *hidden):
            text = text.replace(secret, "***") if isinstance(secret, str) and secret else text
        return text

    # -- upkeep ------------------------------------------------------------------------------------------------------

    def keep_copy(self, version: int) -> None:
        """None is needed: changes of tables are part of the transaction here, and happen wholly or not at all."""

    def copy(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        command = f"pg_dump --format=custom --file={os.fspath(path)} {self.url}"
        raise StorageError(f"{self.url}: PostgreSQL makes its own backups: {command}")

    def examine(self, connection: Connection) -> list[str]:
        """PostgreSQL looks after its files itself (pg_amcheck)."""
        return []


def _secret(option: str) -> bool:
    return any(word in option for word in ("password", "secret", "scram"))


def wait_for(seconds: float) -> str:
    """Part of a query, after which locks are waited for so long."""
    return f"set_config('lock_timeout', '{seconds}s', false)"


def _hurry(dialect: Any, record: Any, args: Any, options: dict[str, Any]) -> None:
    """Where there is little patience, a server that does not even refuse is not waited for any longer; 2 s are the least."""
    options["connect_timeout"] = max(2, min(int(options["connect_timeout"]), round(seconds_of_patience())))


def _connected(connection: Any, record: Any) -> None:
    connection.autocommit = True
    connection.execute(f"SET lock_timeout = '{WAIT}s'; SET idle_in_transaction_session_timeout = '{STANDSTILL}s'")
    connection.autocommit = False


def _give_up_turn(connection: Connection, study: int) -> None:
    try:
        connection.exec_driver_sql(f"SELECT {wait_for(WAIT)}, pg_advisory_unlock({TURN}, %s)", (study,))
    except SQLAlchemyError:  # also one that says that the connection is of no use any more
        connection.invalidate()  # with the connection, the lock is gone


def _unconnected(error: DBAPIError) -> bool:
    """Whether no connection came about."""
    return isinstance(error, OperationalError) and _code(error) == "" and not error.connection_invalidated


def _code(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _of(table: Mapping[str, str], code: str) -> str | None:
    return table.get(code, table.get(code[:2]))
