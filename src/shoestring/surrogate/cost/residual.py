"""GP-LV: a Gaussian process on what the low-variance model leaves over (Lee et al. 2020; section 3.2 of the paper).

Notation (see ``ridge`` and ``gp``)
    r = gamma - X w                     residuals of the linear model; z = (r - centre) / scale is what the GP sees
    mean(x) = x'w + GP mean(x),  variance(x) = sigma^2 x'A^-1 x + GP variance(x)

The linear model's own noise sigma^2 is not added: it is the spread of r, which the GP explains, noise included. The
uncertainty of its weights is added as if it were independent, which errs on the side of more variance far from the data.

Without row i the weights move by -A^-1 x_i e_i / (1 - h_i), so the residuals become r + H_.i e_i / (1 - h_i), H = X A^-1 X'.
Put into the GP's left-out formula:  mean_i = gamma_i - (R r)_i / R_ii - (R H)_ii e_i / (1 - h_i) / R_ii.  Exact at fixed
selection, ridge strength and hyperparameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...encoding import Encoding
from ...numerics import Array, single_threaded
from .base import CostObservations, start_from
from .gp import GPCostPosterior, fit_process
from .linear import LinearCost, LinearPosterior, check_features


@dataclass(frozen=True)
class ResidualGPCost:
    """``ResidualGPCost(features=3)``: a linear model of at most that many hyperparameters (None: of all), and a GP on its
    residuals."""

    features: int | None = 3

    def __post_init__(self) -> None:
        check_features("ResidualGPCost", self.features)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> ResidualPosterior:
        linear = LinearCost(self.features).fit(costs, encoding)
        start, everything = start_from(known, "ResidualPosterior"), range(len(encoding.space))
        rest = fit_process(costs.U, linear.ridge.error, encoding, everything, "GP", start)
        return ResidualPosterior(f"{linear.name} + GP", linear, rest, linear.design(costs.U))


@dataclass(frozen=True)
class ResidualPosterior:
    """A linear model and a GP, added."""

    name: str
    linear: LinearPosterior
    rest: GPCostPosterior
    X: Array  # the linear model's design

    @property
    def theta(self) -> tuple[float, ...]:
        return self.rest.theta

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, spread, _ = self.linear.ridge.predict(self.linear.design(U))
        more, variance = self.rest.log_cost(U)
        return mean + more, spread + variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        linear = self.linear.weights_with_gradient(U)
        rest = self.rest.log_cost_with_gradient(U)
        mean, variance, d_mean, d_variance = (one + other for one, other in zip(linear, rest, strict=True))
        return mean, variance, d_mean, d_variance

    def left_out(self) -> tuple[Array, Array]:
        ridge, n = self.linear.ridge, len(self.X)
        if n < 2:
            return self.rest.left_out()
        Q, R = self.rest.inverses
        moved = ridge.left_out_error
        H_R = np.einsum("ij,ji->i", R, self.X @ ridge.inverse @ self.X.T)  # diag(R H), both symmetric
        own = self.rest.process.alpha * self.rest.scale  # R (r - centre)
        mean = self.linear.gamma - (own + H_R * moved) / np.diag(R)
        variance = self.rest.scale**2 / np.diag(Q) + ridge.left_out_noise * ridge.leverage / ridge.room
        return mean, variance
