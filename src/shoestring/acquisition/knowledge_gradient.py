"""The knowledge gradient while other trials are running: averaged over what those may bring. Greedily, a batch: q-KG.

Notation (see ``knowledge``): P the pending points (p), C C' the covariance of their observations, z_s ~ N(0, I) quasi-random and
the same for every x (common random numbers), w_s = C^-T z_s. If they come out as y_s = mu_P + C z_s, then

    mu_s(x) = mu(x) + cov(x, P) w_s             and the variance falls by the same amount whatever they bring
    KG(x | pending) = 1/S sum_s KG_s(x),        KG_s with mu_s in the place of mu

The value of a batch is KG of its first points plus KG(x | those pending), so maximising this over one point with the others
pending is a step of block ascent of the joint q-KG; ``search.batch`` takes the steps.

The knowledge gradient: how much lower is the lowest posterior mean expected to be after one more observation?

Source: the slides on computationally expensive acquisition functions (formal definition of KG); Frazier, Powell and Dayanik
2009 for the exact expectation; Wu and Frazier 2016 for the gradient.

    KG(x) = min_x' mu(x') - E[ min_x' mu_x(x') ],     mu_x(x') = mu(x') + b(x') w,   w ~ N(0, 1)
    b(x') = cov(f(x'), f(x)) / sqrt(var(x) + noise)

With fidelities x' is at the target and x anywhere. The inner minimum is taken over a set of points P: the best tried points, the
minima of the posterior mean, the minimisers after imagined outcomes at the most promising candidates, running trials, and x
itself. Over P the expectation is exact (``envelope``), in logarithms, and by the envelope theorem its gradient needs only the
derivatives of b, and of mu at x itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp, ndtri

from ..data.visited import SAME_POINT
from ..numerics import Array, cholesky, single_threaded
from ..surrogate.belief import Belief
from ..surrogate.posterior import CrossCovariance, Posterior
from .base import Acquisition, average, lazy_surface
from .improvement import negative_mean_surface
from .kg_envelope import LookaheadPoints, line_gradients, log_expected_drop, log_expected_drop_with_gradient
from .optimize.batched_bfgs import ascend
from .optimize.candidates import is_visited, quasi_random
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Selection, Surface, local_search

SCENARIOS = 8


@dataclass(frozen=True)
class PendingScenarios:
    """What pending trials may bring: ``weights`` (S x p) are w_s."""

    without_pending: Posterior
    cross: CrossCovariance  # settled, and the pending points
    weights: Array

    @classmethod
    def of(cls, belief: Belief, count: int = SCENARIOS) -> PendingScenarios:
        settled, waiting = belief.without_pending, belief.pending
        assert settled is not None
        covariance = settled.covariance(waiting)
        covariance[np.diag_indices(len(waiting))] += settled.noise
        factor, _ = cholesky(covariance)
        z = ndtri(np.clip(quasi_random(count, len(waiting), np.random.default_rng(count)), 1e-6, 1 - 1e-6))
        z -= z.mean(axis=0)  # so that on average they bring what is expected
        weights: Array = np.linalg.solve(factor.T, z.T).T.astype(float)
        return cls(settled, CrossCovariance.between(settled, waiting), weights)

    def means(self, Z: Array) -> Array:
        """mu_s at features Z (N x S)."""
        return self.without_pending.mean_at(Z)[:, None] + self.cross.covariance(Z) @ self.weights.T


def pending_surface(belief: Belief, points: Array, count: int = SCENARIOS) -> Surface:
    """log KG with pending trials, the future mean minimised over ``points``.

    The variances are those of ``belief.objective``, in which the pending trials are counted; only its means are supposed.
    """
    encoding, posterior, feasibility = belief.encoding, belief.objective, belief.feasibility
    scenarios = PendingScenarios.of(belief, count)
    P = encoding.features(points)
    cross, there = CrossCovariance.between(posterior, P), scenarios.means(P).T  # S x m

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        at = LookaheadPoints.at(posterior, encoding, U, gradient)
        N, S = len(U), len(there)
        observed = at.variance + posterior.noise
        b = np.column_stack([cross.covariance(at.Z), at.covariance]) / np.sqrt(observed)[:, None]
        a = np.concatenate([np.broadcast_to(there, (N, *there.shape)), scenarios.means(at.G)[:, :, None]], axis=2)
        a, b_all = a.reshape(N * S, -1), np.repeat(b, S, axis=0)
        if not gradient:
            total = logsumexp(log_expected_drop(a, b_all).reshape(N, S), axis=1) - math.log(S)
            return (total if feasibility is None else total + feasibility.log_probability(at.Z)), None
        drop = log_expected_drop_with_gradient(a, b_all)
        each = drop.value.reshape(N, S)
        total = logsumexp(each, axis=1) - math.log(S)
        share = np.exp(each - logsumexp(each, axis=1, keepdims=True))
        by_b = np.einsum("ns,nsm->nm", share, drop.by_b.reshape(N, S, -1))
        by_own = share * drop.by_a[:, -1].reshape(N, S)
        here, to_answer = line_gradients(at, cross, b, observed, by_b, np.zeros(N))
        _, _, d_mean, _ = scenarios.without_pending.with_gradients(at.G)  # the means are those of the scenarios, not the supposed ones
        to_answer = to_answer + by_own.sum(axis=1)[:, None] * d_mean + scenarios.cross.pull_back(at.G, by_own @ scenarios.weights)
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(at.Z)
            total, here = total + chance, here + d_chance
        return total, at.pull_back(here, to_answer)

    return value


TRIED = 24  # best tried points in P
BASIN = 0.02  # of the unit cube: nearer minima are one
MINIMA = 8  # minima of the posterior mean in P
IMAGINED = (-1.8, -0.8, 0.8, 1.8)  # outcomes, in deviations, after which the mean is minimised again
MANY = tuple(np.linspace(-4.4, 4.4, 61))  # the same for an accurate value: kinks farther out are not worth a per cent
SPREAD, PARTS = 4096, 16  # for an accurate value: descents also start from the best of each part of this many points
PROMISING = 4  # candidates at which they are imagined
PRECISE = 1e-9  # of the model's deviation: what is missed of the present minimum would pass for knowledge to be gained
STEPS = 20  # of a descent of the future mean
LONG = 40  # the same for an accurate value
EFFORT = OptimizerOptions(raw_samples=192, local_samples=96, restarts=6, rounds=2)


@dataclass(frozen=True)
class LookAhead:
    """A belief and the points over which the future mean is minimised."""

    belief: Belief
    points: Array  # m x D
    mean: Array  # m
    cross: CrossCovariance

    @classmethod
    def over(cls, belief: Belief, points: Array) -> LookAhead:
        points = distinct(points)
        Z = belief.encoding.features(points)
        return cls(belief, points, belief.objective.mean_at(Z), CrossCovariance.between(belief.objective, Z))

    def further(self, points: Array) -> LookAhead:
        """Over more points."""
        return type(self).over(self.belief, np.vstack([self.points, points]))

    def imagined(self, candidates: Array) -> Array:
        """Where the mean would be lowest after imagined outcomes at the candidates."""
        return fantasy_minimisers(self, candidates)

    def lines(self, at: LookaheadPoints) -> tuple[Array, Array, Array]:
        """a and b of all lines, that of x itself last (N x (m + 1)), and the variance of an observation at x."""
        observed = at.variance + self.belief.objective.noise
        a = np.column_stack([np.tile(self.mean, (len(at.U), 1)), at.mean])
        b = np.column_stack([self.cross.covariance(at.Z), at.covariance]) / np.sqrt(observed)[:, None]
        return a, b, observed

    def surface(self) -> Surface:
        """log KG over points, averaged over what pending trials may bring where there are such."""
        if len(self.belief.pending):
            return pending_surface(self.belief, self.points)
        encoding, posterior, feasibility = self.belief.encoding, self.belief.objective, self.belief.feasibility

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            at = LookaheadPoints.at(posterior, encoding, U, gradient)
            a, b, observed = self.lines(at)
            if not gradient:
                total = log_expected_drop(a, b)
                return (total if feasibility is None else total + feasibility.log_probability(at.Z)), None
            drop = log_expected_drop_with_gradient(a, b)
            here, there = line_gradients(at, self.cross, b, observed, drop.by_b, drop.by_a[:, -1])
            total = drop.value
            if feasibility is not None:
                chance, d_chance = feasibility.log_probability_with_gradient(at.Z)
                total, here = total + chance, here + d_chance
            return total, at.pull_back(here, there)

        return value


@dataclass(frozen=True)
class KG(Acquisition):
    """The knowledge gradient. Looks one step ahead at what will be recommended, not at what is observed: good under noise."""

    averages_samples: ClassVar[bool] = True
    values_batches: ClassVar[bool] = True
    seeks_information: ClassVar[bool] = True
    ahead: ClassVar[type[LookAhead]] = LookAhead

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        optimizer = AcquisitionOptimizer(belief.encoding, rng, belief.evaluated[:0], belief.evaluated, EFFORT)
        return lazy_surface(lambda: self.weighed(self.ahead.over(belief, minima(belief, optimizer)).surface(), belief))

    def weighed(self, gain: Surface, belief: Belief) -> Surface:
        """What is maximised, given log KG."""
        return gain

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        optimizer = replace(optimizer, options=EFFORT)
        rough = [self.ahead.over(each, minima(each, optimizer)) for each in belief.samples]
        optimum = optimizer.maximize(self.weighed(average([ahead.surface() for ahead in rough], log_space=True), belief))
        promising = distinct(optimum.U[: 3 * PROMISING])[:PROMISING]
        refined = [ahead.further(ahead.imagined(promising)).surface() for ahead in rough]
        gain = average(refined, log_space=True)
        fine = self.weighed(gain, belief)
        values = fine(promising, False)[0]
        U, f = local_search(fine, optimizer.encoding, promising.copy(), values, 1, optimizer.rng, optimizer.chooses_fidelity)
        best = U[int(np.argmax(f))]
        chosen = optimum.u if is_visited(best[None, :], optimizer.visited)[0] else best
        return Selection(chosen, {"log_gain": float(gain(chosen[None, :], False)[0][0])})


def minima(belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
    """The best tried points, the minima of the posterior mean, tried or not, and the points of running trials."""
    falling = negative_mean_surface(belief)
    found = replace(optimizer, visited=optimizer.visited[:0], fidelities=False).maximize(falling).U
    if belief.feasibility is not None:
        likely = belief.feasibility.is_likely(belief.encoding.features(found))
        found = found[likely] if likely.any() else found
    found = apart(found)[:MINIMA]
    found, _ = local_search(falling, belief.encoding, found, falling(found, False)[0], 0, optimizer.rng, tolerance=PRECISE)
    order = np.argsort(belief.objective.mean_at(belief.encoding.features(belief.evaluated)), kind="stable")
    return np.vstack([found, belief.evaluated[order[:TRIED]], belief.pending_at_target])


def knowledge_gradient(belief: Belief, optimizer: AcquisitionOptimizer, U: Array) -> Array:
    """log KG at points, accurate to about a per cent: each with minimisers of its own.

    These are sought from everywhere: after a bad outcome where the mean was lowest, it is lowest in another valley, which need
    not be near anything that was tried. Of two thirds of the outcomes the minimisers are found from those of the others.
    """
    space = belief.encoding.space
    rough = LookAhead.over(belief, minima(belief, optimizer))
    spread = space.snap(space.at_target(quasi_random(SPREAD, len(space), optimizer.rng)))
    parts = [LookAhead.over(belief, spread[part::PARTS]) for part in range(PARTS)]
    values = []
    for u in U[:, None, :]:
        ahead = rough.further(np.vstack([fantasy_minimisers(part, u, MANY[::3], LONG) for part in parts]))
        ahead = ahead.further(fantasy_minimisers(ahead, u, MANY, LONG))
        values.append(ahead.surface()(u, False)[0][0])
    return np.array(values)


def fantasy_minimisers(
    ahead: LookAhead, candidates: Array, outcomes: tuple[float, ...] = IMAGINED, steps: int = STEPS
) -> Array:
    """Where the mean would be lowest after imagined outcomes at the candidates, by gradient descent from the best of P, and
    after good outcomes from the candidate itself.
    """
    belief, encoding = ahead.belief, ahead.belief.encoding
    numbers = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
    if not numbers.any():
        return encoding.space.at_target(candidates)
    at = LookaheadPoints.at(belief.objective, encoding, candidates, False)
    a, b, observed = ahead.lines(at)
    owner, outcome = (grid.ravel() for grid in np.meshgrid(np.arange(len(candidates)), outcomes, indexing="ij"))
    lowest = np.argmin(a[owner] + b[owner] * outcome[:, None], axis=1)
    answers = encoding.space.at_target(candidates)
    starts = np.vstack([ahead.points, answers[:1]])[np.minimum(lowest, len(ahead.points))]
    own = lowest == len(ahead.points)
    starts[own] = answers[owner[own]]
    beside = np.flatnonzero((outcome < 0.0) & ~own)
    starts = np.vstack([starts, answers[owner[beside]]])
    whose = np.concatenate([np.arange(len(owner)), beside])
    imagined = CrossCovariance.between(belief.objective, at.Z)
    pull, count = outcome / np.sqrt(observed[owner]), len(owner)

    def falling(marked: Array) -> tuple[Array, Array]:
        points, who = marked[:, :-1], np.rint(marked[:, -1] * count).astype(np.intp)
        X = encoding.features(points)
        mean, _, d_mean, _ = belief.objective.with_gradients(X)
        weights = np.zeros((len(points), len(candidates)))
        weights[np.arange(len(points)), owner[who]] = pull[who]
        moved = np.einsum("ij,ij->i", weights, imagined.covariance(X))
        slope = encoding.pull_back(points, d_mean + imagined.pull_back(X, weights))
        return -(mean + moved), np.column_stack([-slope, np.zeros(len(points))])

    marked = np.column_stack([starts, whose / count])  # a last coordinate that stays says whose outcome it is
    ends, _ = ascend(falling, marked, np.append(numbers, False), steps=steps, tolerance=1e-6)
    return encoding.space.snap(ends[:, :-1])


def apart(points: Array, limit: int = 64) -> Array:
    """The first points, each at least a little way from those before it: the ends of many ascents are few minima."""
    kept: list[Array] = []
    for point in points[:limit]:
        if not kept or float(np.abs(np.array(kept) - point).max(axis=1).min()) > BASIN:
            kept.append(point)
    return np.array(kept)


def distinct(points: Array) -> Array:
    """Without repetitions, in order."""
    _, first = np.unique(np.rint(points / (1e3 * SAME_POINT)), axis=0, return_index=True)
    return points[np.sort(first)]
