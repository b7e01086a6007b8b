"""``TraceKG``: which run to begin or to go on with, and how far, by the knowledge gradient of its whole learning curve.

The candidates are new configurations over the space and near good ones, and the runs that may go on. Each is valued at a ladder
of stops (``kg_trace``), per unit of what it costs to get there. The best few new ones are searched around once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..cost.base import expected_log_cost
from ..cost.incremental import started_runs
from ..data.intermediate import SAME_FIDELITY
from ..data.training_run import idle_starts
from ..data.trial_table import SAME_POINT
from ..data.visited import is_among
from ..numerics import Array, single_threaded
from ..space.parameters import Fidelity
from ..space.space import Space
from ..surrogate.belief import Belief
from ..surrogate.curves_evidence import Points
from ..surrogate.curves_posterior import CurvePosterior, Query
from ..surrogate.curves_study import CurveFit, StudyCurves
from ..surrogate.curves_target import CurveSurrogate
from .kg_fidelity import CFKG, assumed_negative_log_cost
from .kg_trace import TINY, TraceCandidates, log_trace_kg, log_worth, trace_moves
from .knowledge_gradient import KG_OPTIMIZER_OPTIONS, initial_discretization
from .optimize.candidates import is_visited, neighbours
from .optimize.optimizer import AcquisitionOptimizer, Selection

N_NEW = 96  # new configurations that are compared, beside the minima of the mean
N_NEAR = 48  # around the best trials, and again around the best candidates
N_GOING_ON = 32  # started runs that are compared: those with the lowest means
N_DISCRETIZED_RUNS = 20
STOPS = 7  # fidelities that are compared, from the lowest to the target, on a logarithmic scale
WORTHLESS = 1e6  # the mean of a value that is no answer, in units of the values at the target


@dataclass(frozen=True)
class TraceKG(CFKG):
    """The knowledge gradient of whole learning curves, per unit of what they still cost.

    For objectives that report values on the way to their fidelity (``trial.report``). To begin a new run or to go on with an old
    one (``st.Fidelity(..., resumable=True)``), and how far, is one choice. While there are too few learning curves, or they
    predict no better than single values do, it is ``CFKG``.

    batch  the cost of several trials at once (``ask_many``): "max", that of the most expensive one (their time), or "sum"

    >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), method=st.TraceKG())
    >>> study.ask().fidelity["epochs"] in range(1, 10)
    True
    """

    values_batches: ClassVar[bool] = False  # a batch is chosen one by one, each with the others pending

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The best run and stop of all candidates; those of CFKG where there is no model of curves."""
        if not isinstance(belief.model, CurveSurrogate):
            return super().select(belief, optimizer)
        search = TraceSearch.of(belief, optimizer, self.others)
        U, rows = search.first_candidates()
        if not len(U):  # every configuration has a run, and none of these can go on
            return super().select(belief, optimizer)
        worth, log_gain = search.values(U, rows)
        best = np.argsort(-worth.max(axis=1), kind="stable")[:5]
        near = search.new_ones(neighbours(U[best[rows[best] < 0]], N_NEAR, belief.encoding.space, optimizer.rng))
        fresh = np.full(len(near), -1)
        found = search.values(near, fresh)
        U, worth, log_gain = np.vstack([U, near]), np.vstack([worth, found[0]]), np.vstack([log_gain, found[1]])
        run, stop = np.unravel_index(int(np.argmax(worth)), worth.shape)
        if not np.isfinite(worth[run, stop]):
            return super().select(belief, optimizer)
        u = search.at_stop(U[[run]], int(stop))[0]
        return Selection(u, {"log_gain": float(log_gain[run, stop])})


