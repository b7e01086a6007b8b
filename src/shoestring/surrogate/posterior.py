"""What a GP believes after its data: frozen, and conditioned on a point again a posterior.

Notation (see also ``kernels``, ``basis``)
    X       m x p       features of query points
    k       n x m       covariances of the basis and f at the queries
    R                   mean(x) = m + k' alpha,  var(x) = s2 - |R k|^2,  cov(x, x') = k(x, x') - (R k(x))' R k(x')

For an exact GP the basis is the data and R = L^-1, L the Cholesky factor of their covariance. All numbers are about the latent
function f in the model's units; an observation adds ``noise`` to the variance.

Covariances of a posterior between fixed points and moving ones, with gradient.

Notation (see ``posterior``)
    P (m x p)   the fixed points; V = R k(P), U = R'V
    cov(f(x), f(p_i)) = k(x, p_i) - k(x)'U_i

What look-ahead needs: observing at x moves the mean at p_i by cov(f(x), f(p_i)) / sqrt(var(x) + noise) for each deviation that
the observation is off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs

from ..numerics import Array, cholesky
from .covariance import Basis, Block, ValueBlock, covariance
from .kernels import Kernel
from .marginal_likelihood import constant_mean

VARIANCE_FLOOR = 1e-12  # relative to s2: rounding may bring s2 - |R k|^2 below zero at the data


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process conditioned on data; Z and y are the values among those."""

    kernel: Kernel
    noise: float
    mean: float
    Z: Array
    y: Array
    basis: Basis
    R: Array
    alpha: Array

    @classmethod
    def given(cls, kernel: Kernel, noise: float, Z: Array, y: Array, mean: float | None = None) -> Posterior:
        """Condition on data under known hyperparameters; the constant mean at its best unless it is given."""
        return cls.given_all(Basis(kernel, (ValueBlock(kernel.scale(Z)),)), noise, np.full(len(y), noise), Z, y, y, mean)

    @classmethod
    def given_all(
        cls, basis: Basis, noise: float, noises: Array, Z: Array, y: Array, targets: Array, mean: float | None = None
    ) -> Posterior:
        """Condition on values y at Z, which come first in the basis and in ``targets``, and on whatever follows there."""
        K = basis.within()
        K[np.diag_indices(len(targets))] += noises
        L, _ = cholesky(K)
        ones = np.zeros(len(targets))
        ones[: len(y)] = 1.0  # the mean is constant: it has no slope
        if mean is None:
            solved = _solve(L, np.column_stack([targets, ones]))
            mean = constant_mean(float(ones @ solved[:, 0]), float(ones @ solved[:, 1]))
            alpha = solved[:, 0] - mean * solved[:, 1]
        else:
            alpha = _solve(L, (targets - mean * ones)[:, None])[:, 0]
        inverse, _ = dtrtri(L, lower=1)
        return cls(basis.kernel, noise, mean, Z, y, basis, np.ascontiguousarray(inverse), alpha)

    def __len__(self) -> int:
        return len(self.y)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Of f at X."""
        k = self.basis.to_values(self.kernel.scale(X))
        V = self.R @ k
        return self.mean + self.alpha @ k, self._floored(self.kernel.variance - np.einsum("ij,ij->j", V, V))

    def mean_at(self, X: Array) -> Array:
        return self.mean + self.alpha @ self.basis.to_values(self.kernel.scale(X))

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean (m), variance (m), and their gradients with respect to X (m x p each)."""
        near = self.basis.near(self.kernel.scale(X))
        V = near.k @ self.R.T
        variance = self._floored(self.kernel.variance - np.einsum("ij,ij->i", V, V))
        to_f = self.kernel.scaled_slope(X)
        d_mean = near.pull_back(self.alpha[None, :]) * to_f
        d_variance = -2.0 * near.pull_back(V @ self.R) * to_f
        return self.mean + near.k @ self.alpha, variance, d_mean, d_variance

    def covariance(self, X: Array, Y: Array | None = None) -> Array:
        """Of f at X and f at Y (X itself when left out)."""
        one = ValueBlock(self.kernel.scale(X))
        return self.covariance_of(one, one if Y is None else ValueBlock(self.kernel.scale(Y)))

    def covariance_of(self, one: Block, other: Block) -> Array:
        """Of values and slopes."""
        V = self.R @ self.basis.to(one)
        W = V if one is other else self.R @ self.basis.to(other)
        return covariance(self.kernel, one, other) - V.T @ W

    def paired(self, X: Array, Y: Array) -> Array:
        """cov(f(x_i), f(y_i)), row by row."""
        B, C = self.kernel.scale(X), self.kernel.scale(Y)
        V, W = self.R @ self.basis.to_values(B), self.R @ self.basis.to_values(C)
        prior, _ = self.kernel.profiled(np.einsum("ij,ij->i", B - C, B - C))
        return np.asarray(prior - np.einsum("ij,ij->j", V, W))

    def paired_with_gradients(self, X: Array, Y: Array) -> tuple[Array, Array, Array]:
        """cov(f(x_i), f(y_i)) and its gradients with respect to x_i and to y_i."""
        B, C = self.kernel.scale(X), self.kernel.scale(Y)
        near_x, near_y = self.basis.near(B), self.basis.near(C)
        V, W = near_x.k @ self.R.T, near_y.k @ self.R.T
        prior, slope = self.kernel.profiled(np.einsum("ij,ij->i", B - C, B - C))
        apart = 2.0 * slope[:, None] * (B - C)
        d_X = (apart - near_x.pull_back(W @ self.R)) * self.kernel.scaled_slope(X)
        d_Y = (-apart - near_y.pull_back(V @ self.R)) * self.kernel.scaled_slope(Y)
        return prior - np.einsum("ij,ij->i", V, W), d_X, d_Y

    def sample(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        """``count`` joint draws of f at X (count x m)."""
        factor, _ = cholesky(self.covariance(X), jitter=1e-9)
        return self.mean_at(X) + rng.standard_normal((count, len(X))) @ factor.T

    def condition(self, X: Array, y: Array, noise: float | None = None) -> Posterior:
        """The posterior after observing y at X as well."""
        after = self.condition_on(ValueBlock(self.kernel.scale(X)), y, np.full(len(y), self.noise if noise is None else noise))
        return replace(after, Z=np.vstack([self.Z, X]), y=np.concatenate([self.y, y]))

    def condition_on(self, new: Block, targets: Array, noises: Array) -> Posterior:
        """The posterior after observing values or slopes as well, by extending R: O(n^2 m) in place of O(n^3).

        With S = C C' the covariance of the new observations: R grows by the rows C^-1 [-(R k)' R, I], alpha by S^-1 (targets -
        their mean).
        """
        n, m = len(self.R), len(targets)
        k = self.basis.to(new)
        V = self.R @ k
        S = covariance(self.kernel, new, new) - V.T @ V
        S[np.diag_indices(m)] += noises
        corner, _ = cholesky(S)
        inverse, _ = dtrtri(corner, lower=1)
        old = V.T @ self.R  # (W k)'
        R = np.zeros((n + m, self.R.shape[1] + m))
        R[:n, : self.R.shape[1]], R[n:, : self.R.shape[1]], R[n:, self.R.shape[1] :] = self.R, -inverse @ old, inverse
        beta = _solve(corner, (targets - self.expected(new, k))[:, None])[:, 0]
        alpha = np.concatenate([self.alpha - beta @ old, beta])
        return replace(self, basis=self.basis.joined(new), R=R, alpha=alpha)

    def expected(self, part: Block, k: Array | None = None) -> Array:
        """The means of values and slopes; ``k`` their covariances with the basis, if these are known already."""
        return (self.mean if isinstance(part, ValueBlock) else 0.0) + self.alpha @ (self.basis.to(part) if k is None else k)

    def _floored(self, variance: Array) -> Array:
        return np.maximum(variance, VARIANCE_FLOOR * self.kernel.variance)


def _solve(L: Array, B: Array) -> Array:
    """(L L')^-1 B."""
    half, _ = dtrtrs(L, B, lower=1)
    whole: Array = dtrtrs(L, half, lower=1, trans=1)[0]
    return whole


@dataclass(frozen=True)
class CrossCovariance:
    """A posterior and fixed points."""

    posterior: Posterior
    fixed: Basis  # f at P
    U: Array  # n x m

    @classmethod
    def between(cls, posterior: Posterior, P: Array) -> CrossCovariance:
        fixed = ValueBlock(posterior.kernel.scale(P))
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
