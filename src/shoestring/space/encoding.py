"""The encoding: from points of the unit cube to the features that the kernel works on.

A numeric parameter has one feature, scaled so that its lowest and highest value lie at 0 and 1. A choice of k options is one-hot
encoded in k features (one feature for two options), such that any two options have distance 1. The features of one parameter
share one length scale (``groups``). An inactive parameter is neutral: 1/2 for a number, and equally far from every option for a
choice.

Notation
    U       m x D, points of the unit cube
    Z       m x p, their features
    groups  p, the column of U that each feature belongs to
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .parameters import Choice
from .space import Space

SQRT_HALF = np.sqrt(0.5)  # value of the one-hot feature: two options then have distance 1


class Encoding:
    """The map from points U to features Z, and the chain rule back for gradients."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.numeric = np.array([not isinstance(parameter, Choice) for parameter in space.parameters])
        self.conditional = any(space.parents(name) for name in space.names)
        offset, scale = np.zeros(len(space)), np.ones(len(space))
        groups: list[int] = []
        first: list[int] = []
        neutral: list[float] = []
        choices: list[tuple[int, int, int]] = []  # (column of U, first feature, number of options)
        for j, parameter in enumerate(space.parameters):
            first.append(len(groups))
            if isinstance(parameter, Choice):
                k = parameter.levels
                choices.append((j, len(groups), k))
                groups += [j] * (1 if k == 2 else k)
                neutral += [0.5] if k == 2 else [SQRT_HALF / k] * k
            else:
                groups.append(j)
                neutral.append(0.5)
                if parameter.levels is not None:
                    ends = parameter.to_unit(np.array([parameter.low, parameter.high]))
                    offset[j], scale[j] = ends[0], 1.0 / (ends[1] - ends[0])
        self._offset, self._scale = offset, scale
        self._first = np.array(first)
        self._choices, self._neutral = choices, np.array(neutral)
        self.groups: NDArray[np.intp] = np.array(groups, dtype=np.intp)
        self.width = len(groups)
        #: whether features are the points themselves: numbers alone, none of them conditional or discrete
        self.identity = not choices and not self.conditional and not offset.any() and bool((scale == 1.0).all())
        self.fidelities: tuple[int, ...] = tuple(j for j, parameter in enumerate(space.parameters) if parameter.fidelity)

    def features(self, U: Array) -> Array:
        """Z of points U. A numeric coordinate between two valid values has a feature between theirs (continuous relaxation)."""
        scaled = (U - self._offset) * self._scale
        active = self.space.active(U) if self.conditional else None
        if not self._choices:
            return scaled if active is None else np.where(active, scaled, 0.5)
        Z = scaled.take(self.groups, axis=1)  # right for numbers; the features of choices are written below
        for j, start, k in self._choices:
            option = np.clip(np.floor(U[:, j] * k), 0, k - 1).astype(np.intp)  # Choice.index, inlined: this runs often
            if k == 2:
                Z[:, start] = option
            else:
                Z[:, start : start + k] = SQRT_HALF * (option[:, None] == np.arange(k))
        if active is not None:
            np.copyto(Z, self._neutral, where=~active.take(self.groups, axis=1))
        return Z

    def columns_of(self, parameters: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """The features of numeric parameters, and dz/du there."""
        return self._first[parameters], self._scale[parameters]

    def pull_back(self, U: Array, dZ: Array) -> Array:
        """The gradient by U, given the gradient by Z (chain rule); zero for choices and inactive parameters."""
        dU = np.where(self.numeric, dZ[:, self._first] * self._scale, 0.0)
        if self.conditional:
            dU[~self.space.active(U)] = 0.0
        return dU
