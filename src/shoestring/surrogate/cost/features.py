"""The features that a low-variance cost model sees: logarithms of numbers, indicators of options.

Training times are close to products of powers of a few hyperparameters (rounds x depth x share of rows), so log cost is
close to linear in their logarithms (Lee et al. 2020).

Notation
    F (m x q)   features; column k belongs to parameter groups[k], in the order of ``Encoding``
    g(v)        what a numeric parameter enters by: log v when all its values are positive, v itself when not
    f           its feature, (g(v) - g(low)) / (g(high) - g(low)) - 1/2, from -1/2 to 1/2 over the parameter's range

A choice of k options is k indicators less 1/k (one column, -1/2 or 1/2, for two). An inactive parameter is 0 throughout,
which is the middle of every column's range. Slopes are therefore in units of "log cost over the whole range".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...choice import Choice
from ...encoding import Encoding
from ...numerics import Array
from ...parameters import Numeric


@dataclass(frozen=True)
class CostFeatures:
    """The map from points U (m x D) to cost features F, and the pull-back of gradients."""

    encoding: Encoding

    @property
    def groups(self) -> NDArray[np.intp]:
        return self.encoding.groups

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The first column of each parameter."""
        return np.searchsorted(self.groups, np.arange(len(self.encoding.space)))

    @cached_property
    def axes(self) -> list[_Axis | None]:
        """How each parameter is read; None for a choice."""
        return [None if isinstance(parameter, Choice) else _Axis.of(parameter) for parameter in self.encoding.space.values()]

    def columns(self, parameters: list[int]) -> NDArray[np.intp]:
        """The columns of some parameters (numbered as in the space)."""
        return np.flatnonzero(np.isin(self.groups, parameters))

    def __call__(self, U: Array) -> Array:
        """F of points that may be relaxed: a whole number between two values is read as lying between them."""
        F = np.empty((len(U), len(self.groups)))
        for j, (parameter, axis, start) in enumerate(zip(self.encoding.space.values(), self.axes, self.first, strict=True)):
            if axis is not None:
                F[:, start] = axis.value(U[:, j])
                continue
            levels = parameter.levels or 1
            level = parameter.index(U[:, j])
            if levels == 2:
                F[:, start] = level - 0.5
            else:
                F[:, start : start + levels] = (level[:, None] == np.arange(levels)) - 1.0 / levels
        if self.encoding.conditional:
            F[~self.encoding.space.active(U)[:, self.groups]] = 0.0
        return F

    def pull_back(self, U: Array, dF: Array) -> Array:
        """The gradient with respect to U, given that with respect to F; zero for choices and inactive parameters."""
        dU = np.zeros(U.shape)
        for j, (axis, start) in enumerate(zip(self.axes, self.first, strict=True)):
            if axis is not None:
                dU[:, j] = dF[:, start] * axis.slope(U[:, j])
        if self.encoding.conditional:
            dU[~self.encoding.space.active(U)] = 0.0
        return dU


@dataclass(frozen=True)
class _Axis:
    """A numeric parameter as a feature: f(t) with t = (u - offset) scale, 0 at the lowest value and 1 at the highest.

    rise    (high - low) / low when the feature is the logarithm of a value that is linear in u, else None: f = t - 1/2

    Beyond the ends (half a bin for whole numbers) the logarithm goes on along its tangent, so that it is smooth and finite
    even where the value itself would be zero.
    """

    offset: float
    scale: float
    rise: float | None

    @classmethod
    def of(cls, parameter: Numeric) -> _Axis:
        low, high = map(float, parameter.to_unit(np.array([parameter.low, parameter.high])))
        top = parameter.high
        if parameter.levels is not None and parameter.step is not None:  # the highest value may lie below ``high``
            top = parameter.low + (parameter.levels - 1) * parameter.step
        rise = (top - parameter.low) / parameter.low if parameter.low > 0 and not parameter.log else 0.0
        bends = 1e-6 < rise < 1e150  # over a narrow range the logarithm is straight; beyond that it is out of reach
        return cls(low, 1.0 / (high - low) if high > low else 0.0, rise if bends else None)

    def value(self, u: Array) -> Array:
        t = (u - self.offset) * self.scale
        if self.rise is None:
            return t - 0.5
        inside = np.clip(t, 0.0, 1.0)
        log_value = np.log1p(self.rise * inside) + self.rise * (t - inside) / (1.0 + self.rise * inside)
        return np.asarray(log_value / np.log1p(self.rise) - 0.5)

    def slope(self, u: Array) -> Array:
        """df/du."""
        if self.rise is None:
            return np.full(u.shape, self.scale)
        inside = np.clip((u - self.offset) * self.scale, 0.0, 1.0)
        return np.asarray(self.scale * self.rise / (1.0 + self.rise * inside) / np.log1p(self.rise))
