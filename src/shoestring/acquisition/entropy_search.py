"""Representer points: a few points at one of which the minimum lies, as far as is known, and f at them as a normal vector.

Source: Hennig and Schuler 2012 (representer points for p_min); chosen here by Thompson draws.

Notation (R representers r, features Z_R)
    f(r) = mu_R + L w,  L L' = cov(f(r)) + a hair I,  w ~ N(0, I)
    b(x) = L^-1 cov(f(r), f(x)): what f(x) takes from w;   f(x) = mu(x) + b(x)'w + rest,   var(rest) = s^2(x) - |b(x)|^2
    S(x) = s^2(x) + noise, the variance of an observation y at x

If something k is known of w, whose variance is then I - D_k, then y has variance S - b'D_k b: this is all that entropy search
asks, and its gradient asks for that of cov(f(r), f(x)) and of s^2 only.

Which points: the minima of the posterior mean, the best tried points, where EI is highest; then, of the places where joint draws
of f over many candidates have their minimum, again and again the one with the largest (times drawn) x (variance left after
those taken): likely places that the others do not speak for.

Entropy search: how much does an observation say of where the minimum lies, among representer points?

Sources: Hennig and Schuler 2012; the slides on computationally expensive acquisition functions (``entropy_by_sampling`` is their
pseudo-code). Mutual information is symmetric: H(p_min) - E_y[H(p_min | y)] = H(y) - sum_k p_k H(y | k), and the right side
needs no imagined outcome.

Notation (see ``representers``): k the representer that is the lowest, p_k = P(k) = p_min. N draws of w are made once. Those in
which k is lowest give p_k and I - D_k = var(w | k), for every x at once; an observation at x is then a rank-one matter,

    I(x) = -1/2 sum_k p_k log(1 - q_k),     q_k = b(x)'D_k b(x) / S(x)

with y normal given k, which makes it a lower bound on the information (the normal has the highest entropy), in practice
within some per cent. The draws are shifted and turned so that their mean and variance are exactly 0 and I; hence
sum_k p_k q_k >= 0, and I(x) >= 0 whatever the draws.

    dI = sum_k p_k / (1 - q_k) (b'D_k db - q_k dS / 2) / S

Searched is log(I + FLOOR EI): where it is settled which representer is the lowest, the minimum is to be improved still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from ..errors import MethodError
from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from ..surrogate.posterior import CrossCovariance
from .base import InformationAcquisition
from .improvement import LogEI, log_expected_improvement, negative_mean_surface
from .knowledge_gradient import distinct
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

HAIR = 1e-8  # added to the covariance, relative to its mean diagonal: b'b stays below s^2
LOWEST, TRIED, PROMISING = 4, 6, 4  # taken without drawing: minima of the mean, best tried points, highest EI
DRAWS = 512
LOOK = OptimizerOptions(raw_samples=192, local_samples=128, restarts=6, rounds=1)
LOOK_LOW = OptimizerOptions(raw_samples=64, local_samples=96, restarts=4, rounds=1)


@dataclass(frozen=True)
class Representers:
    """f at points under a belief."""

    belief: Belief
    points: Array  # R x D
    mean: Array  # R
    factor: Array  # L
    cross: CrossCovariance

    @classmethod
    def over(cls, belief: Belief, points: Array) -> Representers:
        Z, posterior = belief.encoding.features(points), belief.objective
        C = posterior.covariance(Z)
        C[np.diag_indices(len(C))] += HAIR * max(float(np.diag(C).mean()), 1e-12 * posterior.kernel.variance)
        return cls(belief, points, posterior.mean_at(Z), cholesky(C)[0], CrossCovariance.between(posterior, Z))

    def __len__(self) -> int:
        return len(self.mean)

    @cached_property
    def inverse(self) -> Array:
        """L^-1."""
        inverse, _ = dtrtri(self.factor, lower=1)
        return np.asarray(inverse)

    def loadings(self, Z: Array) -> Array:
        """b (N x R)."""
        return np.asarray(self.cross.covariance(Z) @ self.inverse.T)

    def pull_back(self, Z: Array, weights: Array) -> Array:
        """sum_i weights_ni db_i(x_n) / dx_n, with respect to the features."""
        return self.cross.pull_back(Z, weights @ self.inverse)


def representers(belief: Belief, optimizer: AcquisitionOptimizer, count: int) -> Representers:
    """At most ``count`` of them."""
    optimizer = replace(optimizer, visited=optimizer.visited[:0])  # the minimum may lie at a tried point
    promising = replace(optimizer, options=LOOK).maximize(LogEI().surface(belief, optimizer.rng)).U[: LOOK.raw_samples + LOOK.local_samples]
    falling = negative_mean_surface(belief)
    low = distinct(replace(optimizer, options=LOOK_LOW).maximize(falling).U[: 4 * LOWEST])[:LOWEST]
    tried = belief.evaluated[np.argsort(belief.objective.mean_at(belief.encoding.features(belief.evaluated)), kind="stable")[:24]]
    sure = distinct(np.vstack([low, tried[:TRIED], promising[:PROMISING]]))[:count]
    pool = distinct(np.vstack([sure, tried, promising]))
    return Representers.over(belief, pool[likely_minima(belief, pool, len(sure), count, optimizer.rng)])


def likely_minima(belief: Belief, pool: Array, first: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of the pool: the ``first`` ones, and then the likeliest places of the minimum that they do not speak for."""
    posterior, Z = belief.objective, belief.encoding.features(pool)
    C = posterior.covariance(Z)
    factor, _ = cholesky(C, jitter=1e-9)
    draws = posterior.mean_at(Z) + rng.standard_normal((DRAWS, len(Z))) @ factor.T
    drawn = np.bincount(np.argmin(draws, axis=1), minlength=len(Z))
    left = np.diag(C).copy()
    least = HAIR * max(float(left.mean()), 1e-12 * posterior.kernel.variance)
    columns, taken = np.zeros((len(Z), count)), []
    for step in range(min(count, len(Z))):  # Cholesky with pivots
        row = step if step < first else int(np.argmax(drawn * left))
        if step >= first and drawn[row] * left[row] <= least:
            break
        taken.append(row)
        if left[row] <= least:  # the others speak for it already: what is left of its variance is rounding
            continue
        columns[:, step] = (C[:, row] - columns[:, :step] @ columns[row, :step]) / np.sqrt(left[row])
        left = np.maximum(left - columns[:, step] ** 2, 0.0)
        left[row] = 0.0
    return np.array(taken, dtype=np.intp)


