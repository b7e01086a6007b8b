"""Places for studies to be tested: memory, a file, a server; and trials to put there."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoestring.storage import MemoryStorage, Storage, open_storage
from shoestring.testing.trials import abandoned, done, failed, lease, running
from tests.storage.server import Server

__all__ = ["Place", "abandoned", "done", "failed", "lease", "running"]

FAKE_CLOCK = "(SELECT seconds FROM fake_clock)"


@dataclass
class Place:
    """``open`` gives another storage at the same place, as another process would have it. Memory is one for all."""

    kind: str
    address: str
    server: Server | None = None
    opened: list[Storage] = field(default_factory=list)
    now: float = 1_000_000.0  # of the fake clock, where there is one
    jump: float = 0.0  # by how much that clock was set

    def open(self) -> Storage:
        if self.kind == "memory" and self.opened:
            return self.opened[0]
        self.opened.append(MemoryStorage() if self.kind == "memory" else open_storage(self.address))
        return self.opened[-1]

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Past the storage; ``?`` for values."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(self.path, isolation_level=None)
            connection.create_function("shoestring_clock", 0, time.time)
            try:
                return connection.execute(statement, values).fetchall()
            finally:
                connection.close()
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    @property
    def path(self) -> Path:
        return Path(self.address.removeprefix("sqlite:///"))

    def use_fake_clock(self, monkeypatch: Any) -> None:
        """From now on, what is opened here goes by a clock that only ``wait`` moves."""
        if self.kind == "memory":
            self.opened.append(MemoryStorage(now=lambda: self.now))
            return
        from shoestring.storage import schema

        self.execute("CREATE TABLE fake_clock (seconds DOUBLE PRECISION)")
        self.execute("INSERT INTO fake_clock VALUES (?)", (self.now,))
        monkeypatch.setitem(schema.CLOCKS, self.kind, FAKE_CLOCK)
        monkeypatch.setattr("shoestring.storage.sql.steady_seconds", lambda: self.now - self.jump)

    def set_clock_forward(self, seconds: float) -> None:
        """Set the clock of the database, back if it is negative, while no time passes."""
        self.jump += seconds
        self.wait(seconds)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.kind != "memory":
            self.execute("UPDATE fake_clock SET seconds = ?", (self.now,))

    def close(self) -> None:
        for storage in self.opened:
            until = time.monotonic() + 1.0  # a heartbeat may be about to give its connection back, which would then stay open
            while self.kind == "postgresql" and storage._database.engine.pool.checkedout() and time.monotonic() < until:
                time.sleep(0.001)
            storage.close_connections()
