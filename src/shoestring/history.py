"""What happened, and what a model may learn from it.

``History`` is a frozen view of a study's trials. ``observe`` turns it into arrays and settles direction, pending and
failed trials once: behind this line everything is minimised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .numerics import Array
from .parameters import Numeric
from .space import Space
from .traces import Waypoint, gave_up, traced
from .trial import State, Trial


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """The trials of a study in order of their number."""

    trials: tuple[Trial, ...]
    space: Space
    maximize: bool = False
    encoded: tuple[Array, ...] | None = field(default=None, compare=False, repr=False)  # points, where they are known already

    def __len__(self) -> int:
        return len(self.trials)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, index: int | slice) -> Trial | tuple[Trial, ...]:
        return self.trials[index]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @property
    def counted(self) -> int:
        """Trials that were not abandoned."""
        return len(self) - len(self.having(State.ABANDONED))

    def having(self, *states: State) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.state in states)

    @property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        ranked = self.ranked()
        return ranked[0] if ranked else None

    def ranked(self) -> list[Trial]:
        """Finished trials at the target fidelity, best first; at any fidelity while there is none at the target."""
        done = self.having(State.DONE)
        pool = [trial for trial in done if self.at_target(trial)] or done
        return sorted(pool, key=lambda trial: float(trial.value or 0.0), reverse=self.maximize)

    @property
    def spent(self) -> float:
        """The cost of all trials so far, failed and abandoned ones included."""
        return float(sum(trial.cost or 0.0 for trial in self.trials))

    @cached_property
    def points(self) -> tuple[Array, ...]:
        """Each trial's config as a point of the unit cube."""
        return self.encoded if self.encoded is not None else tuple(self.space.encode(trial.config) for trial in self.trials)

    @property
    def known(self) -> Mapping[str, Any] | None:
        """What the last model-based suggestion left behind."""
        return next((trial.suggestion["model"] for trial in reversed(self.trials) if "model" in trial.suggestion), None)

    def first(self, count: int) -> History:
        """As it was when there were ``count`` trials, had each been finished before the next was asked."""
        return History(self.trials[:count], self.space, self.maximize, self.points[:count])

    def at_target(self, trial: Trial) -> bool:
        return all(trial.config[name] == goal for name, goal in self._target)

    @cached_property
    def _target(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.space.target.items())

    def results(self) -> list[float | None]:
        """The values of finished trials at the target fidelity in order of number; None for a failed one."""
        return [
            trial.value if trial.state is State.DONE else None
            for trial in self.trials
            if trial.state in (State.DONE, State.FAILED) and self.at_target(trial)
        ]

    @property
    def evaluations(self) -> int:
        """Finished trials that a model of the target learns from: where there are fidelities, those at lower ones too."""
        done = self.having(State.DONE)
        return len(done) if self._target else sum(self.at_target(trial) for trial in done)

    def bests(self) -> list[tuple[float, float]]:
        """(cost spent, best value) after each finished trial at the target fidelity, for convergence plots."""
        steps, spent, best = list[tuple[float, float]](), 0.0, np.nan
        pick = np.fmax if self.maximize else np.fmin
        for trial in self.trials:
            spent += trial.cost or 0.0
            if trial.state is State.DONE and self.at_target(trial):
                best = float(pick(best, float(trial.value or 0.0)))
                steps.append((spent, best))
        return steps


