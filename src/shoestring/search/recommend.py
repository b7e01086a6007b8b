"""The recommendation: the config with the best expected value at the target fidelity, as far as the model can be trusted.

The lowest posterior mean is the best answer of a model that is right. A model that is wrong somewhere is most wrong where its
mean is lowest. So what was evaluated at the target is kept, unless another config passes three tests:

    gain         mu(best) - mu(x) > RISK (1 + FEW / n) c sd(f(best) - f(x)): n configs were evaluated at the target, and c says
                 how far the model is off (``calibration``)
    plausible    mu(x) is not below all that was seen at any fidelity, except by as much as the best few configs differ that are
                 no near copies of each other
    near         x is near evaluated configs: an untried config far from them has to be evaluated first (``confirm=True``)

No other config passes where learning curves are reported and runs fail on their way: one that looks best early may fail too.

Of what was evaluated, the lowest mu + c sd is best: noise and extrapolation over fidelities count against a config. While
nothing was evaluated at the target, all configs are compared by that. Where evaluations fail, only places that are likelier to
succeed than not are considered beside those that have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..acquisition.base import average
from ..acquisition.optimize.candidates import is_visited, separated_points, unique_points
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface, local_search
from ..data.trial import State
from ..data.trial_table import SAME_POINT
from ..numerics import Array, cholesky
from ..space.parameters import Choice
from ..surrogate.belief import Belief
from ..surrogate.posterior import Posterior
from .base import SearchContext

MEAN_TOLERANCE = 1e-12  # of the model's deviation: a recommendation is as good as its model, not as good as the search for it
CONFIRMS = "confirms what is recommended"  # why a trial was asked
RISK = 3.0  # calibrated deviations by which an untried config must be better than the best evaluated one, if these are many
FEW = 2.0  # that share more for one config evaluated at the target, half of it for two: they tell little of the model's errors
CALIBRATION_ROWS = 20  # the most promising values, by which the model is calibrated: it is wrong elsewhere in other ways
CALIBRATION_PRIOR = 2.0  # values' worth of belief that the model is calibrated
MAX_NOVELTY = 0.25  # share of the prior variance that is left at a config, if all evaluated configs were known: above, it is far
NEAR_COPY = 0.1  # of the cube's side: configs that differ by no more, and in no option, say the same of what is plausible
NOVELTY_JITTER = 1e-6  # of the prior variance
LOCAL_MINIMA = 6  # of the mean, that are compared beside what was evaluated


@dataclass(frozen=True)
class RecommendedPoint:
    """A point at the target fidelity, its predicted value in the user's units, and the finished trial (in order) there."""

    u: Array
    value: float
    row: int | None


def recommend(context: SearchContext, tried: bool = False, to_confirm: bool = False) -> RecommendedPoint | None:
    """The best config over the space, or with ``tried`` over what was evaluated; None while nothing has succeeded.

    ``tried`` looks at trials of the target fidelity, and at all while there are none. ``to_confirm`` is what is worth an
    evaluation at the target: no gain has to be certain then.
    """
    data = context.data
    if not data.finished:
        return None
    belief = context.belief(costs=False)
    surface = negative_mean(belief)

    def found_at(u: Array, row: int | None) -> RecommendedPoint:
        return RecommendedPoint(u, in_users_units(belief, surface, u, data.sign), row)

    judge = Judge.of(belief, surface)
    if tried:
        rows = data.eligible
        if context.model.subset is not None:  # of the others the model knows nothing, and may hope for too much
            learnt = is_visited(context.space.at_target(data.U[rows]), belief.evaluated)
            rows = rows[learnt] if learnt.any() else rows
        row = int(rows[np.argmin(judge.cautious(data.U[rows]))])
        return found_at(data.U[row], row)
    fail_late = belief.feasibility is not None and context.fits.curves is not None
    u = safest(belief, judge, context.optimizer(), 0.0 if to_confirm else math.inf if fail_late else RISK)
    row_confirmed = confirmed(context)
    if row_confirmed is not None and still_good(belief, surface, data.U[row_confirmed], float(data.y[row_confirmed]), u):
        return found_at(data.U[row_confirmed], row_confirmed)
    same = np.flatnonzero((np.abs(data.U[: data.finished] - u) < SAME_POINT).all(axis=1))
    return found_at(u, int(same[np.argmin(data.y[same])]) if len(same) else None)


