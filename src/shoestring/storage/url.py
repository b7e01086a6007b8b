"""From an address to a storage."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import StorageError
from .base import Storage
from .memory import MemoryStorage

EXAMPLES = 'sqlite:///tune.db, postgresql://user@host/database, a file such as tune.db, or "memory"'
SHORTEST = 512  # bytes of a SQLite database that is not empty
POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


def open_storage(where: str | os.PathLike[str] | Storage) -> Storage:
    """The storage at an address: ``sqlite:///tune.db`` (or just ``tune.db``), ``postgresql://user:password@host/db``, ``memory``.

    What is not there yet is made: the file, but not its folder; the tables, but not the server's database. A storage is returned
    as it is.
    """
    if isinstance(where, Storage):
        return where
    if not isinstance(where, str | os.PathLike):
        raise StorageError(f"storage={where!r} is not an address; give {EXAMPLES}")
    text = os.fspath(where)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise StorageError(f"storage={where!r} is not an address; give {EXAMPLES}")
    if misspelt(text):
        raise unreadable()
    scheme, separator, rest = text.partition("://")
    if isinstance(where, os.PathLike) or not separator:
        return MemoryStorage() if where == "memory" else _sqlite(text)
    if scheme == "memory" and not rest:
        return MemoryStorage()
    if scheme == "sqlite":
        return _sqlite_at(rest)
    if scheme in POSTGRES:
        return _postgres(text)
    raise StorageError(f"there is no storage for {scheme}:// addresses; give {EXAMPLES}")  # the rest may hold a password


def _sqlite_at(rest: str) -> Storage:
    """As SQLAlchemy reads it: three slashes before a relative path, four before an absolute one; without a path, memory."""
    if rest in ("", "/", "/:memory:"):
        return MemoryStorage()
    if not rest.startswith("/"):
        raise StorageError(f"sqlite://{rest}: a file's address has three slashes, or four if its path is absolute: sqlite:///{rest}")
    if "?" in rest:
        raise StorageError(f"sqlite://{rest}: options are not read; for a file with a question mark in its name, give its path")
    return _sqlite(rest[1:])


def _sqlite(path: str) -> Storage:
    from .sql import SQLStorage  # SQLAlchemy takes a moment to load, and studies in memory do without
    from .sqlite import SQLiteFile

    file = Path(path).expanduser().absolute()  # an objective may change the working directory
    if file.is_dir():
        raise StorageError(f"{file} is a folder; give a file in it, for example {file / 'tune.db'}")
    if not file.parent.is_dir():
        raise StorageError(f"{file}: there is no folder {file.parent}; make it with: mkdir -p {file.parent}")
    if file.exists() and 0 < file.stat().st_size < SHORTEST:  # SQLite would take it for a new one
        raise StorageError(f"{file}: it is too short to be a SQLite database; restore a backup, or give another place")
    return SQLStorage(SQLiteFile(file))


def _postgres(text: str) -> Storage:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from .postgres import PostgresServer
    from .sql import SQLStorage

    try:
        address = make_url(text)
    except (ArgumentError, ValueError):  # whose words may repeat the password
        raise unreadable() from None
    return SQLStorage(PostgresServer(address))


def misspelt(text: str) -> bool:
    """Whether it was meant for a server and would be taken for a file, whose name is shown: ``postgresql:/me:secret@host``."""
    return "://" not in text and "@" in text and text.lower().startswith("postgres")


def unreadable() -> StorageError:
    example = "postgresql://user:password@host:5432/database, with @ : / in a password written as %40 %3A %2F"
    return StorageError(f"this PostgreSQL address cannot be read; write {example}")
