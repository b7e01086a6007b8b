"""The heartbeat of a worker: a thread that renews the leases of its trials, and the names by which dead workers are recognized.

While the process lives, so do its leases. If it is killed or suspended, or if its machine is lost, the leases expire and other
workers get the trials. The thread ends when the worker holds no trial.

After an outage of the storage, the leases of other workers may have expired too, though these are alive. They get a grace period
of one lease to renew them before this process takes their trials for lost.

The name of a worker shows whether it has died on this machine, so that its trials need not wait until their leases end. psutil is
not used for that: it knows neither the boot nor the PID namespace (a container has its own) of a process, and it computes start
times from the time of day, which may be changed. On systems other than Linux the lease alone decides.
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
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._grace_until = -math.inf
        self._renewed_at = time.time()  # by the clock that goes on while the machine sleeps

    def lease(self, seconds: float | None = None) -> Lease:
        """A new lease for a trial that is about to be opened. With ``seconds``, one that outlives this process."""
        if seconds is not None:  # another process evaluates the trial: the end of this one tells nothing about it
            return Lease(f"asked on {socket.gethostname()}", uuid.uuid4().hex, seconds)
        return Lease(worker_name(), uuid.uuid4().hex, self.seconds)

    def hold(self, number: int, token: str) -> None:
        """Renew the lease of this trial from now on."""
        with self._lock:
            if self._process != os.getpid():  # after a fork: the trials of the parent stay the parent's
                self._process, self._thread, self._held = os.getpid(), None, {}
            if not self._held:
                self._renewed_at = time.time()
            self._held[number] = token
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name=f"shoestring-leases-{self.study}", daemon=True)
                self._thread.start()

    def let_go(self, number: int) -> str | None:
        """Renew the lease of this trial no longer. Returns its token if it was held."""
        with self._lock:
            return self._held.pop(number, None)

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
        """Renew the leases if that is overdue by the time of day: the machine may have slept, and this process with it."""
        with self._lock:
            held = dict(self._held)
        if held and time.time() - self._renewed_at > 2 * self.seconds / RENEWALS_PER_LEASE:
            with suppress(StorageError):
                self._renew(held)

    def _beat(self) -> None:
        pause, failing_since = self.seconds / RENEWALS_PER_LEASE, None
        while True:
            time.sleep(pause)
            with self._lock:
                if not self._held:
                    self._thread = None
                    return
                held = dict(self._held)
            start = time.monotonic()
            try:
                self._renew(held)
            except Exception as error:  # it may be over before the lease ends; and a late result is kept in any case
                if failing_since is None:
                    log.warning("the leases of trials %s could not be renewed: %s", ", ".join(map(str, held)), error)
                    failing_since = start
                pause = min(1.0, self.seconds / RENEWALS_PER_LEASE)
                continue
            self.after_outage(time.monotonic() - (start if failing_since is None else failing_since))
            pause, failing_since = self.seconds / RENEWALS_PER_LEASE, None

    def _renew(self, held: dict[int, str]) -> None:
        with wait_limit(SHORT_WAIT_SECONDS):
            lost = self.storage.renew(self.study, held, self.seconds)
        self._renewed_at = time.time()
        with self._lock:
            for number in lost:
                if self._held.pop(number, None) is not None:
                    log.warning("trial %d was given to another worker; the result of this one is kept as well", number)


# -- names of workers --------------------------------------------------------------------------------------------------


def worker_name() -> str:
    """The name of this process: host, boot and PID namespace, process id, and start time, since process ids are used again."""
    return f"{socket.gethostname()}/{_boot_and_namespace()}/{os.getpid()}/{_start_ticks(os.getpid())}"


def surely_dead(name: str) -> bool:
    """Whether a worker ran on this machine and has ended. False if it cannot be known."""
    parts = name.split("/")
    if len(parts) != 4 or not _boot_and_namespace() or parts[:2] != [socket.gethostname(), _boot_and_namespace()]:
        return False
    process, started = parts[2:]
    return process.isdecimal() and bool(started) and _start_ticks(int(process)) != started


def _boot_and_namespace() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{(PROC / 'self/ns/pid').readlink()}".replace("/", "")
    except OSError:
        return ""


def _start_ticks(process: int) -> str:
    """When a process started, in ticks since the boot. Empty if there is no such process, or if it is a zombie."""
    try:
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
