"""The evidence of a sparse GP (VFE, Titsias 2009) in one dimension with its gradient, in one pass over the data.

Notation, for n points x with values y, m inducing points z, a squared-exponential kernel of variance v and length scale l, and
noise of variance s2
    K = k(z, z) + jitter,  C = k(z, x),  Phi = C C',  b = C y
    L L' = K,  W = L^-1 Phi L^-T / s2,  B = I + W,  alpha = B^-1 L^-1 b / s2
    F = log N(y | 0, C' K^-1 C + s2 I) - (n v - tr(K^-1 Phi)) / (2 s2)
      = -(n log(2 pi s2) + log|B| + y'y / s2 - alpha' L^-1 b / s2 + n v / s2 - tr W) / 2

F depends on the data through Phi, b and y'y alone, and dF / dl through dPhi / dl and db / dl besides: they are summed over
blocks of points, so that time is O(n m^2) and memory O(m^2). With R = -(B^-1 + alpha alpha' - I) / 2,

    dF = tr((R - W / 2) L^-1 dK L^-T) + tr(R L^-1 dPhi L^-T) / s2 + alpha' L^-1 db / s2 + what v and s2 do by themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

Array = NDArray[np.float64]
JITTER = 1e-6  # of the variance, so that the kernel scales with it
BLOCK = 4096


@dataclass(frozen=True)
class Evidence:
    """Per point, with slopes along log v, log l, log s2."""

    value: float
    gradient: Array


def sums(x: Array, y: Array, z: Array, scale: float) -> tuple[Array, Array, Array, Array]:
    """Phi and b at v = 1, and their slopes along log l."""
    m = len(z)
    Phi, slope, b, b_slope = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m), np.zeros(m)
    for start in range(0, len(x), BLOCK):
        at = slice(start, start + BLOCK)
        D = ((z[:, None] - x[None, at]) / scale) ** 2
        C = np.exp(-0.5 * D)
        dC = C * D
        Phi += C @ C.T
        slope += dC @ C.T
        b += C @ y[at]
        b_slope += dC @ y[at]
    return Phi, slope + slope.T, b, b_slope


def evidence(x: Array, y: Array, z: Array, log_parameters: Array) -> Evidence:
    """F / n and its gradient."""
    n, m = len(x), len(z)
    v, scale, s2 = np.exp(np.asarray(log_parameters, dtype=float))
    Phi, Phi_slope, b, b_slope = sums(x, y, z, float(scale))
    Phi, Phi_slope, b, b_slope = v**2 * Phi, v**2 * Phi_slope, v * b, v * b_slope
    D = ((z[:, None] - z[None, :]) / scale) ** 2
    K = v * np.exp(-0.5 * D)
    K_slope = K * D
    L = cholesky(K + JITTER * v * np.eye(m), lower=True)

    def white(A: Array) -> Array:
        half = solve_triangular(L, A, lower=True)
        return np.asarray(solve_triangular(L, half.T, lower=True).T, dtype=float)

    W = white(Phi) / s2
    chol_B = cholesky(np.eye(m) + W, lower=True)
    beta = solve_triangular(L, b, lower=True) / s2
    alpha = cho_solve((chol_B, True), beta)
    yy = float(y @ y)
    trace_gap = n * v / s2 - np.trace(W)
    log_det = 2 * np.log(np.diag(chol_B)).sum()
    F = -0.5 * (n * np.log(2 * np.pi * s2) + log_det + yy / s2 - float(alpha @ beta) + trace_gap)
    R = -0.5 * (cho_solve((chol_B, True), np.eye(m)) + np.outer(alpha, alpha) - np.eye(m))

    def change(dK: Array, dPhi: Array, db: Array) -> float:
        """Of F, for whitened changes of K and of Phi / s2, and a whitened change of b / s2."""
        return float(np.sum((R - 0.5 * W) * dK) + np.sum(R * dPhi) + alpha @ db)

    by_variance = change(np.eye(m), 2 * W, beta) - 0.5 * n * v / s2
    by_scale = change(white(K_slope), white(Phi_slope) / s2, solve_triangular(L, b_slope, lower=True) / s2)
    # s2 divides Phi in B and in the trace, b twice, and stands by itself.
    by_noise = -0.5 * n + 0.5 * yy / s2 + 0.5 * n * v / s2 - float(np.sum(R * W)) - float(alpha @ beta)
    return Evidence(float(F / n), np.array([by_variance, by_scale, by_noise]) / n)
