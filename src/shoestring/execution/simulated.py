"""Simulated time: an executor whose clock follows the costs of the trials, for experiments on recorded results without waiting.

A trial is evaluated when it starts, and its result is kept until the simulated time at which the trial ends. The loop is the
ordinary one: suggestions are made in the order in which workers become free, from the results and the pending points of that
moment. Suggestions can take simulated time too: they are made one after the other, ``overhead`` seconds each.

``trial.should_stop()`` is answered from the results that were known when the trial started.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from .._validation import whole_number
from ..budget import Budget
from ..data.outcome import is_cost, read_cost
from ..data.trial import Trial
from ..report.result import Result
from .evaluate import Evaluation, LiveTrial, Objective, evaluate
from .executor import CompletedTrial


class Runnable(Protocol):
    """A study that can run with a given executor."""

    @property
    def run(self) -> Callable[..., Result]: ...


@dataclass(frozen=True)
class Span:
    """The start and the end of a trial, in simulated seconds since the start of the run."""

    start: float
    end: float


@dataclass(frozen=True)
class Simulation:
    """The result of a simulated run, and the time span of each trial by its number."""

    result: Result
    spans: dict[int, Span]

    @property
    def seconds(self) -> float:
        """The simulated time at which the last trial ended."""
        return max((span.end for span in self.spans.values()), default=0.0)

    def bests(self) -> list[tuple[float, float]]:
        """The incumbent over time: (time, best value so far) at the end of each trial with a value at the target fidelity."""
        history = self.result.history
        better = max if history.maximize else min
        steps: list[tuple[float, float]] = []
        for number, span in sorted(self.spans.items(), key=lambda item: (item[1].end, item[0])):
            value = history[number].value
            if value is not None and history.at_target(history[number]):
                steps.append((span.end, better(steps[-1][1], value) if steps else value))
        return steps


class SimulatedExecutor:
    """An executor on which a trial takes as many simulated seconds as it costs (see ``simulated_seconds``)."""

    def __init__(self, objective: Objective, workers: int, overhead: float = 0.0, raise_errors: bool = False) -> None:
        self.objective, self.workers, self.overhead, self.raise_errors = objective, workers, overhead, raise_errors
        self.spans: dict[int, Span] = {}
        self._time = 0.0
        self._evaluating: LiveTrial | None = None  # the trial whose objective is being called
        self._ends: list[tuple[float, int, CompletedTrial]] = []  # a heap: the end of each running trial, and its result

    def now(self) -> float:
        """The simulated time. While an objective is called, the cost that it has reported so far is added."""
        return self._time + (0.0 if self._evaluating is None else self._evaluating.spent)

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._time += self.overhead
        self._evaluating = live
        try:
            seen = evaluate(self.objective, trial, live, raise_errors=self.raise_errors)
        finally:
            self._evaluating = None
        cost = simulated_seconds(seen)
        seen = replace(seen, seconds=cost)
        self.spans[trial.number] = Span(self._time, self._time + cost)
        heapq.heappush(self._ends, (self._time + cost, trial.number, CompletedTrial(trial, seen)))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        """The next trial to end, and those that ended while suggestions were made; only the latter if ``seconds`` is 0."""
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


def simulated_seconds(seen: Evaluation) -> float:
    """The cost that an evaluation returned; else the cost that it reported last; else the seconds that it took."""
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
    """Run a study in simulated time: ``study.minimize`` (or ``maximize``, by the study's direction) on ``workers`` workers.

    A budget in seconds is one of simulated seconds. The objective should return its cost: ``st.Outcome(value, cost=...)``. A
    second call continues the study, with times that start at 0 again.
    """
    executor = SimulatedExecutor(objective, whole_number(workers, "workers", 1), overhead, raise_errors)
    result = study.run(executor, budget, callbacks=callbacks, confirm=confirm, **options)
    return Simulation(result, executor.spans)
