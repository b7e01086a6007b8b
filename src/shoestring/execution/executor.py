"""What the loop may ask of those who evaluate, whoever and wherever they are.

The loop hands over a trial whenever fewer than ``workers`` are in hand, and waits for what comes back. There is one loop: a crew
that works alone evaluates when it is handed a trial, and has it ready when it is waited for.

What has come back to a crew and was not handed out yet.

Results stay here until they are handed out, so that neither an error of another trial nor a Ctrl-C that comes in between loses
them: whoever waits next gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, Self

from ..data.trial import Trial
from .evaluate import Evaluation, LiveTrial


@dataclass(frozen=True)
class CompletedTrial:
    """A trial that is no longer in hand, and what came of it."""

    trial: Trial
    seen: Evaluation


class TrialExecutor(Protocol):
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

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
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


Given = ParamSpec("Given")


class ResultBuffer:
    """Results, and the first error. True if there is anything."""

    def __init__(self) -> None:
        self._results: list[CompletedTrial] = []
        self._error: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._results) or self._error is not None

    def collect(self, look: Callable[Given, Iterable[CompletedTrial]], *args: Given.args, **kwargs: Given.kwargs) -> None:
        """What a look finds or raises, an interruption included, which is no more than put off until ``hand_out``."""
        try:
            for finished in look(*args, **kwargs):
                self._results.append(finished)
        except BaseException as error:
            if self._error is None:
                self._error = error

    def hand_out(self, seconds: float | None) -> list[CompletedTrial]:
        """The results, or else the error is raised: at once, or after 0 seconds only if there are no results."""
        if self._error is not None and (seconds != 0.0 or not self._results):
            error, self._error = self._error, None
            raise error
        results, self._results = self._results, []
        return results
