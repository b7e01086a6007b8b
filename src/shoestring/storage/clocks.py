"""Clocks for leases: a steady clock, which cannot be set, and a watch for jumps of a clock that can be set.

The steady clock counts seconds since the boot of the machine, also while the machine sleeps (CLOCK_BOOTTIME). All processes of a
machine read the same one. So leases in a SQLite file, which is on one machine, are timed by it. To make its readings comparable
with those of another boot, the time of day is added that the first process of a boot has seen when it opened the file.

Where there is no such clock, and on a PostgreSQL server, the time of day is used. If it is set forward by an hour, all leases
look expired; if it is set back, those of dead workers last an hour longer. ``LeaseWatch`` recognizes both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)
MIN_JUMP_SECONDS = 1.0
MAX_DRIFT = 0.001  # of two clocks that are right; a clock that is slewed by NTP drifts by half of that
MARGIN = 1.5  # a lease that was not renewed for its length times this is over, whatever the clock of the database says
UNKNOWN_LEASE_SECONDS = 60.0


def steady_seconds() -> float:
    """Seconds by a clock that cannot be set, and that goes on while the machine sleeps where there is one of that kind."""
    return time.monotonic() if BOOT_CLOCK is None else time.clock_gettime(BOOT_CLOCK)


def boot_name() -> str | None:
    """What all processes that read the same steady clock have in common; None if that cannot be known."""
    if BOOT_CLOCK is None:
        return None
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    try:  # containers may have a clock of their own
        return f"{boot} {(PROC / 'self/ns/time').readlink()}"
    except OSError:
        return boot


@dataclass(frozen=True)
class LeaseSeen:
    """A lease as it is stored: of which trial, until when by the clock of the database, and its length if it is renewed."""

    number: int
    until: float
    length: float | None


class LeaseWatch:
    """Which leases of a study are over, as one process sees it. It compares the database's clock with the steady clock.

    If the database's clock was set forward, no lease counts as expired for the length of a lease: living workers renew theirs in
    that time. A lease that was not renewed for longer than its length by the steady clock is over, even if the clock was set
    back.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None  # of the steady clock: the database's clock at the last look
        self._looked_at = 0.0
        self._grace_until = -math.inf
        self._first_seen: dict[tuple[int, float], float] = {}  # (trial number, until) -> when, by the steady clock

    def expired(self, leases: Sequence[LeaseSeen], now: float | None, asked_at: float, answered_at: float) -> list[LeaseSeen]:
        """The leases that are over. ``now`` is the database's clock, read between the two moments of the steady clock."""
        if now is None:  # there are no leases
            return []
        jump = self._jump(now, asked_at, answered_at)
        if jump > 0:
            self._grace_until = answered_at + max((each.length or UNKNOWN_LEASE_SECONDS for each in leases), default=0.0)
        seen = {(each.number, each.until): self._first_seen.get((each.number, each.until), answered_at) for each in leases}
        self._first_seen = seen
        return [each for each in leases if self._is_over(each, now, answered_at, seen[each.number, each.until])]

    def _jump(self, now: float, asked_at: float, answered_at: float) -> float:
        """By how many seconds the database's clock was set since the last look; 0 if it was not."""
        ahead, before = now - answered_at, self._ahead
        slack = MIN_JUMP_SECONDS + (answered_at - asked_at) + MAX_DRIFT * (answered_at - self._looked_at)
        self._ahead, self._looked_at = ahead, answered_at
        return 0.0 if before is None or abs(ahead - before) <= slack else ahead - before

    def _is_over(self, lease: LeaseSeen, now: float, steady: float, seen: float) -> bool:
        if lease.until < now and steady >= self._grace_until:
            return True
        return lease.length is not None and steady - seen > MARGIN * lease.length
