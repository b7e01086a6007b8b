"""The training data of the models: a history as arrays.

The direction, and which trials are pending or failed, are settled here, once. All code after this point minimizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.space import Space
from .history import History
from .intermediate import SAME_FIDELITY, IntermediateValue
from .training_run import started_rows
from .trial import State
from .trial_table import CODES

ZERO_COST_SHARE = 0.1  # of the lowest cost above 0: what a cost of 0 counts as in the cost model


@dataclass(frozen=True)
class Dataset:
    """A history as arrays, with values signed such that lower is better.

    U             n x D   points of finished trials, then of ``intermediate`` intermediate values
    y             n       their values;  at_target  which are at the target fidelity
    gradients     n x D   d y / d u, NaN where there is no gradient observation
    failed        f x D   points of failed trials
    pending       m x D   points of running trials
    pruned        g x D   points that were asked of trials that were pruned
    sign          1, or -1 where the user maximizes: sign * y is in the user's units
    cost_points   c x D   points of finished and failed trials with a known cost, then of intermediate values
    log_cost      c       the logarithms of the costs;  censored  which are lower bounds;
                          measured  which are measured seconds, since no other cost was given
    started       r x D   where the runs ended that may go on: configs with the fidelity that they have reached

    The costs are those of runs from the start. A trial that went on from an earlier one has paid for the rest alone: what was
    paid before is added.
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
    started: Array | None = None

    @property
    def finished(self) -> int:
        """The number of rows of U that are finished trials: the first rows, in order of number."""
        return len(self.y) - self.intermediate

    @property
    def visited(self) -> Array:
        """Every point that need not be suggested again."""
        return np.vstack([self.U, self.failed, self.pending, self.pruned])

    @property
    def eligible(self) -> NDArray[np.intp]:
        """The rows of finished trials that may be the best: those at the target fidelity, or all while there are none."""
        at_target = self.at_target[: self.finished]
        return np.flatnonzero(at_target) if at_target.any() else np.arange(self.finished)

    @property
    def order(self) -> NDArray[np.intp]:
        """The rows of finished trials, those at the target first, best first."""
        return np.lexsort((self.y[: self.finished], ~self.at_target[: self.finished]))

    def best(self, count: int) -> NDArray[np.intp]:
        """The first ``count`` rows of ``order``, without a full sort."""
        y, at_target = self.y[: self.finished], self.at_target[: self.finished]
        rows = np.sort(np.concatenate([lowest(y, np.flatnonzero(part), count) for part in (at_target, ~at_target)]))
        return rows[np.lexsort((y[rows], ~at_target[rows]))][:count]

    def select(self, rows: NDArray[np.intp]) -> Dataset:
        """A subset of the values, given by rising rows; the other arrays are unchanged."""
        intermediate = int((rows >= self.finished).sum())
        at_target, gradients = self.at_target[rows], self.gradients[rows]
        return replace(self, U=self.U[rows], y=self.y[rows], at_target=at_target, gradients=gradients, intermediate=intermediate)

    def without_intermediate(self) -> Dataset:
        """Without intermediate values: for code that needs the trial of a row, or cannot tell fidelities apart."""
        return self.select(np.arange(self.finished)) if self.intermediate else self

    def with_intermediate(self, values: Sequence[IntermediateValue], space: Space) -> Dataset:
        """With intermediate values, and their costs where they are known."""
        if not values:
            return self
        U, paid = np.array([each.u for each in values]), [each for each in values if each.cost]
        return replace(
            self,
            U=np.vstack([self.U, U]),
            y=np.concatenate([self.y, self.sign * np.array([each.value for each in values])]),
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
    space, table = history.space, history.table
    cost, sign = table.cost[: table.count], -1.0 if history.maximize else 1.0
    if table.paid_before:
        cost = cost.copy()
        cost[list(table.paid_before)] += list(table.paid_before.values())  # NaN where that is not known: no observation of cost
    done, failed, pending = (np.flatnonzero(table.having(state)) for state in (State.DONE, State.FAILED, State.RUNNING))
    priced = table.having(State.DONE, State.FAILED) & table.priced[: table.count]
    free = priced & (cost == 0.0)
    if free.any():  # a cost of 0 has no logarithm
        positive = cost[priced & (cost > 0.0)]
        cost = np.where(free, ZERO_COST_SHARE * positive.min(), cost) if len(positive) else cost
    paid = np.flatnonzero(priced & (cost > 0.0))
    with_gradient = [row for row in sorted(table.gradients) if table.state[row] == CODES[State.DONE]]
    gradients = np.broadcast_to(np.nan, (len(done), len(space)))  # takes no memory
    if with_gradient:
        gradients = gradients.copy()
        gradients[np.searchsorted(done, with_gradient)] = sign * np.array([table.gradients[row] for row in with_gradient])
    pruned = [table.pruned[row] for row in sorted(table.pruned)]
    U = table.U.take(done, axis=0)  # a quarter of the time of U[done]
    data = Dataset(
        U=U,
        y=sign * table.value[done],
        at_target=on_target(U, space),
        failed=table.U[failed],
        pending=table.U[pending],
        sign=sign,
        cost_points=table.U.take(paid, axis=0),
        log_cost=np.log(cost[paid]),
        censored=table.censored[paid],
        measured=table.measured[paid],
        gradients=gradients,
        pruned=np.array(pruned).reshape(len(pruned), len(space)),
        started=table.U[started_rows(history)] if space.resumable else None,
    )
    return data.with_intermediate(history.intermediate, space)


def on_target(U: Array, space: Space) -> NDArray[np.bool_]:
    """Which points are at the target fidelity."""
    mask = np.ones(len(U), dtype=bool)
    for column, unit in space.target_units.items():
        mask &= np.abs(unit - U[:, column]) < SAME_FIDELITY
    return mask


def lowest(y: Array, rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Of some rows, those with the ``count`` lowest values, and all that are equal to the highest of these."""
    return rows if len(rows) <= count else rows[y[rows] <= np.partition(y[rows], count - 1)[count - 1]]
