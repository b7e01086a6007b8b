"""Studies in a database: making them, finding them, changing and deleting them, and looking after the database.

The trials are ``sql``'s.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import asdict
from types import EllipsisType
from typing import Any

from sqlalchemy import Connection, Row

from ..errors import StorageError
from . import statements, upkeep
from .base import Settings, StudyRecord
from .book import carried_out, keep_receipt, new_key, tick, totals_columns, turn
from .engine import Backend, Database
from .revising import Standing, revision
from .text import damaged, from_text, plain_name, sealed, to_text
from .totals import Totals


class SQLStudies:
    """A SQLite file or a PostgreSQL database, and the studies in it. It can be pickled, to be opened again elsewhere."""

    def __init__(self, backend: Backend) -> None:
        self._database = Database(backend)
        try:
            self._opened = upkeep.prepare(self._database)
        except BaseException:
            self._database.close()
            raise

    @property
    def url(self) -> str:
        return self._database.backend.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._database.backend,)

    # -- studies -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        plain_name(name, "a study's name")
        text = to_text(settings, f"the settings of study {name!r}")
        key = new_key()
        row = {"name": name, "settings": text, "seal": seal(name, text, None), "made_by": key, "halted": None}
        row |= {"halts": 0, "seconds": 0.0, "clock": 0, "waiting": 0, **totals_columns(Totals())}

        def work(connection: Connection) -> tuple[StudyRecord, bool]:
            self._database.backend.alone(connection)
            found = self._find(connection, name)
            if found is None:
                connection.execute(statements.NEW_STUDY, row)
                found = connection.execute(statements.STUDY_NAMED, {"name_": name}).one()
            return self._record(found), found.made_by == key

        there = self.find(name)
        return (there, False) if there is not None else self._database.write(work)

    def find(self, name: str) -> StudyRecord | None:
        try:
            plain_name(name, "a study's name")
        except StorageError:  # no study has such a name
            return None
        found = self._database.read(lambda connection: self._find(connection, name))
        return None if found is None else self._record(found)

    def _find(self, connection: Connection, name: str) -> Row[Any] | None:
        found = connection.execute(statements.STUDY_NAMED, {"name_": name}).first()
        if found is None:  # a name or an index that was damaged must not look like a study that never was
            rows = connection.execute(statements.ALL_STUDIES).all()
            found = next((row for row in rows if self._record(row).name == name), None)
        return found

    def studies(self) -> list[StudyRecord]:
        rows = self._database.read(lambda connection: connection.execute(statements.ALL_STUDIES).all())
        return [self._record(row) for row in rows]

    def _record(self, row: Row[Any]) -> StudyRecord:
        where = f"study {row.id} in {self.url}"
        numbers = (row.halts, row.seconds, row.clock, row.created_at, row.trials, row.waiting)
        texts = (row.name, row.settings, row.halted or "")
        if not all(isinstance(each, int | float) for each in numbers) or not all(isinstance(each, str) for each in texts):
            raise damaged(where)
        if row.seal != seal(*texts):
            raise damaged(where)
        return StudyRecord(row.id, row.name, from_text(row.settings, where), read_halted(row, where), *numbers)

    def revise(
        self,
        study: int,
        settings: Settings | None = None,
        halted: str | EllipsisType | None = ...,
        seconds: float = 0.0,
        *,
        if_still: Settings | None = None,
    ) -> None:
        wanted = revision(settings, halted, seconds, if_still, study)
        key = None if wanted.repeatable else new_key()

        def work(connection: Connection) -> None:
            book = turn(connection, study, self.url)
            if key is not None and carried_out(connection, key):
                return
            self._record(book)  # what is damaged must not get a new seal
            before = Standing(book.settings, book.halted, book.halts, book.seconds)
            after = wanted.of(before)
            if after == before:
                return
            if key is not None:
                keep_receipt(connection, key)
            tick(connection, book, **asdict(after), seal=seal(book.name, after.settings, after.halted))

        self._database.write(work)

    def delete(self, study: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(statements.TURN, {"study_": study})
            for statement in statements.DELETE:
                connection.execute(statement, {"study_": study})

        self._database.write(work)

    # -- the database ------------------------------------------------------------------------------------------------

    def asking(self, study: int) -> AbstractContextManager[None]:
        return self._database.backend.turn(self._database.engine, study)

    def close_connections(self) -> None:
        self._database.close()

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """A copy of everything, to a new file, while others go on writing."""
        self._database.backend.copy(path, overwrite)

    def check(self) -> list[str]:
        """What is wrong, in words: whether all that was written is there and adds up."""
        return upkeep.check(self._database)

    def upgrade(self) -> str:
        """What was done when it was opened, in words: older tables are brought up to date then."""
        return self._opened.in_words


def seal(name: str, settings: str, halted: str | None) -> int:
    """Of the texts of a study's row."""
    return sealed("\n".join((name, settings, halted or "")))


def read_halted(row: Row[Any], where: str) -> str | None:
    """Why somebody wants the study to stop."""
    return None if row.halted is None else str(from_text(row.halted, where))
