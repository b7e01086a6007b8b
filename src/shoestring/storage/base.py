"""Where studies are kept: the contract that every storage fulfils.

A storage knows studies by number, their trials, and what waits to be asked. Each method is one transaction: it happens wholly or
not at all, and when it returns, what it wrote survives the end of the process. All may be called from any thread and any process.

Every study has a clock, a counter that each write to it moves on by one. A trial carries the clock of its last change, so that
``since`` tells what is new without reading the rest, and the clocks of its opening and closing, so that what was known at any
moment can be told later.

A trial is written when it is opened and once more when it is closed. Its number is given out once: a trial whose worker is gone
is abandoned and its config asked again under another number, so a late result can never be taken for that of the new trial.

A lease is how long a trial belongs to its worker unless it is renewed, by the storage's clock and nobody else's.

What is given is kept as JSON, and comes back as a copy that is the caller's own. What JSON cannot hold is refused with a
StorageError that says what and where, before anything is written. A study that is not there raises a StorageError too, an unknown
trial a TrialError; only leases are asked about gently: of a study that is gone all are lost, and nothing is left to reap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Protocol, runtime_checkable

from ..data.trial import Trial

Settings = Mapping[str, Any]  # JSON-ready
Clocks = tuple[int, int | None, int | None]  # of a trial: opened, abandoned, closed, by the study's clock


@dataclass(frozen=True)
class StudyRecord:
    """A study as a storage keeps it.

    settings  what it was made with (space, direction, seed, ...), JSON-ready: the storage does not look into it
    halted    why somebody asked it to stop, or None;   halts  how often that was asked for
    seconds   of wall-clock time during which anybody was at work on it
    created_at  seconds since 1970, by the storage's clock
    trials    how many numbers have been given out;   waiting  how many configs wait to be asked
    """

    id: int
    name: str
    settings: Settings
    halted: str | None
    halts: int
    seconds: float
    clock: int
    created_at: float
    trials: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A config that is to be asked next; ``id`` is the storage's."""

    id: int
    config: Mapping[str, Any]
    suggestion: Mapping[str, Any]


@dataclass(frozen=True)
class Lease:
    """Whom a trial belongs to, and for how long; ``token`` is new for each lease and proves that it is one's own."""

    worker: str
    token: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """What the whole study may spend; looked at in the transaction that opens a trial.

    trials   opened and not abandoned;   cost  of all trials together, those that run counted with what they are expected to cost

    There is room while the study has less than that: the trial that reaches a limit is the last one.
    """

    trials: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A trial, and when what happened to it, by the study's clock; ``abandoned`` and ``closed`` are None until then.

    A late result of an abandoned trial closes it: then both are there.
    """

    trial: Trial
    opened: int
    abandoned: int | None = None
    closed: int | None = None

    @property
    def clocks(self) -> Clocks:
        return self.opened, self.abandoned, self.closed


@dataclass(frozen=True)
class Changes:
    """What has happened to a study since a clock: trials by number, and all that waits, in the order in which it is asked.

    seal    of the settings: another one when they have been revised
    """

    clock: int
    trials: Sequence[Stored]
    queue: Sequence[Waiting]
    halted: str | None = None
    halts: int = 0
    seconds: float = 0.0
    seal: int = 0


@runtime_checkable
class Storage(Protocol):
    """A place for studies."""

    @property
    def url(self) -> str:
        """What opens it again, without a password."""
        ...

    # -- studies

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        """The study of that name and False, or a new one with these settings and True. For any number of processes at once."""
        ...

    def find(self, name: str) -> StudyRecord | None:
        """The study of that name, None if there is none."""
        ...

    def studies(self) -> list[StudyRecord]:
        """All of them, in order of their making."""
        ...

    def revise(
        self,
        study: int,
        settings: Settings | None = None,
        halted: str | EllipsisType | None = ...,
        seconds: float = 0.0,
        *,
        if_still: Settings | None = None,
    ) -> None:
        """Change what is said of a study. Where nothing is different afterwards, nothing is written and the clock stays.

        settings  are laid over those that are there: a key that is given is replaced with all that is in it, the others stay. So
                  several may keep things beside each other, and none needs to know of the rest; no key is ever taken away
        if_still  some of the settings as one knows them: raises Behind if one of them is another by now, and changes nothing
        halted    why all that work on it are to stop: one more in ``halts``, the same reason again too. None forgets the reason
                  and leaves the count, by which each run tells whether it was asked for since that run began
        seconds   it took at least so long: the larger of this and what is there stays
        """
        ...

    def delete(self, study: int) -> None:
        """With all its trials; one that is gone already is no error."""
        ...

    # -- trials

    def since(self, study: int, clock: int) -> Changes:
        """Everything after that clock; 0 for all. Cheap when there is nothing new."""
        ...

    def write(
        self, study: int, trial: Trial, *, lease: Lease | None = None, limits: Limits | None = None, queued: int | None = None,
        at_target: bool = True, expected: float | None = None,
    ) -> Stored:
        """A new trial, running under a lease (without one nobody ever takes it back), or finished elsewhere.

        Raises Behind when its number is not the next one, or ``queued`` (the waiting entry that it comes from, removed at the
        same time) is gone: look again with ``since``. Raises OverBudget when the limits leave no room. ``at_target`` says whether
        its result counts for ``best``; ``expected`` is a guess of its cost. The same number under the same lease a second time
        changes nothing: what is there is returned.
        """
        ...

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> Stored:
        """Write what came of a trial that runs or was abandoned; one that is done or failed stays as it is and is returned.

        With ``again`` its config is to be asked first. Only a trial that runs can be abandoned: one that is abandoned already is
        returned as it is, and its config is not asked a second time.
        """
        ...

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        """Keep what a running trial has reported so far; False if it is not the token's any more."""
        ...

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        """Have a config asked after all that waits, or before it."""
        ...

    def best(self, study: int, maximize: bool) -> Trial | None:
        """The best finished trial at the target fidelity, of any if there is none; of equal ones the first."""
        ...

    # -- leases

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        """Prolong the leases (number -> token) and name those that are lost: abandoned, closed, or somebody else's."""
        ...

    def holders(self, study: int) -> dict[int, str]:
        """The trials that run under a lease, and whose they are."""
        ...

    def reap(self, study: int, price: float | None) -> list[Trial]:
        """Abandon the trials whose lease has run out, have their configs asked first, by number, and return them as they are now.

        A config that has lost its worker again and again (``life.LOSSES``) is not asked again: its trial has failed.

        ``price`` is what a second costs, None if nobody knows: the time from their asking to the end of their lease is charged,
        not that in which nobody looked.
        """
        ...

    def asking(self, study: int) -> AbstractContextManager[None]:
        """Held by one worker at a time while it makes a suggestion, so that each sees those before it.

        It saves work and is not needed for correctness: ``write`` finds out. It ends with the process that holds it.
        """
        ...

    def close_connections(self) -> None:
        """Let go of files and connections; they are opened again when needed."""
        ...
