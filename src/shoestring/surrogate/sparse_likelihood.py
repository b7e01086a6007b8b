"""What n values say about f through m inducing points: evidence, exact gradients, posterior, all in O(n m^2).

Notation (see also ``kernels``, ``evidence``)
    U       m x p       features of the inducing points, B the scaled ones; Z, A those of the data
    Kuu = s2 rho + j I = L L',  j = JITTER s2;  Kuf their covariances with the data;  V = L^-1 Kuf (m x n)
    Q = V'V = Kfu Kuu^-1 Kuf            what of the prior covariance of the data goes through the inducing points
    lam                                 VFE: noise;  FITC: noise + s2 - q_ii, so that the diagonal of S is exact
    S = Q + diag(lam)                   the approximate covariance of the data
    C = I + V diag(1/lam) V'            (m x m);  S^-1 = diag(1/lam) (I - V' C^-1 V diag(1/lam)),  |S| = |C| prod lam
    log N(y | m 1, S), m at its best as in ``evidence``, and for VFE minus tr(Kff - Q) / (2 noise): below the exact evidence

With the jitter the inducing values are those of f plus a little noise, which is a model too: VFE stays a bound.

Gradients of that, F. a = S^-1 (y - m), g = (a^2 - diag S^-1) / 2, alpha = L^-T C^-1 V (y - m) / lam = L^-T V a. The diagonal of Q
counts on its own: h = 1 / (2 noise) for VFE (the trace), -g for FITC (lam falls as q_ii grows). T = 2 V diag(h) - C^-1 V / lam.
    dF/dKuf = alpha a' + L^-T T         dF/dKuu = -(alpha alpha' + L^-T T V' L^-1) / 2          dF/dkff = -h
    dF/dlog s2 = (|V a|^2 - m + tr C^-1) / 2 - sum h (s2 - q_ii)
    dF/dlog noise = noise (sum g + [VFE] sum (s2 - q_ii) / (2 noise^2))

Posterior. mean = m + k(x)'alpha; W = Kuu^-1 - (Kuu + Kuf Lam^-1 Kfu)^-1 = L^-T (I - C^-1) L^-1 = R'R. With C - I = E diag(e) E',
R = diag(sqrt(e / (1 + e))) E' L^-1: no difference of two large matrices is taken.

Sources: Titsias, "Variational learning of inducing variables in sparse Gaussian processes" (2009); Snelson, Ghahramani,
"Sparse Gaussian processes using pseudo-inputs" (2005); Quinonero-Candela, Rasmussen, "A unifying view" (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri

from ..numerics import LOG_2PI, Array, cholesky
from .covariance import Basis, ValueBlock
from .hyperparameters import Layout
from .kernels import Kernel, squared_distances
from .marginal_likelihood import TAU2, constant_mean
from .posterior import Posterior

Approximation = Literal["vfe", "fitc"]

JITTER = 1e-8  # relative to s2: inducing points may meet; small beside the least noise that is believed


@dataclass(frozen=True)
class Condensed:
    """Data seen through inducing points, under given hyperparameters; ``left`` is s2 - q_ii, ``b`` is V a."""

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
        cls, kernel: Kernel, noise: float, y: Array, L: Array, k: Array, how: Approximation, mean: float | None = None
    ) -> Condensed:
        """From L and k (n x m, overwritten), the covariances of data and inducing values; the mean at its best unless given."""
        n, m = k.shape
        V = dtrsm(1.0, L, k.T, lower=1, overwrite_b=1)
        left = np.maximum(kernel.variance - np.einsum("ij,ij->j", V, V), 0.0)  # below zero by rounding alone
        lam = noise + left if how == "fitc" else np.full(n, noise)
        over = V / lam
        C = over @ V.T
        C[np.diag_indices(m)] += 1.0
        root, _ = cholesky(C)
        both = np.column_stack([y, np.ones(n)])
        inner, _ = dpotrs(root, over @ both, lower=1)
        outer = (both - V.T @ inner) / lam[:, None]  # S^-1 [y, 1]
        if mean is None:
            mean = constant_mean(outer[:, 0].sum(), outer[:, 1].sum())
        a, b = outer[:, 0] - mean * outer[:, 1], inner[:, 0] - mean * inner[:, 1]
        log_det = float(np.log(lam).sum()) + 2.0 * float(np.log(np.diagonal(root)).sum())
        value = -0.5 * (float((y - mean) @ a) + log_det + n * LOG_2PI + mean**2 / TAU2)
        if how == "vfe":
            value -= 0.5 * float(left.sum()) / noise
        return cls(V, left, lam, C, root, mean, a, b, value)


class SparseMarginalLikelihood:
    """log p(y | theta, U) + log p(theta), VFE's bound or FITC's evidence, as a function of theta and U."""

    def __init__(self, Z: Array, y: Array, layout: Layout, profile: str, how: Approximation) -> None:
        self.Z, self.y, self.layout, self.profile = Z, y, layout, profile
        self.how: Approximation = how
        self.evaluations = 0

    def value(self, theta: Array, U: Array) -> float:
        """Without the gradients; -inf where the covariance of the inducing values cannot be factored."""
        return self._value_and_gradients(theta, U, False)[0]

    def __call__(self, theta: Array, U: Array) -> tuple[float, Array, Array]:
        """Value, gradient with respect to theta, gradient with respect to U (m x p); (-inf, 0, 0) where it cannot be computed."""
        return self._value_and_gradients(theta, U, True)

    def unexplained(self, theta: Array, U: Array) -> float:
        """The mean of s2 - q_ii: what the inducing points leave over of the prior variance."""
        kernel = self.layout.kernel(theta, self.profile)
        B = kernel.scale(U)
        V = dtrsm(1.0, _root(kernel, B), kernel.covariance(kernel.scale(self.Z), B).T, lower=1)
        return max(kernel.variance - float(np.einsum("ij,ij->", V, V)) / len(self.y), 0.0)

    def _value_and_gradients(self, theta: Array, U: Array, wanted: bool) -> tuple[float, Array, Array]:
        self.evaluations += 1
        layout, nothing = self.layout, (np.zeros_like(theta), np.zeros_like(U))
        kernel, noise = layout.kernel(theta, self.profile), layout.noise(theta)
        A, B = kernel.scale(self.Z), kernel.scale(U)
        Kuu, slope_uu = kernel.profiled(squared_distances(B))
        Kuu[np.diag_indices(len(U))] += JITTER * kernel.variance
        L, info = dpotrf(Kuu, lower=1, clean=1)
        if info != 0 or not np.isfinite(L).all():
            return -np.inf, *nothing
        k, slope = kernel.covariance_and_slope(A, B)
        seen = Condensed.of(kernel, noise, self.y, L, k, self.how)
        prior, d_prior = layout.log_prior(theta)
        if not wanted or not np.isfinite(seen.value):
            return (seen.value + prior if np.isfinite(seen.value) else -np.inf), *nothing

        inverse = _inverse(seen.root)
        from_L, _ = dtrtri(L, lower=1)
        T = inverse @ (seen.V / seen.lam)
        twice_g = seen.a**2 - 1.0 / seen.lam + np.einsum("ij,ij->j", seen.V, T) / seen.lam
        h = np.full(len(self.y), 0.5 / noise) if self.how == "vfe" else -0.5 * twice_g
        T = seen.V * (2.0 * h) - T
        alpha = from_L.T @ seen.b
        d_k = T.T @ from_L
        d_k += np.outer(seen.a, alpha)
        d_k *= slope  # dF/dq, n x m
        d_uu = -0.5 * (np.outer(alpha, alpha) + from_L.T @ (T @ seen.V.T) @ from_L) * slope_uu
        d_A = 2.0 * (d_k.sum(axis=1)[:, None] * A - d_k @ B)
        d_B = 2.0 * (d_k.sum(axis=0)[:, None] * B - d_k.T @ A) + 4.0 * (d_uu.sum(axis=1)[:, None] * B - d_uu @ B)

        G, gradient = layout.count, np.zeros_like(theta)
        gradient[:G] = -layout.per_group(np.einsum("ij,ij->j", d_A, A) + np.einsum("ij,ij->j", d_B, B))
        gradient[G] = 0.5 * float(seen.b @ seen.b - len(U) + np.trace(inverse)) - float(h @ seen.left)
        gradient[G + 1] = 0.5 * noise * float(twice_g.sum())
        if self.how == "vfe":
            gradient[G + 1] += 0.5 * float(seen.left.sum()) / noise
        if kernel.warp is not None:
            bends = zip(kernel.warp.log_slopes(self.Z), kernel.warp.log_slopes(U), strict=True)
            for shape, (of_data, of_inducing) in enumerate(bends, start=1):
                columns = np.einsum("ij,ij->j", d_A, of_data) + np.einsum("ij,ij->j", d_B, of_inducing)
                gradient[shape * G + 2 : (shape + 1) * G + 2] = layout.per_group(columns * kernel.inverse_lengths)
        return seen.value + prior, gradient + d_prior, d_B * kernel.scaled_slope(U)


def sparse_posterior(
    kernel: Kernel, noise: float, Z: Array, y: Array, U: Array, how: Approximation, mean: float | None = None
) -> Posterior:
    """The posterior given values y at Z as inducing points U carry it; never fails, at the price of more jitter.

    The constant mean at its best unless it is given.
    """
    A, B = kernel.scale(Z), kernel.scale(U)
    L = _root(kernel, B)
    seen = Condensed.of(kernel, noise, y, L, kernel.covariance(A, B), how, mean)
    from_L, _ = dtrtri(L, lower=1)
    e, E = np.linalg.eigh(seen.C - np.eye(len(U)))
    e = np.maximum(e, 0.0)
    R = np.sqrt(e / (1.0 + e))[:, None] * (E.T @ from_L)
    return Posterior(kernel, noise, seen.mean, Z, y, Basis(kernel, (ValueBlock(B),)), R, from_L.T @ seen.b)


def _root(kernel: Kernel, B: Array) -> Array:
    """L, with as much jitter as it takes."""
    Kuu = kernel.covariance(B)
    Kuu[np.diag_indices(len(B))] += JITTER * kernel.variance
    return cholesky(Kuu, jitter=10.0 * JITTER)[0]


def _inverse(root: Array) -> Array:
    """(root root')^-1, both triangles."""
    inverse, _ = dpotri(root, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
