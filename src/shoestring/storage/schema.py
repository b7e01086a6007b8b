"""The database schema: tables, their version, and the migrations from older versions.

    studies   the settings of a study, its clock, and the totals of its trials
    trials    each trial as JSON, and beside it the columns for searches: when it changed, its value, its lease
    queue     the configs to evaluate next as JSON, by position
    receipts  idempotency keys of calls that were carried out: a call that is repeated since its answer was lost does nothing
    meta      the version of the schema

The column of a checksum is named ``seal`` in the database, and ``checksum`` here. A study's row has two more: ``trials_checksum``
covers the checksums of all its trials (see ``rows.link``), and ``checksum_clock`` is the study's clock when that was written. A
program of version 2 that is still running advances the clock only. So the checksum is compared only where both clocks are equal.

To make a new version, raise VERSION by one, and add to MIGRATIONS, under the old version, a function of a connection that changes
the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    literal_column,
    select,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ..errors import StorageError

VERSION = 3

SQLITE_CLOCK = "shoestring_clock"  # a function that each connection defines
TIMES_OF_DAY = {  # seconds since 1970 in SQL
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::double precision",
}
CLOCKS = {"sqlite": f"{SQLITE_CLOCK}()", "postgresql": TIMES_OF_DAY["postgresql"]}  # of leases: see the module ``clocks``


class now(FunctionElement[float]):
    """The time by the clock of the database, which is the same for all workers. In SQLite it is a steady clock."""

    type = Double()
    inherit_cache = True


class time_of_day(FunctionElement[float]):
    """The time of day of the database, for people to read. It may be set, so that nothing depends on it."""

    type = Double()
    inherit_cache = True


@compiles(now)
def _clock(element: now, compiler: Any, **options: Any) -> str:
    return CLOCKS[compiler.dialect.name]


@compiles(time_of_day)
def _time_of_day(element: time_of_day, compiler: Any, **options: Any) -> str:
    return TIMES_OF_DAY[compiler.dialect.name]


tables = MetaData()

studies = Table(
    "studies",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("settings", Text, nullable=False),
    Column("seal", BigInteger, key="checksum", nullable=False),  # of name, settings and halted
    Column("halted", Text),  # JSON
    Column("halts", Integer, nullable=False, server_default="0"),  # for running programs that know version 1 only
    Column("seconds", Double, nullable=False),
    Column("clock", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("made_by", Text, nullable=False),  # the idempotency key of the call that made it
    Column("trials", Integer, nullable=False),
    Column("counted", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    Column("spent", Double, nullable=False),
    Column("reserved", Double, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("trials_checksum", BigInteger),
    Column("checksum_clock", BigInteger),
    sqlite_autoincrement=True,  # the id of a deleted study is not used again
)

trials = Table(
    "trials",
    tables,
    Column("study", Integer, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("changed", BigInteger, nullable=False),
    Column("opened", BigInteger, nullable=False),
    Column("abandoned", BigInteger),
    Column("closed", BigInteger),
    Column("state", Text, nullable=False),
    Column("value", Double),  # for the search for the best trial; the exact value is in the record
    Column("cost", Double),
    Column("expected", Double),
    Column("at_target", Boolean, nullable=False),
    Column("worker", Text),
    Column("token", Text, nullable=False),
    Column("asked", Double, nullable=False),
    Column("leased_until", Double),
    Column("record", Text, nullable=False),
    Column("seal", BigInteger, key="checksum", nullable=False),  # of record and clocks
)
Index("trials_by_change", trials.c.study, trials.c.changed)
Index("trials_by_value", trials.c.study, trials.c.state, trials.c.at_target, trials.c.value, trials.c.number)
RUNNING = trials.c.state == literal_column("'running'")  # a literal, so that the database can use the partial index
Index("trials_by_lease", trials.c.study, trials.c.leased_until, sqlite_where=RUNNING, postgresql_where=RUNNING)

queue = Table(
    "queue",
    tables,
    Column("id", Integer, primary_key=True),
    Column("study", Integer, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("entry", Text, nullable=False),
    Column("seal", BigInteger, key="checksum", nullable=False),
    sqlite_autoincrement=True,  # a trial takes its entry by id: an old id must never mean another entry
)
Index("queue_by_position", queue.c.study, queue.c.position)

idempotency_keys = Table(
    "receipts", tables, Column("key", Text, primary_key=True), Column("at", Double, nullable=False, index=True)
)

meta = Table("meta", tables, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))


# -- versions ----------------------------------------------------------------------------------------------------------


def add_halts_column(connection: Connection) -> None:
    """From version 1 to 2: how many times a study was asked to stop."""
    connection.execute(text("ALTER TABLE studies ADD COLUMN halts INTEGER NOT NULL DEFAULT 0"))


def add_trials_checksum(connection: Connection) -> None:
    """From version 2 to 3: a checksum over all trials of a study. It is computed when the study is written to next."""
    there = {column["name"] for column in inspect(connection).get_columns("studies")}
    for name in ("trials_checksum", "checksum_clock"):
        if name not in there:
            connection.execute(text(f"ALTER TABLE studies ADD COLUMN {name} BIGINT"))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: add_halts_column, 2: add_trials_checksum}


def find_version(connection: Connection, where: str) -> int | None:
    """The version of the tables in the database; None if there are no tables."""
    found = set(inspect(connection).get_table_names()) & set(tables.tables)
    if not found:
        return None
    version = connection.execute(select(meta.c.value).where(meta.c.name == "version")).scalar() if "meta" in found else None
    if not (isinstance(version, str) and version.isdecimal()):
        theirs = f"tables of another program ({', '.join(sorted(found))})"
        raise StorageError(f"{where} holds {theirs}; give Shoestring a file, a database or a schema of its own")
    return int(version)


def require_readable(version: int | None, where: str) -> None:
    """A StorageError for tables of a newer version."""
    if version is not None and version > VERSION:
        raise StorageError(
            f"{where} was written by a newer Shoestring: its tables are of version {version}, this one reads up to {VERSION}; "
            "nothing was changed; upgrade with: pip install --upgrade shoestring"
        )


def create_tables(connection: Connection) -> None:
    tables.create_all(connection, checkfirst=False)
    connection.execute(meta.insert(), {"name": "version", "value": str(VERSION)})


def migrate(connection: Connection, version: int) -> None:
    """From an older version to this one."""
    for older in range(version, VERSION):
        MIGRATIONS[older](connection)
    connection.execute(meta.update().where(meta.c.name == "version").values(value=str(VERSION)))