@dataclass(frozen=True)
class Judge:
    """What a belief says of configs at the target fidelity, and how far it can be trusted."""

    belief: Belief
    surface: Surface
    proven: Array  # the configs that were evaluated at the target
    off: float  # c: how many times too small the deviations are
    floor: float  # values below this were never seen, nor anything near them

    @classmethod
    def of(cls, belief: Belief, surface: Surface) -> Judge:
        data = belief.data
        proven = unique_points(data.U[: data.finished][data.at_target[: data.finished]])
        return cls(belief, surface, proven, calibration(belief), plausible_floor(belief))

    def means(self, U: Array) -> Array:
        return -self.surface(U, False)[0]

    def deviations(self, U: Array) -> Array:
        """Of f at the points, calibrated."""
        return self.off * np.sqrt(self.belief.moments(self.belief.encoding.features(U))[1])

    def cautious(self, U: Array) -> Array:
        """mu + c sd."""
        return self.means(U) + self.deviations(U)

    def deviations_from(self, U: Array, best: Array) -> Array:
        """Of f at the points minus f at the best one, calibrated."""
        Z, z = (self.belief.encoding.features(points) for points in (U, best[None, :]))
        spread = []
        for each in self.belief.samples:
            posterior = each.without_pending or each.objective
            (_, at_points), (_, at_best) = posterior.mean_and_variance(Z), posterior.mean_and_variance(z)
            spread.append(at_points + at_best - 2.0 * posterior.covariance(Z, z)[:, 0])
        return np.asarray(self.off * np.sqrt(np.maximum(np.mean(spread, axis=0), 0.0)))


def safest(belief: Belief, judge: Judge, optimizer: AcquisitionOptimizer, risk: float) -> Array:
    """The best config evaluated at the target, or the one with the lowest mean of those that pass all tests.

    With an infinite risk none of these passes.
    """
    U = promising(belief, judge, optimizer)
    U = U[novelty(belief, U) <= MAX_NOVELTY]
    if not len(judge.proven):
        U = np.vstack([U, possible_answers(belief, judge)])
        return np.asarray(U[int(np.argmin(judge.cautious(U) if risk > 0.0 else judge.means(U)))])
    best = judge.proven[int(np.argmin(judge.cautious(judge.proven)))]
    if math.isinf(risk):
        return np.asarray(best)
    means, risk = judge.means(U), risk * (1.0 + FEW / len(judge.proven))
    passes = (judge.means(best[None, :])[0] - means > risk * judge.deviations_from(U, best)) & (means >= judge.floor)
    return np.asarray(U[passes][int(np.argmin(means[passes]))] if passes.any() else best)


def affordable_alternative(context: SearchContext, affordable: Callable[[Array], NDArray[np.bool_]]) -> Array | None:
    """Of the evaluated configs and the minima of the mean, the lowest mean that is affordable at the target and not known there.

    None if what was evaluated at the target is expected to be better than all of these.
    """
    belief = context.belief(costs=False)
    judge = Judge.of(belief, negative_mean(belief))
    U = unique_points(promising(belief, judge, context.optimizer()))
    U = U[affordable(U) & ~is_visited(U, judge.proven) & (novelty(belief, U) <= MAX_NOVELTY)]
    means = judge.means(U)
    if not len(U) or (len(judge.proven) and means.min() >= judge.means(judge.proven).min()):
        return None
    return np.asarray(U[int(np.argmin(means))])


def promising(belief: Belief, judge: Judge, optimizer: AcquisitionOptimizer) -> Array:
    """Local minima of the posterior mean at the target fidelity, and the evaluated configs."""
    found = replace(optimizer, visited=optimizer.visited[:0]).maximize(judge.surface)
    points = found.U
    if belief.feasibility is not None:
        points = points[belief.feasibility.is_likely(belief.encoding.features(points))]
    evaluated = belief.evaluated
    low = evaluated[np.argsort(judge.means(evaluated), kind="stable")[:2]]
    starts = np.vstack([low, separated_points(points)[:LOCAL_MINIMA]]) if len(points) else low
    values = judge.surface(starts, False)[0]
    ends, _ = local_search(judge.surface, belief.encoding, starts, values, 1, optimizer.rng, tolerance=MEAN_TOLERANCE)
    return np.vstack([ends, possible_answers(belief, judge)])


