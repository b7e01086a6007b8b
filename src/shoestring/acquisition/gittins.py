"""The Gittins index of Pandora's box: what value would make one indifferent to paying for an evaluation?

Source: Xie, Astudillo, Frazier, Scully, Terenin, "Cost-aware Bayesian optimization via the Pandora's box Gittins index"
(NeurIPS 2024). For each x the index g(x) solves

    EI(x; g) = E[max(g - f(x), 0)] = price c(x)

and the x with the smallest index is evaluated. With EI = s h(z), z = (g - mu) / s, this is log h(z) = log(price c / s): one
equation in one unknown, solved for z by Newton's method (log h is increasing and concave, so that from the left every step
stays on the left). Its slope follows by differentiating both sides:

    dg = dmu - (phi / Phi) ds + (s h / Phi) dlog c

A chance P that the evaluation succeeds makes it cost 1 / P as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import plain
from ..cost.base import expected_log_cost, expected_log_cost_with_gradient
from ..errors import MethodError
from ..numerics import Array, log_h, log_Phi
from ..surrogate.belief import Belief
from .base import Acquisition
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

FIRST_PRICE = 0.1  # without a price: of a typical evaluation, in standard deviations of the values seen
HALVED = 0.5


def solve_log_h(level: Array) -> Array:
    """The z with log h(z) = level."""
    level = np.clip(level, -1e6, 340.0)  # z stays below 1e150, where log_h is finite
    z = np.where(level > 0.0, np.exp(level), -np.sqrt(2.0 * np.maximum(-level, 0.0)) - 1.0)
    z = np.where(level > 0.0, np.minimum(z, np.exp(level)) - 1.0, z)
    for _ in range(60):
        value, slope = log_h(z)
        step = (level - value) / slope
        z = z + step
        if np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(z))):
            break
    return z


def index_surface(belief: Belief, log_price: float) -> Surface:
    """-g over points, in the model's units."""
    posterior, cost, encoding, feasibility = belief.objective, belief.cost, belief.encoding, belief.feasibility

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = encoding.features(U)
        if not gradient:
            mean, variance = posterior.mean_and_variance(Z)
            price = np.full(len(U), log_price) if cost is None else log_price + expected_log_cost(cost, U)
            if feasibility is not None:
                price = price - feasibility.log_probability(Z)
            deviation = np.sqrt(variance)
            return -(mean + deviation * solve_log_h(price - np.log(deviation))), None
        mean, variance, d_mean, d_variance = posterior.with_gradients(Z)
        deviation = np.sqrt(variance)
        price, d_price = np.full(len(U), log_price), np.zeros_like(U)
        if cost is not None:
            log_cost, d_price = expected_log_cost_with_gradient(cost, U)
            price = price + log_cost
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(Z)
            price, d_price = price - chance, d_price - encoding.pull_back(U, d_chance)
        z = solve_log_h(price - np.log(deviation))
        _, slope = log_h(z)
        by_deviation = -log_Phi(z)[1]
        d_index = encoding.pull_back(U, d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance)
        return -(mean + deviation * z), -(d_index + (deviation / slope)[:, None] * d_price)

    return value


@dataclass(frozen=True)
class Gittins(Acquisition):
    """Pandora's box: evaluate where the index is smallest.

    price    the improvement, in the objective's units, that one unit of cost must buy; left out, one that starts high and
             is halved whenever no evaluation would be worth it any more
    """

    price: float | None = None
    uses_cost: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True
    log_space: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.price is None:
            return
        object.__setattr__(self, "price", plain(self.price))
        if isinstance(self.price, bool) or not isinstance(self.price, int | float) or not 0 < self.price < math.inf:
            raise MethodError(f"Gittins: price must be a positive number, not {self.price!r}")

    def log_price(self, belief: Belief) -> float:
        """In the model's units: of the given price by the slope of the transform at the incumbent, or the falling one."""
        if self.price is not None:
            return math.log(self.price) + math.log(belief.output.slope(belief.incumbent))
        known = belief.warm_start.get("log_price")
        if known is not None:
            return float(known)
        typical = 0.0 if belief.cost is None else belief.median_log_cost
        return math.log(FIRST_PRICE) - typical

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return index_surface(belief, self.log_price(belief))

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The smallest index; without a price, halved for the next time when even that is above the incumbent."""
        log_price = self.log_price(belief)
        optimum = optimizer.maximize(self.averaged_surface(belief, optimizer.rng))
        if self.price is not None:
            return Selection(optimum.u)
        worth = -optimum.value < belief.incumbent
        return Selection(optimum.u, {"log_price": log_price if worth else log_price + math.log(HALVED)})
