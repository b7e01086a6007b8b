"""For how long a transaction is tried again: a minute, unless whoever calls has others to look after in the meantime."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

USUAL = 60.0  # seconds
SHORT = 1.0  # that of a loop: what it could not write it keeps, looks after its workers, and tries again

dice = random.Random()  # so that not all look at once; our own, as that of the module is the user's, who may have seeded it

_seconds: ContextVar[float] = ContextVar("shoestring_patience", default=USUAL)


def seconds_of_patience() -> float:
    """Of each transaction that is begun here and now."""
    return _seconds.get()


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Less, or more, for every transaction inside."""
    before = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(before)
