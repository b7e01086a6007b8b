"""A known cost: a formula or a price list, perhaps times a learned factor.

Notation
    (1)  gamma = g(x) + l(x),   g(x) = log f(x)     f the given function of a config; l learned from gamma_i - g(x_i), if at all

f is only called with valid configs. Between two values of a stepped or whole number, g is interpolated linearly from the nearest
value to the next one, coordinate by coordinate; at a valid point it is exact. Gradients along continuous coordinates are central
differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding
from ..space.parameters import Choice
from ..space.space import Space
from .base import CostModel, CostObservations, CostPosterior, WarmStart
from .linear import PRIOR_NOISE

KNOWN_VARIANCE = 1e-8  # of a known log cost: positive, so that densities exist
DIFFERENCE_STEP = 1e-4  # of the unit cube, along a continuous coordinate
SAME_VALUE = 1e-12  # of the unit cube: a distance from a valid value that is rounding


@dataclass(frozen=True)
class KnownCost(CostModel):
    """Costs by a formula of your own: known before the first trial.

    Use it where prices are fixed or times can be computed. The study cannot be opened by ``Study.load`` without the function.

    f        config -> cost
    learned  a model of the factor by which the formula is off, such as ``LinearCost()``; None: it is exact

    >>> price = st.KnownCost(lambda config: 0.5 * config["gpus"])
    >>> study = st.Study(st.Space(gpus=st.Int(1, 8)), method=st.EIpu(), cost_model=price)
    >>> round(float(np.exp(study.context.cost.log_cost(study.space.encode({"gpus": 4})[None, :])[0][0])), 6)
    2.0
    """

    needs_no_data: ClassVar[bool] = True

    f: Callable[[dict[str, Any]], float]
    learned: CostModel | None = None

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise MethodError(f"KnownCost: f must be a function from a config to its cost, not {self.f!r}")

    def check_space(self, space: Space) -> None:
        if isinstance(self.learned, CostModel):
            self.learned.check_space(space)

    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> KnownPosterior:
        known = KnownLogCost(self.f, encoding)
        base = known(costs.U)
        if self.learned is None:
            return KnownPosterior("known", known, None, base, KNOWN_VARIANCE)
        if len(costs) == 0:
            return KnownPosterior("known, nothing learned yet", known, None, base, PRIOR_NOISE)
        learned = self.learned.fit(costs.with_gamma(costs.log_cost - base), encoding)
        return KnownPosterior(f"known times {learned.name}", known, learned, base, 0.0)


@dataclass(frozen=True)
class KnownLogCost:
    """g and its gradient at points."""

    f: Callable[[dict[str, Any]], float]
    encoding: Encoding

    def __call__(self, U: Array) -> Array:
        return self.with_gradient(U, everywhere=False)[0]

    def with_gradient(self, U: Array, *, everywhere: bool = True) -> tuple[Array, Array]:
        """At points that may be relaxed; without ``everywhere``, only the derivatives that the value needs."""
        space = self.encoding.space
        base = np.where([parameter.levels is None for parameter in space.values()], np.clip(U, 0.0, 1.0), space.snap(U))
        value, gradient = self.at(base), np.zeros(U.shape)
        active = space.active(base)
        for j, parameter in enumerate(space.values()):
            if isinstance(parameter, Choice):
                continue
            off = U[:, j] - base[:, j]
            rows = np.flatnonzero(active[:, j] & (everywhere | (np.abs(off) > SAME_VALUE)))
            if not len(rows):
                continue
            ahead, behind = base[rows, j].copy(), base[rows, j].copy()
            if parameter.levels is None:
                ahead, behind = np.minimum(ahead + DIFFERENCE_STEP, 1.0), np.maximum(behind - DIFFERENCE_STEP, 0.0)
            else:
                level, move = parameter.index(base[rows, j]), off[rows]
                at_value = np.abs(move) <= SAME_VALUE
                up, down = np.minimum(level + 1, parameter.levels - 1), np.maximum(level - 1, 0)
                ahead = np.where((move > 0) | at_value, parameter.units(up), ahead)
                behind = np.where((move < 0) | at_value, parameter.units(down), behind)
            rise = self.at(_moved(base[rows], j, ahead)) - self.at(_moved(base[rows], j, behind))
            run = ahead - behind  # zero beyond the last value, where the cost is constant
            gradient[rows, j] = np.where(run > 0, rise / np.where(run > 0, run, 1.0), 0.0)
            value[rows] += np.where(parameter.levels is None, 0.0, gradient[rows, j] * off[rows])
        return value, gradient

    def at(self, U: Array) -> Array:
        """log f at valid points."""
        return np.array([self._log(self.encoding.space.decode(u)) for u in U], dtype=float)

    def _log(self, config: dict[str, Any]) -> float:
        try:
            cost = float(self.f(dict(config)))
        except Exception as error:
            raise MethodError(f"KnownCost: f failed at {config}: {type(error).__name__}: {error}") from error
        if not (math.isfinite(cost) and cost > 0):
            raise MethodError(f"KnownCost: f must return a positive, finite cost, not {cost!r} at {config}")
        return math.log(cost)


def _moved(U: Array, j: int, to: Array) -> Array:
    """U with other values in column j."""
    U = U.copy()
    U[:, j] = to
    return U


@dataclass(frozen=True)
class KnownPosterior(CostPosterior):
    """g plus the learned part, equation (1); ``variance`` is that of g alone."""

    name: str
    known: KnownLogCost
    learned: CostPosterior | None
    base: Array  # g at the observations
    variance: float

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        g = self.known(U)
        if self.learned is None:
            return g, np.full(len(U), self.variance)
        mean, variance = self.learned.log_cost(U)
        return g + mean, variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        g, d_g = self.known.with_gradient(U)
        if self.learned is None:
            return g, np.full(len(U), self.variance), d_g, np.zeros(U.shape)
        mean, variance, d_mean, d_variance = self.learned.log_cost_with_gradient(U)
        return g + mean, variance, d_g + d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        if self.learned is None:
            return self.base, np.full(len(self.base), self.variance)
        mean, variance = self.learned.leave_one_out()
        return self.base + mean, variance
