"""The log evidence of a GP with its exact gradient: the one function that fitting spends its time in.

Notation (see also ``kernels``)
    K = s2 rho(q) + noise I = L L'          the factor overwrites K (dpotrf), then K^-1 overwrites L (dpotri)
    m = 1'K^-1 y / (1'K^-1 1 + 1/tau^2)     the constant mean, at its best under a N(0, tau^2) prior
    alpha = K^-1 (y - m)
    log p(y) = -(y - m)' alpha / 2 - sum log L_ii - n log(2 pi) / 2 - m^2 / (2 tau^2)
    G = (alpha alpha' - K^-1) / 2           d log p / dK; m counts as constant since it is at its best
    W = G o s2 rho'                         d log p / dq
    P = 4 (diag(W 1) A - W A)               d log p / dA, by one symmetric product: no n x n x p array

Only the lower triangles of K, G and W are ever read. The value alone costs a third of the value with its gradient.

The log evidence of a GP that was told values and slopes, with its exact gradient.

Notation (see also ``basis``, ``evidence``): rows are n values and then R slopes, each with its scaled point a; d = a - a' of two
rows, q = |d|^2; c the column of a slope, s its da/dz = w_c, the inverse length there. Covariances k and F = dk/dq, without s2:

    value, value    rho                              rho'
    slope, value    s 2 rho' d_c                     s 2 rho'' d_c
    slope, slope    s s~ (-4 rho'' d_c d_e - 2 rho' [c = e])       s s~ (-4 rho''' d_c d_e - 2 rho'' [c = e])

An inverse length w_l enters through q (dq = 2 d_l^2 for d log w_l = 1) and, in rows that are slopes along l, through s and d_c.
With G = d log p / dK the first is sum_ij (2 G F)_ij d_l^2, by one product with the points, and the second a sum over rows of
G (k + the part of k that has d_c). The noise of a slope is a share of its prior variance (``gradient_noise``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from ..numerics import LOG_2PI, Array
from .covariance import DerivativeBlock
from .gradient_data import GradientData, gradient_noise
from .hyperparameters import Layout
from .kernels import PROFILES, Kernel, bends, squared_distances

TAU2 = 1.0  # variance of the prior on the mean, in units of the standardised targets


@dataclass(frozen=True)
class FactoredCovariance:
    """What value and gradient have in common; ``fit`` is (y - m)' alpha, ``value`` is log p(y) without the prior of theta."""

    kernel: Kernel
    noise: float
    A: Array
    slope: Array  # rho'
    L: Array
    alpha: Array
    fit: float
    value: float


class MarginalLikelihood:
    """log p(y | theta) + log p(theta) for given data, as a function of theta."""

    def __init__(self, Z: Array, y: Array, layout: Layout, profile: str) -> None:
        self.Z, self.y, self.layout = Z, y, layout
        self.profile = PROFILES[profile]
        self.name = profile
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; (-inf, 0) where the covariance cannot be factored."""
        self.evaluations += 1
        solved = self._solved(theta)
        if solved is None:
            return -np.inf, np.zeros_like(theta)
        n, layout, kernel, noise, A, alpha = len(self.y), self.layout, solved.kernel, solved.noise, solved.A, solved.alpha
        inverse, _ = dpotri(solved.L, lower=1, overwrite_c=1)

        prior, d_prior = layout.log_prior(theta)
        d_noise = 0.5 * noise * (float(alpha @ alpha) - float(np.trace(inverse)))
        W = np.outer(alpha, alpha).T
        W -= inverse
        W *= solved.slope.T  # 2 W / s2
        WA = dsymm(0.5 * kernel.variance, W, np.column_stack([A, np.ones(n)]), lower=1)
        P = 4.0 * (WA[:, -1:] * A - WA[:, :-1])
        gradient = np.zeros_like(theta)
        G = layout.count
        gradient[:G] = -layout.per_group(np.einsum("ij,ij->j", P, A))
        gradient[G] = 0.5 * (solved.fit - n) - d_noise  # tr(G (K - noise I))
        gradient[G + 1] = d_noise
        if kernel.warp is not None:
            slope_a, slope_b = kernel.warp.log_slopes(self.Z)
            P *= kernel.inverse_lengths
            gradient[G + 2 : 2 * G + 2] = layout.per_group(np.einsum("ij,ij->j", P, slope_a))
            gradient[2 * G + 2 :] = layout.per_group(np.einsum("ij,ij->j", P, slope_b))
        return solved.value + prior, gradient + d_prior

    def value(self, theta: Array) -> float:
        """Without the gradient; -inf where the covariance cannot be factored."""
        self.evaluations += 1
        solved = self._solved(theta)
        return -np.inf if solved is None else solved.value + self.layout.log_prior(theta)[0]

    def _solved(self, theta: Array) -> FactoredCovariance | None:
        """None where the covariance cannot be factored."""
        n, layout = len(self.y), self.layout
        kernel, noise = layout.kernel(theta, self.name), layout.noise(theta)
        A = kernel.scale(self.Z)
        K, slope = self.profile(squared_distances(A))
        K *= kernel.variance
        K[np.diag_indices(n)] += noise
        L, info = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)  # K.T: symmetric, and in the order LAPACK wants
        if info != 0:
            return None
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        solved, _ = dpotrs(L, np.column_stack([self.y, np.ones(n)]), lower=1)
        mean = constant_mean(solved[:, 0].sum(), solved[:, 1].sum())
        residual, alpha = self.y - mean, solved[:, 0] - mean * solved[:, 1]
        fit = float(residual @ alpha)
        value = -0.5 * (fit + log_det + n * LOG_2PI + mean**2 / TAU2)
        return FactoredCovariance(kernel, noise, A, slope, L, alpha, fit, value)


def constant_mean(one_K_y: float, one_K_one: float) -> float:
    """1'K^-1 y / (1'K^-1 1 + 1 / tau^2)."""
    return float(one_K_y / (one_K_one + 1.0 / TAU2))


@dataclass(frozen=True)
class CovarianceBlocks:
    """Covariances of all rows without noise, F, and what of the slopes' covariances has d_c; s2 and s included."""

    K: Array
    F: Array
    across: Array  # R x (n + R)


