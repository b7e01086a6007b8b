"""Entropy search: how much does an observation say of where the minimum lies, among representer points?

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
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dtrtri

from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from .improvement import Surface, log_expected_improvement
from .information import Information
from .maximize import Effort, Seeker
from .representers import Representers, representers, whole_number

LEAST = 8  # draws of a group; those of smaller ones form one group together
LOG_FLOOR = math.log(1e-6)
NOTHING = 1e-12  # information below this is rounding
RESOLVED = 1e-9  # 1 - q_k is not told from zero below
EFFORT = Effort(spread=192, near=96, starts=6, rounds=2)


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
    return total if belief.viability is None else total + belief.viability.log_chance(Z)


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
    if belief.viability is not None:
        chance, d_chance = belief.viability.log_chance_with_gradient(Z)
        total, slope = total + chance, slope + d_chance
    return total, slope


def _log(gain: Array) -> Array:
    """log of the information, -inf where it is rounding."""
    return np.where(gain > NOTHING, np.log(np.maximum(gain, NOTHING)), -np.inf)


@dataclass(frozen=True)
class ES(Information):
    """Entropy search: ``samples`` joint draws at ``representers`` points where the minimum may lie."""

    representers: int = 50
    samples: int = 8192
    effort: ClassVar[Effort] = EFFORT

    def __post_init__(self) -> None:
        whole_number("ES", "representers", self.representers, 2)
        whole_number("ES", "samples", self.samples, 16)

    def surface(self, belief: Belief, seeker: Seeker) -> Surface:
        known = representers(belief, seeker, self.representers)
        return information(known, Groups.drawn(known, self.samples, seeker.rng))
