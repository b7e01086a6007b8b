"""A history as arrays, which is what a model learns from.

Direction, pending and failed trials are settled here, once: behind this line everything is minimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.space import Space
from .history import History
from .intermediate import IntermediateValue
from .trial import State
from .trial_table import CODES


@dataclass(frozen=True)
class Dataset:
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
    cost_points: Array
    log_cost: Array
    censored: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    gradients: Array
    pruned: Array
    intermediate: int = 0

    @property
    def finished(self) -> int:
        """How many rows of U are finished trials: the first ones, in order of number."""
        return len(self.y) - self.intermediate

    @property
    def visited(self) -> Array:
        """Every point that need not be asked again."""
        return np.vstack([self.U, self.failed, self.pending, self.pruned])

    @property
    def eligible(self) -> NDArray[np.intp]:
        """Finished trials that may be the best: those at the target fidelity, or all while there are none."""
        at_target = self.at_target[: self.finished]
        return np.flatnonzero(at_target) if at_target.any() else np.arange(self.finished)

    @property
    def order(self) -> NDArray[np.intp]:
        """Finished trials, those at the target first, best first."""
        return np.lexsort((self.y[: self.finished], ~self.at_target[: self.finished]))

    def best(self, count: int) -> NDArray[np.intp]:
        """The first rows of ``order``, without putting all the others in order."""
        y, at_target = self.y[: self.finished], self.at_target[: self.finished]
        rows = np.sort(np.concatenate([lowest(y, np.flatnonzero(part), count) for part in (at_target, ~at_target)]))
        return rows[np.lexsort((y[rows], ~at_target[rows]))][:count]

    def select(self, rows: NDArray[np.intp]) -> Dataset:
        """Some of the values, by rising row, and all the rest."""
        traces = int((rows >= self.finished).sum())
        at_target, slopes = self.at_target[rows], self.gradients[rows]
        return replace(self, U=self.U[rows], y=self.y[rows], at_target=at_target, gradients=slopes, intermediate=traces)

    def without_intermediate(self) -> Dataset:
        """Only what trials ended with: for what goes back from a row to its trial, or cannot tell fidelities apart."""
        return self.select(np.arange(self.finished)) if self.intermediate else self

    def with_intermediate(self, waypoints: Sequence[IntermediateValue], space: Space) -> Dataset:
        """With values that were reported along the way, and their costs where they are known."""
        if not waypoints:
            return self
        U, paid = np.array([each.u for each in waypoints]), [each for each in waypoints if each.cost]
        return replace(
            self,
            U=np.vstack([self.U, U]),
            y=np.concatenate([self.y, self.sign * np.array([each.value for each in waypoints])]),
            at_target=np.concatenate([self.at_target, on_target(U, space)]),
            gradients=np.vstack([self.gradients, np.full(U.shape, np.nan)]),
            intermediate=self.intermediate + len(U),
            cost_points=np.vstack([self.cost_points, *(each.u for each in paid)]),
            log_cost=np.concatenate([self.log_cost, np.log([each.cost or 1.0 for each in paid])]),
            censored=np.concatenate([self.censored, np.zeros(len(paid), dtype=bool)]),
            measured=np.concatenate([self.measured, np.zeros(len(paid), dtype=bool)]),
        )


def to_dataset(history: History) -> Dataset:
    """The history as arrays."""
    space, columns = history.space, history.table
    cost, sign = columns.cost[: columns.count], -1.0 if history.maximize else 1.0
    done, failed, pending = (np.flatnonzero(columns.having(state)) for state in (State.DONE, State.FAILED, State.RUNNING))
    paid = np.flatnonzero(columns.having(State.DONE, State.FAILED) & (cost > 0.0))
    sloped = [row for row in sorted(columns.gradients) if columns.state[row] == CODES[State.DONE]]
    slopes = np.broadcast_to(np.nan, (len(done), len(space)))  # takes no memory
    if sloped:
        slopes = slopes.copy()
        slopes[np.searchsorted(done, sloped)] = sign * np.array([columns.gradients[row] for row in sloped])
    pruned = [columns.pruned[row] for row in sorted(columns.pruned)]
    U = columns.U.take(done, axis=0)  # a quarter of the time of U[done]
    seen = Dataset(
        U=U,
        y=sign * columns.value[done],
        at_target=on_target(U, space),
        failed=columns.U[failed],
        pending=columns.U[pending],
        sign=sign,
        cost_points=columns.U.take(paid, axis=0),
        log_cost=np.log(cost[paid]),
        censored=columns.censored[paid],
        measured=columns.measured[paid],
        gradients=slopes,
        pruned=np.array(pruned).reshape(len(pruned), len(space)),
    )
    return seen.with_intermediate(history.intermediate, space)


def on_target(U: Array, space: Space) -> NDArray[np.bool_]:
    """Which points are at the target fidelity."""
    found = np.ones(len(U), dtype=bool)
    for name, goal in space.target.items():
        found &= np.abs(float(space[name].to_unit(goal)) - U[:, space.names.index(name)]) < 1e-9
    return found


def lowest(y: Array, rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Of some rows those with the ``count`` lowest values, and all that are equal to the highest of these."""
    return rows if len(rows) <= count else rows[y[rows] <= np.partition(y[rows], count - 1)[count - 1]]
