"""The tables of a database, their version, and the steps from older versions.

    studies   what a study was made with, its clock, and what its trials amount to
    trials    the record of each as JSON, and beside it what is searched for: when it changed, its value, its lease
    queue     configs that wait to be asked, as JSON, by position
    receipts  keys of calls that were carried out: one that is repeated because its answer was lost is not done twice
    meta      the version

A new version: VERSION one higher, and in STEPS, under the old one, a function of a connection that makes the difference.
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

VERSION = 2

CLOCKS = {  # seconds since 1970: the one place where time is read
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::double precision",
}


class now(FunctionElement[float]):
    """The database's clock at this moment, the same for all workers whatever their own clocks say."""

    type = Double()
    inherit_cache = True


@compiles(now)
def _clock(element: now, compiler: Any, **options: Any) -> str:
    return CLOCKS[compiler.dialect.name]


tables = MetaData()

studies = Table(
    "studies",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("settings", Text, nullable=False),
    Column("seal", BigInteger, nullable=False),  # of the texts
    Column("halted", Text),  # JSON
    Column("halts", Integer, nullable=False, server_default="0"),  # for programs of version 1 that are still running
    Column("seconds", Double, nullable=False),
    Column("clock", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("made_by", Text, nullable=False),  # the key of the call that made it
    Column("trials", Integer, nullable=False),
    Column("counted", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    Column("spent", Double, nullable=False),
    Column("reserved", Double, nullable=False),
    Column("waiting", Integer, nullable=False),
    sqlite_autoincrement=True,  # the number of a deleted study is not used again
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
    Column("value", Double),  # to find the best by; the exact one is in the record
    Column("cost", Double),
    Column("expected", Double),
    Column("at_target", Boolean, nullable=False),
    Column("worker", Text),
    Column("token", Text, nullable=False),
    Column("asked", Double, nullable=False),
    Column("leased_until", Double),
    Column("record", Text, nullable=False),
    Column("seal", BigInteger, nullable=False),  # of record and clocks
)
Index("trials_by_change", trials.c.study, trials.c.changed)
Index("trials_by_value", trials.c.study, trials.c.state, trials.c.at_target, trials.c.value, trials.c.number)
RUNNING = trials.c.state == literal_column("'running'")  # written out, so that a database sees that the index has it
Index("trials_by_lease", trials.c.study, trials.c.leased_until, sqlite_where=RUNNING, postgresql_where=RUNNING)

queue = Table(
    "queue",
    tables,
    Column("id", Integer, primary_key=True),
    Column("study", Integer, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("entry", Text, nullable=False),
    Column("seal", BigInteger, nullable=False),
    sqlite_autoincrement=True,  # a trial takes its entry by id: an old id must not come to mean another one
)
Index("queue_by_position", queue.c.study, queue.c.position)

receipts = Table("receipts", tables, Column("key", Text, primary_key=True), Column("at", Double, nullable=False, index=True))

meta = Table("meta", tables, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))


# -- versions ----------------------------------------------------------------------------------------------------------


def count_stops(connection: Connection) -> None:
    """From 1 to 2: how often a study was asked to stop."""
    connection.execute(text("ALTER TABLE studies ADD COLUMN halts INTEGER NOT NULL DEFAULT 0"))


STEPS: dict[int, Callable[[Connection], None]] = {1: count_stops}


def version(connection: Connection, where: str) -> int | None:
    """The version of the tables that are there, None if there are none."""
    there = set(inspect(connection).get_table_names()) & set(tables.tables)
    if not there:
        return None
    found = connection.execute(select(meta.c.value).where(meta.c.name == "version")).scalar() if "meta" in there else None
    if not (isinstance(found, str) and found.isdecimal()):
        theirs = f"tables of another program ({', '.join(sorted(there))})"
        raise StorageError(f"{where} holds {theirs}; give Shoestring a file, a database or a schema of its own")
    return int(found)


def require_readable(found: int | None, where: str) -> None:
    if found is not None and found > VERSION:
        raise StorageError(
            f"{where} was written by a newer Shoestring: its tables are of version {found}, this one reads up to {VERSION}; "
            "nothing was changed; upgrade with: pip install --upgrade shoestring"
        )


def create(connection: Connection) -> None:
    tables.create_all(connection, checkfirst=False)
    connection.execute(meta.insert(), {"name": "version", "value": str(VERSION)})


def step_up(connection: Connection, found: int) -> None:
    """From an older version to this one."""
    for older in range(found, VERSION):
        STEPS[older](connection)
    connection.execute(meta.update().where(meta.c.name == "version").values(value=str(VERSION)))
