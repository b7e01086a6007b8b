"""Features of the cost models: the logs of hyperparameters, scaled, and the hyperparameters that are named as features.

Notation
    F (m x q)   features; column k belongs to parameter groups[k], in the order of ``Encoding``
    g(v)        log v when all values of a numeric parameter are positive, else v
    (1)  f = (g(v) - g(low)) / (g(high) - g(low)) - 1/2, from -1/2 to 1/2 over the range of the parameter
A fidelity that begins at zero is log(t + FIDELITY_OVERHEAD), where t goes from 0 to 1 over its range: costs grow in proportion to
it, beside what every trial costs. The exponential of a line would be far too high at the target if most trials are below it.
A choice of k options is k indicators less 1/k (one column, -1/2 or 1/2, for two options). An inactive parameter is 0, the middle
of every range. So a weight is the change of log cost over the whole range.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding
from ..space.parameters import Choice, Numeric
from ..space.space import Space

FIDELITY_OVERHEAD = 0.01  # of the cost at the target: what a trial at fidelity 0 is assumed to cost

Features = int | tuple[str, ...] | None  # how many at most, which, or all of them


def checked_features(model: str, features: object) -> Features:
    """A number of features, their names, or None for all; a MethodError for anything else."""
    what = f"{model}: features (names of hyperparameters, or None for all)"
    if features is None:
        return None
    if isinstance(features, str) or not isinstance(features, Iterable):
        return whole_number(features, what, 1)
    names = tuple(features)
    if not names or not all(isinstance(name, str) for name in names):
        raise MethodError(f"{what} must be names, as in features=('rounds', 'depth'), not {features!r}")
    if len(set(names)) < len(names):
        raise MethodError(f"{what}: {', '.join(names)} has a name twice; name each hyperparameter once")
    return names


def named_parameters(model: str, names: Iterable[str], space: Space) -> list[int]:
    """The numbers of named hyperparameters in a space; a MethodError that says which there are for an unknown name."""
    for name in names:
        if name not in space:
            close = difflib.get_close_matches(name, space.names, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise MethodError(
                f"{model}: features names {name!r}, which is not in the space; {hint}The space has {', '.join(space.names)}"
            )
    return [space.names.index(name) for name in names]


@dataclass(frozen=True)
class CostFeatures:
    """The map from points U (m x D) to cost features F, and the pull-back of gradients."""

    encoding: Encoding

    @property
    def groups(self) -> NDArray[np.intp]:
        """The parameter that each column belongs to."""
        return self.encoding.groups

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The first column of each parameter."""
        return np.searchsorted(self.groups, np.arange(len(self.encoding.space)))

    @cached_property
    def axes(self) -> list[_Axis | None]:
        """The feature of each numeric parameter; None for a choice."""
        return [None if isinstance(parameter, Choice) else _Axis.of(parameter) for parameter in self.encoding.space.values()]

    def columns(self, parameters: list[int]) -> NDArray[np.intp]:
        """The columns of some parameters (numbered as in the space)."""
        return np.flatnonzero(np.isin(self.groups, parameters))

    def __call__(self, U: Array) -> Array:
        """F at points that may be relaxed: a whole number between two values is taken as lying between them."""
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
                dU[:, j] = dF[:, start] * axis.derivative(U[:, j])
        if self.encoding.conditional:
            dU[~self.encoding.space.active(U)] = 0.0
        return dU


@dataclass(frozen=True)
class _Axis:
    """A numeric parameter as a feature: f(t) with t = (u - offset) scale, 0 at the lowest value and 1 at the highest.

    rise    (high - low) / low when the feature is the logarithm of a value that is linear in u; else None: f = t - 1/2

    Beyond the ends (half a bin for whole numbers) the logarithm continues along its tangent, so that it is smooth and finite even
    where the value itself would be zero.
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
        if parameter.fidelity and parameter.low <= 0:
            rise = 1.0 / FIDELITY_OVERHEAD
        curved = 1e-6 < rise < 1e150  # over a narrow range the logarithm is linear; above 1e150 it cannot be computed
        return cls(low, 1.0 / (high - low) if high > low else 0.0, rise if curved else None)

    def value(self, u: Array) -> Array:
        """f(u), equation (1)."""
        t = (u - self.offset) * self.scale
        if self.rise is None:
            return t - 0.5
        inside = np.clip(t, 0.0, 1.0)
        log_value = np.log1p(self.rise * inside) + self.rise * (t - inside) / (1.0 + self.rise * inside)
        return np.asarray(log_value / np.log1p(self.rise) - 0.5)

    def derivative(self, u: Array) -> Array:
        """df/du."""
        if self.rise is None:
            return np.full(u.shape, self.scale)
        inside = np.clip((u - self.offset) * self.scale, 0.0, 1.0)
        return np.asarray(self.scale * self.rise / (1.0 + self.rise * inside) / np.log1p(self.rise))
