"""Simulated time: a crew whose clock is the trials' cost, so that hours of eight workers on a table take seconds.

A trial is evaluated when it is handed over, and its result is held back until the simulated time at which it would be done. The
loop is the ordinary one: suggestions are made in the order in which workers become free, with what was known then and what was
running then. Whoever suggests can be made to take time too: one suggestion after the other, ``overhead`` seconds each.

What a trial asks along the way (``should_stop``) is answered with what was known when it began.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from .._validation import whole_number
from ..budget import Budget
from ..data.outcome import is_cost, read_cost
from ..data.trial import Trial
from ..report.result import Result
from .evaluate import Evaluation, LiveTrial, Objective, evaluate
from .executor import CompletedTrial


class Runnable(Protocol):
    """What a simulation asks of a study."""

    @property
    def run(self) -> Callable[..., Result]: ...


@dataclass(frozen=True)
class Span:
    """When a trial ran, in simulated seconds from the beginning of the run."""

    start: float
    end: float


@dataclass(frozen=True)
class Simulation:
    """The result, and the time of each trial by its number."""

    result: Result
    spans: dict[int, Span]

    @property
    def seconds(self) -> float:
        """When the last trial was done."""
        return max((span.end for span in self.spans.values()), default=0.0)

    def bests(self) -> list[tuple[float, float]]:
        """(time, best value so far) at the end of each trial that has a value at the target fidelity, for convergence plots."""
        history = self.result.history
        better = max if history.maximize else min
        steps: list[tuple[float, float]] = []
        for number, span in sorted(self.spans.items(), key=lambda item: (item[1].end, item[0])):
            value = history[number].value
            if value is not None and history.at_target(history[number]):
                steps.append((span.end, better(steps[-1][1], value) if steps else value))
        return steps


class SimulatedExecutor:
    """Workers that take as long as a trial costs: what it returns, or reports last, or else its measured seconds."""

    def __init__(self, objective: Objective, workers: int, overhead: float = 0.0, raise_errors: bool = False) -> None:
        self.objective, self.workers, self.overhead, self.raise_errors = objective, workers, overhead, raise_errors
        self.spans: dict[int, Span] = {}
        self._time = 0.0
        self._speaking: LiveTrial | None = None  # whose objective is being called
        self._ends: list[tuple[float, int, CompletedTrial]] = []

    def now(self) -> float:
        """The time; for an objective that is being called, as much later as it says that it has cost so far."""
        return self._time + (0.0 if self._speaking is None else self._speaking.spent)

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._time += self.overhead
        self._speaking = live
        try:
            seen = evaluate(self.objective, trial, live, raise_errors=self.raise_errors)
        finally:
            self._speaking = None
        cost = cost_of(seen)
        self.spans[trial.number] = Span(self._time, self._time + cost)
        heapq.heappush(self._ends, (self._time + cost, trial.number, CompletedTrial(trial, seen)))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        """The one that is done first, and those that were done while somebody was thinking; with 0 seconds, the latter alone."""
        found: list[CompletedTrial] = []
        while self._ends and (self._ends[0][0] <= self._time or (not found and seconds != 0.0)):
            end, _, finished = heapq.heappop(self._ends)
            self._time = max(self._time, end)
            found.append(finished)
        return found

    def cancel(self) -> None:
        self._ends.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def cost_of(seen: Evaluation) -> float:
    """What an evaluation says that it cost, or reported last, or else its seconds."""
    if is_cost(seen.outcome.cost):
        return read_cost(seen.outcome.cost)
    return next((report["cost"] for report in reversed(seen.reports) if report["cost"] is not None), seen.seconds)


def simulate(
    study: Runnable,
    objective: Objective,
    budget: str | int | Budget,
    *,
    workers: int = 8,
    overhead: float = 0.0,
    callbacks: Any = (),
    raise_errors: bool = False,
    confirm: bool = False,
    **options: Any,
) -> Simulation:
    """As ``study.minimize`` (or ``maximize``, by the study's direction) with so many workers, in simulated time.

    A budget in seconds is one of simulated seconds. The costs are the objective's, so it should give them: ``st.Outcome(value,
    cost=...)``. A second call goes on with the study at time 0.
    """
    executor = SimulatedExecutor(objective, whole_number(workers, "workers", 1), overhead, raise_errors)
    result = study.run(executor, budget, callbacks=callbacks, confirm=confirm, **options)
    return Simulation(result, executor.spans)
