"""The executor protocol: what the loop asks of whatever evaluates trials, and the executor that does it in this process.

There is one loop for all executors. It starts a trial whenever fewer than ``workers`` trials run, and waits for results. The
serial executor evaluates a trial at the moment it is started, and has the result ready when the loop waits for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import ParamSpec, Protocol, Self, TypeVar

from ..data.trial import Trial
from ..errors import ExecutionError
from .evaluate import Evaluation, LiveTrial, Objective, evaluate


@dataclass(frozen=True)
class CompletedTrial:
    """A trial that no longer runs, and its evaluation."""

    trial: Trial
    evaluation: Evaluation


class WorkersLost(ExecutionError):
    """Workers died while trials ran on them, and it is not known which trial was the cause: each of them may be."""


class TrialExecutor(Protocol):
    """Evaluates trials, up to ``workers`` of them at once. A context manager: on exit it ends the workers it has started."""

    @property
    def workers(self) -> int:
        """How many trials may run at once."""
        ...

    def now(self) -> float:
        """The executor's clock in seconds; only differences have a meaning."""
        ...

    def start(self, trial: Trial, live: LiveTrial) -> None:
        """Start the evaluation of a trial. ``live`` answers its objective's questions and receives its reports, where possible.

        Raises ExecutionError if no worker can take the trial.
        """
        ...

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        """The trials that have ended: as soon as there is one, or an empty list after so many seconds.

        Raises the objective's exception if the run has ``raise_errors``, and ExecutionError if running trials were lost with
        their workers. Results that came before the error or before an interruption are kept for the next call. With
        ``seconds=0`` these results are returned first, and the error is raised by the call after that.
        """
        ...

    def cancel(self) -> None:
        """End all running trials at once. Their results are never returned."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class SerialExecutor:
    """Evaluates one trial after the other in this process, when it is started."""

    workers = 1

    def __init__(self, objective: Objective, raise_errors: bool = False) -> None:
        self.objective, self.raise_errors = objective, raise_errors
        self._completed: list[CompletedTrial] = []

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._completed.append(CompletedTrial(trial, evaluate(self.objective, trial, live, raise_errors=self.raise_errors)))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        completed, self._completed = self._completed, []
        return completed

    def cancel(self) -> None:
        self._completed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")
SIGNAL_CHECK_SECONDS = 0.5


def next_item(source: SimpleQueue[Item], seconds: float | None) -> Item:
    """The next item of a queue; queue.Empty after so many seconds, and never with None.

    A signal that arrives just before a wait is noted, and its handler is called only after the wait. So no single wait is long:
    else a Ctrl-C at that moment would be without effect until the next trial ends.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        try:
            return source.get(block=left > 0.0, timeout=max(0.0, min(left, SIGNAL_CHECK_SECONDS)))
        except Empty:
            if left <= SIGNAL_CHECK_SECONDS:
                raise


class ResultBuffer:
    """Completed trials that an executor has received and not returned yet, and the first error. True if it holds anything.

    Results stay here until ``wait`` returns them. So neither an error of another trial nor a Ctrl-C in between loses them: the
    next call of ``wait`` returns them.
    """

    def __init__(self) -> None:
        self._completed: list[CompletedTrial] = []
        self._error: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._completed) or self._error is not None

    def collect(
        self, source: Callable[Arguments, Iterable[CompletedTrial]], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        """Keep what ``source(*args)`` returns, or the error that it raises. KeyboardInterrupt too waits until ``take``."""
        try:
            for completed in source(*args, **kwargs):
                self._completed.append(completed)
        except BaseException as error:
            if self._error is None:
                self._error = error

    def take(self, seconds: float | None) -> list[CompletedTrial]:
        """Remove and return the results. An error is raised before them; with 0 seconds only once no results are left."""
        if self._error is not None and (seconds != 0.0 or not self._completed):
            error, self._error = self._error, None
            raise error
        completed, self._completed = self._completed, []
        return completed
