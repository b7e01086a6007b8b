"""The kernel family: stationary, one length scale a parameter, over features that may be warped.

Notation
    Z       n x p       features (see ``encoding``); column k belongs to parameter groups[k]
    A       n x p       scaled features, a_ik = w(z_ik) / l_groups[k], with w the identity or a Kumaraswamy warping
    q_ij                squared distance |a_i - a_j|^2
    rho(q)              the kernel's profile, rho(0) = 1; the covariance is s2 rho(q)

Matern-5/2:          rho = (1 + r + r^2 / 3) exp(-r),  r = sqrt(5 q),   rho' = -5/6 (1 + r) exp(-r)
squared exponential: rho = exp(-q / 2),                                 rho' = -rho / 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..numerics import Array

Profile = Callable[[Array], tuple[Array, Array]]


def matern52(q: Array) -> tuple[Array, Array]:
    """rho(q) and rho'(q); overwrites q. In place: at n = 1000 each further n x n array costs as much as the exponential."""
    q *= 5.0
    r = np.sqrt(q)
    e = np.negative(r)
    np.exp(e, out=e)
    r += 1.0
    q *= 1.0 / 3.0
    q += r
    q *= e
    r *= e
    r *= -5.0 / 6.0
    return q, r


def squared_exponential(q: Array) -> tuple[Array, Array]:
    """rho(q) and rho'(q); overwrites q."""
    q *= -0.5
    np.exp(q, out=q)
    return q, q * -0.5


PROFILES: dict[str, Profile] = {"matern52": matern52, "se": squared_exponential}


def bends(profile: str, q: Array) -> tuple[Array, Array, Array]:
    """The first three derivatives of rho at q: what covariances of slopes need.

    The third of Matern-5/2 is infinite at q = 0, where whatever multiplies it is zero: 0 is returned there.
    """
    if profile == "se":
        rho = np.exp(-0.5 * q)
        return -0.5 * rho, 0.25 * rho, -0.125 * rho
    r = np.sqrt(5.0 * q)
    e = np.exp(-r)
    third = np.divide(-125.0 / 24.0 * e, r, out=np.zeros_like(r), where=r > 0.0)
    return -5.0 / 6.0 * (1.0 + r) * e, 25.0 / 12.0 * e, third


def squared_distances(A: Array, B: Array | None = None) -> Array:
    """q_ij = |a_i - b_j|^2 by one matrix product; exactly zero on the diagonal when B is A."""
    a = np.einsum("ij,ij->i", A, A)
    b = a if B is None else np.einsum("ij,ij->i", B, B)
    q: Array = np.dot(A, (A if B is None else B).T)
    q *= -2.0
    q += a[:, None]
    q += b
    if B is None:
        np.fill_diagonal(q, 0.0)
    return np.maximum(q, 0.0, out=q)


@dataclass(frozen=True)
class Warp:
    """Kumaraswamy warping w(z) = 1 - (1 - z^a)^b, two parameters a column (1, 1 is the identity)."""

    a: Array
    b: Array

    EDGE = 1e-9  # the slope is unbounded at 0 (a < 1) and at 1 (b < 1)

    def apply(self, Z: Array) -> Array:
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        return -np.expm1(self.b * np.log1p(-(Z**self.a)))

    def slope(self, Z: Array) -> Array:
        """dw/dz."""
        inside = (Z >= 0.0) & (Z <= 1.0)  # beyond the ends it is flat
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        return inside * self.a * self.b * Z ** (self.a - 1.0) * (1.0 - Z**self.a) ** (self.b - 1.0)

    def log_slopes(self, Z: Array) -> tuple[Array, Array]:
        """dw/d(log a) and dw/d(log b)."""
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        power = Z**self.a
        rest = 1.0 - power
        return (
            self.a * self.b * rest ** (self.b - 1.0) * power * np.log(Z),
            -self.b * rest**self.b * np.log1p(-power),
        )


@dataclass(frozen=True)
class Kernel:
    """A kernel with its hyperparameters set."""

    profile: str
    inverse_lengths: Array  # p, one a column
    variance: float
    warp: Warp | None = None

    def scale(self, Z: Array) -> Array:
        return (Z if self.warp is None else self.warp.apply(Z)) * self.inverse_lengths

    def scaled_slope(self, Z: Array) -> Array:
        """da/dz, elementwise (1 x p when it is the same everywhere)."""
        if self.warp is None:
            return self.inverse_lengths[None, :]
        return self.warp.slope(Z) * self.inverse_lengths

    def profiled(self, q: Array) -> tuple[Array, Array]:
        """Covariances at squared distances q, and their derivatives with respect to q; overwrites q."""
        rho, slope = PROFILES[self.profile](q)
        return self.variance * rho, self.variance * slope

    def covariance(self, A: Array, B: Array | None = None) -> Array:
        rho, _ = PROFILES[self.profile](squared_distances(A, B))
        rho *= self.variance
        return rho

    def covariance_and_slope(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Covariances of rows of A with rows of B, and their derivatives with respect to q."""
        rho, slope = PROFILES[self.profile](squared_distances(A, B))
        rho *= self.variance
        slope *= self.variance
        return rho, slope
