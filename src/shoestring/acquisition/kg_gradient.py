"""Derivative-enabled knowledge gradient (d-KG, cf-d-KG): KG where trials report gradients with their values.

Sources: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), section 3.4 (cf-d-KG); Wu et
al. 2017 (d-KG).

Notation (see also ``knowledge_gradient``)
    o_n             the observation at candidate n: its value and r derivatives, with noise
    S_n = D D'      the covariance of o_n;   w ~ N(0, I_(1+r))
    sigma~(p)       cov(f(p), o_n) D^-T, a row of 1 + r numbers:  the mean at p after o_n is mu(p) + sigma~(p) w        (3.6)
    P               the discretization, as in ``knowledge_gradient``

    d-KG(x) = min mu - E[ min_p (mu(p) + sigma~(p) w) ],    p over P and x itself                                       (1)

In 1 + r dimensions there is no closed form. The expectation is a mean over MC_SAMPLES quasi-random w, the same for every x, in
antithetic pairs w and -w, so that it is never negative without pending points. Its gradient is taken by differences: the samples
are fixed, and a difference costs no more than the derivative of the factor D would. What is left to gain may be too little for
the samples to show. There two bounds are used that are exact in log space and never more than d-KG, since they know less: the KG
of the value alone, and the KG of one number v'w out of the observation,

    KG_v(x) = min mu - E[ min_p (mu(p) + sigma~(p) v t) ],   t ~ N(0, 1)                                                (2)

With p_0 where mu is lowest, v is the direction of sigma~(p) - sigma~(p_0) for the p whose expected improvement on p_0 is highest.
Small gains come from one such p.

Pending points are observed first. Then cov and S are those of the posterior conditioned on them, and their own w shifts the mean
beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, cholesky, special
from ..surrogate.belief import Belief
from ..surrogate.gradient_data import gradient_noise
from ..surrogate.kernels import Basis, DerivativeBlock, Kernel, ValueBlock, covariance
from ..surrogate.posterior import Posterior
from .improvement import log_h
from .kg_envelope import log_expected_drop
from .kg_fidelity import CFKG
from .knowledge_gradient import KG, DiscretizedKG, fantasy_minimisers
from .optimize.batched_bfgs import ascend
from .optimize.candidates import quasi_random
from .optimize.optimizer import Surface

MC_SAMPLES = 64  # of w; more in many dimensions
FANTASIES_PER_CANDIDATE = 6  # outcomes, values with derivatives, whose minimisers refine the discretization
MAX_FANTASY_DESCENT_STEPS = 15
FANTASY_TOLERANCE = 1e-6  # gain of a step at which a descent ends, in deviations of the model
DIFFERENCE_STEP = 1e-5  # of the unit cube
RELATIVE_JITTER = 1e-9  # of the prior variance of each observation


@dataclass(frozen=True)
class DiscretizedDerivativeKG(DiscretizedKG):
    """d-KG over a discretization, under one set of hyperparameters. Where no gradients are expected, it is KG."""

    def surface(self) -> Surface:
        """log d-KG over points."""
        value_only, encoding = super().surface(), self.belief.encoding
        if not len(self.belief.gradient_columns):
            return value_only
        sampled = self.sampled()
        moving = np.flatnonzero(encoding.numeric)

        def highest(U: Array) -> Array:
            return np.maximum(value_only(U, False)[0], sampled(U))

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not gradient:
                return highest(U), None
            steps = DIFFERENCE_STEP * np.eye(U.shape[1])[moving]
            stacked = highest(np.vstack([U, *(U + step for step in steps), *(U - step for step in steps)]))
            found = stacked.reshape(-1, len(U))
            slope = np.zeros_like(U)
            slope[:, moving] = ((found[1 : len(moving) + 1] - found[len(moving) + 1 :]) / (2.0 * DIFFERENCE_STEP)).T
            return found[0], slope

        return value

    def fantasy_minimisers(self, candidates: Array) -> Array:
        return derivative_fantasy_minimisers(self, candidates)

    def sampled(self) -> Callable[[Array], Array]:
        """log of the Monte Carlo mean in (1), as a function of points; -inf where no sample shows a gain."""
        belief, encoding = self.belief, self.belief.encoding
        P = encoding.features(self.points)
        pending = PendingObservations.of(belief) if len(belief.pending) else None
        posterior = belief.objective if pending is None else pending.after
        observation = GradientObservation(posterior, belief.gradient_columns, belief.gradient_noise_share)
        first = 0 if pending is None else len(pending.inverse)
        w = antithetic_normals(first + 1 + len(belief.gradient_columns))
        mean = posterior.mean_at(P)
        before = mean[:, None] + (0.0 if pending is None else pending.sigma_tilde(P) @ w[:, :first].T)  # m x S

        def value(U: Array) -> Array:
            Z, G = encoding.features(U), encoding.features(encoding.space.at_target(U))
            active = encoding.space.active(U)[:, encoding.groups[belief.gradient_columns]] if encoding.conditional else None
            sigma, own_sigma = observation.sigma_tilde(Z, P, G, active)
            own = posterior.mean_at(G)[:, None] + (0.0 if pending is None else pending.sigma_tilde(G) @ w[:, :first].T)
            after = np.minimum((before + sigma @ w[:, first:].T).min(axis=1), own + own_sigma @ w[:, first:].T)  # N x S
            now = np.minimum(before.min(axis=0), own) if pending is not None else np.minimum(mean.min(), own)
            gain = (now - after).mean(axis=1)
            with np.errstate(divide="ignore"):
                total = np.log(np.maximum(gain, 0.0))
            if pending is None:
                total = np.maximum(total, log_kg_along_best(np.column_stack([np.tile(mean, (len(U), 1)), own]), sigma, own_sigma))
            return np.asarray(total if belief.feasibility is None else total + belief.feasibility.log_probability(Z))

        return value


def log_kg_along_best(mean: Array, sigma: Array, own_sigma: Array) -> Array:
    """log of equation (2), along the direction in which one point is expected to undercut the lowest most.

    mean is N x (m + 1), with the candidate itself last; sigma (N x m x (1 + r)) and own_sigma (N x (1 + r)) are sigma~.
    """
    rows, every = np.arange(len(mean)), np.concatenate([sigma, own_sigma[:, None, :]], axis=1)
    lowest = np.argmin(mean, axis=1)
    apart = every - every[rows, lowest][:, None, :]
    length = np.sqrt(np.maximum(np.einsum("nmq,nmq->nm", apart, apart), 1e-300))
    pairs = np.log(length) + log_h(-(mean - mean[rows, lowest][:, None]) / length)[0]
    best = np.argmax(pairs, axis=1)
    direction = apart[rows, best] / length[rows, best][:, None]
    return log_expected_drop(mean, np.einsum("nmq,nq->nm", every, direction))  # (2)


@dataclass(frozen=True)
class DKG(KG):
    """The knowledge gradient of a value and its gradient (d-KG).

    Use it where the objective reports gradients and the space has no fidelities. While no gradients are reported, it is ``KG``.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.DKG())
    >>> trial = study.ask()
    >>> study.tell(trial, 0.31, gradient={"x": -0.2}).gradient
    {'x': -0.2}
    """

    estimator: ClassVar[type[DiscretizedKG]] = DiscretizedDerivativeKG


@dataclass(frozen=True)
class CFDKG(CFKG):
    """The knowledge gradient of a value and its gradient, per unit of cost, over configs and fidelities together (cf-d-KG).

    Use it where the objective reports gradients and the space has fidelities; ``method="auto"`` does so by itself.

    >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), method=st.CFDKG())
    >>> trial = study.ask()
    >>> study.tell(trial, 0.31, cost=2.5, gradient={"x": -0.2}).gradient
    {'x': -0.2}
    """

    estimator: ClassVar[type[DiscretizedKG]] = DiscretizedDerivativeKG


@dataclass(frozen=True)
class GradientObservation:
    """What a trial reports: a value with noise, and derivatives along ``columns`` with a share of their variance as noise."""

    posterior: Posterior
    columns: NDArray[np.intp]
    noise_share: float

    def blocks(self, Z: Array) -> tuple[ValueBlock, DerivativeBlock]:
        """Values at Z, and derivatives, those of one point together."""
        kernel, r = self.posterior.kernel, len(self.columns)
        return ValueBlock(kernel.scale(Z)), DerivativeBlock.at(kernel, np.repeat(Z, r, axis=0), np.tile(self.columns, len(Z)))

    def sigma_tilde(self, Z: Array, P: Array, G: Array, active: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """sigma~ of each candidate Z[n] at all of P (N x m x (1 + r)), and at its own target G[n] (N x (1 + r)).

        ``active`` (N x r) says which parameters are active at a candidate: the others report no derivative there.
        """
        posterior, kernel, count, r = self.posterior, self.posterior.kernel, len(Z), len(self.columns)
        values, derivatives = self.blocks(Z)

        def grouped(of_values: Array, of_derivatives: Array) -> Array:
            of_derivatives = of_derivatives.reshape(*of_derivatives.shape[:-1], count, r)
            if active is not None:
                of_derivatives = of_derivatives * active
            return np.concatenate([of_values[..., None], of_derivatives], axis=-1)

        R, basis = posterior.R, posterior.basis
        V = grouped(R @ basis.covariance_with(values), R @ basis.covariance_with(derivatives))  # n x N x (1 + r)
        S = -np.einsum("knp,knq->npq", V, V)
        S[:, 0, 0] += kernel.variance + posterior.noise
        inner = np.arange(1, r + 1)
        prior = gradient_noise(kernel, 1.0, derivatives).reshape(count, r)  # the prior variance of each derivative
        S[:, inner, inner] += (1.0 + self.noise_share) * prior
        jitter = RELATIVE_JITTER * np.concatenate([np.full((count, 1), kernel.variance), prior], axis=1)
        S[:, np.arange(r + 1), np.arange(r + 1)] += jitter
        inverse = np.linalg.inv(np.linalg.cholesky(S))  # D^-1
        fixed = ValueBlock(kernel.scale(P))
        at_P = grouped(covariance(kernel, fixed, values), covariance(kernel, fixed, derivatives))  # m x N x (1 + r)
        at_P = at_P - np.einsum("km,knp->mnp", posterior.R @ posterior.basis.covariance_with(fixed), V)
        at_G = paired_prior(kernel, values, derivatives, kernel.scale(G), r)
        if active is not None:
            at_G[:, 1:] *= active
        at_G = at_G - np.einsum("kn,knp->np", posterior.R @ posterior.basis.covariance_at(G), V)
        return np.einsum("mnp,nqp->nmq", at_P, inverse), np.einsum("np,nqp->nq", at_G, inverse)


def paired_prior(kernel: Kernel, values: ValueBlock, derivatives: DerivativeBlock, targets: Array, r: int) -> Array:
    """Prior covariances of f at each scaled target with the value and derivatives at its own candidate (N x (1 + r))."""
    difference = values.A - targets
    k, slope = kernel.covariance_at_distance(np.einsum("ij,ij->i", difference, difference))
    along = np.take_along_axis(difference, derivatives.columns.reshape(len(targets), r), axis=1)
    return np.column_stack([k, 2.0 * slope[:, None] * along * derivatives.s.reshape(len(targets), r)])


@dataclass(frozen=True)
class PendingObservations:
    """What pending points will report, and the posterior once they have: their sigma~ is cov C^-T, C C' their covariance."""

    before: Posterior
    after: Posterior
    blocks: tuple[ValueBlock, DerivativeBlock]
    inverse: Array  # C^-1

    @classmethod
    def of(cls, belief: Belief) -> PendingObservations:
        before = belief.without_pending
        assert before is not None
        observation = GradientObservation(before, belief.gradient_columns, belief.gradient_noise_share)
        values, derivatives = observation.blocks(belief.pending)
        encoding = belief.encoding
        if encoding.conditional and len(belief.pending_at_target):  # an inactive parameter reports no derivative
            active = encoding.space.active(belief.pending_at_target)[:, encoding.groups[belief.gradient_columns]].ravel()
            derivatives = DerivativeBlock(derivatives.A[active], derivatives.columns[active], derivatives.s[active])
        noise = gradient_noise(before.kernel, belief.gradient_noise_share, derivatives)
        noise = noise + RELATIVE_JITTER * gradient_noise(before.kernel, 1.0, derivatives)
        noises = np.concatenate([np.full(len(values), before.noise), noise])
        joint = np.block([
            [before.covariance_of(values, values), before.covariance_of(values, derivatives)],
            [before.covariance_of(derivatives, values), before.covariance_of(derivatives, derivatives)],
        ])
        joint[np.diag_indices(len(joint))] += noises
        factor, _ = cholesky(joint)
        after = before.condition_on(values, before.expected(values), noises[: len(values)])
        after = after.condition_on(derivatives, after.expected(derivatives), noise)
        return cls(before, after, (values, derivatives), np.asarray(np.linalg.inv(factor), dtype=float))

    def sigma_tilde(self, X: Array) -> Array:
        """sigma~ at features X (m x number of pending values and derivatives)."""
        at_X = ValueBlock(self.before.kernel.scale(X))
        return np.hstack([self.before.covariance_of(at_X, block) for block in self.blocks]) @ self.inverse.T


