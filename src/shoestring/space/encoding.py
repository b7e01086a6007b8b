"""From points of the unit cube to the features that the kernel sees.

A numeric parameter is one column, stretched so that its lowest and highest value lie at 0 and 1. A choice of k options is
a block of k columns (one for two options) in which any two options are at distance 1; the block shares one length scale
(``groups``). An inactive parameter is neutral: halfway for a number, equally far from every option for a choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .parameters import Choice
from .space import Space

SQRT_HALF = np.sqrt(0.5)


class Encoding:
    """The map from points U (m x D) to features Z (m x p), and the pull-back of gradients."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.numeric = np.array([not isinstance(parameter, Choice) for parameter in space.values()])
        self.conditional = any(space.parents(name) for name in space)
        offset, scale = np.zeros(len(space)), np.ones(len(space))
        groups: list[int] = []
        first: list[int] = []
        for j, parameter in enumerate(space.values()):
            first.append(len(groups))
            if isinstance(parameter, Choice):
                groups += [j] * (1 if parameter.levels == 2 else parameter.levels)
            else:
                groups.append(j)
                if parameter.levels is not None:
                    ends = parameter.to_unit(np.array([parameter.low, parameter.high]))
                    offset[j], scale[j] = ends[0], 1.0 / (ends[1] - ends[0])
        self._offset, self._scale = offset, scale
        self._first = np.array(first)
        self.groups: NDArray[np.intp] = np.array(groups, dtype=np.intp)
        self.fidelities: tuple[int, ...] = tuple(j for j, parameter in enumerate(space.values()) if parameter.fidelity)

    @property
    def width(self) -> int:
        return len(self.groups)

    def features(self, U: Array) -> Array:
        """Z of points that may be relaxed: a whole number between two values is read as lying between them."""
        stretched = (U - self._offset) * self._scale
        active = self.space.active(U) if self.conditional else None
        if self.numeric.all():
            return stretched if active is None else np.where(active, stretched, 0.5)
        Z = np.empty((len(U), self.width))
        for j, parameter in enumerate(self.space.values()):
            start = self._first[j]
            if not isinstance(parameter, Choice):
                Z[:, start] = stretched[:, j] if active is None else np.where(active[:, j], stretched[:, j], 0.5)
                continue
            level = parameter.index(U[:, j])
            if parameter.levels == 2:
                Z[:, start] = level if active is None else np.where(active[:, j], level, 0.5)
                continue
            block = SQRT_HALF * (level[:, None] == np.arange(parameter.levels))
            if active is not None:
                block[~active[:, j]] = SQRT_HALF / parameter.levels
            Z[:, start : start + parameter.levels] = block
        return Z

    def columns_of(self, parameters: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """The columns of numeric parameters, and dz/du there."""
        return self._first[parameters], self._scale[parameters]

    def pull_back(self, U: Array, dZ: Array) -> Array:
        """The gradient with respect to U, given that with respect to Z; zero for choices and inactive parameters."""
        dU = np.where(self.numeric, dZ[:, self._first] * self._scale, 0.0)
        if self.conditional:
            dU[~self.space.active(U)] = 0.0
        return dU
