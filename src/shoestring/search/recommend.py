"""The recommendation: the config whose posterior mean at the target fidelity is lowest.

It is risk-neutral: of all configs the one with the best expected value, evaluated or not. Noise fools it less than the best value
seen, and a fidelity at which nothing was evaluated yet is no obstacle. Where evaluations fail, only places that are likelier to
succeed than not are considered beside those that have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..acquisition.base import average
from ..acquisition.optimize.candidates import is_visited
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface, local_search
from ..data.trial import State
from ..data.trial_table import SAME_POINT
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import SearchContext

MEAN_TOLERANCE = 1e-12  # of the model's deviation: a recommendation is as good as its model, not as good as the search for it
CONFIRMS = "confirms what is recommended"  # why a trial was asked


@dataclass(frozen=True)
class RecommendedPoint:
    """A point at the target fidelity, its predicted value in the user's units, and the finished trial (in order) there."""

    u: Array
    value: float
    row: int | None


def recommend(context: SearchContext, tried: bool = False) -> RecommendedPoint | None:
    """The best expected value over the space, or with ``tried`` over what was evaluated; None while nothing has succeeded.

    ``tried`` looks at trials of the target fidelity, and at all while there are none.
    """
    data = context.data
    if not data.finished:
        return None
    belief = context.belief(costs=False)
    surface = negative_mean(belief)
    if tried:
        rows = data.eligible
        if context.model.subset is not None:  # of the others the model knows nothing, and may hope for too much
            learnt = is_visited(context.space.at_target(data.U[rows]), belief.evaluated)
            rows = rows[learnt] if learnt.any() else rows
        row = int(rows[np.argmax(surface(data.U[rows], False)[0])])
        return RecommendedPoint(data.U[row], in_users_units(belief, surface, data.U[row], data.sign), row)
    u = lowest_mean(belief, surface, context.optimizer())
    row_confirmed = confirmed(context)
    if row_confirmed is not None and still_good(belief, surface, data.U[row_confirmed], float(data.y[row_confirmed]), u):
        point = data.U[row_confirmed]
        return RecommendedPoint(point, in_users_units(belief, surface, point, data.sign), row_confirmed)
    same = np.flatnonzero((np.abs(data.U[: data.finished] - u) < SAME_POINT).all(axis=1))
    row_there = int(same[np.argmin(data.y[same])]) if len(same) else None
    return RecommendedPoint(u, in_users_units(belief, surface, u, data.sign), row_there)


def confirmed(context: SearchContext) -> int | None:
    """The row of the last trial, if that was there to confirm a recommendation."""
    history = context.history
    last = history[-1] if len(history) else None
    if last is None or last.state is not State.DONE or last.suggestion.get("why") != CONFIRMS:
        return None
    return context.data.finished - 1


def still_good(belief: Belief, surface: Surface, point: Array, value: float, best: Array) -> bool:
    """Whether a confirmed point, by its mean and by its value, is within a deviation of the lowest mean.

    Another recommendation would have to be confirmed anew.
    """
    there, lowest = surface(np.array([point, best]), False)[0]
    there = min(there, -float(belief.output.forward(np.array([value]))[0]))
    deviation = float(np.sqrt(belief.moments(belief.encoding.features(best[None, :]))[1][0] + belief.objective.noise))
    return bool(lowest - there <= deviation)


def lowest_mean(belief: Belief, surface: Surface, optimizer: AcquisitionOptimizer) -> Array:
    """Where the posterior mean is lowest at the target fidelity, found by the acquisition optimizer."""
    found = replace(optimizer, visited=optimizer.visited[:0]).maximize(surface)
    points, values = found.U, found.values
    if belief.feasibility is not None:
        likely = belief.feasibility.is_likely(belief.encoding.features(points))
        points, values = points[likely], values[likely]
    points = np.vstack([points, belief.evaluated])
    values = np.concatenate([values, surface(belief.evaluated, False)[0]])
    first = [int(np.argmax(values))]
    ends, _ = local_search(surface, belief.encoding, points[first], values[first], 1, optimizer.rng, tolerance=MEAN_TOLERANCE)
    return np.asarray(ends[0])


def negative_mean(belief: Belief) -> Surface:
    """Minus the posterior mean, over all hyperparameter samples; what is only assumed of pending trials does not count."""

    def under(one: Belief) -> Surface:
        posterior = one.without_pending or one.objective

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            Z = belief.encoding.features(U)
            if not gradient:
                return -posterior.mean_at(Z), None
            mean, _, slope, _ = posterior.with_gradients(Z)
            return -mean, -belief.encoding.pull_back(U, slope)

        return value

    return average([under(one) for one in belief.samples], log_space=False)


def in_users_units(belief: Belief, surface: Surface, u: Array, sign: float) -> float:
    return sign * float(belief.output.inverse(-surface(u[None, :], False)[0])[0])
