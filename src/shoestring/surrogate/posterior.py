"""The posterior of a Gaussian process: predictions with gradients, joint covariances and samples, conditioning.

A posterior is frozen, and a posterior conditioned on further observations is again a posterior: fantasies and pending points need
no class of their own. All numbers are about the latent function f, in the model's units; an observation adds ``noise`` to the
variance.

Notation (see also ``kernels``)
    X       m x p       features of query points
    k(x)                covariances of f(x) and the basis: the observations
    R                   a matrix with R'R = W, where cov(f(x), f(x')) = k(x, x') - k(x)' W k(x')
    (1)  mean(x) = m + k(x)' alpha                                              (R&W, equation 2.25)
    (2)  var(x) = s2 - |R k(x)|^2                                               (R&W, equation 2.26)
    (3)  cov(f(x), f(x')) = k(x, x') - (R k(x))' R k(x')                        (R&W, equation 2.24)
For an exact GP the basis is the data and R = L^-1, with L the Cholesky factor of their covariance. R&W is Rasmussen and Williams,
Gaussian Processes for Machine Learning (2006).

Look-ahead needs covariances of moving points x and fixed points P (``CrossCovariance``): observing at x moves the mean at p_i by
cov(f(x), f(p_i)) / sqrt(var(x) + noise) for each standard deviation by which the observation differs from its prediction.
    V = R k(P), U = R'V
    (4)  cov(f(x), f(p_i)) = k(x, p_i) - k(x)'U_i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..numerics import Array, cholesky, lapack
from .base import SurrogatePosterior
from .kernels import PROFILES, Basis, Block, Kernel, ValueBlock, covariance
from .marginal_likelihood import MAX_STACKED_ROWS, constant_mean

VARIANCE_FLOOR = 1e-12  # as a share of s2: rounding may bring s2 - |R k|^2 below zero at the data


@dataclass(frozen=True, kw_only=True)
class Posterior(SurrogatePosterior):
    """A Gaussian process conditioned on data; Z and y are the values among them."""

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
        """Condition on values under known hyperparameters. The constant mean is at its maximum unless it is given."""
        basis = Basis(kernel, (ValueBlock(kernel.scale(Z)),))
        return cls.given_basis(basis, y, np.full(len(y), noise), Z=Z, y=y, noise=noise, mean=mean)

    @classmethod
    def given_basis(
        cls, basis: Basis, targets: Array, noises: Array, *, Z: Array, y: Array, noise: float, mean: float | None = None
    ) -> Posterior:
        """Condition on ``targets``, the observations of a basis: the values y at Z first, then derivatives.

        ``noises`` are the noise variances of the targets, ``noise`` is that of a further value.
        """
        K = basis.covariance()
        K[np.diag_indices(len(targets))] += noises
        L, _ = cholesky(K)
        ones = np.zeros(len(targets))
        ones[: len(y)] = 1.0  # the derivative of a constant mean is zero
        if mean is None:
            solved = _solve(L, np.column_stack([targets, ones]))
            mean = constant_mean(float(ones @ solved[:, 0]), float(ones @ solved[:, 1]))
            alpha = solved[:, 0] - mean * solved[:, 1]
        else:
            alpha = _solve(L, (targets - mean * ones)[:, None])[:, 0]
        inverse, _ = lapack.dtrtri(L, lower=1)
        R = np.ascontiguousarray(inverse)
        return cls(kernel=basis.kernel, noise=noise, mean=mean, Z=Z, y=y, basis=basis, R=R, alpha=alpha)

    def __len__(self) -> int:
        return len(self.y)

    def mean_at(self, X: Array) -> Array:
        """The mean of f at X (m)."""
        return self.mean + self.alpha @ self.basis.covariance_at(X)  # (1)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Of f at X (m each)."""
        k, s2 = self.basis.covariance_at(X), self.kernel.variance
        V = self.R @ k
        variance = np.maximum(s2 - np.einsum("ij,ij->j", V, V), VARIANCE_FLOOR * s2)  # (2)
        return self.mean + self.alpha @ k, variance

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean (m), variance (m), and their gradients with respect to X (m x p each)."""
        near, s2 = self.basis.covariance_with_gradient_at(X), self.kernel.variance
        V = near.k @ self.R.T
        variance = np.maximum(s2 - np.einsum("ij,ij->i", V, V), VARIANCE_FLOOR * s2)
        d_mean, d_variance = near.gradients(self.alpha[None, :], V @ self.R)
        d_variance *= -2.0
        return self.mean + near.k @ self.alpha, variance, d_mean, d_variance

    def covariance(self, X: Array, Y: Array | None = None) -> Array:
        """Of f at X and f at Y (X itself if Y is None)."""
        one = ValueBlock(self.kernel.scale(X))
        return self.covariance_of(one, one if Y is None else ValueBlock(self.kernel.scale(Y)))

    def covariance_of(self, one: Block, other: Block) -> Array:
        """Of two blocks of values or derivatives."""
        V = self.R @ self.basis.covariance_with(one)
        W = V if one is other else self.R @ self.basis.covariance_with(other)
        return covariance(self.kernel, one, other) - V.T @ W  # (3)

    def paired(self, X: Array, Y: Array) -> Array:
        """cov(f(x_i), f(y_i)), row by row."""
        B, C = self.kernel.scale(X), self.kernel.scale(Y)
        V, W = self.R @ self.basis.covariance_with(ValueBlock(B)), self.R @ self.basis.covariance_with(ValueBlock(C))
        prior, _ = self.kernel.covariance_at_distance(np.einsum("ij,ij->i", B - C, B - C))
        return np.asarray(prior - np.einsum("ij,ij->j", V, W))

    def paired_with_gradients(self, X: Array, Y: Array) -> tuple[Array, Array, Array]:
        """cov(f(x_i), f(y_i)) and its gradients with respect to x_i and to y_i."""
        near_x, near_y = self.basis.covariance_with_gradient_at(X), self.basis.covariance_with_gradient_at(Y)
        B, C = near_x.B, near_y.B
        V, W = near_x.k @ self.R.T, near_y.k @ self.R.T
        prior, derivative = self.kernel.covariance_at_distance(np.einsum("ij,ij->i", B - C, B - C))
        apart = 2.0 * derivative[:, None] * (B - C)
        d_X = (apart - near_x.pull_back(W @ self.R)) * near_x.s
        d_Y = (-apart - near_y.pull_back(V @ self.R)) * near_y.s
        return prior - np.einsum("ij,ij->i", V, W), d_X, d_Y

    def condition(self, X: Array, y: Array, noise: float | None = None) -> Posterior:
        """The posterior after observing y at X as well."""
        after = self.condition_on(ValueBlock(self.kernel.scale(X)), y, np.full(len(y), self.noise if noise is None else noise))
        return replace(after, Z=np.vstack([self.Z, X]), y=np.concatenate([self.y, y]))

    def condition_on(self, new: Block, targets: Array, noises: Array) -> Posterior:
        """The posterior after observing a block of values or derivatives as well: O(n^2 m) in place of O(n^3).

        With S = C C' the covariance of the new observations, R grows by the rows C^-1 [-(R k)' R, I] and alpha by S^-1 (targets -
        their mean).
        """
        n, m = len(self.R), len(targets)
        k = self.basis.covariance_with(new)
        V = self.R @ k
        S = covariance(self.kernel, new, new) - V.T @ V
        S[np.diag_indices(m)] += noises
        corner, _ = cholesky(S)
        inverse, _ = lapack.dtrtri(corner, lower=1)
        old = V.T @ self.R  # (W k)'
        R = np.zeros((n + m, self.R.shape[1] + m))
        R[:n, : self.R.shape[1]], R[n:, : self.R.shape[1]], R[n:, self.R.shape[1] :] = self.R, -inverse @ old, inverse
        beta = _solve(corner, (targets - self.expected(new, k))[:, None])[:, 0]
        alpha = np.concatenate([self.alpha - beta @ old, beta])
        return replace(self, basis=self.basis.extended(new), R=R, alpha=alpha)

    def expected(self, block: Block, k: Array | None = None) -> Array:
        """The means of a block; ``k`` are its covariances with the basis, where the caller has them."""
        k = self.basis.covariance_with(block) if k is None else k
        return (self.mean if isinstance(block, ValueBlock) else 0.0) + self.alpha @ k


@dataclass(frozen=True, kw_only=True)
class StackedPosteriors:
    """Posteriors of the same values under M hyperparameter samples, evaluated together.

    With few data the calls take longer than the numbers: one call for all samples costs little more than for one of them.
    The first axis of every array is the sample; see ``Posterior`` for what the others are.
    """

    profile: str
    inverse_lengths: Array
    variance: Array
    mean: Array
    A: Array
    norms: Array
    R: Array
    alpha: Array

    @classmethod
    def of(cls, posteriors: Sequence[Posterior]) -> StackedPosteriors | None:
        """None where they cannot be stacked: with gradient observations, a warping, or so many data that it gains nothing."""
        first = posteriors[0]
        if not isinstance(first, Posterior) or len(first.alpha) > MAX_STACKED_ROWS:
            return None
        for each in posteriors:
            values_only = len(each.basis.blocks) == 1 and isinstance(each.basis.blocks[0], ValueBlock)
            if not values_only or each.kernel.warp is not None or len(each.alpha) != len(first.alpha):
                return None
        blocks = [each.basis.blocks[0] for each in posteriors]
        return cls(
            profile=first.kernel.profile,
            inverse_lengths=np.array([each.kernel.inverse_lengths for each in posteriors]),
            variance=np.array([each.kernel.variance for each in posteriors])[:, None],
            mean=np.array([each.mean for each in posteriors])[:, None],
            A=np.array([block.A for block in blocks]),
            norms=np.array([block.norms for block in blocks if isinstance(block, ValueBlock)]),
            R=np.array([each.R for each in posteriors]),
            alpha=np.array([each.alpha for each in posteriors]),
        )

    def _correlations(self, X: Array) -> tuple[Array, Array, Array]:
        """Scaled query points B (M x m x p), and rho and rho' of their distances to the data (M x m x n)."""
        B = X * self.inverse_lengths[:, None, :]
        q = B @ self.A.transpose(0, 2, 1)
        q *= -2.0
        q += np.einsum("smp,smp->sm", B, B)[:, :, None]
        q += self.norms[:, None, :]
        return B, *PROFILES[self.profile](np.maximum(q, 0.0, out=q))

    def _variance(self, V: Array) -> Array:
        return np.asarray(np.maximum(self.variance - np.einsum("smn,smn->sm", V, V), VARIANCE_FLOOR * self.variance))  # (2)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Of f at X under each sample (M x m each)."""
        _, k, _ = self._correlations(X)
        k *= self.variance[:, :, None]
        return self.mean + np.einsum("smn,sn->sm", k, self.alpha), self._variance(k @ self.R.transpose(0, 2, 1))

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance (M x m each), and their gradients with respect to X (M x m x p each)."""
        B, k, slope = self._correlations(X)
        k *= self.variance[:, :, None]
        slope *= self.variance[:, :, None]
        V = k @ self.R.transpose(0, 2, 1)
        d_mean = self._pull_back(slope * self.alpha[:, None, :], B)
        d_variance = -2.0 * self._pull_back(slope * (V @ self.R), B)
        return self.mean + np.einsum("smn,sn->sm", k, self.alpha), self._variance(V), d_mean, d_variance

    def _pull_back(self, weights: Array, B: Array) -> Array:
        """sum_j weights_ij dq_ij/dx_i, with dq_ij/db_i = 2 (b_i - a_j)."""
        total = weights.sum(axis=2)[:, :, None] * B - weights @ self.A
        return np.asarray(2.0 * total * self.inverse_lengths[:, None, :])


def _solve(L: Array, B: Array) -> Array:
    """(L L')^-1 B."""
    half, _ = lapack.dtrtrs(L, B, lower=1)
    whole: Array = lapack.dtrtrs(L, half, lower=1, trans=1)[0]
    return whole


@dataclass(frozen=True)
class CrossCovariance:
    """Posterior covariances of f at moving points and f at fixed points P (m x p), with gradients."""

    posterior: Posterior
    fixed: Basis  # f at P
    U: Array  # n x m

    @classmethod
    def between(cls, posterior: Posterior, P: Array) -> CrossCovariance:
        """For fixed points with features P."""
        fixed = ValueBlock(posterior.kernel.scale(P))
        V = posterior.R @ posterior.basis.covariance_with(fixed)
        return cls(posterior, Basis(posterior.kernel, (fixed,)), posterior.R.T @ V)

    def covariance(self, X: Array) -> Array:
        """At features X (N x m)."""
        block = ValueBlock(self.posterior.kernel.scale(X))
        return self.fixed.covariance_with(block).T - self.posterior.basis.covariance_with(block).T @ self.U  # (4)

    def pull_back(self, X: Array, weights: Array) -> Array:
        """sum_i weights_ni d cov(f(x_n), f(p_i)) / dx_n, with respect to the features (N x p)."""
        near = self.posterior.basis.covariance_with_gradient_at(X)
        fixed = self.fixed.covariance_with_gradient(near.B, near.s)
        total = fixed.pull_back(weights) - near.pull_back(weights @ self.U.T)
        return np.asarray(total * near.s)
