"""What a GP believes after its data: frozen, and conditioned on a point again a posterior.

Notation (see also ``kernels``)
    X       m x p       features of query points
    k       n x m       covariances of data and queries
    V = L^-1 k          mean(x) = m + k' alpha,  var(x) = s2 - |V|^2,  cov(x, x') = k(x, x') - V(x)'V(x')

All numbers are about the latent function f in the model's units; an observation adds ``noise`` to the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs

from ..numerics import Array, cholesky
from .evidence import constant_mean
from .kernels import Kernel

VARIANCE_FLOOR = 1e-12  # relative to s2: rounding may bring s2 - |V|^2 below zero at the data


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process conditioned on data."""

    kernel: Kernel
    noise: float
    mean: float
    Z: Array
    y: Array
    A: Array  # Z, warped and scaled
    L: Array
    alpha: Array

    @classmethod
    def given(cls, kernel: Kernel, noise: float, Z: Array, y: Array, mean: float | None = None) -> Posterior:
        """Condition on data under known hyperparameters; the constant mean at its best unless it is given."""
        A = kernel.scale(Z)
        K = kernel.covariance(A)
        K[np.diag_indices(len(y))] += noise
        L, _ = cholesky(K)
        if mean is None:
            solved = _solve(L, np.column_stack([y, np.ones(len(y))]))
            mean = constant_mean(solved[:, 0].sum(), solved[:, 1].sum())
            alpha = solved[:, 0] - mean * solved[:, 1]
        else:
            alpha = _solve(L, (y - mean)[:, None])[:, 0]
        return cls(kernel, noise, mean, Z, y, A, L, alpha)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def L_inverse(self) -> Array:
        """L^-1, so that many small queries are matrix products rather than triangular solves."""
        inverse, _ = dtrtri(self.L, lower=1)
        return np.ascontiguousarray(inverse)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Of f at X."""
        k = self.kernel.covariance(self.A, self.kernel.scale(X))
        V = self.L_inverse @ k
        return self.mean + self.alpha @ k, self._floored(self.kernel.variance - np.einsum("ij,ij->j", V, V))

    def mean_at(self, X: Array) -> Array:
        return self.mean + self.alpha @ self.kernel.covariance(self.A, self.kernel.scale(X))

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean (m), variance (m), and their gradients with respect to X (m x p each)."""
        B = self.kernel.scale(X)
        k, slope = self.kernel.covariance_and_slope(B, self.A)  # m x n
        V = k @ self.L_inverse.T
        variance = self._floored(self.kernel.variance - np.einsum("ij,ij->i", V, V))
        to_f = self.kernel.scaled_slope(X)
        d_mean = self._pull_back(slope * self.alpha, B) * to_f
        d_variance = -2.0 * self._pull_back(slope * (V @ self.L_inverse), B) * to_f
        return self.mean + k @ self.alpha, variance, d_mean, d_variance

    def _pull_back(self, weights: Array, B: Array) -> Array:
        """sum_j weights_ij dq_ij/db_i, with q_ij = |b_i - a_j|^2."""
        pulled: Array = weights.sum(axis=1, keepdims=True) * B - weights @ self.A
        return 2.0 * pulled

    def covariance(self, X: Array, Y: Array | None = None) -> Array:
        """Of f at X and f at Y (X itself when left out)."""
        B = self.kernel.scale(X)
        V = self.L_inverse @ self.kernel.covariance(self.A, B)
        if Y is None:
            prior, W = self.kernel.covariance(B), V
        else:
            C = self.kernel.scale(Y)
            prior, W = self.kernel.covariance(B, C), self.L_inverse @ self.kernel.covariance(self.A, C)
        return prior - V.T @ W

    def sample(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        """``count`` joint draws of f at X (count x m)."""
        factor, _ = cholesky(self.covariance(X), jitter=1e-9)
        return self.mean_at(X) + rng.standard_normal((count, len(X))) @ factor.T

    def condition(self, X: Array, y: Array, noise: float | None = None) -> Posterior:
        """The posterior after observing y at X as well, by extending the factor: O(n^2 m) in place of O(n^3)."""
        noise = self.noise if noise is None else noise
        n, m = len(self), len(y)
        B = self.kernel.scale(X)
        V = self.L_inverse @ self.kernel.covariance(self.A, B)
        S = self.kernel.covariance(B) - V.T @ V
        S[np.diag_indices(m)] += noise
        corner, _ = cholesky(S)
        L = np.zeros((n + m, n + m), order="F")
        L[:n, :n], L[n:, :n], L[n:, n:] = self.L, V.T, corner
        targets = np.concatenate([self.y, y])
        alpha = _solve(L, (targets - self.mean)[:, None])[:, 0]
        return Posterior(self.kernel, self.noise, self.mean, np.vstack([self.Z, X]), targets, np.vstack([self.A, B]), L, alpha)

    def _floored(self, variance: Array) -> Array:
        return np.maximum(variance, VARIANCE_FLOOR * self.kernel.variance)


def _solve(L: Array, B: Array) -> Array:
    """(L L')^-1 B."""
    half, _ = dtrtrs(L, B, lower=1)
    whole: Array = dtrtrs(L, half, lower=1, trans=1)[0]
    return whole