@cache
def antithetic_normals(dimensions: int) -> Array:
    """MC_SAMPLES quasi-random normal vectors, or more in many dimensions, in pairs w, -w.

    Their second moments are exactly those of N(0, I): in so few samples they would differ by chance, and each deviation that is
    too wide would count as a gain that is not there.
    """
    count = max(MC_SAMPLES // 2, 4 * dimensions)
    half = special.ndtri(np.clip(quasi_random(count, dimensions, np.random.default_rng(dimensions)), 1e-6, 1 - 1e-6))
    factor = np.linalg.cholesky(half.T @ half / count)
    half = np.linalg.solve(factor, half.T).T
    return np.asarray(np.vstack([half, -half]))


def derivative_fantasy_minimisers(kg: DiscretizedKG, candidates: Array) -> Array:
    """Minimisers of the posterior mean after imagined values at the candidates, and after imagined values with derivatives."""
    belief, encoding = kg.belief, kg.belief.encoding
    value_only = fantasy_minimisers(kg, candidates)
    free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
    if not len(belief.gradient_columns) or not free.any():
        return value_only
    means = FantasyMeans.of(belief, candidates)
    at_points = means.at(encoding.features(kg.points))  # fantasies x m
    starts = np.vstack([encoding.space.at_target(candidates)[means.candidate], kg.points[np.argmin(at_points, axis=1)]])
    count = len(means.candidate)
    labelled = np.column_stack([starts, np.tile(np.arange(count), 2) / count])  # the last coordinate says which fantasy it is

    def negative_mean(points: Array) -> tuple[Array, Array]:
        fantasy = np.rint(points[:, -1] * count).astype(np.intp)
        mean, slope = means.with_gradients(encoding.features(points[:, :-1]), fantasy)
        return -mean, np.column_stack([-encoding.pull_back(points[:, :-1], slope), np.zeros(len(points))])

    steps, moves = MAX_FANTASY_DESCENT_STEPS, np.append(free, False)
    ends, _ = ascend(negative_mean, labelled, moves, steps=steps, tolerance=FANTASY_TOLERANCE)
    return np.vstack([value_only, encoding.space.snap(ends[:, :-1])])


@dataclass(frozen=True)
class FantasyMeans:
    """Posterior means after imagined values with derivatives, one candidate each: they differ in the weights of one basis.

    basis       what the posterior knows, then the values at all candidates, then the derivatives there
    alphas      one row of weights for each fantasy, 0 for what other candidates would report;   candidate  of each fantasy
    """

    mean: float
    basis: Basis
    alphas: Array
    candidate: NDArray[np.intp]

    @classmethod
    def of(cls, belief: Belief, candidates: Array) -> FantasyMeans:
        posterior, Z, r = belief.objective, belief.encoding.features(candidates), len(belief.gradient_columns)
        observation = GradientObservation(posterior, belief.gradient_columns, belief.gradient_noise_share)
        outcomes = antithetic_normals(1 + r)
        outcomes = outcomes[:: max(len(outcomes) // FANTASIES_PER_CANDIDATE, 1)]
        known = len(posterior.alpha)
        alphas = np.zeros((len(Z) * len(outcomes), known + len(Z) * (1 + r)))
        for n in range(len(Z)):
            own = Z[n : n + 1]
            values, derivatives = observation.blocks(own)
            root = np.sqrt(float(posterior.mean_and_variance(own)[1][0]) + posterior.noise)
            for j, w in enumerate(outcomes):
                fantasy = posterior.condition_on(values, posterior.expected(values) + root * w[:1], np.array([posterior.noise]))
                spread = np.sqrt(np.maximum(np.diag(fantasy.covariance_of(derivatives, derivatives)), 0.0))
                noise = 1e-6 * np.maximum(spread**2, 1e-12)
                alpha = fantasy.condition_on(derivatives, fantasy.expected(derivatives) + spread * w[1:], noise).alpha
                row = alphas[n * len(outcomes) + j]
                row[:known], row[known + n] = alpha[:known], alpha[known]
                first = known + len(Z) + n * r
                row[first : first + r] = alpha[known + 1 :]
        values, derivatives = observation.blocks(Z)
        basis = posterior.basis.extended(values).extended(derivatives)
        return cls(posterior.mean, basis, alphas, np.repeat(np.arange(len(Z)), len(outcomes)))

    def at(self, X: Array) -> Array:
        """At features X, for all fantasies (F x m)."""
        return np.asarray(self.mean + self.alphas @ self.basis.covariance_at(X))

    def with_gradients(self, X: Array, fantasy: NDArray[np.intp]) -> tuple[Array, Array]:
        """At X[i] under fantasy[i], and the gradients there."""
        near, weights = self.basis.covariance_with_gradient_at(X), self.alphas[fantasy]
        return self.mean + np.einsum("ij,ij->i", near.k, weights), near.gradients(weights)[0]