def whole_number(owner: str, field: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MethodError(f"{owner}: {field} must be a whole number >= {least}, not {value!r}")


LEAST = 8  # draws of a group; those of smaller ones form one group together
LOG_FLOOR = math.log(1e-6)
NOTHING = 1e-12  # information below this is rounding
RESOLVED = 1e-9  # 1 - q_k is not told from zero below
EFFORT = OptimizerOptions(raw_samples=192, local_samples=96, restarts=6, rounds=2)


@dataclass(frozen=True)
class Groups:
    """What is known of w in each case k: p (K), D (K x R x R)."""

    p: Array
    D: Array

    @classmethod
    def drawn(cls, known: Representers, count: int, rng: np.random.Generator) -> Groups:
        w = exact_moments(rng.standard_normal((max(count, 4 * len(known)), len(known))))
        lowest = np.argmin(known.mean + w @ known.factor.T, axis=1)
        times = np.bincount(lowest, minlength=len(known))
        lowest[times[lowest] < LEAST] = len(known)
        order = np.argsort(lowest, kind="stable")
        _, first = np.unique(lowest[order], return_index=True)
        parts = np.split(w[order], first[1:])
        D = [np.eye(len(known)) - centred.T @ centred / len(centred) for centred in (part - part.mean(axis=0) for part in parts)]
        return cls(np.array([len(part) for part in parts]) / len(w), np.array(D))

    def along(self, b: Array) -> Array:
        """D_k b for each x and k (N x K x R)."""
        return (b @ self.D.reshape(-1, b.shape[1]).T).reshape(len(b), len(self.p), -1)  # D is symmetric


def exact_moments(w: Array) -> Array:
    """Standard normal draws, moved so that their mean is 0 and their variance I exactly."""
    w = w - w.mean(axis=0)
    factor, _ = cholesky(w.T @ w / len(w))
    return np.asarray(w @ dtrtri(factor, lower=1)[0].T)


def information(known: Representers, groups: Groups) -> Surface:
    """log(I + FLOOR EI) over points."""
    belief = known.belief
    posterior = belief.objective

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = belief.encoding.features(U)
        b = known.loadings(Z)
        along = groups.along(b)
        if not gradient:
            mean, variance = posterior.mean_and_variance(Z)
            S = variance + posterior.noise
            rest = np.maximum(1.0 - np.einsum("nkr,nr->nk", along, b) / S[:, None], RESOLVED)
            return log_total(-0.5 * np.log(rest) @ groups.p, mean, variance, belief, Z), None
        moments = posterior.with_gradients(Z)
        S = moments[1] + posterior.noise
        q = np.einsum("nkr,nr->nk", along, b) / S[:, None]
        rest = np.maximum(1.0 - q, RESOLVED)
        weight = np.where(rest > RESOLVED, groups.p / rest, 0.0) / S[:, None]
        slope = known.pull_back(Z, np.einsum("nk,nkr->nr", weight, along))
        slope -= 0.5 * np.einsum("nk,nk->n", weight, q)[:, None] * moments[3]
        total, slope = log_total_with_gradient(-0.5 * np.log(rest) @ groups.p, slope, moments, belief, Z)
        return total, belief.encoding.pull_back(U, slope)

    return value


def log_total(gain: Array, mean: Array, variance: Array, belief: Belief, Z: Array) -> Array:
    """log(I + FLOOR EI), log P(does not fail) added."""
    improvement = log_expected_improvement(mean, np.sqrt(variance), belief.incumbent)[0]
    total = np.logaddexp(_log(gain), LOG_FLOOR + improvement)
    return total if belief.feasibility is None else total + belief.feasibility.log_probability(Z)


def log_total_with_gradient(
    gain: Array, d_gain: Array, moments: tuple[Array, Array, Array, Array], belief: Belief, Z: Array
) -> tuple[Array, Array]:
    """The same, and its gradient with respect to the features; ``moments`` as the posterior's with_gradients gives them."""
    mean, variance, d_mean, d_variance = moments
    deviation = np.sqrt(variance)
    improvement, by_mean, by_deviation = log_expected_improvement(mean, deviation, belief.incumbent)
    log_gain = _log(gain)
    total = np.logaddexp(log_gain, LOG_FLOOR + improvement)
    share = np.exp(log_gain - total)  # of the information in the sum
    slope = (share / np.maximum(gain, NOTHING))[:, None] * d_gain
    slope += (1.0 - share)[:, None] * (by_mean[:, None] * d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance)
    if belief.feasibility is not None:
        chance, d_chance = belief.feasibility.log_probability_with_gradient(Z)
        total, slope = total + chance, slope + d_chance
    return total, slope


def _log(gain: Array) -> Array:
    """log of the information, -inf where it is rounding."""
    return np.where(gain > NOTHING, np.log(np.maximum(gain, NOTHING)), -np.inf)


@dataclass(frozen=True)
class ES(InformationAcquisition):
    """Entropy search: ``samples`` joint draws at ``representers`` points where the minimum may lie."""

    representers: int = 50
    samples: int = 8192
    options: ClassVar[OptimizerOptions] = EFFORT

    def __post_init__(self) -> None:
        whole_number("ES", "representers", self.representers, 2)
        whole_number("ES", "samples", self.samples, 16)

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        known = representers(belief, optimizer, self.representers)
        return information(known, Groups.drawn(known, self.samples, optimizer.rng))
