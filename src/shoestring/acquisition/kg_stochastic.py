"""The knowledge gradient by stochastic gradient ascent of a Monte Carlo estimate: a slow reference for ``KG``.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), sections 3.2 and 3.3.

Notation
    z_1:q       the batch: q points, each with fidelities where the space has them;   K(z, z) + noise I = D D'
    W           N(0, I_q), the standardised outcomes of the batch;   v = D'^-1 W
    mu_W(x)     mu(x) + sigma~(x, z) W = mu(x) + k' v,   k_i = cov(f(x), f(z_i)): the posterior mean after the batch       (3.6)
    x*(W)       the minimiser of mu_W over the space at the target fidelity
    x_0         the minimiser of mu

    q-cfKG(z) = KG(z) / max_i cost(z_i)                                                                                     (3.4)
    KG(z) = E[ mu_W(x_0) - mu_W(x*(W)) ]                                                                                    (A)

(A) holds since E[mu_W(x_0)] = min mu: it is the paper's estimator with a control variate, so that no term is negative. In the
gradient x* is held fixed (the envelope theorem after 3.7). With k now cov(f(x*), f(z)) - cov(f(x_0), f(z)) and c = D^-1 k,

    d(k' v) = v' dk - c' dD' v,     so the derivative with respect to D is -tril(v c')                                      (B)

and with respect to K(z, z), by the reverse mode of the Cholesky factor (Smith 1995), the symmetric part of D'^-1 Q D^-1, where Q
is the lower triangle, with halved diagonal, of D' times (B)                                                                (C)

Both estimates are unbiased, and hence those of (3.4). Each step of the ascent draws W anew. Step t has the length
INITIAL_STEP (1 + t)^-STEP_DECAY in units of the gradients' root mean square so far, and ends inside the cube (Robbins and Monro
1951). The result is the mean of the second half of the iterates (Polyak and Juditsky 1992). The best of several starts is chosen
with the same draws for all. In a space without fidelities this is q-KG, and cost is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._validation import whole_number
from ..cost.base import CostPosterior, expected_log_cost_with_gradient
from ..numerics import Array, cholesky, linalg, single_threaded
from ..surrogate.belief import Belief
from ..surrogate.posterior import VARIANCE_FLOOR, CrossCovariance
from .base import Acquisition
from .optimize.batched_bfgs import ascend
from .optimize.candidates import is_visited, neighbours, quasi_random, random_unvisited
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

INITIAL_STEP = 0.1  # of the cube's side, for a gradient of root mean square size
STEP_DECAY = 0.6  # exponent
SCREENED_BATCHES = 16  # random batches of which the best one is a start
FINAL_SAMPLES_FACTOR = 8  # times as many draws for the choice among the ends
N_DESCENT_CANDIDATES = 512  # quasi-random points; the lowest of them and of the evaluated ones are starts of descents
N_MEAN_STARTS = 8  # descents of the posterior mean itself
MAX_DESCENT_STEPS = 40
DESCENT_TOLERANCE = 1e-9  # gain of a step at which a descent ends, in deviations of the model
MIN_ESTIMATE = 1e-300  # of KG per cost, before its logarithm is taken


@dataclass(frozen=True)
class StochasticKG(Acquisition):
    """The knowledge gradient by stochastic gradient ascent, per unit of cost where the space has fidelities: a slow reference.

    Use it to check ``KG`` or ``CFKG``, not in their place: a suggestion takes seconds.

    q        points that are planned together, and suggested one after the other while none of them has finished
    samples  draws of each step
    steps    of each ascent
    starts   of which the best end is chosen

    >>> space = st.Space(x=st.Float(0, 1))
    >>> method = st.StochasticKG(samples=2, steps=2, starts=1)
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=method).best.value < 0.05
    True
    """

    q: int = 1
    samples: int = 16
    steps: int = 40
    starts: int = 4
    needs_gaussian_process: ClassVar[bool] = True
    uses_cost: ClassVar[bool] = True
    chooses_fidelity: ClassVar[bool] = True
    seeks_information: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in ("q", "samples", "steps", "starts"):
            object.__setattr__(self, field, whole_number(getattr(self, field), f"StochasticKG: {field}", 1))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        """log of the estimate for single points, with the same draws for all of them."""
        built: list[tuple[BatchKGPerCost, Array]] = []

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not built:  # at the first call, since it takes long to prepare
                built.append((BatchKGPerCost.under(belief, [belief], rng), rng.standard_normal((self.samples, 1))))
            kg, W = built[0]
            if not gradient:
                return np.log(np.maximum([kg.estimate(u[None, :], W) for u in U], MIN_ESTIMATE)), None
            found = [kg.estimate_with_gradient(u[None, :], W) for u in U]
            values = np.maximum([each for each, _ in found], MIN_ESTIMATE)
            return np.log(values), np.vstack([slope for _, slope in found]) / values[:, None]

        return value

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The next point of the planned batch, or the first point of a new one."""
        planned = _rest_of_plan(belief, optimizer)
        if not len(planned):
            planned = self.plan(belief, optimizer)
        rest = {"plan": planned[1:].tolist(), "planned_at": belief.n_trials} if len(planned) > 1 else {}
        return Selection(planned[0], rest)

    def plan(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
        """The best batch found: at most q points, at least one, all of them unvisited."""
        rng, space = optimizer.rng, optimizer.encoding.space
        kg = BatchKGPerCost.under(belief, belief.samples, rng)
        starts = self._starts(kg, optimizer)
        ends = [space.snap(self._stochastic_ascent(kg, start, rng)) for start in starts]
        W = rng.standard_normal((FINAL_SAMPLES_FACTOR * self.samples, self.q))
        batches = [*ends, *starts]
        values = [kg.estimate(batch, W) for batch in batches]
        for j in np.argsort(-np.array(values), kind="stable"):
            fresh = batches[j][~is_visited(batches[j], optimizer.visited)]
            if len(fresh):
                return np.asarray(fresh[np.sort(np.unique(fresh, axis=0, return_index=True)[1])])
        return random_unvisited(space, optimizer.visited, rng)[None, :]

    def _starts(self, kg: BatchKGPerCost, optimizer: AcquisitionOptimizer) -> list[Array]:
        """Batches of quasi-random points and neighbours of incumbents, each the best of SCREENED_BATCHES by a rough estimate."""
        rng, space = optimizer.rng, optimizer.encoding.space
        count = SCREENED_BATCHES * self.starts
        spread = quasi_random(count * self.q, len(space), rng)
        near = neighbours(optimizer.incumbents, count * self.q, space, rng)
        pool = space.snap(np.where((np.arange(count * self.q) % 2 == 0)[:, None], spread, near))
        batches = rng.permutation(pool).reshape(self.starts, SCREENED_BATCHES, self.q, -1)
        W = rng.standard_normal((self.samples, self.q))
        values = np.array([[kg.estimate(batch, W, descend=False) for batch in group] for group in batches])
        return [group[best] for group, best in zip(batches, np.argmax(values, axis=1), strict=True)]

    def _stochastic_ascent(self, kg: BatchKGPerCost, U: Array, rng: np.random.Generator) -> Array:
        """Stochastic gradient ascent of the numeric coordinates; choices stay as they are."""
        squares, iterates = 0.0, []
        for t in range(self.steps):
            _, slope = kg.estimate_with_gradient(U, rng.standard_normal((self.samples, self.q)))
            squares += float((slope**2).sum())
            if squares > 0.0:
                U = np.clip(U + INITIAL_STEP * (1 + t) ** -STEP_DECAY * slope / np.sqrt(squares / (t + 1)), 0.0, 1.0)
            if t >= self.steps // 2:
                iterates.append(U)
        return np.asarray(np.mean(iterates, axis=0))


@dataclass(frozen=True)
class BatchKGPerCost:
    """The estimate of q-cfKG (3.4), averaged over hyperparameter samples, times the probability that trials succeed."""

    belief: Belief
    parts: tuple[BatchKG, ...]
    cost: CostPosterior | None

    @classmethod
    def under(cls, belief: Belief, samples: Sequence[Belief], rng: np.random.Generator) -> BatchKGPerCost:
        cost = belief.cost if belief.encoding.space.fidelities else None
        return cls(belief, tuple(BatchKG.of(each, rng) for each in samples), cost)

    def estimate(self, U: Array, W: Array, *, descend: bool = True) -> float:
        """Its value for one batch U (q x D), from draws W (S x q)."""
        kg = float(np.mean([part.drops(U, W, descend=descend)[0].mean() for part in self.parts]))
        return kg * float(np.exp(self._log_factor(U)[0]))

    def estimate_with_gradient(self, U: Array, W: Array) -> tuple[float, Array]:
        """The same with its gradient."""
        found = [(part, *part.drops(U, W)) for part in self.parts]
        kg = float(np.mean([drops.mean() for _, drops, _ in found]))
        slope = np.mean([part.gradient(U, W, minimisers) for part, _, minimisers in found], axis=0)
        log_factor, d_factor = self._log_factor(U)
        factor = float(np.exp(log_factor))
        return kg * factor, factor * (slope + kg * d_factor)

    def _log_factor(self, U: Array) -> tuple[float, Array]:
        """log of what KG is multiplied by, and its gradient. Costs are in units of the median cost."""
        encoding, feasibility = self.belief.encoding, self.belief.feasibility
        total, slope = 0.0, np.zeros_like(U)
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(encoding.features(U))
            total, slope = total + float(chance.mean()), slope + encoding.pull_back(U, d_chance) / len(U)
        if self.cost is not None:
            log_cost, d_cost = expected_log_cost_with_gradient(self.cost, U)
            most_expensive = int(np.argmax(log_cost))
            total += self.belief.median_log_cost - float(log_cost[most_expensive])
            slope[most_expensive] -= d_cost[most_expensive]
        return total, slope


@dataclass(frozen=True)
class BatchKG:
    """Monte Carlo estimates of KG of batches under one belief; its points, x_0 the first, are starts of the descents to x*."""

    belief: Belief
    points: Array  # m x D, at the target fidelity
    mean: Array  # m
    cross: CrossCovariance

    @classmethod
    def of(cls, belief: Belief, rng: np.random.Generator) -> BatchKG:
        space = belief.encoding.space
        spread = space.snap(space.at_target(quasi_random(N_DESCENT_CANDIDATES, len(space), rng)))
        rough = cls._over(belief, np.vstack([belief.evaluated, spread]))
        no_outcome = np.zeros((1, 1))  # v = 0: an observation that changes nothing, so that mu itself is minimised
        order = np.argsort(rough.mean, kind="stable")[:N_MEAN_STARTS]
        any_point = belief.encoding.features(rough.points[:1])
        found = rough._descend(rough.points[order], any_point, np.tile(no_outcome, (len(order), 1)))
        every = np.vstack([found, rough.points])
        lowest = int(np.argmin(belief.objective.mean_at(belief.encoding.features(every))))
        return cls._over(belief, np.vstack([every[lowest], np.delete(every, lowest, axis=0)]))

    @classmethod
    def _over(cls, belief: Belief, points: Array) -> BatchKG:
        Z = belief.encoding.features(points)
        return cls(belief, points, belief.objective.mean_at(Z), CrossCovariance.between(belief.objective, Z))

    def drops(self, U: Array, W: Array, *, descend: bool = True) -> tuple[Array, Array]:
        """mu_W(x_0) - mu_W(x*) of (A) for a batch U (q x D) and each row of W (S x q), and the x* (S x D).

        Without ``descend``, x* is the lowest of the points and of the batch itself: a lower bound, and much faster.
        """
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z, own = encoding.features(U), encoding.space.at_target(U)
        v = _solve(self.factor(Z).T, W.T, lower=False).T
        own_Z = encoding.features(own)
        starts, mean = np.vstack([self.points, own]), np.append(self.mean, posterior.mean_at(own_Z))
        k = np.vstack([self.cross.covariance(Z).T, posterior.covariance(own_Z, Z)])
        future = mean[:, None] + k @ v.T  # mu_W (3.6), (m + q) x S
        if descend:  # two starts for each W, so that one in the basin of a worse minimum does not decide
            best = np.concatenate([2 * np.argmin(future[::2], axis=0), 2 * np.argmin(future[1::2], axis=0) + 1])
            ends = self._descend(starts[best], Z, np.tile(v, (2, 1)))
            values = self._future_mean(encoding.features(ends), Z, np.tile(v, (2, 1))).reshape(2, -1)
            side, column = np.argmin(values, axis=0), np.arange(len(W))
            x, lowest = ends.reshape(2, len(W), -1)[side, column], values[side, column]
        else:
            at = np.argmin(future, axis=0)
            x, lowest = starts[at], future[at, np.arange(len(W))]
        return future[0] - np.minimum(lowest, future[0]), np.where((lowest < future[0])[:, None], x, self.points[0])

    def gradient(self, U: Array, W: Array, minimisers: Array) -> Array:
        """The gradient of the mean drop with respect to U (q x D), given the x* of each row of W."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z = encoding.features(U)
        D = self.factor(Z)
        v = _solve(D.T, W.T, lower=False)  # q x S
        cross = CrossCovariance.between(posterior, encoding.features(np.vstack([minimisers, self.points[:1]])))
        k = cross.covariance(Z)
        c = _solve(D, k[:, :-1] - k[:, -1:], lower=True)
        by_factor = np.tril(-(v @ c.T) / len(W))  # (B)
        Q = np.tril(D.T @ by_factor)
        Q[np.diag_indices(len(Q))] *= 0.5
        whole = _solve(D.T, _solve(D.T, Q.T, lower=False).T, lower=False)  # D'^-1 Q D^-1
        by_covariance = 0.5 * (whole + whole.T)  # (C)
        weights = np.column_stack([v, -v.sum(axis=1)]) / len(W)
        # every pair of the batch counts twice, and so does a point with itself: its variance moves with both
        total = cross.pull_back(Z, weights) + CrossCovariance.between(posterior, Z).pull_back(Z, 2.0 * by_covariance)
        return -encoding.pull_back(U, total)

    def factor(self, Z: Array) -> Array:
        """D. Where there is no noise, a little is added: a repeated point, or one that was observed, gives no information."""
        posterior = self.belief.objective
        covariance = posterior.covariance(Z)
        covariance[np.diag_indices(len(Z))] += posterior.noise + VARIANCE_FLOOR * posterior.kernel.variance
        return cholesky(covariance)[0]

    def _future_mean(self, X: Array, Z: Array, v: Array) -> Array:
        """mu_W at each row of X for its own row of v (3.6)."""
        posterior = self.belief.objective
        shift: Array = np.einsum("ij,ij->i", posterior.covariance(X, Z), v)
        return posterior.mean_at(X) + shift

    def _descend(self, starts: Array, Z: Array, v: Array) -> Array:
        """Local minimisers of mu_W, each start for its own row of v, as points of the space that are not above their starts."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
        if not free.any():
            return starts
        batch, count = CrossCovariance.between(posterior, Z), len(starts)

        def negative_future_mean(labelled: Array) -> tuple[Array, Array]:
            points, own_v = labelled[:, :-1], v[np.rint(labelled[:, -1] * count).astype(np.intp)]
            X = encoding.features(points)
            mean, _, d_mean, _ = posterior.with_gradients(X)
            shift = np.einsum("ij,ij->i", batch.covariance(X), own_v)
            slope = encoding.pull_back(points, d_mean + batch.pull_back(X, own_v))
            return -(mean + shift), np.column_stack([-slope, np.zeros(len(points))])

        labelled = np.column_stack([starts, np.arange(count) / count])  # the last coordinate is fixed: it says which v it is
        ends, _ = ascend(
            negative_future_mean, labelled, np.append(free, False), steps=MAX_DESCENT_STEPS, tolerance=DESCENT_TOLERANCE
        )
        points = encoding.space.snap(ends[:, :-1])
        lower = self._future_mean(encoding.features(points), Z, v) < self._future_mean(encoding.features(starts), Z, v)
        return np.where(lower[:, None], points, starts)


def _solve(triangle: Array, right: Array, *, lower: bool) -> Array:
    solved: Array = linalg.solve_triangular(triangle, right, lower=lower, check_finite=False)
    return solved


def _rest_of_plan(belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
    """The points of the planned batch that were not suggested yet, if no trial has finished since it was planned; else none."""
    last: Any = belief.warm_start
    if not last.get("plan") or last.get("planned_at") != belief.n_trials or not len(belief.pending):
        return optimizer.visited[:0]
    left = np.array(last["plan"], dtype=float)
    return left[~is_visited(left, optimizer.visited)]
