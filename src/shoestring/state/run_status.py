"""The status of a study's runs: how long they took, and whether a stop was requested."""

from __future__ import annotations

import contextlib

from ..errors import StorageError
from ..storage.base import Changes, Storage
from ..storage.transactions import SHORT_WAIT_SECONDS, wait_limit


class RunStatus:
    """How long a study took so far, and whether a stop was requested, for all processes that work on it.

    halted  why a stop was requested, None if that is over;   halts  how many requests there were,
    heard   and how many of them came before the present run, which they do not concern
    """

    def __init__(self, storage: Storage, study: int) -> None:
        self.storage, self.study = storage, study
        self.halted: str | None = None
        self.halts = self.heard = 0
        self._stored, self._reached = 0.0, 0.0  # seconds as they are stored, and as this process knows them

    def update(self, changes: Changes) -> None:
        """Take over what other processes have written."""
        self.halted, self.halts, self._stored = changes.halted, changes.halts, changes.seconds

    @property
    def seconds(self) -> float:
        """Wall-clock seconds that the study took so far."""
        return max(self._stored, self._reached)

    def set_seconds(self, seconds: float) -> None:
        """The study took so long, or longer if another process says so. Stored once it is a second more than what is stored.

        A storage that does not answer is updated later: this is bookkeeping, and no reason to wait or to fail.
        """
        self._reached = max(self._reached, seconds)
        if self._reached >= self._stored + 1.0:
            with contextlib.suppress(StorageError), wait_limit(SHORT_WAIT_SECONDS):
                self.save_seconds()

    def save_seconds(self) -> None:
        """Store the seconds. Of several processes at work, the one that has counted most is right: so this can be repeated."""
        reached = self._reached
        if reached > self._stored:
            self.storage.revise(self.study, seconds=reached)
            self._stored = reached

    def request_stop(self, reason: str) -> None:
        """Ask all processes that work on the study to stop, this one first."""
        self.storage.revise(self.study, halted=reason)
        self.halted, self.halts = reason, max(self.halts, self.heard + 1)

    def start_run(self) -> None:
        """A run begins: earlier requests are over. Other processes may not have seen them yet, so the count stays."""
        self.heard = self.halts
        if self.halted is not None:
            self.storage.revise(self.study, halted=None)
            self.halted = None

    @property
    def stop_reason(self) -> str | None:
        """Why the present run has to end; None if no stop was requested."""
        return (self.halted or "halted by request") if self.halts > self.heard else None
