"""The knowledge gradient of a batch by Monte Carlo: unbiased, with an unbiased gradient.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), section 3.3.

Notation
    z_1:q       the batch (q points, each with fidelities where the space has them);  K(z, z) + noise I = D D'
    W           N(0, I_q), v = D'^-1 W:  mu_W(x) = mu(x) + sigma~(x, z) W = mu(x) + k' v,   k_i = cov(f(x), f(z_i))    (3.6)
    x*(W)       where mu_W is lowest, over the space at the target fidelity
    x_0         where mu is lowest

    KG(z) = E[ mu_W(x_0) - mu_W(x*(W)) ]

since E[mu_W(x_0)] = min mu: the estimator of the paper less a variate of mean zero, so that no term of it is negative. By the
envelope theorem x* is held fixed in the gradient. With k now cov(f(x*), f(z)) - cov(f(x_0), f(z)) and c = D^-1 k,

    d(k' v) = v' dk - c' dD' v,     so the derivative with respect to D is -tril(v c'),

and with respect to K(z, z), by the Cholesky factor's reverse mode (Smith 1995), the symmetric part of
D'^-1 P D^-1 with P the lower triangle, its diagonal halved, of D' times that.

The knowledge gradient as the paper searches it: stochastic gradient ascent of a Monte Carlo estimate. Slow: a reference.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), sections 3.2 and 3.3.

    q-cfKG(z_1:q) = KG(z_1:q) / max_i cost(z_i)                                                                    (3.4)

``batch_knowledge`` estimates KG and its gradient, both without bias, and hence those of the ratio. Each step draws W anew; the
t-th is LENGTH (1 + t)^-DECAY long, in units of the gradients' root mean square so far, and ends inside the cube (Robbins and
Monro 1951); the answer is the mean of the second half of the iterates (Polyak and Juditsky 1992). The best of several starts is
then chosen with the same draws for all. In a space without fidelities this is q-KG, and cost does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from ..cost.base import CostPosterior, expected_log_cost_with_gradient
from ..numerics import Array, cholesky, single_threaded
from ..surrogate.belief import Belief
from ..surrogate.posterior import VARIANCE_FLOOR, CrossCovariance
from .base import Acquisition
from .entropy_search import whole_number
from .optimize.batched_bfgs import ascend
from .optimize.candidates import is_visited, neighbours, quasi_random, random_unvisited
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

SPREAD = 512  # quasi-random points from which descents start where they are the lowest
STEPS = 40  # of a descent


@dataclass(frozen=True)
class BatchKnowledge:
    """A belief, and points at the target fidelity from which its future means are minimised, x_0 the first of them."""

    belief: Belief
    points: Array  # m x D
    mean: Array  # m
    cross: CrossCovariance

    @classmethod
    def of(cls, belief: Belief, rng: np.random.Generator) -> BatchKnowledge:
        space = belief.encoding.space
        spread = space.snap(space.at_target(quasi_random(SPREAD, len(space), rng)))
        alone = cls._over(belief, np.vstack([belief.evaluated, spread]))
        nothing = np.zeros((1, 1))  # an observation that moves nothing: the minimum of the mean itself
        order = np.argsort(alone.mean, kind="stable")[:8]
        found = alone._descend(alone.points[order], belief.encoding.features(alone.points[:1]), np.tile(nothing, (len(order), 1)))
        every = np.vstack([found, alone.points])
        lowest = int(np.argmin(belief.objective.mean_at(belief.encoding.features(every))))
        return cls._over(belief, np.vstack([every[lowest], np.delete(every, lowest, axis=0)]))

    @classmethod
    def _over(cls, belief: Belief, points: Array) -> BatchKnowledge:
        Z = belief.encoding.features(points)
        return cls(belief, points, belief.objective.mean_at(Z), CrossCovariance.between(belief.objective, Z))

    def drops(self, U: Array, W: Array, *, descend: bool = True) -> tuple[Array, Array]:
        """mu_W(x_0) - mu_W(x*) for a batch U (q x D) and each row of W (S x q), and the x* (S x D).

        Without ``descend``, x* is the lowest of the points and of the batch itself: too low a drop, and much faster.
        """
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z, own = encoding.features(U), encoding.space.at_target(U)
        v = _solve(self.factor(Z).T, W.T, lower=False).T
        own_Z = encoding.features(own)
        starts, mean = np.vstack([self.points, own]), np.append(self.mean, posterior.mean_at(own_Z))
        k = np.vstack([self.cross.covariance(Z).T, posterior.covariance(own_Z, Z)])
        future = mean[:, None] + k @ v.T  # (m + q) x S
        if descend:  # two starts for each W, so that one that lies in the wrong valley does not decide
            best = np.concatenate([2 * np.argmin(future[::2], axis=0), 2 * np.argmin(future[1::2], axis=0) + 1])
            ends = self._descend(starts[best], Z, np.tile(v, (2, 1)))
            there = self._future(encoding.features(ends), Z, np.tile(v, (2, 1))).reshape(2, -1)
            side, column = np.argmin(there, axis=0), np.arange(len(W))
            x, lowest = ends.reshape(2, len(W), -1)[side, column], there[side, column]
        else:
            at = np.argmin(future, axis=0)
            x, lowest = starts[at], future[at, np.arange(len(W))]
        return future[0] - np.minimum(lowest, future[0]), np.where((lowest < future[0])[:, None], x, self.points[0])

    def slope(self, U: Array, W: Array, minimisers: Array) -> Array:
        """The gradient of the mean drop with respect to U (q x D), given the x* of each row of W."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z = encoding.features(U)
        D = self.factor(Z)
        v = _solve(D.T, W.T, lower=False)  # q x S
        ahead = CrossCovariance.between(posterior, encoding.features(np.vstack([minimisers, self.points[:1]])))
        k = ahead.covariance(Z)
        c = _solve(D, k[:, :-1] - k[:, -1:], lower=True)
        by_factor = np.tril(-(v @ c.T) / len(W))
        P = np.tril(D.T @ by_factor)
        P[np.diag_indices(len(P))] *= 0.5
        whole = _solve(D.T, _solve(D.T, P.T, lower=False).T, lower=False)  # D'^-1 P D^-1
        by_covariance = 0.5 * (whole + whole.T)
        weights = np.column_stack([v, -v.sum(axis=1)]) / len(W)
        # every pair of the batch counts twice, and so does a point with itself: its variance moves with both
        total = ahead.pull_back(Z, weights) + CrossCovariance.between(posterior, Z).pull_back(Z, 2.0 * by_covariance)
        return -encoding.pull_back(U, total)

    def factor(self, Z: Array) -> Array:
        """D. A little noise where there is none: twice the same point, or one that was observed, teaches nothing."""
        posterior = self.belief.objective
        covariance = posterior.covariance(Z)
        covariance[np.diag_indices(len(Z))] += posterior.noise + VARIANCE_FLOOR * posterior.kernel.variance
        return cholesky(covariance)[0]

    def _future(self, X: Array, Z: Array, v: Array) -> Array:
        """mu_W at each row of X for its own row of v."""
        posterior = self.belief.objective
        moved: Array = np.einsum("ij,ij->i", posterior.covariance(X, Z), v)
        return posterior.mean_at(X) + moved

    def _descend(self, starts: Array, Z: Array, v: Array) -> Array:
        """Minimisers of mu_W, each start for its own row of v, as points of the space no higher than where they started."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
        if not free.any():
            return starts
        batch, count = CrossCovariance.between(posterior, Z), len(starts)

        def falling(marked: Array) -> tuple[Array, Array]:
            points, mine = marked[:, :-1], v[np.rint(marked[:, -1] * count).astype(np.intp)]
            X = encoding.features(points)
            mean, _, d_mean, _ = posterior.with_gradients(X)
            moved = np.einsum("ij,ij->i", batch.covariance(X), mine)
            slope = encoding.pull_back(points, d_mean + batch.pull_back(X, mine))
            return -(mean + moved), np.column_stack([-slope, np.zeros(len(points))])

        marked = np.column_stack([starts, np.arange(count) / count])  # a last coordinate that stays says whose v it is
        ends, _ = ascend(falling, marked, np.append(free, False), steps=STEPS, tolerance=1e-9)
        points = encoding.space.snap(ends[:, :-1])
        lower = self._future(encoding.features(points), Z, v) < self._future(encoding.features(starts), Z, v)
        return np.where(lower[:, None], points, starts)


def _solve(triangle: Array, right: Array, *, lower: bool) -> Array:
    solved: Array = solve_triangular(triangle, right, lower=lower, check_finite=False)
    return solved


LENGTH, DECAY = 0.1, 0.6
SCREENED = 16  # batches from which each start is the best one
MORE = 8  # times as many draws for the choice among ends
TINY = 1e-300


@dataclass(frozen=True)
class Worth:
    """The estimate of q-cfKG, averaged over sets of hyperparameters, times the chance that a trial does not fail."""

    belief: Belief
    parts: tuple[BatchKnowledge, ...]
    cost: CostPosterior | None

    @classmethod
    def under(cls, belief: Belief, sets: Sequence[Belief], rng: np.random.Generator) -> Worth:
        return cls(belief, tuple(BatchKnowledge.of(each, rng) for each in sets), _cost(belief))

    def estimate(self, U: Array, W: Array, *, descend: bool = True) -> float:
        """Its value for one batch (q x D)."""
        knowledge = float(np.mean([part.drops(U, W, descend=descend)[0].mean() for part in self.parts]))
        return knowledge * float(np.exp(self._factor(U)[0]))

    def with_gradient(self, U: Array, W: Array) -> tuple[float, Array]:
        found = [(part, *part.drops(U, W)) for part in self.parts]
        knowledge = float(np.mean([drops.mean() for _, drops, _ in found]))
        slope = np.mean([part.slope(U, W, minimisers) for part, _, minimisers in found], axis=0)
        log_factor, d_factor = self._factor(U)
        factor = float(np.exp(log_factor))
        return knowledge * factor, factor * (slope + knowledge * d_factor)

    def _factor(self, U: Array) -> tuple[float, Array]:
        """log of what KG is multiplied by, and its gradient. Costs are in units of a typical one."""
        encoding, feasibility = self.belief.encoding, self.belief.feasibility
        total, slope = 0.0, np.zeros_like(U)
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(encoding.features(U))
            total, slope = total + float(chance.mean()), slope + encoding.pull_back(U, d_chance) / len(U)
        if self.cost is not None:
            log_cost, d_cost = expected_log_cost_with_gradient(self.cost, U)
            dearest = int(np.argmax(log_cost))
            total += self.belief.median_log_cost - float(log_cost[dearest])
            slope[dearest] -= d_cost[dearest]
        return total, slope


@dataclass(frozen=True)
class StochasticKG(Acquisition):
    """The knowledge gradient by stochastic gradient ascent, per cost where the space has fidelities. A slow reference for ``KG``.

    ``q`` points are planned together, and suggested one after the other while none of them has finished.
    """

    q: int = 1
    samples: int = 16
    steps: int = 40
    starts: int = 4
    uses_cost: ClassVar[bool] = True
    chooses_fidelity: ClassVar[bool] = True
    seeks_information: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in ("q", "samples", "steps", "starts"):
            whole_number("StochasticKG", field, getattr(self, field), 1)

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        """log of the estimate for single points, with the same draws for all of them."""
        made: list[tuple[Worth, Array]] = []

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not made:  # when it is first looked at, since it takes long to prepare
                made.append((Worth.under(belief, [belief], rng), rng.standard_normal((self.samples, 1))))
            worth, W = made[0]
            if not gradient:
                return np.log(np.maximum([worth.estimate(u[None, :], W) for u in U], TINY)), None
            found = [worth.with_gradient(u[None, :], W) for u in U]
            values = np.maximum([each for each, _ in found], TINY)
            return np.log(values), np.vstack([slope for _, slope in found]) / values[:, None]

        return value

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        planned = _planned(belief, optimizer)
        if not len(planned):
            planned = self.plan(belief, optimizer)
        rest = {"plan": planned[1:].tolist(), "planned_at": belief.trials} if len(planned) > 1 else {}
        return Selection(planned[0], rest)

    def plan(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
        """The best batch found: at most q points, none of them seen before, one at least."""
        rng, space = optimizer.rng, optimizer.encoding.space
        worth = Worth.under(belief, belief.samples, rng)
        starts = self._starts(worth, optimizer)
        ends = [space.snap(self._climb(worth, start, rng)) for start in starts]
        W = rng.standard_normal((MORE * self.samples, self.q))
        batches = [*ends, *starts]
        values = [worth.estimate(batch, W) for batch in batches]
        for j in np.argsort(-np.array(values), kind="stable"):
            fresh = batches[j][~is_visited(batches[j], optimizer.visited)]
            if len(fresh):
                return np.asarray(fresh[np.sort(np.unique(fresh, axis=0, return_index=True)[1])])
        return random_unvisited(space, optimizer.visited, rng)[None, :]

    def _starts(self, worth: Worth, optimizer: AcquisitionOptimizer) -> list[Array]:
        """Batches spread over the space and near the best trials, the best of ``SCREENED`` each by a rough estimate."""
        rng, space = optimizer.rng, optimizer.encoding.space
        count = SCREENED * self.starts
        spread = quasi_random(count * self.q, len(space), rng)
        near = neighbours(optimizer.incumbents, count * self.q, space, rng)
        pool = space.snap(np.where((np.arange(count * self.q) % 2 == 0)[:, None], spread, near))
        batches = rng.permutation(pool).reshape(self.starts, SCREENED, self.q, -1)
        W = rng.standard_normal((self.samples, self.q))
        values = np.array([[worth.estimate(batch, W, descend=False) for batch in group] for group in batches])
        return [group[best] for group, best in zip(batches, np.argmax(values, axis=1), strict=True)]

    def _climb(self, worth: Worth, U: Array, rng: np.random.Generator) -> Array:
        """Stochastic gradient ascent of the numbers; choices stay."""
        squares, kept = 0.0, []
        for t in range(self.steps):
            _, slope = worth.with_gradient(U, rng.standard_normal((self.samples, self.q)))
            squares += float((slope**2).sum())
            if squares > 0.0:
                U = np.clip(U + LENGTH * (1 + t) ** -DECAY * slope / np.sqrt(squares / (t + 1)), 0.0, 1.0)
            if t >= self.steps // 2:
                kept.append(U)
        return np.asarray(np.mean(kept, axis=0))


def _cost(belief: Belief) -> CostPosterior | None:
    return belief.cost if belief.encoding.space.fidelities else None


def _planned(belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
    """What is left of the batch that was planned, while all of it that was suggested is still running."""
    last: Any = belief.warm_start
    if not last.get("plan") or last.get("planned_at") != belief.trials or not len(belief.pending):
        return optimizer.visited[:0]
    left = np.array(last["plan"], dtype=float)
    return left[~is_visited(left, optimizer.visited)]
