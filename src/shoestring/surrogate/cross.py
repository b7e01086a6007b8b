"""Covariances of a posterior between fixed points and moving ones, with gradient.

Notation (see ``posterior``)
    P (m x p)   the fixed points; V = R k(P), U = R'V
    cov(f(x), f(p_i)) = k(x, p_i) - k(x)'U_i

What look-ahead needs: observing at x moves the mean at p_i by cov(f(x), f(p_i)) / sqrt(var(x) + noise) for each deviation that
the observation is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics import Array
from .basis import Basis, Values
from .posterior import Posterior


@dataclass(frozen=True)
class Cross:
    """A posterior and fixed points."""

    posterior: Posterior
    fixed: Basis  # f at P
    U: Array  # n x m

    @classmethod
    def between(cls, posterior: Posterior, P: Array) -> Cross:
        fixed = Values(posterior.kernel.scale(P))
        V = posterior.R @ posterior.basis.to(fixed)
        return cls(posterior, Basis(posterior.kernel, (fixed,)), posterior.R.T @ V)

    def covariance(self, X: Array) -> Array:
        """N x m."""
        B = self.posterior.kernel.scale(X)
        return self.fixed.to_values(B).T - self.posterior.basis.to_values(B).T @ self.U

    def pull_back(self, X: Array, weights: Array) -> Array:
        """sum_i weights_ni d cov(f(x_n), f(p_i)) / dx_n, with respect to the features (N x p)."""
        B = self.posterior.kernel.scale(X)
        total = self.fixed.near(B).pull_back(weights) - self.posterior.basis.near(B).pull_back(weights @ self.U.T)
        return np.asarray(total * self.posterior.kernel.scaled_slope(X))
