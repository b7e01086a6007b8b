"""Opening a storage by its address (URL or path)."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import StorageError
from .base import Storage
from .memory import MemoryStorage

EXAMPLES = 'sqlite:///tune.db, postgresql://user@host/database, a file such as tune.db, or "memory"'
MIN_SQLITE_BYTES = 512  # of a database that is not empty
POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")


class NoSuchFile(StorageError):
    """There is no file at an address that must have one."""


def open_storage(where: str | os.PathLike[str] | Storage, *, create: bool = True) -> Storage:
    """The storage at an address: ``sqlite:///tune.db`` (or just ``tune.db``), ``postgresql://user:password@host/db``, ``memory``.

    Use it to list or delete studies, or to share one storage between studies; ``storage=`` takes the address itself too. A file
    that does not exist is made, but not its folder; so are tables, but not the server's database. With ``create=False`` such a
    file is an error, ``NoSuchFile``. A storage is returned as it is.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage="tune.db", name="first")
    >>> [record.name for record in st.open_storage("tune.db").studies()]
    ['first']
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
        return MemoryStorage() if where == "memory" else _sqlite(text, create)
    if scheme == "memory" and not rest:
        return MemoryStorage()
    if scheme == "sqlite":
        return _sqlite_by_url(rest, create)
    if scheme in POSTGRES_SCHEMES:
        return _postgres(text)
    raise StorageError(f"there is no storage for {scheme}:// addresses; give {EXAMPLES}")  # the rest may hold a password


def _sqlite_by_url(rest: str, create: bool) -> Storage:
    """As in SQLAlchemy: three slashes before a relative path, four before an absolute one; memory without a path."""
    if rest in ("", "/", "/:memory:"):
        return MemoryStorage()
    if not rest.startswith("/"):
        raise StorageError(f"sqlite://{rest}: a file's address has three slashes, or four if its path is absolute: sqlite:///{rest}")
    if "?" in rest:
        raise StorageError(f"sqlite://{rest}: options are not read; for a file with a question mark in its name, give its path")
    return _sqlite(rest[1:], create)


def _sqlite(path: str, create: bool) -> Storage:
    from .sql import SQLStorage  # here, since SQLAlchemy takes a moment to load and studies in memory do not need it
    from .sqlite import SQLiteFile

    file = Path(path).expanduser().absolute()  # an objective may change the working directory
    if file.is_dir():
        raise StorageError(f"{file} is a folder; give a file in it, for example {file / 'tune.db'}")
    if not create and not file.exists():
        raise NoSuchFile(f"there is no file {file}; check the path, or make a study there with st.Study(space, storage={path!r})")
    if not file.parent.is_dir():
        raise StorageError(f"{file}: there is no folder {file.parent}; make it with: mkdir -p {file.parent}")
    if file.exists() and 0 < file.stat().st_size < MIN_SQLITE_BYTES:  # SQLite would take it for a new file
        raise StorageError(f"{file}: it is too short to be a SQLite database; restore a backup, or give another place")
    return SQLStorage(SQLiteFile(file))


def _postgres(text: str) -> Storage:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from .postgres import PostgresServer
    from .sql import SQLStorage

    try:
        address = make_url(text)
    except (ArgumentError, ValueError):  # whose message may repeat the password
        raise unreadable() from None
    return SQLStorage(PostgresServer(address))


def misspelt(text: str) -> bool:
    """Whether a text like ``postgresql:/me:secret@host`` means a server. Taken for a file, its name would be shown."""
    return "://" not in text and "@" in text and text.lower().startswith("postgres")


def unreadable() -> StorageError:
    example = "postgresql://user:password@host:5432/database, with @ : / in a password written as %40 %3A %2F"
    return StorageError(f"this PostgreSQL address cannot be read; write {example}")
