"""The clock of a SQLite file: steady, the same for all processes of the machine, and in seconds since 1970.

It is the steady clock (see ``clocks``) plus a constant that the first process of a boot writes into the table ``meta``. The
constant makes it the time of day of that moment. So leases of an earlier boot end when they should, as far as the time of day was
right then and is right now. After that, to set the time of day changes nothing.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress

from sqlalchemy import Connection, func, select

from ..errors import StorageError
from .clocks import boot_name, steady_seconds
from .connections import Transaction
from .schema import meta, trials


class SteadyClock:
    """The clock of one SQLite file. Before ``start``, and where there is no steady clock, it is the time of day."""

    def __init__(self) -> None:
        self.boot: str | None = None
        self._ahead = 0.0  # of the steady clock

    def now(self) -> float:
        return time.time() if self.boot is None else steady_seconds() + self._ahead

    def start(self, read: Transaction, write: Transaction) -> None:
        """Find the constant of this boot, or write it. In a file that cannot be written to it is chosen anew each time."""
        if (boot := boot_name()) is None or boot == self.boot:
            return
        name = f"clock of boot {boot}"
        found = read(lambda connection: _find(connection, name))
        if found is None:
            with suppress(StorageError):
                found = write(lambda connection: _find(connection, name) or _insert(connection, name))
        self._ahead = time.time() - steady_seconds() if found is None else found
        self.boot = boot


def _find(connection: Connection, name: str) -> float | None:
    value = connection.execute(select(meta.c.value).where(meta.c.name == name)).scalar()
    with suppress(TypeError, ValueError):
        return float(value) if math.isfinite(float(value)) else None  # type: ignore[arg-type]
    return None


def _insert(connection: Connection, name: str) -> float:
    """The clock does not go back, even if the time of day is wrong at this boot: no lease would ever end."""
    latest = connection.execute(select(func.max(trials.c.asked))).scalar() or 0.0
    ahead = max(time.time(), latest) - steady_seconds()
    connection.execute(meta.delete().where(meta.c.name == name))
    connection.execute(meta.insert(), {"name": name, "value": repr(ahead)})
    return ahead
