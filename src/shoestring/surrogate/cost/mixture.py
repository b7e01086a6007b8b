"""Several cost models at once, each with a weight.

Notation: part k predicts N(m_k, v_k) with weight w_k. The mixture is taken as the normal of the same mean and variance:

    m = sum_k w_k m_k,    v = sum_k w_k (v_k + (m_k - m)^2)

so where the parts disagree the cost is less known, and expected to be higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...numerics import Array
from .base import CostPosterior

NEGLIGIBLE = 0.02  # a part of less weight is left out


@dataclass(frozen=True)
class Mixture:
    """Posteriors and their weights, the heaviest first."""

    parts: tuple[CostPosterior, ...]
    weights: Array

    @property
    def name(self) -> str:
        return " and ".join(f"{weight:.0%} {part.name}" for part, weight in zip(self.parts, self.weights, strict=True))

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self._moments([part.log_cost(U) for part in self.parts])

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        found = [part.log_cost_with_gradient(U) for part in self.parts]
        mean, variance = self._moments([entry[:2] for entry in found])
        d_mean = sum(weight * entry[2] for weight, entry in zip(self.weights, found, strict=True))
        d_variance = sum(  # the pull of m itself cancels, since sum_k w_k (m_k - m) = 0
            weight * (entry[3] + 2.0 * (entry[0] - mean)[:, None] * entry[2])
            for weight, entry in zip(self.weights, found, strict=True)
        )
        return mean, variance, np.asarray(d_mean), np.asarray(d_variance)

    def left_out(self) -> tuple[Array, Array]:
        return self._moments([part.left_out() for part in self.parts])

    def _moments(self, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        means, variances = np.array([entry[0] for entry in found]), np.array([entry[1] for entry in found])
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)


def mix(posteriors: Sequence[CostPosterior], log_weights: Array) -> CostPosterior:
    """The mixture by these weights, or the part itself if only one counts."""
    if not np.isfinite(log_weights).any():
        return posteriors[0]
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    order = [int(k) for k in np.argsort(-weights, kind="stable") if weights[k] >= NEGLIGIBLE]
    if len(order) == 1:
        return posteriors[order[0]]
    return Mixture(tuple(posteriors[k] for k in order), weights[order] / weights[order].sum())
