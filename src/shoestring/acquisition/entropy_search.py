"""Entropy search (ES): the mutual information of an observation and the location of the minimum, among representer points.

Sources: Hennig and Schuler 2012; the slides on computationally expensive acquisition functions ("Entropy Search: Formal
Definition").

Notation
    r                   R representer points, one of which is taken to be the minimiser;   k  the one that is the lowest
    p_k = P(k)          p_min in the sources
    f(r)                mu_R + L w,   L L' = cov(f(r)) + a small jitter,   w ~ N(0, I)
    b(x)                L^-1 cov(f(r), f(x)), the loadings:   f(x) = mu(x) + b(x)'w + rest,   var(rest) = s^2(x) - |b(x)|^2
    S(x)                s^2(x) + noise, the variance of an observation y at x
    I - D_k             var(w | k);   y then has the variance S - b'D_k b

    u(x) = H(p_min) - E_y[ H(p_min | y) ]                                               (the slides' definition)
         = H(y) - sum_k p_k H(y | k)                                                    (1: mutual information is symmetric)
         = -1/2 sum_k p_k log(1 - q_k),     q_k = b(x)'D_k b(x) / S(x)                   (2: y taken as normal given k)
    du = sum_k p_k / (1 - q_k) (b'D_k db - q_k dS / 2) / S                               (3)

Unlike the definition, (1) needs no fantasies. N draws of w are made once; those in which k is the lowest give p_k and D_k for
every x. (2) is a lower bound of (1), since the normal has the highest entropy; in practice it is within some per cent. The draws
are shifted and rotated so that their mean and variance are exactly 0 and I. Hence sum_k p_k q_k >= 0, and u(x) >= 0 whatever the
draws. Maximized is log(u + EI_WEIGHT EI): where it is certain which representer is the lowest, EI still improves the minimum.

Representer points are the minima of the posterior mean, the best evaluated points, and the points of highest EI. The rest are
Thompson draws: the minimisers of joint draws of f over many candidates, chosen greedily by (times drawn) x (variance left given
those chosen before).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..numerics import Array, cholesky, lapack
from ..surrogate.belief import Belief
from ..surrogate.posterior import CrossCovariance
from .base import InformationAcquisition
from .improvement import LogEI, log_expected_improvement, negative_mean_surface
from .optimize.candidates import unique_points
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

ES_OPTIMIZER_OPTIONS = OptimizerOptions(raw_samples=192, local_samples=96, restarts=6, rounds=2)
EI_SEARCH_OPTIONS = OptimizerOptions(raw_samples=192, local_samples=128, restarts=6, rounds=1)
MEAN_SEARCH_OPTIONS = OptimizerOptions(raw_samples=64, local_samples=96, restarts=4, rounds=1)
N_MEAN_MINIMA = 4  # minima of the posterior mean among the representers
N_EVALUATED_POINTS = 6  # best evaluated points among the representers
N_EVALUATED_CANDIDATES = 24  # best evaluated points among the candidates of the Thompson draws
N_EI_POINTS = 4  # points of highest EI among the representers
THOMPSON_DRAWS = 512
RELATIVE_JITTER = 1e-8  # of the mean variance of f(r): it keeps b'b below s^2
MIN_DRAWS_PER_GROUP = 8  # draws with the same minimiser; smaller groups form one group together
EI_WEIGHT = 1e-6  # nats for an improvement of one deviation of the observed values
LOG_EI_WEIGHT = math.log(EI_WEIGHT)
MIN_INFORMATION = 1e-12  # nats: less is rounding
MIN_VARIANCE_LEFT = 1e-9  # 1 - q_k: less cannot be distinguished from zero


@dataclass(frozen=True)
class ES(InformationAcquisition):
    """Entropy search: what an observation tells about the location of the minimum, by joint draws.

    Use it where the location matters more than good trials on the way, and read ``result.recommended``. ``PES`` computes the same
    quantity without draws; ``MES`` is faster than both.

    representers  points where the minimum may lie
    samples       joint draws at these points

    >>> space = st.Space(x=st.Float(0, 1))
    >>> result = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.ES(representers=20, samples=512))
    >>> abs(result.recommended.config["x"] - 0.3) < 0.1
    True
    """

    representers: int = 50
    samples: int = 8192
    needs_gaussian_process: ClassVar[bool] = True
    options: ClassVar[OptimizerOptions] = ES_OPTIMIZER_OPTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "representers", whole_number(self.representers, "ES: representers", 2))
        object.__setattr__(self, "samples", whole_number(self.samples, "ES: samples", 16))

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        representers = select_representers(belief, optimizer, self.representers)
        return information_surface(representers, ConditionalMoments.from_draws(representers, self.samples, optimizer.rng))


@dataclass(frozen=True)
class Representers:
    """Representer points with the joint normal distribution of f there, under one belief."""

    belief: Belief
    points: Array  # r, R x D
    mean: Array  # mu_R
    factor: Array  # L
    cross: CrossCovariance

    @classmethod
    def over(cls, belief: Belief, points: Array) -> Representers:
        Z, posterior = belief.encoding.features(points), belief.objective
        C = posterior.covariance(Z)
        C[np.diag_indices(len(C))] += RELATIVE_JITTER * max(float(np.diag(C).mean()), 1e-12 * posterior.kernel.variance)
        return cls(belief, points, posterior.mean_at(Z), cholesky(C)[0], CrossCovariance.between(posterior, Z))

    def __len__(self) -> int:
        return len(self.mean)

    @cached_property
    def inverse(self) -> Array:
        """L^-1."""
        inverse, _ = lapack.dtrtri(self.factor, lower=1)
        return np.asarray(inverse)

    def loadings(self, Z: Array) -> Array:
        """b (N x R)."""
        return np.asarray(self.cross.covariance(Z) @ self.inverse.T)

    def pull_back(self, Z: Array, weights: Array) -> Array:
        """sum_i weights_ni db_i(x_n) / dx_n, with respect to the features."""
        return self.cross.pull_back(Z, weights @ self.inverse)


@dataclass(frozen=True)
class ConditionalMoments:
    """What it would say of w that representer k is the lowest, for each of K groups of draws: p (K), D (K x R x R)."""

    p: Array
    D: Array

    @classmethod
    def from_draws(cls, representers: Representers, count: int, rng: np.random.Generator) -> ConditionalMoments:
        R = len(representers)
        w = with_exact_moments(rng.standard_normal((max(count, 4 * R), R)))
        lowest = np.argmin(representers.mean + w @ representers.factor.T, axis=1)
        times = np.bincount(lowest, minlength=R)
        lowest[times[lowest] < MIN_DRAWS_PER_GROUP] = R
        order = np.argsort(lowest, kind="stable")
        _, first = np.unique(lowest[order], return_index=True)
        groups = np.split(w[order], first[1:])
        D = [np.eye(R) - centred.T @ centred / len(centred) for centred in (group - group.mean(axis=0) for group in groups)]
        return cls(np.array([len(group) for group in groups]) / len(w), np.array(D))

    def times(self, b: Array) -> Array:
        """D_k b for each x and k (N x K x R)."""
        return (b @ self.D.reshape(-1, b.shape[1]).T).reshape(len(b), len(self.p), -1)  # D is symmetric


def with_exact_moments(w: Array) -> Array:
    """Standard normal draws, shifted and rotated so that their mean is 0 and their variance I exactly."""
    w = w - w.mean(axis=0)
    factor, _ = cholesky(w.T @ w / len(w))
    return np.asarray(w @ lapack.dtrtri(factor, lower=1)[0].T)


def information_surface(representers: Representers, moments: ConditionalMoments) -> Surface:
    """log(u + EI_WEIGHT EI) over points, u by equation (2) and its gradient by (3)."""
    belief = representers.belief
    posterior = belief.objective

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = belief.encoding.features(U)
        b = representers.loadings(Z)
        Db = moments.times(b)
        if not gradient:
            mean, variance = posterior.mean_and_variance(Z)
            S = variance + posterior.noise
            left = np.maximum(1.0 - np.einsum("nkr,nr->nk", Db, b) / S[:, None], MIN_VARIANCE_LEFT)  # 1 - q_k
            return log_information_and_ei(-0.5 * np.log(left) @ moments.p, mean, variance, belief, Z), None
        predicted = posterior.with_gradients(Z)
        S = predicted[1] + posterior.noise
        q = np.einsum("nkr,nr->nk", Db, b) / S[:, None]
        left = np.maximum(1.0 - q, MIN_VARIANCE_LEFT)
        weight = np.where(left > MIN_VARIANCE_LEFT, moments.p / left, 0.0) / S[:, None]
        slope = representers.pull_back(Z, np.einsum("nk,nkr->nr", weight, Db))
        slope -= 0.5 * np.einsum("nk,nk->n", weight, q)[:, None] * predicted[3]
        total, slope = log_information_and_ei_with_gradient(-0.5 * np.log(left) @ moments.p, slope, predicted, belief, Z)
        return total, belief.encoding.pull_back(U, slope)

    return value


def log_information_and_ei(information: Array, mean: Array, variance: Array, belief: Belief, Z: Array) -> Array:
    """log(u + EI_WEIGHT EI) + log P(success), given u and the posterior moments at Z."""
    log_ei = log_expected_improvement(mean, np.sqrt(variance), belief.incumbent)[0]
    total = np.logaddexp(_log(information), LOG_EI_WEIGHT + log_ei)
    return total if belief.feasibility is None else total + belief.feasibility.log_probability(Z)


def log_information_and_ei_with_gradient(
    information: Array, d_information: Array, predicted: tuple[Array, Array, Array, Array], belief: Belief, Z: Array
) -> tuple[Array, Array]:
    """The same and its gradient with respect to the features; ``predicted`` is what ``Posterior.with_gradients`` returns."""
    mean, variance, d_mean, d_variance = predicted
    deviation = np.sqrt(variance)
    log_ei, by_mean, by_deviation = log_expected_improvement(mean, deviation, belief.incumbent)
    log_information = _log(information)
    total = np.logaddexp(log_information, LOG_EI_WEIGHT + log_ei)
    share = np.exp(log_information - total)  # of the information in the sum
    slope = (share / np.maximum(information, MIN_INFORMATION))[:, None] * d_information
    slope += (1.0 - share)[:, None] * (by_mean[:, None] * d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance)
    if belief.feasibility is not None:
        chance, d_chance = belief.feasibility.log_probability_with_gradient(Z)
        total, slope = total + chance, slope + d_chance
    return total, slope


def _log(information: Array) -> Array:
    """log of the information, -inf where it is rounding."""
    return np.where(information > MIN_INFORMATION, np.log(np.maximum(information, MIN_INFORMATION)), -np.inf)


def select_representers(belief: Belief, optimizer: AcquisitionOptimizer, count: int) -> Representers:
    """At most ``count`` representer points."""
    optimizer = replace(optimizer, visited=optimizer.visited[:0])  # the minimum may lie at a visited point
    high_ei = replace(optimizer, options=EI_SEARCH_OPTIONS).maximize(LogEI().surface(belief, optimizer.rng)).U
    high_ei = high_ei[: EI_SEARCH_OPTIONS.raw_samples + EI_SEARCH_OPTIONS.local_samples]
    low_mean = replace(optimizer, options=MEAN_SEARCH_OPTIONS).maximize(negative_mean_surface(belief)).U
    minima = unique_points(low_mean[: 4 * N_MEAN_MINIMA])[:N_MEAN_MINIMA]
    order = np.argsort(belief.objective.mean_at(belief.encoding.features(belief.evaluated)), kind="stable")
    evaluated = belief.evaluated[order[:N_EVALUATED_CANDIDATES]]
    certain = unique_points(np.vstack([minima, evaluated[:N_EVALUATED_POINTS], high_ei[:N_EI_POINTS]]))[:count]
    pool = unique_points(np.vstack([certain, evaluated, high_ei]))
    return Representers.over(belief, pool[thompson_rows(belief, pool, len(certain), count, optimizer.rng)])


def thompson_rows(belief: Belief, pool: Array, first: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``count`` rows of the pool: its ``first`` ones, then minimisers of joint draws by (times drawn) x (variance left).

    A Cholesky decomposition with pivoting gives the variance left given the rows that are chosen already.
    """
    posterior, Z = belief.objective, belief.encoding.features(pool)
    C = posterior.covariance(Z)
    factor, _ = cholesky(C, jitter=1e-9)
    draws = posterior.mean_at(Z) + rng.standard_normal((THOMPSON_DRAWS, len(Z))) @ factor.T
    times = np.bincount(np.argmin(draws, axis=1), minlength=len(Z))
    left = np.diag(C).copy()
    least = RELATIVE_JITTER * max(float(left.mean()), 1e-12 * posterior.kernel.variance)
    columns, chosen = np.zeros((len(Z), count)), []
    for step in range(min(count, len(Z))):
        row = step if step < first else int(np.argmax(times * left))
        if step >= first and times[row] * left[row] <= least:
            break
        chosen.append(row)
        if left[row] <= least:  # it is known given the others: what is left of its variance is rounding
            continue
        columns[:, step] = (C[:, row] - columns[:, :step] @ columns[row, :step]) / np.sqrt(left[row])
        left = np.maximum(left - columns[:, step] ** 2, 0.0)
        left[row] = 0.0
    return np.array(chosen, dtype=np.intp)
