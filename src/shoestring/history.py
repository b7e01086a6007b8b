"""What happened, and what a model may learn from it.

``History`` is a frozen view of a study's trials. ``observe`` turns it into arrays and settles direction, pending and
failed trials once: behind this line everything is minimised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .numerics import Array
from .space import Space
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

    U        n x D      points of finished trials;   y  their values;   at_target  those that can be incumbent
    failed   f x D      points of failed trials
    pending  m x D      points of trials still running
    sign     1, or -1 where the user maximizes: sign * y is in the user's units
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

    @property
    def seen(self) -> Array:
        """Every point that need not be asked again."""
        return np.vstack([self.U, self.failed, self.pending])

    @property
    def eligible(self) -> NDArray[np.intp]:
        """Finished trials that may be the best: those at the target fidelity, or all while there are none."""
        return np.flatnonzero(self.at_target) if self.at_target.any() else np.arange(len(self.y))

    @property
    def order(self) -> NDArray[np.intp]:
        """Finished trials, those at the target first, best first."""
        return np.lexsort((self.y, ~self.at_target))


def observe(history: History) -> Observations:
    """The history as arrays."""
    U = np.array(history.points).reshape(len(history), len(history.space))
    states = np.array([trial.state for trial in history], dtype="<U9")
    done, sign = states == State.DONE, -1.0 if history.maximize else 1.0
    y = sign * np.array([trial.value for trial in history if trial.state is State.DONE], dtype=float)
    U_done = U[done]
    priced = np.array([trial.state in (State.DONE, State.FAILED) and (trial.cost or 0.0) > 0.0 for trial in history], dtype=bool)
    goal = history.space.at_target(U_done)
    paid = [trial for trial, known in zip(history, priced, strict=True) if known]
    return Observations(
        U=U_done,
        y=y,
        at_target=(np.abs(goal - U_done) < 1e-9).all(axis=1),
        failed=U[states == State.FAILED],
        pending=U[states == State.RUNNING],
        sign=sign,
        priced=U[priced],
        gamma=np.log([float(trial.cost or 0.0) for trial in paid]),
        censored=np.array([trial.censored for trial in paid], dtype=bool),
        measured=np.array([trial.cost == trial.seconds for trial in paid], dtype=bool),
    )
