"""This process, one trial after the other."""

from __future__ import annotations

import time
from typing import Self

from ..data.trial import Trial
from .evaluate import LiveTrial, Objective, evaluate
from .executor import CompletedTrial


class SerialExecutor:
    """Evaluates when it is handed a trial."""

    workers = 1

    def __init__(self, objective: Objective, raise_errors: bool = False) -> None:
        self.objective, self.raise_errors = objective, raise_errors
        self._ready: list[CompletedTrial] = []

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._ready.append(CompletedTrial(trial, evaluate(self.objective, trial, live, raise_errors=self.raise_errors)))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        ready, self._ready = self._ready, []
        return ready

    def cancel(self) -> None:
        self._ready.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