@dataclass(frozen=True, kw_only=True)
class TraceSearch:
    """Candidates of one choice, and their values.

    posterior   of the curves, with pending runs as if they came out as expected
    column      of the traced fidelity;   stops, grid   see ``TraceCandidates``;   units  the stops as unit coordinates
    fixed       the discretization: the best runs, and ``minima``, those of the mean
    going_on    rows of the curves that may go on
    others      KG and cost of the other members of a batch, None where there are none or each is paid for
    """

    belief: Belief
    optimizer: AcquisitionOptimizer
    curves: CurveFit
    posterior: CurvePosterior
    column: int
    stops: Array
    units: Array
    grid: Array
    fixed: Query
    minima: Array
    going_on: NDArray[np.intp]
    others: tuple[float, float] | None = None

    @classmethod
    def of(cls, belief: Belief, optimizer: AcquisitionOptimizer, others: tuple[float, float] | None = None) -> TraceSearch:
        assert isinstance(belief.model, CurveSurrogate)
        curves, space = belief.model.curves, belief.encoding.space
        data = curves.data
        column = space.names.index(data.traced)
        stops, units = fidelity_ladder(space, data.traced)
        grid = whole_grid(data.grid)
        posterior = with_pending_runs(curves, belief, grid)
        at_target = np.flatnonzero((np.abs(space.at_target(data.U) - data.U) < SAME_POINT).all(axis=1))
        means = posterior.mean_and_variance(posterior.started(at_target))[0]
        kept = at_target[np.argsort(means, kind="stable")[:N_DISCRETIZED_RUNS]]
        points = initial_discretization(belief, replace(optimizer, options=KG_OPTIMIZER_OPTIONS))
        new = posterior.new(data.features(points))
        fixed = joined_queries(posterior.started(kept), replace(new, rows=new.rows - len(data.U)))
        busy = np.vstack([belief.data.pending, belief.data.failed])  # what has failed would fail again
        going_on = matching_rows(idle_starts(belief.data.started, busy, space), data.U, column)
        return cls(
            belief=belief, optimizer=optimizer, curves=curves, posterior=posterior, column=column, stops=stops, units=units,
            grid=grid, fixed=fixed, minima=points, going_on=going_on, others=others,
        )  # fmt: skip

    def new_ones(self, U: Array) -> Array:
        """Points of the space, the traced fidelity at its target; without configurations that have a run already."""
        space = self.belief.encoding.space
        U = space.snap(U)
        U[:, self.column] = space.target_units[self.column]
        return U[~is_among(U, self.taken)]

    @cached_property
    def taken(self) -> Array:
        """The configurations that have a run, also a pending one, in this form."""
        pending = self.belief.data.pending.copy()
        pending[:, self.column] = self.belief.encoding.space.target_units[self.column]
        return np.vstack([self.curves.data.U, pending])

    def first_candidates(self) -> tuple[Array, NDArray[np.intp]]:
        """New configurations over the space and near good ones, and started runs: points, and rows of curves (-1: new)."""
        optimizer, data = self.optimizer, self.curves.data
        near = neighbours(optimizer.incumbents, N_NEAR, self.belief.encoding.space, optimizer.rng)
        new = self.new_ones(np.vstack([self.minima, optimizer.candidates(N_NEW), near]))
        rows = self.going_on
        if len(rows) > N_GOING_ON:
            means = self.posterior.mean_and_variance(self.posterior.started(rows))[0]
            rows = rows[np.argsort(means, kind="stable")[:N_GOING_ON]]
        return np.vstack([new, data.U[rows]]), np.append(np.full(len(new), -1), rows).astype(np.intp)

    def at_stop(self, U: Array, stop: int) -> Array:
        """The points that are asked."""
        asked = U.copy()
        asked[:, self.column] = self.units[stop]
        return asked

    def values(self, U: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        """What the candidates are compared by (``log_worth``), and log KG: m x k each."""
        space, data = self.belief.encoding.space, self.curves.data
        new = np.where(rows < 0, -1 - np.arange(len(rows)) - len(data.U) - len(self.fixed.X), rows)
        candidates = TraceCandidates(X=data.features(U), rows=new, stops=self.stops, grid=self.grid)
        moves = trace_moves(self.posterior, self.fixed, candidates)
        elsewhere = (np.abs(space.at_target(U) - U) > SAME_POINT).any(axis=1)  # another fidelity is lower: it is no answer itself
        moves.means[elsewhere, -1] = WORTHLESS
        moves.moves[elsewhere, :, -1] *= 0.0
        log_cost, feasibility = self.allowed_log_costs(U), self.belief.feasibility
        chance = np.zeros(len(U)) if feasibility is None else feasibility.log_probability(self.belief.encoding.features(U))

        def worth(log_kg: Array) -> Array:
            return log_worth(log_kg + chance[:, None], log_cost, self.others)

        log_kg = log_trace_kg(moves, worth)
        return worth(log_kg), log_kg + chance[:, None]

    def allowed_log_costs(self, U: Array) -> Array:
        """Of going on to each stop (m x k); NaN where that is not affordable or must not be suggested again."""
        asked = np.repeat(U, len(self.stops), axis=0)
        asked[:, self.column] = np.tile(self.units, len(U))
        log_cost, spending = self.log_costs(asked), self.belief.spending
        if spending is not None and spending.in_cost and self.belief.cost is not None:
            log_cost = np.where(np.exp(log_cost) <= max(spending.left, 0.0), log_cost, np.nan)
        return np.where(is_visited(asked, self.optimizer.visited), np.nan, log_cost).reshape(len(U), -1)

    def log_costs(self, asked: Array) -> Array:
        """The expected costs of trials at points; the assumed ones while none are known."""
        data, space, cost = self.belief.data, self.belief.encoding.space, self.belief.cost
        if cost is not None:
            return expected_log_cost(cost, asked)
        return -assumed_negative_log_cost(space, started_runs(data, space))(asked, False)[0]


def fidelity_ladder(space: Space, name: str) -> tuple[Array, Array]:
    """The stops as shares of the target, and as unit coordinates."""
    parameter, column = space[name], space.names.index(name)
    assert isinstance(parameter, Fidelity)
    goal = float(space.target[name])
    low = max(float(parameter.low), goal / 2.0 ** (STOPS - 1))
    points = np.full((STOPS, len(space)), 0.5)
    points[:, column] = parameter.to_unit(np.geomspace(low, goal, STOPS))
    units = np.unique(space.snap(points)[:, column])
    units = units[units <= space.target_units[column] + SAME_POINT]
    points = np.full((len(units), len(space)), 0.5)
    points[:, column] = units
    return np.array([float(space.decode(u)[name]) / goal for u in points]), units


def whole_grid(grid: Array) -> Array:
    """The times of reports, continued to the target as they are spaced so far."""
    if grid[-1] >= 1.0 - TINY:
        return grid
    step = max(float(np.median(np.diff(grid))) if len(grid) > 1 else grid[-1], (1.0 - grid[-1]) / 50.0)
    later = np.arange(grid[-1] + step, 1.0 - 0.5 * step, step)
    return np.concatenate([grid, later, [1.0]])


def matching_rows(started: Array, U: Array, column: int) -> NDArray[np.intp]:
    """The rows of the curves whose configurations these are."""
    others = np.arange(U.shape[1]) != column
    found = [np.flatnonzero((np.abs(U[:, others] - u[others]) < SAME_POINT).all(axis=1)) for u in started]
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)


