"""The knowledge gradient (KG): by how much one more observation is expected to lower the minimum of the posterior mean.

Sources: the slides on computationally expensive acquisition functions ("Knowledge Gradient (KG): Formal Definition"); Frazier,
Powell and Dayanik 2009 for the exact expectation; Wu and Frazier 2016 for the gradient; Pearce et al. 2020 for a discretization
that contains minimisers of fantasies ("hybrid KG").

Notation
    x                   a candidate, x' any point at the target fidelity; without fidelities the two range over the same space
    mu, cov, noise      posterior mean and covariance of f, and the noise variance of an observation
    w ~ N(0, 1)         the outcome at x, standardised: y = mu(x) + sqrt(var(x) + noise) w
    b(x')               cov(f(x'), f(x)) / sqrt(var(x) + noise):  the posterior mean after y is mu(x') + b(x') w
    P                   the discretization: m points at the target fidelity

    KG(x) = min_x' mu(x') - E[ min_x' (mu(x') + b(x') w) ]                                     (1)

In (1) the minimum is taken over P and x itself. P holds the best evaluated points, the minima of the posterior mean, the pending
points, and the minimisers of fantasies: of the posterior mean after imagined outcomes at the best candidates. Over P the
expectation is exact (``kg_envelope``) and in log space. By the envelope theorem its gradient needs only the derivatives of b, and
those of mu at x itself.

With pending points (p of them, features X_p) the value is averaged over fantasies of their outcomes. C C' is the covariance of
these outcomes, z_s ~ N(0, I) are quasi-random and the same for every x (common random numbers), v_s = C^-T z_s:

    mu_s(x') = mu(x') + cov(x', X_p) v_s    if the outcomes are mu(X_p) + C z_s;  the variance falls alike for all s       (2)
    KG(x | pending) = 1/S sum_s KG_s(x)     KG_s is (1) with mu_s in the place of mu                                       (3)

The value of a batch is KG of its first points plus KG(x | those pending). So maximizing (3) over one point with the others
pending is a step of block coordinate ascent of the joint q-KG; ``search.batch`` takes these steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..data.trial_table import SAME_POINT
from ..numerics import Array, cholesky, single_threaded, special
from ..space.encoding import Encoding
from ..surrogate.belief import Belief
from ..surrogate.posterior import CrossCovariance, Posterior
from .base import Acquisition, average, lazy_surface
from .improvement import negative_mean_surface
from .kg_envelope import log_expected_drop, log_expected_drop_with_gradient
from .optimize.batched_bfgs import ascend
from .optimize.candidates import fidelity_corners, is_visited, quasi_random, separated_points, unique_points
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Selection, Surface, local_search

KG_OPTIMIZER_OPTIONS = OptimizerOptions(raw_samples=192, local_samples=96, restarts=6, rounds=2)
N_EVALUATED_POINTS = 24  # best evaluated points in P
N_MEAN_MINIMA = 8  # minima of the posterior mean in P
MEAN_TOLERANCE = 1e-9  # of these minima, in deviations of the model: what is missed of the present minimum would count as KG
N_REFINED_CANDIDATES = 4  # best candidates whose fantasies refine P
N_REFINED_AT_EDGES = 1  # of each bound of the fidelities
FANTASY_OUTCOMES = (-1.8, -0.8, 0.8, 1.8)  # values of w at which the fantasies are taken
MAX_FANTASY_DESCENT_STEPS = 20
FANTASY_TOLERANCE = 1e-6  # gain of a step at which the descent of a fantasy's mean ends, in deviations of the model
N_PENDING_FANTASIES = 8  # S


@dataclass(frozen=True)
class DiscretizedKG:
    """KG over a discretization, under one set of hyperparameters."""

    belief: Belief
    points: Array  # P, m x D
    mean: Array  # m
    cross: CrossCovariance

    @classmethod
    def over(cls, belief: Belief, points: Array) -> DiscretizedKG:
        points = unique_points(points)
        Z = belief.encoding.features(points)
        return cls(belief, points, belief.objective.mean_at(Z), CrossCovariance.between(belief.objective, Z))

    def extended(self, points: Array) -> DiscretizedKG:
        """The same over more points."""
        return type(self).over(self.belief, np.vstack([self.points, points]))

    def fantasy_minimisers(self, candidates: Array) -> Array:
        """Minimisers of the posterior mean after imagined outcomes at the candidates."""
        return fantasy_minimisers(self, candidates)

    def intercepts_and_slopes(self, at: CandidateMoments) -> tuple[Array, Array, Array]:
        """mu and b over P and x itself, which comes last (N x (m + 1)), and the variance of an observation at x (N)."""
        observed = at.variance + self.belief.objective.noise
        a = np.column_stack([np.tile(self.mean, (len(at.U), 1)), at.mean])
        b = np.column_stack([self.cross.covariance(at.Z), at.covariance]) / np.sqrt(observed)[:, None]
        return a, b, observed

    def surface(self) -> Surface:
        """log KG over points: (1), or (3) where there are pending points."""
        if len(self.belief.pending):
            return pending_surface(self.belief, self.points)
        encoding, posterior, feasibility = self.belief.encoding, self.belief.objective, self.belief.feasibility

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            at = CandidateMoments.at(posterior, encoding, U, gradient)
            a, b, observed = self.intercepts_and_slopes(at)
            if not gradient:
                total = log_expected_drop(a, b)
                return (total if feasibility is None else total + feasibility.log_probability(at.Z)), None
            drop = log_expected_drop_with_gradient(a, b)
            by_Z, by_G = at.gradients(self.cross, b, observed, drop.by_b, drop.by_a[:, -1])
            total = drop.value
            if feasibility is not None:
                chance, d_chance = feasibility.log_probability_with_gradient(at.Z)
                total, by_Z = total + chance, by_Z + d_chance
            return total, at.pull_back(by_Z, by_G)

        return value


@dataclass(frozen=True)
class KG(Acquisition):
    """The knowledge gradient: how much better the recommended config is expected to be after one more observation.

    Use it for noisy objectives, together with ``result.recommended``, and for batches (``study.ask_many(4)``), which it values as
    a whole. A suggestion takes three to four times as long as by ``EI``.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> result = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.KG())
    >>> abs(result.recommended.config["x"] - 0.3) < 0.1
    True
    """

    needs_gaussian_process: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True
    values_batches: ClassVar[bool] = True
    seeks_information: ClassVar[bool] = True
    estimator: ClassVar[type[DiscretizedKG]] = DiscretizedKG

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        optimizer = AcquisitionOptimizer(belief.encoding, rng, belief.evaluated[:0], belief.evaluated, KG_OPTIMIZER_OPTIONS)
        return lazy_surface(
            lambda: self.cost_weighted(self.estimator.over(belief, initial_discretization(belief, optimizer)).surface(), belief)
        )

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The maximum over a first discretization, then a local search from its best candidates over a refined one."""
        optimizer = replace(optimizer, options=KG_OPTIMIZER_OPTIONS)
        rough = [self.estimator.over(each, initial_discretization(each, optimizer)) for each in belief.samples]
        optimum = optimizer.maximize(self.cost_weighted(average([each.surface() for each in rough], log_space=True), belief))
        candidates = refined_candidates(optimum.U, optimizer)
        refined = [each.extended(each.fantasy_minimisers(candidates)).surface() for each in rough]
        log_kg = average(refined, log_space=True)
        surface = self.cost_weighted(log_kg, belief)
        values = surface(candidates, False)[0]
        U, f = local_search(surface, optimizer.encoding, candidates.copy(), values, 1, optimizer.rng, optimizer.chooses_fidelity)
        best = U[int(np.argmax(f))]
        chosen = optimum.u if is_visited(best[None, :], optimizer.visited)[0] else best
        return Selection(chosen, {"log_gain": float(log_kg(chosen[None, :], False)[0][0])})

    def cost_weighted(self, log_kg: Surface, belief: Belief) -> Surface:
        """The surface to maximize, given log KG. KG itself does not count cost."""
        return log_kg


