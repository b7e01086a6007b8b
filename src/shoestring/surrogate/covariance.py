"""What data say something about: values of f at points, and slopes of f there.

A posterior is a matter of covariances with these (its basis): mean(x) = m + k(x)' alpha, cov(x, x') = k(x, x') - k(x)' W k(x').

Notation (see also ``kernels``): a, b scaled points, d = a - b, q = |d|^2, s = da_c/dz_c at a slope's point, for column c.
    cov(f(a), f(b))              s2 rho(q)
    cov(df/dz_c at a, f(b))      s2 s 2 rho' d_c
    cov(df/dz_c at a, df/dz_e at b)      s2 s s~ (-4 rho'' d_c d_e - 2 rho' [c = e])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .kernels import Kernel, bends, squared_distances


@dataclass(frozen=True)
class ValueBlock:
    """f at scaled points A (n x p)."""

    A: Array

    def __len__(self) -> int:
        return len(self.A)


@dataclass(frozen=True)
class DerivativeBlock:
    """df/dz_c: one row a slope, with its scaled point (rows of A), its column c, and s."""

    A: Array
    columns: NDArray[np.intp]
    s: Array

    def __len__(self) -> int:
        return len(self.A)

    @classmethod
    def at(cls, kernel: Kernel, X: Array, columns: NDArray[np.intp]) -> DerivativeBlock:
        """Row i: the slope along columns[i] at X[i] (features)."""
        s = np.broadcast_to(kernel.scaled_slope(X), X.shape)[np.arange(len(X)), columns]
        return cls(kernel.scale(X), columns, np.asarray(s))

    @property
    def own(self) -> Array:
        """Each row's coordinate along its own column."""
        return self.A[np.arange(len(self)), self.columns]

    def along(self, B: Array) -> Array:
        """d_c for each slope and each point of B."""
        return self.own[:, None] - B[:, self.columns].T


Block = ValueBlock | DerivativeBlock


def covariance(kernel: Kernel, one: Block, other: Block) -> Array:
    """Prior covariances of two lots of values and slopes."""
    if isinstance(other, ValueBlock):
        if isinstance(one, ValueBlock):
            return kernel.covariance(one.A, None if one is other else other.A)
        _, slope = kernel.covariance_and_slope(one.A, other.A)
        return 2.0 * slope * one.along(other.A) * one.s[:, None]
    if isinstance(one, ValueBlock):
        return covariance(kernel, other, one).T
    q = squared_distances(one.A, other.A if one is not other else None)
    first, second, _ = bends(kernel.profile, q)
    across = -4.0 * second * one.along(other.A) * -other.along(one.A).T
    across -= 2.0 * first * (one.columns[:, None] == other.columns)
    return np.asarray(kernel.variance * across * one.s[:, None] * other.s)


@dataclass(frozen=True)
class CovarianceWithGradient:
    """Covariances k (m x n) of f at scaled points B with a basis, and what their gradient needs: for each part, rho' and, for
    slopes, 4 rho'' d_c (s2 and s included)."""

    k: Array
    B: Array
    parts: tuple[Block, ...]
    factors: tuple[tuple[Array, Array | None], ...]

    def pull_back(self, weights: Array) -> Array:
        """sum_j weights_ij dk_ij/db_i (m x p)."""
        if len(self.parts) == 1 and isinstance(self.parts[0], ValueBlock):  # by far the most frequent
            return self._from_values(weights * self.factors[0][0], self.parts[0])
        total, start = np.zeros_like(self.B), 0
        for part, (slope, bend) in zip(self.parts, self.factors, strict=True):
            block = weights[:, start : start + len(part)]
            start += len(part)
            if isinstance(part, ValueBlock):
                total += self._from_values(block * slope, part)
                continue
            assert bend is not None
            pulled = block * bend
            total += pulled.sum(axis=1, keepdims=True) * self.B - pulled @ part.A
            total -= 2.0 * (block * slope) @ (part.columns[:, None] == np.arange(self.B.shape[1]))
        return total

    def _from_values(self, pulled: Array, part: ValueBlock) -> Array:
        pulled = 2.0 * pulled
        total: Array = pulled.sum(axis=1)[:, None] * self.B
        total -= pulled @ part.A
        return total


@dataclass(frozen=True)
class Basis:
    """Parts in the order in which they were observed."""

    kernel: Kernel
    parts: tuple[Block, ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def to_values(self, B: Array) -> Array:
        """Covariances with f at scaled points B (n x m)."""
        return self.to(ValueBlock(B))

    def to(self, part: Block) -> Array:
        """Covariances with a part (n x its length)."""
        blocks = [covariance(self.kernel, own, part) for own in self.parts]
        return blocks[0] if len(blocks) == 1 else np.vstack(blocks)

    def within(self) -> Array:
        """The covariance matrix of the basis."""
        return self.to(self.parts[0]) if len(self.parts) == 1 else np.hstack([self.to(part) for part in self.parts])

    def near(self, B: Array) -> CovarianceWithGradient:
        """Covariances with f at scaled points B (m x n), ready for gradients with respect to B."""
        if len(self.parts) == 1 and isinstance(self.parts[0], ValueBlock):
            k, slope = self.kernel.covariance_and_slope(B, self.parts[0].A)
            return CovarianceWithGradient(k, B, self.parts, ((slope, None),))
        blocks: list[Array] = []
        factors: list[tuple[Array, Array | None]] = []
        for part in self.parts:
            if isinstance(part, ValueBlock):
                k, slope = self.kernel.covariance_and_slope(B, part.A)
                blocks.append(k)
                factors.append((slope, None))
                continue
            first, second, _ = bends(self.kernel.profile, squared_distances(B, part.A))
            scale, along = self.kernel.variance * part.s, part.along(B).T
            blocks.append(2.0 * first * along * scale)
            factors.append((first * scale, 4.0 * second * along * scale))
        return CovarianceWithGradient(blocks[0] if len(blocks) == 1 else np.hstack(blocks), B, self.parts, tuple(factors))

    def joined(self, part: Block) -> Basis:
        """With one more part."""
        last = self.parts[-1]
        if isinstance(part, ValueBlock) and isinstance(last, ValueBlock):
            return Basis(self.kernel, (*self.parts[:-1], ValueBlock(np.vstack([last.A, part.A]))))
        return Basis(self.kernel, (*self.parts, part))