class GradientMarginalLikelihood:
    """log p(y, slopes | theta) + log p(theta), as a function of theta; the same interface as ``MarginalLikelihood``."""

    def __init__(self, Z: Array, y: Array, gradients: GradientData, layout: Layout, profile: str) -> None:
        self.Z, self.gradients, self.layout, self.name = Z, gradients, layout, profile
        self.targets = np.concatenate([y, gradients.values])
        self.ones = np.concatenate([np.ones(len(y)), np.zeros(len(gradients))])  # a constant mean has no slope
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; (-inf, 0) where the covariance cannot be factored."""
        self.evaluations += 1
        layout, n = self.layout, len(self.Z)
        kernel, noise, share = layout.kernel(theta, self.name), layout.noise(theta), layout.gradient_noise_share(theta)
        part = self.gradients.part(kernel, self.Z)
        points = np.vstack([kernel.scale(self.Z), part.A])
        blocks = covariances(kernel, points, part, n)
        own = gradient_noise(kernel, share, part)
        found = self._solved(blocks.K, np.concatenate([np.full(n, noise), own]))
        if found is None:
            return -np.inf, np.zeros_like(theta)
        value, alpha, inverse = found
        G = 0.5 * (np.outer(alpha, alpha) - inverse)
        diagonal = np.diag(G)
        W = 2.0 * G * blocks.F
        per_column = 2.0 * (W.sum(axis=1) @ points**2 - np.einsum("ij,ij->j", points, W @ points))
        rows = np.einsum("ij,ij->i", G[n:], blocks.K[n:] + blocks.across) + diagonal[n:] * own
        per_column += 2.0 * np.bincount(part.columns, rows, minlength=points.shape[1])
        gradient, count = np.zeros_like(theta), layout.count
        gradient[:count] = -layout.per_group(per_column)
        gradient[count] = float(np.einsum("ij,ij->", G, blocks.K)) + float(diagonal[n:] @ own)
        gradient[count + 1] = noise * float(diagonal[:n].sum())
        gradient[-1] = float(diagonal[n:] @ own)
        prior, d_prior = layout.log_prior(theta)
        return value + prior, gradient + d_prior

    def value(self, theta: Array) -> float:
        """Without the gradient; -inf where the covariance cannot be factored."""
        return self(theta)[0]

    def _solved(self, K: Array, noises: Array) -> tuple[float, Array, Array] | None:
        """log p, alpha and K^-1; None where K cannot be factored."""
        total = K.copy()
        total[np.diag_indices(len(total))] += noises
        L, info = dpotrf(total, lower=1, clean=1)
        if info != 0:
            return None
        solved, _ = dpotrs(L, np.column_stack([self.targets, self.ones]), lower=1)
        mean = constant_mean(float(self.ones @ solved[:, 0]), float(self.ones @ solved[:, 1]))
        alpha = solved[:, 0] - mean * solved[:, 1]
        fit = float((self.targets - mean * self.ones) @ alpha)
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        inverse, _ = dpotri(L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return -0.5 * (fit + log_det + len(alpha) * LOG_2PI + mean**2 / TAU2), alpha, inverse


def covariances(kernel: Kernel, points: Array, part: DerivativeBlock, n: int) -> CovarianceBlocks:
    """All blocks at once: rows are the n values' and the slopes' ``points``."""
    q = squared_distances(points)
    first, second, third = bends(kernel.profile, q)
    along = part.along(points)  # d_c of each slope and every row
    across = -along[:, n:].T  # d_e, for the slope in the column
    same = part.columns[:, None] == part.columns
    K, F = PROFILES[kernel.profile](q)
    both = np.zeros_like(along)
    both[:, :n] = 2.0 * first[n:, :n] * along[:, :n]
    both[:, n:] = -4.0 * second[n:, n:] * along[:, n:] * across
    K[n:, :n], F[n:, :n] = both[:, :n], 2.0 * second[n:, :n] * along[:, :n]
    K[n:, n:] = both[:, n:] - 2.0 * first[n:, n:] * same
    F[n:, n:] = -4.0 * third[n:, n:] * along[:, n:] * across - 2.0 * second[n:, n:] * same
    K[:n, n:], F[:n, n:] = K[n:, :n].T, F[n:, :n].T
    s = kernel.variance * np.concatenate([np.ones(n), part.s])
    scale = np.outer(s, s) / kernel.variance
    return CovarianceBlocks(K * scale, F * scale, both * scale[n:])
