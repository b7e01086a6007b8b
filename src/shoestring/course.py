"""How a study goes on as a whole, for all that work on it: how long it took, and whether somebody wants it to end."""

from __future__ import annotations

import contextlib

from .errors import StorageError
from .storage.base import Changes, Storage
from .storage.patience import SHORT, patience


class Course:
    """Of one study, as this process knows it.

    halted  why an end was asked for, None if that is over;   halts  how often that was,
    heard   and how often before the present run, which these do not concern
    """

    def __init__(self, storage: Storage, study: int) -> None:
        self.storage, self.study = storage, study
        self.halted: str | None = None
        self.halts = self.heard = 0
        self._stored, self._reached = 0.0, 0.0  # seconds as they are stored, and as this process knows them

    def take(self, changes: Changes) -> None:
        """What others have written."""
        self.halted, self.halts, self._stored = changes.halted, changes.halts, changes.seconds

    @property
    def seconds(self) -> float:
        """Of wall-clock time that the study took so far."""
        return max(self._stored, self._reached)

    def took(self, seconds: float) -> None:
        """The study took so long, or longer if others say so. Written down once it is a second more than what is stored.

        A storage that does not answer is told later: this is bookkeeping, and no reason to wait or to fail.
        """
        self._reached = max(self._reached, seconds)
        if self._reached >= self._stored + 1.0:
            with contextlib.suppress(StorageError), patience(SHORT):
                self.save_seconds()

    def save_seconds(self) -> None:
        """Of several that work at the same time, the one that has counted most is right: so this can be done twice."""
        reached = self._reached
        if reached > self._stored:
            self.storage.revise(self.study, seconds=reached)
            self._stored = reached

    def halt(self, reason: str) -> None:
        """Have all that work on the study stop, the run of this process first."""
        self.storage.revise(self.study, halted=reason)
        self.halted, self.halts = reason, max(self.halts, self.heard + 1)

    def begin_to_listen(self) -> None:
        """A run begins: stops that were asked for before are over. Others may have to hear of them yet, so the count stays."""
        self.heard = self.halts
        if self.halted is not None:
            self.storage.revise(self.study, halted=None)
            self.halted = None

    @property
    def called_off(self) -> str | None:
        """Why the present run is to end; None if nobody wants that."""
        return (self.halted or "halted by request") if self.halts > self.heard else None
