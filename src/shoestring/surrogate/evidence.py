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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from ..numerics import LOG_2PI, Array
from .hyperparameters import Layout
from .kernels import PROFILES, Kernel, squared_distances

TAU2 = 1.0  # variance of the prior on the mean, in units of the standardised targets


@dataclass(frozen=True)
class Solved:
    """What value and gradient have in common; ``fit`` is (y - m)' alpha, ``value`` is log p(y) without the prior of theta."""

    kernel: Kernel
    noise: float
    A: Array
    slope: Array  # rho'
    L: Array
    alpha: Array
    fit: float
    value: float


class Evidence:
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

    def _solved(self, theta: Array) -> Solved | None:
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
        return Solved(kernel, noise, A, slope, L, alpha, fit, value)


def constant_mean(one_K_y: float, one_K_one: float) -> float:
    """1'K^-1 y / (1'K^-1 1 + 1 / tau^2)."""
    return float(one_K_y / (one_K_one + 1.0 / TAU2))
