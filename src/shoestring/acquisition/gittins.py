"""The Gittins index of Pandora's box: the value at which an evaluation is exactly worth its cost.

Source: Xie, Astudillo, Frazier, Scully and Terenin, "Cost-aware Bayesian optimization via the Pandora's box Gittins index"
(NeurIPS 2024).

Notation
    f(x) ~ N(mu, s^2)       the posterior of the objective, which is minimised
    c(x)                    the expected cost of an evaluation
    price                   the improvement that one unit of cost must gain (lambda in the paper)
    g(x)                    the index: the solution of EI(x; g) = E[max(g - f(x), 0)] = price c(x)
    z = (g - mu) / s        h(z) = phi(z) + z Phi(z), so that EI(x; g) = s h(z)

The point with the smallest index is evaluated. The equation reads log h(z) = log(price c / s): one unknown for each x, solved by
Newton's method. log h is increasing and concave, so that from the left of the solution every step stays on its left.
Differentiating both sides gives the gradient:

    dg = dmu - (phi / Phi) ds + (s h / Phi) dlog c

Where an evaluation succeeds with probability P, it costs 1 / P as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import number_between
from ..cost.base import expected_log_cost, expected_log_cost_with_gradient
from ..numerics import Array, log_Phi
from ..surrogate.belief import Belief
from .base import Acquisition
from .improvement import log_h
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

INITIAL_PRICE = 0.1  # of an evaluation of median cost, in standard deviations of the observed values
PRICE_DECAY = 0.5  # factor on the price whenever no evaluation is worth it any more
MAX_NEWTON_STEPS = 60


@dataclass(frozen=True)
class Gittins(Acquisition):
    """Pandora's box Gittins index: weighs the improvement of a trial against what it costs.

    Use it with a price where you know what an improvement is worth to you: ``stop="auto"`` then ends the study when no trial is
    worth its cost (``WorthIt``).

    price  the improvement, in the objective's units, that one unit of cost must gain. None: a price that starts high and is
           halved whenever no evaluation is worth it any more (PBGI-D in the paper)

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> def train(config):
    ...     return st.Outcome(1 / config["epochs"], cost=config["epochs"])
    >>> st.minimize(train, space, 9, method=st.Gittins(price=0.001)).best.value < 0.1
    True
    """

    price: float | None = None
    uses_cost: ClassVar[bool] = True
    cheap_to_average: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True
    log_space: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", number_between(self.price, "Gittins: price", 0, low_included=False, optional=True))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return index_surface(belief, self.log_price(belief))

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The point with the smallest index. A price that was not given is halved if that index is not below the incumbent."""
        log_price = self.log_price(belief)
        optimum = optimizer.maximize(self.averaged_surface(belief, optimizer.rng))
        if self.price is not None:
            return Selection(optimum.u)
        worth_it = -optimum.value < belief.incumbent
        return Selection(optimum.u, {"log_price": log_price if worth_it else log_price + math.log(PRICE_DECAY)})

    def log_price(self, belief: Belief) -> float:
        """log price in the model's units: the given one (by the output transform's slope at y*), or the decaying one."""
        if self.price is not None:
            return math.log(self.price) + math.log(belief.output.derivative(belief.incumbent))
        last = belief.warm_start.get("log_price")
        if last is not None:
            return float(last)
        typical = 0.0 if belief.cost is None else belief.median_log_cost
        return math.log(INITIAL_PRICE) - typical


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
        _, slope = log_h(z)  # Phi / h
        by_deviation = -log_Phi(z)[1]  # -phi / Phi
        d_index = encoding.pull_back(U, d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance)
        return -(mean + deviation * z), -(d_index + (deviation / slope)[:, None] * d_price)

    return value


def solve_log_h(level: Array) -> Array:
    """The z with log h(z) = level, by Newton's method."""
    level = np.clip(level, -1e6, 340.0)  # z stays below 1e150, where log_h is finite
    z = np.where(level > 0.0, np.exp(level), -np.sqrt(2.0 * np.maximum(-level, 0.0)) - 1.0)
    z = np.where(level > 0.0, np.minimum(z, np.exp(level)) - 1.0, z)
    for _ in range(MAX_NEWTON_STEPS):
        value, slope = log_h(z)
        step = (level - value) / slope
        z = z + step
        if np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(z))):
            break
    return z
