"""An executor that evaluates trials in threads of this process.

It suits objectives that wait for something else, such as a program or a server. Threads share all memory with the caller and
start at once. But a crash in one of them ends the whole process, and a thread cannot be ended from outside. They are daemon
threads: one that goes on after an interruption does not keep the program alive.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from threading import Thread
from typing import Self

from ..budget import Allowance
from ..data.trial import Trial
from .evaluate import LiveTrial, Objective, evaluate
from .executor import CompletedTrial, ResultBuffer, next_item


class ThreadExecutor:
    """Evaluates each trial in a new thread."""

    def __init__(self, objective: Objective, workers: int, raise_errors: bool = False) -> None:
        self.objective, self.workers, self.raise_errors = objective, workers, raise_errors
        self._running: dict[int, LiveTrial] = {}
        self._results: queue.SimpleQueue[CompletedTrial | BaseException] = queue.SimpleQueue()
        self._buffer = ResultBuffer()

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._running[trial.number] = live
        Thread(target=self._evaluate, args=(trial, live, self._results), name=f"trial {trial.number}", daemon=True).start()

    def _evaluate(self, trial: Trial, live: LiveTrial, results: queue.SimpleQueue[CompletedTrial | BaseException]) -> None:
        try:
            results.put(CompletedTrial(trial, evaluate(self.objective, trial, live, raise_errors=self.raise_errors)))
        except BaseException as error:  # KeyboardInterrupt and SystemExit too are raised in the thread that waits
            results.put(error)

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        while self._running:
            try:
                result = next_item(self._results, 0.0 if self._buffer else seconds)
            except queue.Empty:
                break
            self._buffer.collect(self._finish, result)
        return self._buffer.take(seconds)

    def _finish(self, result: CompletedTrial | BaseException) -> Iterator[CompletedTrial]:
        if isinstance(result, BaseException):
            raise result
        yield result
        del self._running[result.trial.number]

    def cancel(self) -> None:
        """A thread cannot be ended. ``should_stop()`` becomes True for those that run, and their results are ignored."""
        for live in self._running.values():
            live.left = lambda: Allowance(seconds=0.0)
        self._running, self._results = {}, queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()
