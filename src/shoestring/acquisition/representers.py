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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from ..errors import MethodError
from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from ..surrogate.cross import Cross
from .improvement import LogEI, falling_mean
from .knowledge import distinct
from .maximize import Effort, Seeker

HAIR = 1e-8  # added to the covariance, relative to its mean diagonal: b'b stays below s^2
LOWEST, TRIED, PROMISING = 4, 6, 4  # taken without drawing: minima of the mean, best tried points, highest EI
DRAWS = 512
LOOK = Effort(spread=192, near=128, starts=6, rounds=1)
LOOK_LOW = Effort(spread=64, near=96, starts=4, rounds=1)


@dataclass(frozen=True)
class Representers:
    """f at points under a belief."""

    belief: Belief
    points: Array  # R x D
    mean: Array  # R
    factor: Array  # L
    cross: Cross

    @classmethod
    def over(cls, belief: Belief, points: Array) -> Representers:
        Z, posterior = belief.encoding.features(points), belief.objective
        C = posterior.covariance(Z)
        C[np.diag_indices(len(C))] += HAIR * max(float(np.diag(C).mean()), 1e-12 * posterior.kernel.variance)
        return cls(belief, points, posterior.mean_at(Z), cholesky(C)[0], Cross.between(posterior, Z))

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


def representers(belief: Belief, seeker: Seeker, count: int) -> Representers:
    """At most ``count`` of them."""
    seeker = replace(seeker, seen=seeker.seen[:0])  # the minimum may lie at a tried point
    promising = replace(seeker, effort=LOOK).highest(LogEI().on(belief, seeker.rng)).U[: LOOK.spread + LOOK.near]
    falling = falling_mean(belief)
    low = distinct(replace(seeker, effort=LOOK_LOW).highest(falling).U[: 4 * LOWEST])[:LOWEST]
    tried = belief.tried[np.argsort(belief.objective.mean_at(belief.encoding.features(belief.tried)), kind="stable")[:24]]
    sure = distinct(np.vstack([low, tried[:TRIED], promising[:PROMISING]]))[:count]
    pool = distinct(np.vstack([sure, tried, promising]))
    return Representers.over(belief, pool[likely_minima(belief, pool, len(sure), count, seeker.rng)])


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
