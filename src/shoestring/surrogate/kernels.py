"""Stationary ARD kernels, and the prior covariances of values and derivatives of a Gaussian process f.

Data are values of f and, where gradients are reported, derivatives of f. Each lot of observations is a block: ``ValueBlock`` or
``DerivativeBlock``. A ``Basis`` is a sequence of blocks. A posterior needs nothing else of them than covariances:
mean(x) = m + k(x)' alpha, with k(x) the covariances of f(x) and the basis (see ``posterior``).

Notation
    Z       n x p       features (see ``encoding``); column k belongs to parameter groups[k]
    w(z)                the identity, or a Kumaraswamy warping
    A       n x p       scaled features, a_ik = w(z_ik) / l_groups[k]; B those of query points
    l, s2               length scales; variance of f
    d = a - b, q = |d|^2
    rho(q)              the correlation function, called the kernel's profile; rho(0) = 1
    rho', rho'', rho''' its derivatives with respect to q
    s                   da_c/dz_c where f is differentiated with respect to feature c

Profiles (Rasmussen and Williams 2006, equations 4.17 and 4.9)
    Matern-5/2           rho = (1 + r + r^2 / 3) exp(-r),  r = sqrt(5 q),   rho' = -5/6 (1 + r) exp(-r)
    squared exponential  rho = exp(-q / 2),                                 rho' = -rho / 2

Covariances (Rasmussen and Williams 2006, equation 9.1)
    (1)  cov(f(a), f(b))                        s2 rho(q)
    (2)  cov(df/dz_c at a, f(b))                s2 s 2 rho' d_c
    (3)  cov(df/dz_c at a, df/dz_e at b)        s2 s s~ (-4 rho'' d_c d_e - 2 rho' [c = e])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array

Profile = Callable[[Array], tuple[Array, Array]]


# -- profiles and distances ---------------------------------------------------------------------------------------------


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


def profile_derivatives(profile: str, q: Array) -> tuple[Array, Array, Array]:
    """rho', rho'' and rho''' at q: the covariances of derivatives need them.

    rho''' of Matern-5/2 is infinite at q = 0. It is always multiplied by zero there, so 0 is returned.
    """
    if profile == "se":
        rho = np.exp(-0.5 * q)
        return -0.5 * rho, 0.25 * rho, -0.125 * rho
    r = np.sqrt(5.0 * q)
    e = np.exp(-r)
    third = np.divide(-125.0 / 24.0 * e, r, out=np.zeros_like(r), where=r > 0.0)
    return -5.0 / 6.0 * (1.0 + r) * e, 25.0 / 12.0 * e, third


def squared_norms(A: Array) -> Array:
    """|a_i|^2 of each row."""
    norms: Array = np.einsum("ij,ij->i", A, A)
    return norms


def squared_distances(A: Array, B: Array | None = None, *, A_norms: Array | None = None, B_norms: Array | None = None) -> Array:
    """q_ij = |a_i - b_j|^2 by one matrix product. If B is None it is A, and the diagonal is exactly zero.

    ``A_norms`` and ``B_norms`` are the squared norms of the rows, where the caller has them.
    """
    a = squared_norms(A) if A_norms is None else A_norms
    if B is None:
        q: Array = np.dot(A, A.T)
        b = a
    else:
        q = np.dot(A, B.T)
        b = squared_norms(B) if B_norms is None else B_norms
    q *= -2.0
    q += a[:, None]
    q += b
    if B is None:
        np.fill_diagonal(q, 0.0)
    return np.maximum(q, 0.0, out=q)


# -- the kernel ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Warp:
    """Kumaraswamy input warping w(z) = 1 - (1 - z^a)^b, with two shapes for each column; (1, 1) is the identity."""

    a: Array
    b: Array

    EDGE = 1e-9  # of the unit interval; dw/dz is unbounded at 0 (a < 1) and at 1 (b < 1)

    def apply(self, Z: Array) -> Array:
        """w(Z), elementwise."""
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        return -np.expm1(self.b * np.log1p(-(Z**self.a)))

    def derivative(self, Z: Array) -> Array:
        """dw/dz, elementwise; zero outside [0, 1], where w is constant."""
        inside = (Z >= 0.0) & (Z <= 1.0)
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        return inside * self.a * self.b * Z ** (self.a - 1.0) * (1.0 - Z**self.a) ** (self.b - 1.0)

    def shape_derivatives(self, Z: Array) -> tuple[Array, Array]:
        """dw/d(log a) and dw/d(log b), elementwise."""
        Z = np.clip(Z, self.EDGE, 1.0 - self.EDGE)
        power = Z**self.a
        rest = 1.0 - power
        return (
            self.a * self.b * rest ** (self.b - 1.0) * power * np.log(Z),
            -self.b * rest**self.b * np.log1p(-power),
        )


@dataclass(frozen=True)
class Kernel:
    """A kernel with its hyperparameters: profile, inverse length scale of each column (p), variance, warping."""

    profile: str
    inverse_lengths: Array
    variance: float
    warp: Warp | None = None

    def scale(self, Z: Array) -> Array:
        """Scaled features A."""
        return (Z if self.warp is None else self.warp.apply(Z)) * self.inverse_lengths

    def scale_derivative(self, Z: Array) -> Array:
        """da/dz, elementwise (1 x p where it is the same at all points)."""
        if self.warp is None:
            return self.inverse_lengths[None, :]
        return self.warp.derivative(Z) * self.inverse_lengths

    def correlations(self, Z: Array) -> tuple[Array, Array, Array]:
        """Of features Z with themselves: A, rho(q) and rho'(q)."""
        A = (Z if self.warp is None else self.warp.apply(Z)) * self.inverse_lengths
        return A, *PROFILES[self.profile](squared_distances(A))

    def covariance(self, A: Array, B: Array | None = None, *, A_norms: Array | None = None) -> Array:
        """Equation (1) for all pairs of rows of A and B (A itself where B is None)."""
        rho, _ = PROFILES[self.profile](squared_distances(A, B, A_norms=A_norms))
        rho *= self.variance
        return rho

    def covariance_and_derivative(self, A: Array, B: Array, *, B_norms: Array | None = None) -> tuple[Array, Array]:
        """Equation (1) for all pairs of rows of A and B, and its derivative with respect to q."""
        rho, derivative = PROFILES[self.profile](squared_distances(A, B, B_norms=B_norms))
        rho *= self.variance
        derivative *= self.variance
        return rho, derivative

    def covariance_at_distance(self, q: Array) -> tuple[Array, Array]:
        """Equation (1) at squared distances q, and its derivative with respect to q; overwrites q."""
        rho, derivative = PROFILES[self.profile](q)
        return self.variance * rho, self.variance * derivative


# -- blocks of observations ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValueBlock:
    """f at scaled points A (n x p)."""

    A: Array

    def __len__(self) -> int:
        return len(self.A)

    @cached_property
    def norms(self) -> Array:
        """|a_i|^2, computed once: every prediction needs them."""
        return squared_norms(self.A)


@dataclass(frozen=True)
class DerivativeBlock:
    """df/dz_c: each row has its scaled point (rows of A), its feature c (``columns``), and s."""

    A: Array
    columns: NDArray[np.intp]
    s: Array

    def __len__(self) -> int:
        return len(self.A)

    @classmethod
    def at(cls, kernel: Kernel, X: Array, columns: NDArray[np.intp]) -> DerivativeBlock:
        """Row i is the derivative with respect to feature columns[i] at the features X[i]."""
        s = np.broadcast_to(kernel.scale_derivative(X), X.shape)[np.arange(len(X)), columns]
        return cls(kernel.scale(X), columns, np.asarray(s))

    def differences(self, B: Array) -> Array:
        """d_c of each row of the block and each row of B."""
        own = self.A[np.arange(len(self)), self.columns]
        return own[:, None] - B[:, self.columns].T


Block = ValueBlock | DerivativeBlock


def covariance(kernel: Kernel, one: Block, other: Block) -> Array:
    """Prior covariances of two blocks."""
    if isinstance(other, ValueBlock):
        if isinstance(one, ValueBlock):
            return kernel.covariance(one.A, None if one is other else other.A, A_norms=one.norms)  # (1)
        _, derivative = kernel.covariance_and_derivative(one.A, other.A)
        return 2.0 * derivative * one.differences(other.A) * one.s[:, None]  # (2)
    if isinstance(one, ValueBlock):
        return covariance(kernel, other, one).T
    q = squared_distances(one.A, other.A if one is not other else None)
    first, second, _ = profile_derivatives(kernel.profile, q)
    both = -4.0 * second * one.differences(other.A) * -other.differences(one.A).T  # (3)
    both -= 2.0 * first * (one.columns[:, None] == other.columns)
    return np.asarray(kernel.variance * both * one.s[:, None] * other.s)


@dataclass(frozen=True)
class CovarianceWithGradient:
    """Covariances k (m x n) of f at query points with a basis, ready for gradients with respect to the query points.

    B        scaled query points (m x p);   s  da/dz there
    factors  for each block dk/dq, and for derivatives also 4 rho'' d_c; s2 and the block's own s are included
    """

    k: Array
    B: Array
    s: Array
    blocks: tuple[Block, ...]
    factors: tuple[tuple[Array, Array | None], ...]

    def gradients(self, *weights: Array) -> list[Array]:
        """sum_j weights_ij dk_ij/dx_i with respect to the features (m x p), for each of several weights."""
        return [self.pull_back(each) * self.s for each in weights]

    def pull_back(self, weights: Array) -> Array:
        """sum_j weights_ij dk_ij/db_i with respect to the scaled points (m x p)."""
        block = self.blocks[0]
        if len(self.blocks) == 1 and isinstance(block, ValueBlock):  # by far the most frequent
            return self._from_values(weights * self.factors[0][0], block)
        total, start = np.zeros_like(self.B), 0
        for block, (first, second) in zip(self.blocks, self.factors, strict=True):
            own = weights[:, start : start + len(block)]
            start += len(block)
            if isinstance(block, ValueBlock):
                total += self._from_values(own * first, block)
                continue
            assert second is not None
            pulled = own * second
            total += pulled.sum(axis=1, keepdims=True) * self.B - pulled @ block.A
            total -= 2.0 * (own * first) @ (block.columns[:, None] == np.arange(self.B.shape[1]))
        return total

    def _from_values(self, pulled: Array, block: ValueBlock) -> Array:
        """dq_ij/db_i = 2 (b_i - a_j)."""
        pulled = 2.0 * pulled
        total: Array = pulled.sum(axis=1)[:, None] * self.B
        total -= pulled @ block.A
        return total


@dataclass(frozen=True)
class Basis:
    """Blocks of observations, in the order in which they were observed."""

    kernel: Kernel
    blocks: tuple[Block, ...]

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    def covariance(self) -> Array:
        """The prior covariance matrix of the basis (n x n)."""
        if len(self.blocks) == 1:
            return self.covariance_with(self.blocks[0])
        return np.hstack([self.covariance_with(block) for block in self.blocks])

    def covariance_with(self, block: Block) -> Array:
        """Covariances with a block (n x its length)."""
        found = [covariance(self.kernel, own, block) for own in self.blocks]
        return found[0] if len(found) == 1 else np.vstack(found)

    def covariance_at(self, X: Array) -> Array:
        """Covariances with f at features X (n x m)."""
        B, block = self.kernel.scale(X), self.blocks[0]
        if len(self.blocks) == 1 and isinstance(block, ValueBlock):
            return self.kernel.covariance(block.A, B, A_norms=block.norms)
        return self.covariance_with(ValueBlock(B))

    def covariance_with_gradient_at(self, X: Array) -> CovarianceWithGradient:
        """Covariances with f at features X (m x n), ready for gradients."""
        return self.covariance_with_gradient(self.kernel.scale(X), self.kernel.scale_derivative(X))

    def covariance_with_gradient(self, B: Array, s: Array) -> CovarianceWithGradient:
        """The same at scaled points B, with s = da/dz there."""
        block = self.blocks[0]
        if len(self.blocks) == 1 and isinstance(block, ValueBlock):
            k, first = self.kernel.covariance_and_derivative(B, block.A, B_norms=block.norms)
            return CovarianceWithGradient(k, B, s, self.blocks, ((first, None),))
        found: list[Array] = []
        factors: list[tuple[Array, Array | None]] = []
        for block in self.blocks:
            if isinstance(block, ValueBlock):
                k, first = self.kernel.covariance_and_derivative(B, block.A)
                found.append(k)
                factors.append((first, None))
                continue
            first, second, _ = profile_derivatives(self.kernel.profile, squared_distances(B, block.A))
            scale, differences = self.kernel.variance * block.s, block.differences(B).T
            found.append(2.0 * first * differences * scale)  # (2)
            factors.append((first * scale, 4.0 * second * differences * scale))
        return CovarianceWithGradient(found[0] if len(found) == 1 else np.hstack(found), B, s, self.blocks, tuple(factors))

    def extended(self, block: Block) -> Basis:
        """The basis with one more block."""
        last = self.blocks[-1]
        if isinstance(block, ValueBlock) and isinstance(last, ValueBlock):
            return Basis(self.kernel, (*self.blocks[:-1], ValueBlock(np.vstack([last.A, block.A]))))
        return Basis(self.kernel, (*self.blocks, block))
