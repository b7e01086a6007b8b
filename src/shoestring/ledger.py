"""A study's book: its trials in order of number, their points, what waits to be asked, and since when the open ones run.

The one place where a study's state lives; everything else is computed from it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from .history import History
from .numerics import Array
from .space import Config, Space
from .trial import State, Trial


class Ledger:
    """Trials are written when they are opened and once more when they are closed."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trials: list[Trial] = []
        self.queue: list[tuple[Config, Mapping[str, Any]]] = []
        self._points: list[Array] = []
        self._clocks: dict[int, float] = {}  # of trials opened by this process

    def __len__(self) -> int:
        return len(self.trials)

    def history(self, maximize: bool) -> History:
        """A view for the optimizer's own use: it shares the records' dicts."""
        return History(tuple(self.trials), self.space, maximize, tuple(self._points))

    def draft(self, config: Config, suggestion: Mapping[str, Any]) -> Trial:
        """The next trial, not yet written."""
        fidelity = {name: config[name] for name in self.space.fidelities}
        return Trial(len(self.trials), config, fidelity=fidelity, suggestion=suggestion, asked_at=time.time())

    def open(self, config: Config, suggestion: Mapping[str, Any]) -> Trial:
        trial = self.draft(config, suggestion)
        self.write(trial)
        self._clocks[trial.number] = time.perf_counter()
        return trial

    def write(self, trial: Trial) -> None:
        """A trial that is new here: just opened, finished elsewhere, or read from a file."""
        self.trials.append(trial)
        self._points.append(self.space.encode(trial.config))

    def close(self, trial: Trial) -> None:
        self.trials[trial.number] = trial
        self._points[trial.number] = self.space.encode(trial.config)  # one that was stopped early has not got where it was asked
        self._clocks.pop(trial.number, None)

    def seconds_open(self, trial: Trial) -> float | None:
        """How long ago it was asked: by this process's steady clock, or else by the time of day."""
        if trial.number in self._clocks:
            return time.perf_counter() - self._clocks[trial.number]
        return None if trial.asked_at is None else max(0.0, time.time() - trial.asked_at)

    def orphans(self) -> list[Trial]:
        """Open trials that this process did not open: nobody is evaluating them."""
        return [trial for trial in self.trials if trial.state is State.RUNNING and trial.number not in self._clocks]

    def give_back(self, trial: Trial, cost: float | None, reports: Sequence[Mapping[str, Any]] = ()) -> None:
        """Abandon an open trial and have its config asked first."""
        self.close(trial.finish(State.ABANDONED, seconds=self.seconds_open(trial), cost=cost, reports=tuple(reports)))
        self.queue.insert(0, (trial.config, trial.suggestion))
