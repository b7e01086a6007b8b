"""What the loop may ask of those who evaluate, whoever and wherever they are.

The loop hands over a trial whenever fewer than ``workers`` are in hand, and waits for what comes back. There is one loop: a crew
that works alone evaluates when it is handed a trial, and has it ready when it is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from ..evaluate import Evaluation, LiveTrial
from ..trial import Trial


@dataclass(frozen=True)
class Finished:
    """A trial that is no longer in hand, and what came of it."""

    trial: Trial
    seen: Evaluation


class Crew(Protocol):
    """A context manager; on leaving, workers that it has started are ended."""

    @property
    def workers(self) -> int:
        """How many trials may be in hand at once."""
        ...

    def now(self) -> float:
        """The crew's clock, in seconds from somewhere."""
        ...

    def start(self, trial: Trial, live: LiveTrial) -> None:
        """Have a trial evaluated; ``live`` answers what its objective asks, and takes its reports, as far as they can travel.

        Raises ExecutionError if there is nobody to do it.
        """
        ...

    def wait(self, seconds: float | None = None) -> list[Finished]:
        """What has come back, as soon as there is something, or after so many seconds if there is nothing.

        Raises what an objective has raised if that was wanted, and ExecutionError if those in hand are lost with their workers;
        what had come back by then, or before an interruption, is kept for the next time. With 0 seconds it goes before any error.
        """
        ...

    def cancel(self) -> None:
        """End all that is in hand, at once and for good: nothing of it comes back."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