@dataclass(frozen=True)
class Observations:
    """A history as arrays, values signed so that lower is better.

    U        n x D      points of finished trials;   y  their values;   at_target  those at the target fidelity
    traces   how many of the n, the last ones, are not trials but what trials reported along the way, at lower fidelities
    failed   f x D      points of failed trials
    pending  m x D      points of trials still running
    given_up g x D      points at which trials were asked that were stopped early, as they no longer promised anything
    sign     1, or -1 where the user maximizes: sign * y is in the user's units
    slopes   n x D      d y / d u by the coordinates of the unit cube, NaN where no slope was told
    priced   c x D      points of finished and failed trials with a known cost;   gamma  the logarithms of those costs;
                        censored  where they are lower bounds;  measured  where they are seconds that nobody gave
    """

    U: Array
    y: Array
    at_target: NDArray[np.bool_]
    failed: Array
    pending: Array
    sign: float
    priced: Array
    gamma: Array
    censored: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    slopes: Array
    given_up: Array
    traces: int = 0

    @property
    def finished(self) -> int:
        """How many rows of U are finished trials: the first ones, in order of number."""
        return len(self.y) - self.traces

    @property
    def seen(self) -> Array:
        """Every point that need not be asked again."""
        return np.vstack([self.U, self.failed, self.pending, self.given_up])

    @property
    def eligible(self) -> NDArray[np.intp]:
        """Finished trials that may be the best: those at the target fidelity, or all while there are none."""
        at_target = self.at_target[: self.finished]
        return np.flatnonzero(at_target) if at_target.any() else np.arange(self.finished)

    @property
    def order(self) -> NDArray[np.intp]:
        """Finished trials, those at the target first, best first."""
        return np.lexsort((self.y[: self.finished], ~self.at_target[: self.finished]))

    def only(self, rows: NDArray[np.intp]) -> Observations:
        """Some of the values, by rising row, and all the rest."""
        traces = int((rows >= self.finished).sum())
        at_target, slopes = self.at_target[rows], self.slopes[rows]
        return replace(self, U=self.U[rows], y=self.y[rows], at_target=at_target, slopes=slopes, traces=traces)

    def without_traces(self) -> Observations:
        """Only what trials ended with: for what goes back from a row to its trial, or cannot tell fidelities apart."""
        return self.only(np.arange(self.finished)) if self.traces else self

    def with_traces(self, waypoints: Sequence[Waypoint], space: Space) -> Observations:
        """With values that were reported along the way, and their costs where they are known."""
        if not waypoints:
            return self
        U, paid = np.array([each.u for each in waypoints]), [each for each in waypoints if each.cost]
        return replace(
            self,
            U=np.vstack([self.U, U]),
            y=np.concatenate([self.y, self.sign * np.array([each.value for each in waypoints])]),
            at_target=np.concatenate([self.at_target, on_target(U, space)]),
            slopes=np.vstack([self.slopes, np.full(U.shape, np.nan)]),
            traces=self.traces + len(U),
            priced=np.vstack([self.priced, *(each.u for each in paid)]),
            gamma=np.concatenate([self.gamma, np.log([each.cost or 1.0 for each in paid])]),
            censored=np.concatenate([self.censored, np.zeros(len(paid), dtype=bool)]),
            measured=np.concatenate([self.measured, np.zeros(len(paid), dtype=bool)]),
        )


def observe(history: History) -> Observations:
    """The history as arrays."""
    space = history.space
    U = np.array(history.points).reshape(len(history), len(space))
    states = np.array([trial.state for trial in history], dtype="<U9")
    done, sign = states == State.DONE, -1.0 if history.maximize else 1.0
    finished = history.having(State.DONE)
    y = sign * np.array([trial.value for trial in finished], dtype=float)
    U_done = U[done]
    priced = np.array([trial.state in (State.DONE, State.FAILED) and (trial.cost or 0.0) > 0.0 for trial in history], dtype=bool)
    paid = [trial for trial, known in zip(history, priced, strict=True) if known]
    given_up = [space.encode({**trial.config, **trial.suggestion["asked"]}) for trial in finished if gave_up(trial)]
    slopes = np.full(U_done.shape, np.nan)
    for row, trial in enumerate(finished):
        if trial.gradient:
            slopes[row] = unit_slopes(trial, space)
    seen = Observations(
        U=U_done,
        y=y,
        at_target=on_target(U_done, space),
        failed=U[states == State.FAILED],
        pending=U[states == State.RUNNING],
        sign=sign,
        priced=U[priced],
        gamma=np.log([float(trial.cost or 0.0) for trial in paid]),
        censored=np.array([trial.censored for trial in paid], dtype=bool),
        measured=np.array([trial.cost == trial.seconds for trial in paid], dtype=bool),
        slopes=sign * slopes,
        given_up=np.array(given_up).reshape(len(given_up), len(space)),
    )
    return seen.with_traces(traced(history.trials, space) if space.fidelities else [], space)


def on_target(U: Array, space: Space) -> NDArray[np.bool_]:
    """Which points are at the target fidelity."""
    return np.asarray((np.abs(space.at_target(U) - U) < 1e-9).all(axis=1))


def unit_slopes(trial: Trial, space: Space) -> Array:
    """A trial's gradient by the coordinates of the unit cube, in the user's sign; NaN where it has none."""
    slopes = np.full(len(space), np.nan)
    for column, (name, parameter) in enumerate(space.items()):
        if trial.gradient and name in trial.gradient and isinstance(parameter, Numeric):
            slope = trial.gradient[name] * parameter.stretch(trial.config[name])
            slopes[column] = slope if np.isfinite(slope) else np.nan  # beyond the largest float: as good as unknown
    return slopes
