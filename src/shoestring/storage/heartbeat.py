"""The heartbeat of a worker: a thread that renews the leases of its trials, and the names by which dead workers are recognized.

While the process lives, so do its leases. If it is killed or suspended, or if its machine is lost, the leases expire and other
workers get the trials. The thread ends when the worker holds no trial, and when the study is closed. While it sleeps, it keeps
nothing alive: a study that is forgotten ends its thread, unless it holds a trial whose result is still to come.

After an outage of the storage, the leases of other workers may have expired too, though these are alive. They get a grace period
of one lease to renew them before this process takes their trials for lost.

The name of a worker shows whether it has died on this machine, so that its trials need not wait until their leases end. psutil is
not used for that: it knows neither the boot nor the PID namespace (a container has its own) of a process, and it computes start
times from the time of day, which may be changed. A system may hide the processes of other users (``hidepid``): what cannot be
seen is not dead. Then, and on systems other than Linux, the lease alone decides.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
import uuid
import weakref
from contextlib import suppress
from pathlib import Path

from ..errors import StorageError
from .base import Lease, Storage
from .clocks import steady_seconds
from .transactions import SHORT_WAIT_SECONDS, wait_limit

log = logging.getLogger("shoestring")

RENEWALS_PER_LEASE = 3  # so that one renewal may be late or fail
PROC = Path("/proc")


class Heartbeat:
    """The leases of one process in one study. ``seconds`` is how long a lease lasts unless it is renewed."""

    def __init__(self, storage: Storage, study: int, seconds: float) -> None:
        self.storage, self.study, self.seconds = storage, study, seconds
        self._held: dict[int, str] = {}  # trial number -> token
        self._lock = threading.Lock()
        self._end: threading.Event | None = None  # of the thread; None if there is no thread
        self._grace_until = -math.inf
        self._failing_since: float | None = None
        self._renewed_at = steady_seconds()  # by the clock that goes on while the machine sleeps
        _all.add(self)

    def lease(self, seconds: float | None = None) -> Lease:
        """A new lease for a trial that is about to be opened. With ``seconds``, one that outlives this process."""
        if seconds is not None:  # another process evaluates the trial: the end of this one tells nothing about it
            return Lease(f"asked on {socket.gethostname()}", uuid.uuid4().hex, seconds)
        return Lease(worker_name(self.seconds), uuid.uuid4().hex, self.seconds)

    def hold(self, number: int, token: str) -> None:
        """Renew the lease of this trial from now on."""
        with self._lock:
            if not self._held:
                self._renewed_at = steady_seconds()
            self._held[number] = token
            _holding.add(self)
            if self._end is None:
                self._end = end = threading.Event()
                arguments = weakref.ref(self, lambda _: end.set()), end, self.seconds / RENEWALS_PER_LEASE
                name = f"shoestring-leases-{self.study}"
                threading.Thread(target=_beat_until, args=arguments, name=name, daemon=True).start()

    def let_go(self, number: int) -> str | None:
        """Renew the lease of this trial no longer. Returns its token if it was held."""
        with self._lock:
            token = self._held.pop(number, None)
            if not self._held:
                _holding.discard(self)
            return token

    def close(self) -> None:
        """Renew no lease any more, and end the thread."""
        with self._lock:
            self._held.clear()
            _holding.discard(self)
            if self._end is not None:
                self._end.set()
                self._end = None

    def forget(self) -> None:
        """In the child of a fork: the trials of the parent stay the parent's, and its thread is not here."""
        self._lock, self._end, self._held = threading.Lock(), None, {}

    def token(self, number: int) -> str | None:
        """The token of a trial that this process holds."""
        with self._lock:
            return self._held.get(number)

    def after_outage(self, seconds: float) -> None:
        """Begin a grace period if the storage was unavailable for long. Called when it answers again."""
        if seconds > self.seconds / RENEWALS_PER_LEASE:
            self._grace_until = time.monotonic() + self.seconds

    @property
    def in_grace_period(self) -> bool:
        """Whether an expired lease does not mean yet that its worker is gone."""
        return time.monotonic() < self._grace_until

    def renew_if_overdue(self) -> None:
        """Renew the leases if that is overdue: the machine may have slept, and this process with it."""
        with self._lock:
            held = dict(self._held)
        if held and steady_seconds() - self._renewed_at > 2 * self.seconds / RENEWALS_PER_LEASE:
            with suppress(StorageError):
                self._renew(held)

    def _beat(self) -> float | None:
        """Renew the leases. Returns the seconds until that is due again; None if no trial is held."""
        with self._lock:
            if not self._held:
                self._end = None
                return None
            held = dict(self._held)
        start = time.monotonic()
        try:
            self._renew(held)
        except Exception as error:  # it may be over before the lease ends; and a late result is kept in any case
            if self._failing_since is None:
                log.warning("the leases of trials %s could not be renewed: %s", ", ".join(map(str, held)), error)
                self._failing_since = start
            return min(1.0, self.seconds / RENEWALS_PER_LEASE)
        self.after_outage(time.monotonic() - (start if self._failing_since is None else self._failing_since))
        self._failing_since = None
        return self.seconds / RENEWALS_PER_LEASE

    def _renew(self, held: dict[int, str]) -> None:
        with wait_limit(SHORT_WAIT_SECONDS):
            lost = self.storage.renew(self.study, held, self.seconds)
        self._renewed_at = steady_seconds()
        for number in lost:
            if self.let_go(number) is not None:
                log.warning("trial %d was given to another worker; the result of this one is kept as well", number)


