"""Who a worker is, so that one that has died on this machine is known to be dead without waiting for its lease.

A name is the machine since it was booted, the space of process numbers (a container has its own), the process's number, and when
it began, since numbers are used again. Elsewhere than on Linux a name tells nothing, and the lease decides.

Keeps the leases of the trials in hand from running out, from a thread of its own.

While the process lives, so do its leases; when it is killed, stopped or loses its machine, they end by themselves and its trials
are given to others. The thread ends when it finds nothing in hand.

After an outage of the storage the leases of others may have ended too, though they are alive: they get the time of a lease to
renew them before this process takes their trials for lost.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

from ..errors import StorageError
from .base import Lease, Storage
from .patience import SHORT, patience

PROC = Path("/proc")


def own_name() -> str:
    """Of this process."""
    return f"{socket.gethostname()}/{_place()}/{os.getpid()}/{_began(os.getpid())}"


def surely_dead(name: str) -> bool:
    """Whether a worker ran here and does so no more; False where nobody can tell."""
    parts = name.split("/")
    if len(parts) != 4 or not _place() or parts[:2] != [socket.gethostname(), _place()]:
        return False
    process, began = parts[2:]
    return process.isdecimal() and bool(began) and _began(int(process)) != began


def _place() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{(PROC / 'self/ns/pid').readlink()}".replace("/", "")
    except OSError:
        return ""


def _began(process: int) -> str:
    """In ticks since the machine was booted; empty if there is no such process, or if it is dead and nobody has noticed."""
    try:
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


log = logging.getLogger("shoestring")

SHARE = 3  # renewals in the time of a lease: one that comes late, or is lost, does no harm


class Heartbeat:
    """Of one study in one process. ``seconds`` is how long a lease lasts unless it is renewed."""

    def __init__(self, storage: Storage, study: int, seconds: float) -> None:
        self.storage, self.study, self.seconds = storage, study, seconds
        self._held: dict[int, str] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._forgiving_until = -math.inf
        self._renewed = time.time()  # by the clock that goes on while a machine sleeps

    def lease(self, seconds: float | None = None) -> Lease:
        """A new one, for a trial that is about to be opened; with ``seconds``, one that outlives this process."""
        if seconds is not None:  # that the process has ended then says nothing of whoever evaluates the trial
            return Lease(f"asked on {socket.gethostname()}", uuid.uuid4().hex, seconds)
        return Lease(own_name(), uuid.uuid4().hex, self.seconds)

    def hold(self, number: int, token: str) -> None:
        with self._lock:
            if self._process != os.getpid():  # a fork: what the parent has in hand is the parent's
                self._process, self._thread, self._held = os.getpid(), None, {}
            if not self._held:
                self._renewed = time.time()
            self._held[number] = token
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name=f"shoestring-leases-{self.study}", daemon=True)
                self._thread.start()

    def let_go(self, number: int) -> str | None:
        """The token, if it was in hand."""
        with self._lock:
            return self._held.pop(number, None)

    def token(self, number: int) -> str | None:
        """The proof that a trial is in this process's hands."""
        with self._lock:
            return self._held.get(number)

    def after_outage(self, seconds: float) -> None:
        """Called when the storage answers again after so long."""
        if seconds > self.seconds / SHARE:
            self._forgiving_until = time.monotonic() + self.seconds

    @property
    def forgives(self) -> bool:
        """Whether a lease that has ended says nothing yet."""
        return time.monotonic() < self._forgiving_until

    def _beat(self) -> None:
        pause, away = self.seconds / SHARE, None
        while True:
            time.sleep(pause)
            with self._lock:
                if not self._held:
                    self._thread = None
                    return
                held = dict(self._held)
            began = time.monotonic()
            try:
                self._renew(held)
            except Exception as error:  # whatever it is may be over before the lease ends; a result is kept in any case
                if away is None:
                    log.warning("the leases of trials %s could not be renewed: %s", ", ".join(map(str, held)), error)
                    away = began
                pause = min(1.0, self.seconds / SHARE)
                continue
            self.after_outage(time.monotonic() - (began if away is None else away))
            pause, away = self.seconds / SHARE, None

    def _renew(self, held: dict[int, str]) -> None:
        with patience(SHORT):
            lost = self.storage.renew(self.study, held, self.seconds)
        self._renewed = time.time()
        with self._lock:
            for number in lost:
                if self._held.pop(number, None) is not None:
                    log.warning("trial %d was given to another worker; what this one makes of it is kept as well", number)

    def catch_up(self) -> None:
        """Renew what is in hand if that is overdue by the time of day: the machine may have slept, and this process with it."""
        with self._lock:
            held = dict(self._held)
        if held and time.time() - self._renewed > 2 * self.seconds / SHARE:
            with suppress(StorageError):
                self._renew(held)
