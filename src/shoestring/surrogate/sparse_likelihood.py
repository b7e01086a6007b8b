"""Sparse GPs on m inducing points (VFE, FITC): log marginal likelihood, exact gradients and posterior, all in O(n m^2).

Notation (see also ``kernels``, ``marginal_likelihood``)
    U       m x p       features of the inducing points, B the scaled ones; Z, A those of the data
    Kuu = s2 rho + j I = L L',  j = JITTER s2;  Kuf the covariances with the data;  V = L^-1 Kuf (m x n)
    Q = V'V = Kfu Kuu^-1 Kuf            the part of the prior covariance of the data that the inducing points explain
    lam                                 VFE: noise;  FITC: noise + s2 - q_ii, so that the diagonal of S is exact
    S = Q + diag(lam)                   the approximate covariance of the data
    C = I + V diag(1/lam) V'            (m x m);  S^-1 = diag(1/lam) (I - V' C^-1 V diag(1/lam)),  |S| = |C| prod lam
    (1)  F = log N(y | mean 1, S)       the constant mean at its maximum, as in ``marginal_likelihood``
         VFE: F - tr(Kff - Q) / (2 noise), a lower bound of the exact log marginal likelihood (Titsias 2009, equation 9)

With the jitter the inducing values are those of f plus a little noise. This is a model too, so VFE stays a bound.

Gradients of F. a = S^-1 (y - mean), g = (a^2 - diag S^-1) / 2, alpha = L^-T C^-1 V (y - mean) / lam = L^-T V a. The diagonal of Q
counts on its own: h = 1 / (2 noise) for VFE (the trace), -g for FITC (lam falls as q_ii grows). T = 2 V diag(h) - C^-1 V / lam.
    (2)  dF/dKuf = alpha a' + L^-T T         dF/dKuu = -(alpha alpha' + L^-T T V' L^-1) / 2          dF/dkff = -h
    (3)  dF/dlog s2 = (|V a|^2 - m + tr C^-1) / 2 - sum h (s2 - q_ii)
    (4)  dF/dlog noise = noise (sum g + [VFE] sum (s2 - q_ii) / (2 noise^2))

Posterior. mean(x) = mean + k(x)'alpha and W = Kuu^-1 - (Kuu + Kuf Lam^-1 Kfu)^-1 = L^-T (I - C^-1) L^-1 = R'R.
    (5)  R = diag(sqrt(e / (1 + e))) E' L^-1 with C - I = E diag(e) E': no difference of two large matrices is taken

Sources: Titsias, "Variational learning of inducing variables in sparse Gaussian processes" (2009); Snelson, Ghahramani,
"Sparse Gaussian processes using pseudo-inputs" (2005); Quinonero-Candela, Rasmussen, "A unifying view of sparse approximate
Gaussian process regression" (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..numerics import LOG_2PI, Array, blas, cholesky, lapack
from .kernels import Basis, Kernel, ValueBlock, squared_distances
from .marginal_likelihood import TAU2, Layout, constant_mean
from .posterior import Posterior

Approximation = Literal["vfe", "fitc"]

JITTER = 1e-8  # as a share of s2: inducing points may coincide. Small beside the lowest noise in the bounds


@dataclass(frozen=True, kw_only=True)
class SparseSolution:
    """The data as the inducing points represent them; ``left`` is s2 - q_ii, ``b`` is V a, ``value`` is F."""

    V: Array
    left: Array
    lam: Array
    C: Array
    root: Array  # C = root root'
    mean: float
    a: Array
    b: Array
    value: float

    @classmethod
    def of(
        cls, kernel: Kernel, noise: float, y: Array, L: Array, k: Array, approximation: Approximation, mean: float | None = None
    ) -> SparseSolution:
        """From L and k (n x m, overwritten), covariances of data and inducing values; the mean at its maximum unless given."""
        n, m = k.shape
        V = blas.dtrsm(1.0, L, k.T, lower=1, overwrite_b=1)
        left = np.maximum(kernel.variance - np.einsum("ij,ij->j", V, V), 0.0)  # below zero by rounding alone
        lam = noise + left if approximation == "fitc" else np.full(n, noise)
        over = V / lam
        C = over @ V.T
        C[np.diag_indices(m)] += 1.0
        root, _ = cholesky(C)
        both = np.column_stack([y, np.ones(n)])
        inner, _ = lapack.dpotrs(root, over @ both, lower=1)
        outer = (both - V.T @ inner) / lam[:, None]  # S^-1 [y, 1]
        if mean is None:
            mean = constant_mean(outer[:, 0].sum(), outer[:, 1].sum())
        a, b = outer[:, 0] - mean * outer[:, 1], inner[:, 0] - mean * inner[:, 1]
        log_det = float(np.log(lam).sum()) + 2.0 * float(np.log(np.diagonal(root)).sum())
        value = -0.5 * (float((y - mean) @ a) + log_det + n * LOG_2PI + mean**2 / TAU2)  # (1)
        if approximation == "vfe":
            value -= 0.5 * float(left.sum()) / noise
        return cls(V=V, left=left, lam=lam, C=C, root=root, mean=mean, a=a, b=b, value=value)


class SparseMarginalLikelihood:
    """F + log p(theta) as a function of theta and U: VFE's bound or FITC's log marginal likelihood."""

    def __init__(self, Z: Array, y: Array, layout: Layout, profile: str, approximation: Approximation) -> None:
        self.Z, self.y, self.layout, self.profile = Z, y, layout, profile
        self.approximation: Approximation = approximation
        self.evaluations = 0

    def value(self, theta: Array, U: Array) -> float:
        """Without the gradients; -inf where the covariance of the inducing values cannot be factored."""
        return self._value_and_gradients(theta, U, False)[0]

    def __call__(self, theta: Array, U: Array) -> tuple[float, Array, Array]:
        """Value, gradient with respect to theta, gradient with respect to U (m x p); (-inf, 0, 0) where it cannot be computed."""
        return self._value_and_gradients(theta, U, True)

    def unexplained(self, theta: Array, U: Array) -> float:
        """The mean of s2 - q_ii: the part of the prior variance that the inducing points do not explain."""
        kernel = self.layout.kernel(theta, self.profile)
        B = kernel.scale(U)
        V = blas.dtrsm(1.0, _root(kernel, B), kernel.covariance(kernel.scale(self.Z), B).T, lower=1)
        return max(kernel.variance - float(np.einsum("ij,ij->", V, V)) / len(self.y), 0.0)

    def _value_and_gradients(self, theta: Array, U: Array, wanted: bool) -> tuple[float, Array, Array]:
        self.evaluations += 1
        layout, nothing = self.layout, (np.zeros_like(theta), np.zeros_like(U))
        kernel, noise = layout.kernel(theta, self.profile), layout.noise(theta)
        A, B = kernel.scale(self.Z), kernel.scale(U)
        Kuu, derivative_uu = kernel.covariance_at_distance(squared_distances(B))
        Kuu[np.diag_indices(len(U))] += JITTER * kernel.variance
        L, info = lapack.dpotrf(Kuu, lower=1, clean=1)
        if info != 0 or not np.isfinite(L).all():
            return -np.inf, *nothing
        k, derivative = kernel.covariance_and_derivative(A, B)
        solution = SparseSolution.of(kernel, noise, self.y, L, k, self.approximation)
        prior, d_prior = layout.log_prior(theta)
        if not wanted or not np.isfinite(solution.value):
            return (solution.value + prior if np.isfinite(solution.value) else -np.inf), *nothing

        inverse = _inverse(solution.root)
        from_L, _ = lapack.dtrtri(L, lower=1)
        T = inverse @ (solution.V / solution.lam)
        twice_g = solution.a**2 - 1.0 / solution.lam + np.einsum("ij,ij->j", solution.V, T) / solution.lam
        h = np.full(len(self.y), 0.5 / noise) if self.approximation == "vfe" else -0.5 * twice_g
        T = solution.V * (2.0 * h) - T
        alpha = from_L.T @ solution.b
        d_k = T.T @ from_L  # (2)
        d_k += np.outer(solution.a, alpha)
        d_k *= derivative  # dF/dq, n x m
        d_uu = -0.5 * (np.outer(alpha, alpha) + from_L.T @ (T @ solution.V.T) @ from_L) * derivative_uu
        d_A = 2.0 * (d_k.sum(axis=1)[:, None] * A - d_k @ B)
        d_B = 2.0 * (d_k.sum(axis=0)[:, None] * B - d_k.T @ A) + 4.0 * (d_uu.sum(axis=1)[:, None] * B - d_uu @ B)

        G, gradient = layout.count, np.zeros_like(theta)
        gradient[:G] = -layout.per_group(np.einsum("ij,ij->j", d_A, A) + np.einsum("ij,ij->j", d_B, B))
        gradient[G] = 0.5 * float(solution.b @ solution.b - len(U) + np.trace(inverse)) - float(h @ solution.left)  # (3)
        gradient[G + 1] = 0.5 * noise * float(twice_g.sum())  # (4)
        if self.approximation == "vfe":
            gradient[G + 1] += 0.5 * float(solution.left.sum()) / noise
        if kernel.warp is not None:
            by_shape = zip(kernel.warp.shape_derivatives(self.Z), kernel.warp.shape_derivatives(U), strict=True)
            for shape, (of_data, of_inducing) in enumerate(by_shape, start=1):
                columns = np.einsum("ij,ij->j", d_A, of_data) + np.einsum("ij,ij->j", d_B, of_inducing)
                gradient[shape * G + 2 : (shape + 1) * G + 2] = layout.per_group(columns * kernel.inverse_lengths)
        return solution.value + prior, gradient + d_prior, d_B * kernel.scale_derivative(U)


def sparse_posterior(
    kernel: Kernel, noise: float, Z: Array, y: Array, U: Array, approximation: Approximation, mean: float | None = None
) -> Posterior:
    """The posterior given values y at Z, through inducing points U. The constant mean is at its maximum unless it is given.

    It never fails: the jitter grows as far as it has to.
    """
    A, B = kernel.scale(Z), kernel.scale(U)
    L = _root(kernel, B)
    solution = SparseSolution.of(kernel, noise, y, L, kernel.covariance(A, B), approximation, mean)
    from_L, _ = lapack.dtrtri(L, lower=1)
    e, E = np.linalg.eigh(solution.C - np.eye(len(U)))
    e = np.maximum(e, 0.0)
    R = np.sqrt(e / (1.0 + e))[:, None] * (E.T @ from_L)  # (5)
    basis, alpha = Basis(kernel, (ValueBlock(B),)), from_L.T @ solution.b
    return Posterior(kernel=kernel, noise=noise, mean=solution.mean, Z=Z, y=y, basis=basis, R=R, alpha=alpha)


def _root(kernel: Kernel, B: Array) -> Array:
    """L, with as much jitter as it needs."""
    Kuu = kernel.covariance(B)
    Kuu[np.diag_indices(len(B))] += JITTER * kernel.variance
    return cholesky(Kuu, jitter=10.0 * JITTER)[0]


def _inverse(root: Array) -> Array:
    """(root root')^-1, both triangles."""
    inverse, _ = lapack.dpotri(root, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
