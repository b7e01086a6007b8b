"""A normal vector given which of its components is the lowest: moments by expectation propagation.

Sources: Minka 2001; Hernandez-Lobato et al. 2014, section 2.1 (the same constraints in predictive entropy search).

Notation: f = mu + L w, w ~ N(0, I); case i: d_j = f_j - f_i = (mu_j - mu_i) + h_j'w >= 0 for all j, h_j = L_j - L_i.
    w | i ~ N(m, T) approximately, T^-1 = I + sum_j tau_j h_j h_j'
Each constraint is replaced by a normal factor with precision tau_j and shift nu_j. By turns, each factor is taken out of d_j's
normal (precision 1 / v - tau_j, the cavity), the constraint is put in its place, and the factor is set so that the moments of
d_j are those of the truncated normal: with g = mean / deviation in the cavity and lambda = phi(g) / Phi(g),

    mean + deviation lambda,    variance (1 - lambda (lambda + g))

T and m follow by a rank-one update. All cases go through this together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, log_Phi

SWEEPS = 3
RESOLVED = 1e-10  # a difference with a smaller share of its variance left is settled


@dataclass(frozen=True)
class Lowest:
    """Moments of w for each case: m (K x R), T (K x R x R)."""

    m: Array
    T: Array


def given_lowest(mean: Array, factor: Array, cases: NDArray[np.intp], sweeps: int = SWEEPS) -> Lowest:
    """For each i in ``cases``, the moments of w given that f_i is the lowest."""
    K, R = len(cases), len(mean)
    H = factor[None, :, :] - factor[cases][:, None, :]
    offset = mean - mean[cases][:, None]
    least = RESOLVED * np.einsum("kjr,kjr->kj", H, H)
    m, T = np.zeros((K, R)), np.tile(np.eye(R), (K, 1, 1))
    tau, nu = np.zeros((K, R)), np.zeros((K, R))
    for _ in range(sweeps):
        for j in range(R):
            h = H[:, j]
            Th = np.einsum("kab,kb->ka", T, h)
            v, centre = np.einsum("ka,ka->k", h, Th), offset[:, j] + np.einsum("ka,ka->k", h, m)
            open_ = (cases != j) & (v > least[:, j])
            v = np.where(open_, v, 1.0)
            left = 1.0 / v - tau[:, j]
            open_ &= left > RESOLVED / v
            left = np.where(open_, left, 1.0)
            new_tau, new_nu = _matched(1.0 / left, (centre / v - nu[:, j]) / left)
            d_tau = np.where(open_, new_tau - tau[:, j], 0.0)
            d_nu = np.where(open_, new_nu - nu[:, j], 0.0)
            tau[:, j] += d_tau
            nu[:, j] += d_nu
            shrink = 1.0 + d_tau * v
            m += ((d_nu - d_tau * centre) / shrink)[:, None] * Th
            T -= (d_tau / shrink)[:, None, None] * Th[:, :, None] * Th[:, None, :]
    return Lowest(m, T)


def _matched(variance: Array, mean: Array) -> tuple[Array, Array]:
    """Precision and shift of the factor that gives N(mean, variance) the moments it has above zero."""
    deviation = np.sqrt(variance)
    g = mean / deviation
    lam = log_Phi(g)[1]
    kept = np.maximum(1.0 - lam * (lam + g), 1e-8)
    precision = (1.0 / kept - 1.0) / variance
    return precision, (mean + deviation * lam) / (kept * variance) - mean / variance