def possible_answers(belief: Belief, judge: Judge) -> Array:
    """The evaluated configs, at the target fidelity, without those that have failed on the way there or are likely to."""
    evaluated = belief.evaluated
    if belief.feasibility is None:
        return evaluated
    failed = belief.encoding.space.at_target(belief.data.failed)
    likely = belief.feasibility.is_likely(belief.encoding.features(evaluated)) & ~is_visited(evaluated, failed)
    kept = evaluated[likely | is_visited(evaluated, judge.proven)]
    return kept if len(kept) else evaluated


def calibration(belief: Belief) -> float:
    """How many times too small the model's deviations are, at least 1: the root mean square of leave-one-out z-scores.

    With Q the inverse covariance of the observations, the value of row i is off by z_i = alpha_i / sqrt(Q_ii) deviations from
    what the others predict (Rasmussen and Williams, equation 5.12). Of the values at the target, or all while there are fewer
    than three, those with the lowest predictions count. A model of learning curves has one observation for each curve, and all
    count. 1 for models other than exact Gaussian processes.
    """
    posterior, data = belief.fit.posterior, belief.data
    if not is_exact(posterior):
        return 1.0
    n = len(posterior.y)
    precision = np.einsum("ij,ij->j", posterior.R, posterior.R)[:n]
    rows = np.flatnonzero(data.at_target) if n == len(data.y) else np.arange(n)
    rows = rows if len(rows) >= 3 else np.arange(n)
    predicted = posterior.y[rows] - posterior.alpha[rows] / precision[rows]
    rows = rows[np.argsort(predicted, kind="stable")[:CALIBRATION_ROWS]]
    z = posterior.alpha[rows] ** 2 / precision[rows]
    return float(np.sqrt(max(1.0, (z.sum() + CALIBRATION_PRIOR) / (len(rows) + CALIBRATION_PRIOR))))


def plausible_floor(belief: Belief) -> float:
    """The lowest value seen, less the difference between the best and the worst of the few best configs, and the noise.

    Only configs that differ count. Near the end of a search the few best are almost copies of one config, and a shift between
    two fidelities is more than they differ by.
    """
    if has_gradients(belief):  # they show where values fall, further than any was seen
        return -np.inf
    values = np.asarray(belief.output.forward(belief.data.y))
    order = np.argsort(values, kind="stable")
    points, values = belief.encoding.space.at_target(belief.data.U)[order], values[order]
    best, worst = float(values[0]), float(values[-1])  # the worst of all, if all are near copies
    options = np.array([isinstance(each, Choice) for each in belief.encoding.space.values()])
    for _ in range(len(belief.encoding.space) + 1):
        apart = np.abs(points - points[0])
        other = (apart > np.where(options, SAME_POINT, NEAR_COPY)).any(axis=1)
        if not other.any():
            break
        points, values = points[other], values[other]
        worst = float(values[0])
    return best - (worst - best) - 2.0 * float(np.sqrt(belief.objective.noise))


def novelty(belief: Belief, U: Array) -> Array:
    """The share of the prior variance of f that is left at each point, if f were known at all evaluated configs there.

    By the most probable hyperparameters; 0 for models other than exact Gaussian processes, which have no prior to compare with.
    Where gradients are reported, evaluated configs tell about their surroundings, and the model's own variance is that share.
    """
    posterior = belief.fit.posterior
    if not is_exact(posterior):
        return np.zeros(len(U))
    kernel = posterior.kernel
    if has_gradients(belief):
        return np.asarray(posterior.mean_and_variance(belief.encoding.features(U))[1] / kernel.variance)
    known, X = (kernel.scale(belief.encoding.features(points)) for points in (unique_points(belief.evaluated), U))
    K = kernel.covariance(known)
    K[np.diag_indices(len(K))] += NOVELTY_JITTER * kernel.variance
    L, _ = cholesky(K)
    half = np.linalg.solve(L, kernel.covariance(known, X))
    return np.asarray(np.maximum(1.0 - np.einsum("ij,ij->j", half, half) / kernel.variance, 0.0))


def has_gradients(belief: Belief) -> bool:
    return bool(len(belief.gradient_columns)) and len(belief.fit.posterior.alpha) > len(belief.fit.posterior.y)


def is_exact(posterior: object) -> bool:
    """Whether this is a Gaussian process whose basis is its observations: of a sparse one, these are more than the basis."""
    return isinstance(posterior, Posterior) and len(posterior.y) <= len(posterior.alpha) == len(posterior.R)


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