def refined_candidates(U: Array, optimizer: AcquisitionOptimizer) -> Array:
    """Of points, best first, the few whose fantasies refine P. Over fidelities no near-copies, and the best of each bound."""
    if not optimizer.chooses_fidelity:
        return unique_points(U[: 3 * N_REFINED_CANDIDATES])[:N_REFINED_CANDIDATES]
    space = optimizer.encoding.space
    columns = [space.names.index(name) for name in space.fidelities]
    chosen = [separated_points(U, limit=len(U) // 4)[:N_REFINED_CANDIDATES]]
    for corner in fidelity_corners(space):
        there = U[(np.abs(U[:, columns] - corner) < SAME_POINT).all(axis=1)]
        if len(there):
            chosen.append(separated_points(there)[:N_REFINED_AT_EDGES])
    return unique_points(np.vstack(chosen))


def initial_discretization(belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
    """The minima of the posterior mean, visited or not, the best evaluated points, and the pending points."""
    negative_mean = negative_mean_surface(belief)
    found = replace(optimizer, visited=optimizer.visited[:0], fidelities=False).maximize(negative_mean).U
    if belief.feasibility is not None:
        likely = belief.feasibility.is_likely(belief.encoding.features(found))
        found = found[likely] if likely.any() else found
    found = separated_points(found)[:N_MEAN_MINIMA]
    values = negative_mean(found, False)[0]
    found, _ = local_search(negative_mean, belief.encoding, found, values, 0, optimizer.rng, tolerance=MEAN_TOLERANCE)
    order = np.argsort(belief.objective.mean_at(belief.encoding.features(belief.evaluated)), kind="stable")
    return np.vstack([found, belief.evaluated[order[:N_EVALUATED_POINTS]], belief.pending_at_target])


def fantasy_minimisers(
    kg: DiscretizedKG,
    candidates: Array,
    outcomes: tuple[float, ...] = FANTASY_OUTCOMES,
    steps: int = MAX_FANTASY_DESCENT_STEPS,
) -> Array:
    """Minimisers of mu + b w for each candidate and each w in ``outcomes``, by gradient descent.

    A descent starts from the lowest point of P and x, and for w < 0 also from the candidate itself.
    """
    belief, encoding = kg.belief, kg.belief.encoding
    free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
    if not free.any():
        return encoding.space.at_target(candidates)
    at = CandidateMoments.at(belief.objective, encoding, candidates, False)
    a, b, observed = kg.intercepts_and_slopes(at)
    candidate, w = (grid.ravel() for grid in np.meshgrid(np.arange(len(candidates)), outcomes, indexing="ij"))
    lowest = np.argmin(a[candidate] + b[candidate] * w[:, None], axis=1)
    targets = encoding.space.at_target(candidates)
    starts = np.vstack([kg.points, targets[:1]])[np.minimum(lowest, len(kg.points))]
    at_candidate = lowest == len(kg.points)
    starts[at_candidate] = targets[candidate[at_candidate]]
    extra = np.flatnonzero((w < 0.0) & ~at_candidate)
    starts = np.vstack([starts, targets[candidate[extra]]])
    fantasy_of_start = np.concatenate([np.arange(len(candidate)), extra])
    cross = CrossCovariance.between(belief.objective, at.Z)
    weight_of_fantasy, count = w / np.sqrt(observed[candidate]), len(candidate)

    def negative_fantasy_mean(labelled: Array) -> tuple[Array, Array]:
        points, fantasy = labelled[:, :-1], np.rint(labelled[:, -1] * count).astype(np.intp)
        X = encoding.features(points)
        mean, _, d_mean, _ = belief.objective.with_gradients(X)
        weights = np.zeros((len(points), len(candidates)))
        weights[np.arange(len(points)), candidate[fantasy]] = weight_of_fantasy[fantasy]
        shift = np.einsum("ij,ij->i", weights, cross.covariance(X))
        slope = encoding.pull_back(points, d_mean + cross.pull_back(X, weights))
        return -(mean + shift), np.column_stack([-slope, np.zeros(len(points))])

    labelled = np.column_stack([starts, fantasy_of_start / count])  # the last coordinate is fixed: it says which fantasy it is
    ends, _ = ascend(negative_fantasy_mean, labelled, np.append(free, False), steps=steps, tolerance=FANTASY_TOLERANCE)
    return encoding.space.snap(ends[:, :-1])


@dataclass(frozen=True)
class CandidateMoments:
    """Candidates with their posterior moments, both where they are observed and at the target fidelity.

    U               N x D   candidates: configurations and fidelities
    Z, G            N x p   features of the candidates, and of the candidates at the target fidelity (equal without fidelities)
    mean            N       mu at G
    variance        N       var f at Z
    covariance      N       cov(f at G, f at Z)
    d_mean, d_variance      N x p   d mean / dG and d variance / dZ, where gradients are wanted
    d_covariance_Z, _G      N x p   d covariance / dZ and / dG; without fidelities all of it is in the first
    """

    encoding: Encoding
    U: Array
    Z: Array
    G: Array
    mean: Array
    variance: Array
    covariance: Array
    d_mean: Array | None = None
    d_variance: Array | None = None
    d_covariance_Z: Array | None = None
    d_covariance_G: Array | None = None

    @classmethod
    def at(cls, posterior: Posterior, encoding: Encoding, U: Array, gradient: bool) -> CandidateMoments:
        Z = encoding.features(U)
        if not encoding.space.fidelities:
            if not gradient:
                mean, variance = posterior.mean_and_variance(Z)
                return cls(encoding, U, Z, Z, mean, variance, variance)
            mean, variance, d_mean, d_variance = posterior.with_gradients(Z)
            return cls(encoding, U, Z, Z, mean, variance, variance, d_mean, d_variance, d_variance, np.zeros_like(d_mean))
        G = encoding.features(encoding.space.at_target(U))
        if not gradient:
            _, variance = posterior.mean_and_variance(Z)
            return cls(encoding, U, Z, G, posterior.mean_at(G), variance, posterior.paired(Z, G))
        _, variance, _, d_variance = posterior.with_gradients(Z)
        mean, _, d_mean, _ = posterior.with_gradients(G)
        covariance, by_Z, by_G = posterior.paired_with_gradients(Z, G)
        return cls(encoding, U, Z, G, mean, variance, covariance, d_mean, d_variance, by_Z, by_G)

    def gradients(
        self, cross: CrossCovariance, b: Array, observed: Array, by_b: Array, by_own_mean: Array
    ) -> tuple[Array, Array]:
        """Derivatives with respect to Z and G, given those with respect to b (N x (m + 1)) and to mu at x itself (N).

        b = (covariances with P and x) / sqrt(observed), observed = variance + noise.
        """
        assert self.d_mean is not None  # all four are there, or none
        assert self.d_variance is not None
        assert self.d_covariance_Z is not None
        assert self.d_covariance_G is not None
        root = np.sqrt(observed)
        own = (by_b[:, -1] / root)[:, None]
        by_observed = -0.5 * np.einsum("ij,ij->i", by_b, b) / observed  # every b has the factor 1 / sqrt(observed)
        by_Z = cross.pull_back(self.Z, by_b[:, :-1] / root[:, None])
        by_Z = by_Z + by_observed[:, None] * self.d_variance + own * self.d_covariance_Z
        return by_Z, by_own_mean[:, None] * self.d_mean + own * self.d_covariance_G

    def pull_back(self, by_Z: Array, by_G: Array) -> Array:
        """The gradient with respect to U, given those with respect to Z and G; the fidelity in G is fixed at the target."""
        encoding = self.encoding
        if not encoding.space.fidelities:
            return encoding.pull_back(self.U, by_Z + by_G)
        moves = np.array([not parameter.fidelity for parameter in encoding.space.values()])
        target = encoding.space.at_target(self.U)
        return encoding.pull_back(self.U, by_Z) + moves * encoding.pull_back(target, by_G)


@dataclass(frozen=True)
class PendingFantasies:
    """Fantasies of the outcomes of pending points: ``weights`` (S x p) are v_s."""

    without_pending: Posterior
    cross: CrossCovariance  # of ``without_pending`` and the pending points
    weights: Array

    @classmethod
    def of(cls, belief: Belief, count: int = N_PENDING_FANTASIES) -> PendingFantasies:
        posterior, pending = belief.without_pending, belief.pending
        assert posterior is not None
        covariance = posterior.covariance(pending)
        covariance[np.diag_indices(len(pending))] += posterior.noise
        factor, _ = cholesky(covariance)
        z = special.ndtri(np.clip(quasi_random(count, len(pending), np.random.default_rng(count)), 1e-6, 1 - 1e-6))
        z -= z.mean(axis=0)  # so that the average outcome is the expected one
        weights: Array = np.linalg.solve(factor.T, z.T).T.astype(float)
        return cls(posterior, CrossCovariance.between(posterior, pending), weights)

    def means(self, Z: Array) -> Array:
        """mu_s at features Z (N x S), equation (2)."""
        return self.without_pending.mean_at(Z)[:, None] + self.cross.covariance(Z) @ self.weights.T


def pending_surface(belief: Belief, points: Array, count: int = N_PENDING_FANTASIES) -> Surface:
    """log KG with pending points, equation (3), over the discretization ``points``.

    Variances are those of ``belief.objective``, which is conditioned on the pending points. Its means are not used: they rest on
    one assumed outcome, and here there are S of them.
    """
    encoding, posterior, feasibility = belief.encoding, belief.objective, belief.feasibility
    fantasies = PendingFantasies.of(belief, count)
    P = encoding.features(points)
    cross, means = CrossCovariance.between(posterior, P), fantasies.means(P).T  # S x m

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        at = CandidateMoments.at(posterior, encoding, U, gradient)
        N, S = len(U), len(means)
        observed = at.variance + posterior.noise
        b = np.column_stack([cross.covariance(at.Z), at.covariance]) / np.sqrt(observed)[:, None]
        a = np.concatenate([np.broadcast_to(means, (N, *means.shape)), fantasies.means(at.G)[:, :, None]], axis=2)
        a, b_all = a.reshape(N * S, -1), np.repeat(b, S, axis=0)
        if not gradient:
            total = special.logsumexp(log_expected_drop(a, b_all).reshape(N, S), axis=1) - math.log(S)
            return (total if feasibility is None else total + feasibility.log_probability(at.Z)), None
        drop = log_expected_drop_with_gradient(a, b_all)
        each = drop.value.reshape(N, S)
        total = special.logsumexp(each, axis=1) - math.log(S)
        share = np.exp(each - special.logsumexp(each, axis=1, keepdims=True))
        by_b = np.einsum("ns,nsm->nm", share, drop.by_b.reshape(N, S, -1))
        by_own_mean = share * drop.by_a[:, -1].reshape(N, S)
        by_Z, by_G = at.gradients(cross, b, observed, by_b, np.zeros(N))
        _, _, d_mean, _ = fantasies.without_pending.with_gradients(at.G)
        by_G = by_G + by_own_mean.sum(axis=1)[:, None] * d_mean + fantasies.cross.pull_back(at.G, by_own_mean @ fantasies.weights)
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(at.Z)
            total, by_Z = total + chance, by_Z + d_chance
        return total, at.pull_back(by_Z, by_G)

    return value
