"""Opening a storage by its address (URL or path)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..errors import StorageError
from .address import POSTGRES_SCHEMES, looks_like_server, parse_server, shown_address
from .base import Storage
from .memory import MemoryStorage

EXAMPLES = 'sqlite:///tune.db, postgresql://user@host/database, a file such as tune.db, or "memory"'
MIN_SQLITE_BYTES = 512  # of a database that is not empty
PRIVATE_FILE = 0o600  # for this user alone: it may hold commands and results


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
    if not isinstance(text, str) or not text.strip():
        raise StorageError(f"storage={where!r} is not an address; give {EXAMPLES}")
    if "\0" in text:  # it is not shown, since it may hold a password
        raise StorageError(f"this is not an address: it has a NUL character; give {EXAMPLES}")
    if looks_like_server(text):
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
    raise StorageError(f"there is no storage for {shown_address(f'{scheme}://')} addresses; give {EXAMPLES}")


def _sqlite_by_url(rest: str, create: bool) -> Storage:
    """As in SQLAlchemy: three slashes before a relative path, four before an absolute one; memory without a path."""
    if rest in ("", "/", "/:memory:"):
        return MemoryStorage()
    if not rest.startswith("/"):
        shown = shown_address(f"sqlite://{rest}")
        raise StorageError(f"{shown}: a file's address has three slashes, or four if its path is absolute: sqlite:///FILE")
    if "?" in rest:
        shown = shown_address(f"sqlite://{rest}")
        raise StorageError(f"{shown}: options are not read; for a file with a question mark in its name, give its path")
    return _sqlite(rest[1:], create)


def _sqlite(path: str, create: bool) -> Storage:
    from .sql import SQLStorage  # here, since SQLAlchemy takes a moment to load and studies in memory do not need it
    from .sqlite import SQLiteFile

    try:
        file = Path(path).expanduser().absolute()  # an objective may change the working directory
        is_folder = file.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # its name is too long, or ~NAME is no user
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"{path[:80]!r} cannot be the path of a file: {reason}; give another one") from None
    if is_folder:
        raise StorageError(f"{file} is a folder; give a file in it, for example {file / 'tune.db'}")
    if not create and not file.exists():
        raise NoSuchFile(f"there is no file {file}; check the path, or make a study there with st.Study(space, storage={path!r})")
    if not file.parent.is_dir():
        raise StorageError(f"{file}: there is no folder {file.parent}; make it with: mkdir -p {file.parent}")
    if file.exists() and 0 < file.stat().st_size < MIN_SQLITE_BYTES:  # SQLite would take it for a new file
        raise StorageError(f"{file}: it is too short to be a SQLite database; restore a backup, or give another place")
    if not file.exists():
        make_private(file)
    return SQLStorage(SQLiteFile(file))


def make_private(file: Path) -> None:
    """Make an empty file that only this user may read. SQLite gives the files beside it the same mode."""
    with suppress(OSError):  # SQLite reports why it cannot be made
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, PRIVATE_FILE))


def _postgres(text: str) -> Storage:
    from .postgres import PostgresServer
    from .sql import SQLStorage

    address = parse_server(text)
    if address is None:
        raise unreadable()
    return SQLStorage(PostgresServer(address))


def unreadable() -> StorageError:
    """The error for what seems to be a server's address. It does not repeat the address, which may hold a password."""
    example = "postgresql://user:password@host:5432/database, with @ : / in a password written as %40 %3A %2F"
    return StorageError(f"this PostgreSQL address cannot be read; write {example} (or sqlite:///NAME for a file of such a name)")
