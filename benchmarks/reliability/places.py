"""Addresses of fresh databases: files in a folder that goes away, schemas of a PostgreSQL server that goes away."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.storage.server import Server, missing

KINDS = ("sqlite", "postgresql")


def absent(kind: str) -> str | None:
    """Why there is no such storage here."""
    return missing() if kind == "postgresql" else None


@contextmanager
def fresh(kind: str, folder: Path | None = None) -> Iterator[Callable[[], str]]:
    """``with fresh("sqlite") as address``: each ``address()`` is that of another database. The server is durable."""
    if kind == "postgresql":
        server = Server(durable=True)
        try:
            yield server.schema
        finally:
            server.stop()
        return
    with tempfile.TemporaryDirectory(prefix="shoestring-reliability-", dir=folder, ignore_cleanup_errors=True) as inside:
        made: list[str] = []

        def address() -> str:
            made.append(f"sqlite:///{inside}/tune-{len(made)}.db")
            return made[-1]

        yield address