_all: weakref.WeakSet[Heartbeat] = weakref.WeakSet()
_holding: set[Heartbeat] = set()  # with a trial whose result is still to come: they stay, also if their study is forgotten


def _beat_until(heartbeat: weakref.ref[Heartbeat], end: threading.Event, pause: float | None) -> None:
    """The thread of a heartbeat. While it waits, it does not keep the heartbeat alive."""
    while pause is not None and not end.wait(pause):
        beating = heartbeat()
        pause = None if beating is None else beating._beat()
        del beating


def _after_fork_in_child() -> None:
    for heartbeat in list(_all):
        heartbeat.forget()
    _holding.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


# -- names of workers --------------------------------------------------------------------------------------------------


def worker_name(lease: float | None = None) -> str:
    """The name of this process: host, boot and PID namespace, process id, and start time, since process ids are used again.

    ``lease`` is how long its leases last, in seconds, if it renews them.
    """
    name = f"{socket.gethostname()}/{_boot_and_namespace()}/{os.getpid()}/{_start_ticks(os.getpid()) or ''}"
    return name if lease is None else f"{name}/{lease:g}"


def lease_length(name: str) -> float | None:
    """How long the leases of a worker last, in seconds, if it renews them; None if its name does not say so."""
    parts = name.split("/")
    with suppress(ValueError):
        return float(parts[4]) if len(parts) == 5 else None
    return None


def surely_dead(name: str) -> bool:
    """Whether a worker ran on this machine and has ended. False if it cannot be known."""
    parts = name.split("/")
    if len(parts) not in (4, 5) or not _boot_and_namespace() or parts[:2] != [socket.gethostname(), _boot_and_namespace()]:
        return False
    process, started = parts[2:4]
    if not process.isdecimal() or not started:
        return False
    found = _start_ticks(int(process))
    return found != started if found is not None else _is_gone(int(process))


def _boot_and_namespace() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{(PROC / 'self/ns/pid').readlink()}".replace("/", "")
    except OSError:
        return ""


def _start_ticks(process: int) -> str | None:
    """When a process started, in ticks since the boot. Empty if it is a zombie, None if it cannot be seen."""
    try:
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


def _is_gone(process: int) -> bool:
    """Whether there is no process of this number. The system says so also of processes whose files it hides."""
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is there, and belongs to another user
        return False
    return False
