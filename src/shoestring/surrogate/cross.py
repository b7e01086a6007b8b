"""Covariances of a posterior between fixed points and moving ones, with gradient.

Notation (see ``posterior``)
    P (m x p)   the fixed points; V = L^-1 k(Z, P), U = L^-T V = K^-1 k(Z, P)
    cov(f(x), f(p_i)) = k(x, p_i) - k(x, Z) U_i

What look-ahead needs: observing at x moves the mean at p_i by cov(f(x), f(p_i)) / sqrt(var(x) + noise) for each deviation that
the observation is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics import Array
from .posterior import Posterior


@dataclass(frozen=True)
class Cross:
    """A posterior and fixed points."""

    posterior: Posterior
    P: Array
    B: Array  # P, warped and scaled
    U: Array  # n x m

    @classmethod
    def between(cls, posterior: Posterior, P: Array) -> Cross:
        B = posterior.kernel.scale(P)
        V = posterior.L_inverse @ posterior.kernel.covariance(posterior.A, B)
        return cls(posterior, P, B, posterior.L_inverse.T @ V)

    def covariance(self, X: Array) -> Array:
        """N x m."""
        own = self.posterior
        scaled = own.kernel.scale(X)
        return own.kernel.covariance(scaled, self.B) - own.kernel.covariance(scaled, own.A) @ self.U

    def pull_back(self, X: Array, weights: Array) -> Array:
        """sum_i weights_ni d cov(f(x_n), f(p_i)) / dx_n, with respect to the features (N x p)."""
        own = self.posterior
        scaled = own.kernel.scale(X)
        _, to_points = own.kernel.covariance_and_slope(scaled, self.B)
        _, to_data = own.kernel.covariance_and_slope(scaled, own.A)
        by_points, by_data = to_points * weights, to_data * (weights @ self.U.T)
        total = (by_points.sum(axis=1) - by_data.sum(axis=1))[:, None] * scaled - by_points @ self.B + by_data @ own.A
        return np.asarray(2.0 * total * own.kernel.scaled_slope(X))
