"""What a value and its slopes, observed together, would do to the mean elsewhere.

Notation: o_n the observations at candidate n, its value and the slopes that are told with values (1 + r of them), with noise;
S = D D' their covariance, w ~ N(0, I). Observing them moves the mean at p by cov(f(p), o_n) D^-T w. With running trials, whose
outcomes come first, the same after those: cov and S are then conditioned on them, and their own w moves the mean beforehand.

The knowledge gradient where trials tell slopes too: the expectation over the value and the gradient observed together.

Source: "Continuous-fidelity Bayesian optimization with knowledge gradient", section 3.4 (cf-d-KG); Wu et al. 2017 (d-KG).

    d-KG(x) = min mu - E[ min_i (mu(p_i) + sigma_i(x)' w) ],    w ~ N(0, I) with one entry for the value and each slope

over the same set of points P as ``knowledge``. In so many dimensions there is no closed form: SAMPLES quasi-random w, the same
for every x, in pairs w and -w, so that the estimate is never negative while no trial runs. The gradient is by differences: the
samples are fixed, and a difference costs no more than a derivative of S's factor would. What is left to gain may be too little
for any sample to show; there the value alone, whose KG is exact in logarithms, stands in, which is never more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from ..surrogate.covariance import DerivativeBlock, ValueBlock, covariance
from ..surrogate.gradient_data import gradient_noise
from ..surrogate.kernels import Kernel
from ..surrogate.posterior import Posterior
from .kg_fidelity import CFKG
from .knowledge_gradient import KG, LookAhead, fantasy_minimisers
from .optimize.batched_bfgs import ascend
from .optimize.candidates import quasi_random
from .optimize.optimizer import Surface

JITTER = 1e-9


@dataclass(frozen=True)
class Told:
    """What trials tell: a value with noise, and slopes along ``columns`` with a share of noise."""

    posterior: Posterior
    columns: NDArray[np.intp]
    share: float

    def parts(self, Z: Array) -> tuple[ValueBlock, DerivativeBlock]:
        """Values at Z, and slopes, those of one point together."""
        kernel, r = self.posterior.kernel, len(self.columns)
        return ValueBlock(kernel.scale(Z)), DerivativeBlock.at(kernel, np.repeat(Z, r, axis=0), np.tile(self.columns, len(Z)))

    def moves(self, Z: Array, P: Array, G: Array, active: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """cov D^-T of each candidate Z[n] with all of P (N x m x (1 + r)), and with its own answer G[n] (N x (1 + r)).

        ``active`` (N x r) says which parameters count at a candidate: the others tell no slope there.
        """
        posterior, kernel, count, r = self.posterior, self.posterior.kernel, len(Z), len(self.columns)
        values, slopes = self.parts(Z)

        def grouped(of_values: Array, of_slopes: Array) -> Array:
            of_slopes = of_slopes.reshape(*of_slopes.shape[:-1], count, r)
            if active is not None:
                of_slopes = of_slopes * active
            return np.concatenate([of_values[..., None], of_slopes], axis=-1)

        V = grouped(posterior.R @ posterior.basis.to(values), posterior.R @ posterior.basis.to(slopes))  # n x N x (1 + r)
        S = -np.einsum("knp,knq->npq", V, V)
        S[:, 0, 0] += kernel.variance + posterior.noise
        inner = np.arange(1, r + 1)
        steep = gradient_noise(kernel, 1.0, slopes).reshape(count, r)  # what a slope may be beforehand
        S[:, inner, inner] += (1.0 + self.share) * steep
        S[:, np.arange(r + 1), np.arange(r + 1)] += JITTER * np.concatenate([np.full((count, 1), kernel.variance), steep], axis=1)
        inverse = np.linalg.inv(np.linalg.cholesky(S))
        fixed = ValueBlock(kernel.scale(P))
        there = grouped(covariance(kernel, fixed, values), covariance(kernel, fixed, slopes))  # m x N x (1 + r)
        there = there - np.einsum("km,knp->mnp", posterior.R @ posterior.basis.to(fixed), V)
        own = paired_prior(kernel, values, slopes, kernel.scale(G), r)
        if active is not None:
            own[:, 1:] *= active
        own = own - np.einsum("kn,knp->np", posterior.R @ posterior.basis.to_values(kernel.scale(G)), V)
        return np.einsum("mnp,nqp->nmq", there, inverse), np.einsum("np,nqp->nq", own, inverse)


def paired_prior(kernel: Kernel, values: ValueBlock, slopes: DerivativeBlock, answers: Array, r: int) -> Array:
    """Prior covariances of f at each answer with the value and slopes at its own candidate (N x (1 + r))."""
    apart = values.A - answers
    k, slope = kernel.profiled(np.einsum("ij,ij->i", apart, apart))
    along = np.take_along_axis(apart, slopes.columns.reshape(len(answers), r), axis=1)
    return np.column_stack([k, 2.0 * slope[:, None] * along * slopes.s.reshape(len(answers), r)])


@dataclass(frozen=True)
class Running:
    """What running trials will tell, and the posterior once they have: cov with them times C^-T moves the mean."""

    before: Posterior
    after: Posterior
    parts: tuple[ValueBlock, DerivativeBlock]
    inverse: Array  # C^-1

    @classmethod
    def of(cls, belief: Belief) -> Running:
        before = belief.without_pending
        assert before is not None
        told = Told(before, belief.gradient_columns, belief.gradient_noise_share)
        values, slopes = told.parts(belief.pending)
        encoding = belief.encoding
        if encoding.conditional and len(belief.pending_at_target):  # what is not active there tells no slope
            active = encoding.space.active(belief.pending_at_target)[:, encoding.groups[belief.gradient_columns]].ravel()
            slopes = DerivativeBlock(slopes.A[active], slopes.columns[active], slopes.s[active])
        noise = gradient_noise(before.kernel, belief.gradient_noise_share, slopes) + JITTER * gradient_noise(before.kernel, 1.0, slopes)
        noises = np.concatenate([np.full(len(values), before.noise), noise])
        values_batches = np.block([
            [before.covariance_of(values, values), before.covariance_of(values, slopes)],
            [before.covariance_of(slopes, values), before.covariance_of(slopes, slopes)],
        ])
        values_batches[np.diag_indices(len(values_batches))] += noises
        factor, _ = cholesky(values_batches)
        after = before.condition_on(values, before.expected(values), noises[: len(values)])
        after = after.condition_on(slopes, after.expected(slopes), noise)
        return cls(before, after, (values, slopes), np.asarray(np.linalg.inv(factor), dtype=float))

    def moves(self, X: Array) -> Array:
        """At features X (m x all that they tell)."""
        there = ValueBlock(self.before.kernel.scale(X))
        return np.hstack([self.before.covariance_of(there, part) for part in self.parts]) @ self.inverse.T


SAMPLES = 64
IMAGINED = 6  # outcomes, value and slopes, after which the mean is minimised again
STEP = 1e-5  # of differences, in the unit cube
DESCENT = 15


@dataclass(frozen=True)
class SlopedLookAhead(LookAhead):
    """A belief whose next observation is a value with slopes."""

    def surface(self) -> Surface:
        """log d-KG over points."""
        exact, encoding = super().surface(), self.belief.encoding
        if not len(self.belief.gradient_columns):
            return exact
        sampled = self.sampled()
        moving = np.flatnonzero(encoding.numeric)

        def alone(U: Array) -> Array:
            return np.maximum(exact(U, False)[0], sampled(U))

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not gradient:
                return alone(U), None
            steps = STEP * np.eye(U.shape[1])[moving]
            stacked = alone(np.vstack([U, *(U + step for step in steps), *(U - step for step in steps)]))
            found = stacked.reshape(-1, len(U))
            slope = np.zeros_like(U)
            slope[:, moving] = ((found[1 : len(moving) + 1] - found[len(moving) + 1 :]) / (2.0 * STEP)).T
            return found[0], slope

        return value

    def imagined(self, candidates: Array) -> Array:
        return minimisers_with_slopes(self, candidates)

    def sampled(self) -> Callable[[Array], Array]:
        """log d-KG by the fixed samples, as a function of points; -inf where none of them shows a gain."""
        belief, encoding = self.belief, self.belief.encoding
        P = encoding.features(self.points)
        running = Running.of(belief) if len(belief.pending) else None
        posterior = belief.objective if running is None else running.after
        told = Told(posterior, belief.gradient_columns, belief.gradient_noise_share)
        first = 0 if running is None else len(running.inverse)
        w = normals(first + 1 + len(belief.gradient_columns))
        mean = posterior.mean_at(P)
        before = mean[:, None] + (0.0 if running is None else running.moves(P) @ w[:, :first].T)  # m x S

        def value(U: Array) -> Array:
            Z, G = encoding.features(U), encoding.features(encoding.space.at_target(U))
            active = encoding.space.active(U)[:, encoding.groups[belief.gradient_columns]] if encoding.conditional else None
            there, own = told.moves(Z, P, G, active)
            offset = posterior.mean_at(G)[:, None] + (0.0 if running is None else running.moves(G) @ w[:, :first].T)
            after = np.minimum(
                (before + there @ w[:, first:].T).min(axis=1), offset + own @ w[:, first:].T
            )  # N x S
            now = np.minimum(before.min(axis=0), offset) if running is not None else np.minimum(mean.min(), offset)
            gain = (now - after).mean(axis=1)
            with np.errstate(divide="ignore"):
                total = np.log(np.maximum(gain, 0.0))
            return np.asarray(total if belief.feasibility is None else total + belief.feasibility.log_probability(Z))

        return value


@cache
def normals(dimensions: int) -> Array:
    """SAMPLES quasi-random normal vectors, or more in many dimensions, in pairs w, -w, with second moments exactly those of
    N(0, I): so few have others by chance, and each deviation that is too wide is knowledge that is not there.
    """
    count = max(SAMPLES // 2, 4 * dimensions)
    half = ndtri(np.clip(quasi_random(count, dimensions, np.random.default_rng(dimensions)), 1e-6, 1 - 1e-6))
    factor = np.linalg.cholesky(half.T @ half / count)
    half = np.linalg.solve(factor, half.T).T
    return np.asarray(np.vstack([half, -half]))


def minimisers_with_slopes(ahead: LookAhead, candidates: Array) -> Array:
    """Where the mean would be lowest after imagined values at the candidates, and after imagined values with slopes."""
    belief, encoding = ahead.belief, ahead.belief.encoding
    alone = fantasy_minimisers(ahead, candidates)
    numbers = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
    if not len(belief.gradient_columns) or not numbers.any():
        return alone
    told, ends = Told(belief.objective, belief.gradient_columns, belief.gradient_noise_share), [alone]
    for u in candidates:
        Z = encoding.features(u[None, :])
        (values, slopes), answer = told.parts(Z), encoding.space.at_target(u[None, :])
        outcomes = normals(1 + len(belief.gradient_columns))
        for w in outcomes[:: max(len(outcomes) // IMAGINED, 1)]:
            root = np.sqrt(float(belief.objective.mean_and_variance(Z)[1][0]) + belief.objective.noise)
            one = belief.objective.condition_on(
                values, belief.objective.expected(values) + root * w[:1], np.array([belief.objective.noise])
            )
            spread = np.sqrt(np.maximum(np.diag(one.covariance_of(slopes, slopes)), 0.0))
            future = one.condition_on(slopes, one.expected(slopes) + spread * w[1:], 1e-6 * np.maximum(spread**2, 1e-12))

            def falling(points: Array, posterior: Posterior = future) -> tuple[Array, Array]:
                mean, _, slope, _ = posterior.with_gradients(encoding.features(points))
                return -mean, -encoding.pull_back(points, slope)

            low = ahead.points[int(np.argmin(future.mean_at(encoding.features(ahead.points))))]
            ends.append(encoding.space.snap(ascend(falling, np.vstack([answer, low]), numbers, steps=DESCENT, tolerance=1e-6)[0]))
    return np.vstack(ends)


@dataclass(frozen=True)
class DKG(KG):
    """The knowledge gradient of a value and its slopes. While no slopes are told: KG."""

    ahead: ClassVar[type[LookAhead]] = SlopedLookAhead


@dataclass(frozen=True)
class CFDKG(CFKG):
    """Knowledge per unit of cost from values and slopes, over configurations and fidelities together."""

    ahead: ClassVar[type[LookAhead]] = SlopedLookAhead
