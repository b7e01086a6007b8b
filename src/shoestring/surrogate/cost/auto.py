"""Which cost model to believe: the one that would have predicted each cost best from the others.

Notation
    m_i, v_i                            left-out mean and variance of log cost gamma_i (closed form in every model)
    k = (1 + sum e_i^2 / v_i) / (1 + n)     how much too sure a model was of itself, e_i = gamma_i - m_i
    score = sum_i log N(gamma_i; m_i, k v_i)

With k, models are compared by where they predict and by how well they know where they are unsure, not by how cautious their
priors are. Candidates are tried from the simplest on, and a more flexible one must win by MARGIN: its left-out densities
are taken at hyperparameters that have seen every row, so they flatter it. While data are few only the linear model is asked
(figure 2 of the paper: with few evaluations it has the lower error).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...encoding import Encoding
from ...numerics import LOG_2PI, Array, single_threaded
from ..gp import cold_start_due
from .base import CostModel, CostObservations, CostPosterior
from .gp import LogGPCost
from .linear import LinearCost, check_features
from .residual import ResidualGPCost

FEW = 7  # observations below which only the linear model is asked
MANY = 10  # observations up to which a GP without a linear part is not asked
MARGIN = 6.0  # nats by which a more flexible model must be ahead: it has some ten hyperparameters more
ENOUGH_SEEN = 5  # exact costs from which on censored ones need not count in the score


@dataclass(frozen=True)
class AutoCost:
    """``AutoCost(features=3)``: linear while data are few, then whatever predicts best."""

    features: int = 3

    def __post_init__(self) -> None:
        check_features("AutoCost", self.features)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> CostPosterior:
        if known and not cold_start_due(len(costs), int(known["trials"])):  # chosen a moment ago
            chosen: dict[str, CostModel] = {
                "LinearPosterior": LinearCost(self.features),
                "ResidualPosterior": ResidualGPCost(self.features),
                "GPCostPosterior": LogGPCost(),
            }
            return chosen[known["kind"]].fit(costs, encoding, known)
        best: CostPosterior = LinearCost(self.features).fit(costs, encoding)
        if len(costs) < FEW:
            return best
        highest = score(best, costs)
        flexible: list[CostModel] = [ResidualGPCost(self.features)]
        if len(costs) > MANY:
            flexible.append(LogGPCost())
        for model in flexible:
            posterior = model.fit(costs, encoding, known)
            reached = score(posterior, costs)
            if reached > highest + MARGIN:
                best, highest = posterior, reached
        return best


def score(posterior: CostPosterior, costs: CostObservations) -> float:
    """The sum of log densities of the costs, each predicted from the others, variances put right by k; -inf if not finite."""
    mean, variance = posterior.left_out()
    seen = ~costs.censored if (~costs.censored).sum() >= ENOUGH_SEEN else np.ones(len(costs), dtype=bool)
    off = ((costs.gamma - mean) ** 2 / variance)[seen]
    width = variance[seen] * (1.0 + off.sum()) / (1.0 + len(off))
    value = float(log_density(costs.gamma[seen], mean[seen], width).sum())
    return value if np.isfinite(value) else -np.inf


def log_density(gamma: Array, mean: Array, variance: Array) -> Array:
    return np.asarray(-0.5 * ((gamma - mean) ** 2 / variance + np.log(variance) + LOG_2PI))
