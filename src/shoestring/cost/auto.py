"""Several cost models at once, each with a weight.

Notation: part k predicts N(m_k, v_k) with weight w_k. The mixture is taken as the normal of the same mean and variance:

    m = sum_k w_k m_k,    v = sum_k w_k (v_k + (m_k - m)^2)

so where the parts disagree the cost is less known, and expected to be higher.

Which cost model to believe: while data are few, several, each by how well it would have predicted every cost from the others.

Notation
    m_i, v_i                            left-out mean and variance of log cost gamma_i (closed form in every model)
    k = (1 + sum e_i^2 / v_i) / (1 + n)     how much too sure a model was of itself, e_i = gamma_i - m_i
    score = sum_i log N(gamma_i; m_i, k v_i)
    weight of a model, proportional to prior * exp(score / PATIENCE)

With k, models are compared by where they predict and by how well they know where they are unsure, not by how cautious their
priors are. The parts are the linear model over every hyperparameter, a GP on its residuals, and a GP alone. Below FEW only the
linear one is asked; up to MANY the three are mixed, since a choice by a score of so few data is mostly luck (on the HPOBench
tables the mixture was ahead of choosing by 6 to 11 % of RMSE at 8 to 20 evaluations, and of every part at 10 or more); from
MANY on the best is chosen, for speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import LOG_2PI, Array, single_threaded
from ..space.encoding import Encoding
from ..surrogate.gp import cold_start_due
from .base import CostModel, CostObservations, CostPosterior
from .linear import LinearCost
from .log_gp import LogGPCost, ResidualGPCost

NEGLIGIBLE = 0.02  # a part of less weight is left out


@dataclass(frozen=True)
class Mixture:
    """Posteriors and their weights, the heaviest first."""

    parts: tuple[CostPosterior, ...]
    weights: Array

    @property
    def name(self) -> str:
        return " and ".join(f"{weight:.0%} {part.name}" for part, weight in zip(self.parts, self.weights, strict=True))

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self._moments([part.log_cost(U) for part in self.parts])

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        found = [part.log_cost_with_gradient(U) for part in self.parts]
        mean, variance = self._moments([entry[:2] for entry in found])
        d_mean = sum(weight * entry[2] for weight, entry in zip(self.weights, found, strict=True))
        d_variance = sum(  # the pull of m itself cancels, since sum_k w_k (m_k - m) = 0
            weight * (entry[3] + 2.0 * (entry[0] - mean)[:, None] * entry[2])
            for weight, entry in zip(self.weights, found, strict=True)
        )
        return mean, variance, np.asarray(d_mean), np.asarray(d_variance)

    def leave_one_out(self) -> tuple[Array, Array]:
        return self._moments([part.leave_one_out() for part in self.parts])

    def _moments(self, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        means, variances = np.array([entry[0] for entry in found]), np.array([entry[1] for entry in found])
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)


def mix(posteriors: Sequence[CostPosterior], log_weights: Array) -> CostPosterior:
    """The mixture by these weights, or the part itself if only one counts."""
    if not np.isfinite(log_weights).any():
        return posteriors[0]
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    order = [int(k) for k in np.argsort(-weights, kind="stable") if weights[k] >= NEGLIGIBLE]
    if len(order) == 1:
        return posteriors[order[0]]
    return Mixture(tuple(posteriors[k] for k in order), weights[order] / weights[order].sum())


FEW = 7  # observations below which only the linear model is asked
MANY = 40  # observations from which on one model is chosen
PATIENCE = 5.0  # nats by which a model must be ahead for its weight to be e times the other's
PRIOR = (1.0, 3.0, 1.0)  # weights of the parts before any score: the one in the middle contains the other two
MARGIN = 3.0  # nats by which a more flexible model must be ahead to be chosen: its score is flattered by its own fit
ENOUGH_SEEN = 5  # exact costs from which on censored ones need not count in the score

PARTS: dict[str, CostModel] = {  # from the simplest on
    "LinearPosterior": LinearCost(None),
    "ResidualPosterior": ResidualGPCost(None),
    "GPCostPosterior": LogGPCost(),
}


@dataclass(frozen=True)
class AutoCost:
    """``AutoCost()``: linear while data are few, then a mixture, then whatever predicts best."""

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> CostPosterior:
        known = known or {}
        if len(costs) < FEW:
            return PARTS["LinearPosterior"].fit(costs, encoding)
        if known.get("kind") in PARTS and len(costs) > MANY and not cold_start_due(len(costs), int(known["trials"])):
            return PARTS[known["kind"]].fit(costs, encoding, known)  # chosen a moment ago
        last = {entry["kind"]: entry for entry in known.get("parts", ())} or {known.get("kind"): known}
        fitted = [model.fit(costs, encoding, last.get(kind)) for kind, model in PARTS.items()]
        scores = np.array([score(posterior, costs) for posterior in fitted])
        if len(costs) < MANY:
            return mix(fitted, np.log(PRIOR) + scores / PATIENCE)
        best = 0
        for i in range(1, len(fitted)):
            if scores[i] > scores[best] + MARGIN:
                best = i
        return fitted[best]


def score(posterior: CostPosterior, costs: CostObservations) -> float:
    """The sum of log densities of the costs, each predicted from the others, variances put right by k; -inf if not finite."""
    mean, variance = posterior.leave_one_out()
    seen = ~costs.censored if (~costs.censored).sum() >= ENOUGH_SEEN else np.ones(len(costs), dtype=bool)
    off = ((costs.log_cost - mean) ** 2 / variance)[seen]
    width = variance[seen] * (1.0 + off.sum()) / (1.0 + len(off))
    value = float(log_density(costs.log_cost[seen], mean[seen], width).sum())
    return value if np.isfinite(value) else -np.inf


def log_density(gamma: Array, mean: Array, variance: Array) -> Array:
    return np.asarray(-0.5 * ((gamma - mean) ** 2 / variance + np.log(variance) + LOG_2PI))