def with_pending_runs(curves: CurveFit, belief: Belief, grid: Array) -> CurvePosterior:
    """The posterior as if each pending trial had come out as expected: what it will tell need not be bought again.

    A trial that goes on with a run adds the points ahead to the curve of that run, any other trial is a curve of its own.
    """
    posterior, data = curves.posterior, curves.data
    pending = belief.data.pending
    if not len(pending):
        return posterior
    known, space = posterior.curves, belief.encoding.space
    times, values, X, begun = list(known.times), list(known.values), data.features(pending), list[int]()
    for place, (u, row) in enumerate(zip(pending, pending_rows(belief, data), strict=True)):
        end = float(space.decode(u)[data.traced]) / data.goal
        reached = float(known.times[row][-1]) if row >= 0 else -1.0
        ahead = grid[(grid > reached + TINY) & (grid <= end + TINY)]
        if not len(ahead):  # the grid has no point on the way there
            ahead = np.array([end]) if end > reached + TINY else grid[:0]
        if row < 0:
            begun.append(place)
            times.append(ahead)
            values.append(posterior.mean_and_variance(posterior.new(np.tile(X[place], (len(ahead), 1)), ahead))[0])
        elif len(ahead):
            expected = posterior.mean_and_variance(posterior.started(np.full(len(ahead), row), ahead))[0]
            times[row], values[row] = np.append(times[row], ahead), np.append(values[row], expected)
    joined = known.of(np.vstack([known.Z, X[begun]]), times, values)
    kappa = np.concatenate([posterior.kappa, np.ones(len(begun))])
    return CurvePosterior.given(joined, posterior.layout, posterior.theta, kappa)


def pending_rows(belief: Belief, data: StudyCurves) -> list[int]:
    """For each pending trial the row of the curve that it goes on with, -1 where it begins a run.

    Of the runs of its config that may go on it is the one that has come furthest below the fidelity that was asked, as in
    ``begin_trial``. Each run is gone on with once.
    """
    started, space, found = belief.data.started, belief.encoding.space, list[int]()
    column = space.names.index(data.traced)
    for u in belief.data.pending:
        found.append(-1)
        rows = matching_rows(u[None, :], data.U, column)
        if started is None or not len(rows):
            continue
        ends = started[matching_rows(u[None, :], started, column), column]
        for end in np.sort(ends[ends < u[column] - SAME_POINT])[::-1]:
            point = np.where(np.arange(len(u)) == column, end, u)
            reached = float(space.decode(point)[data.traced]) / data.goal
            those = [row for row in rows.tolist() if row not in found and has_point(data.points[row], reached)]
            if those:  # of several runs that have passed this point, the one that has ended there
                found[-1] = min(those, key=lambda row: max(data.points[row]) - reached)
                break
    return found


def has_point(points: Points, time: float) -> bool:
    """Whether a curve has a point at this time."""
    return any(abs(each - time) < SAME_FIDELITY for each in points)


def joined_queries(one: Query, other: Query) -> Query:
    """Two queries as one."""
    parts = [np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("X", "t", "rows", "psi", "shift", "own")]
    return Query(*parts)
