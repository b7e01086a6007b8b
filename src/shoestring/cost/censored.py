"""Costs that are only known to be at least so much: evaluations that were cut off.

Each censored log cost is replaced by its expectation given the bound and the other observations, and the model is fitted
again, until nothing moves (expectation-maximisation, with left-out predictions so that a flexible model does not take its
own guess for evidence). The first guess comes from the exact costs alone: started at the bounds, it takes many more rounds.

Notation: b the bound, N(m, v) the prediction from the others, s = sqrt(v), z = (m - b) / s
    E[gamma | gamma > b] = m + s phi(z) / Phi(z)                    (mean of a truncated normal), never below b
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..numerics import Array, log_Phi
from ..space.encoding import Encoding
from .base import CostModel, CostObservations, CostPosterior
from .linear import PRIOR_NOISE

ROUNDS = 8
STILL = 0.01  # of log cost: a change that no longer matters
WIDEST = PRIOR_NOISE  # a prediction vaguer than this would carry a guess orders of magnitude beyond the bound


def fit_costs(
    model: CostModel, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None
) -> CostPosterior:
    """The model's posterior with censored costs at their expectations."""
    hidden = costs.censored
    if not hidden.any():
        return model.fit(costs, encoding, known)
    bound = costs.log_cost[hidden]
    guess = _first_guess(model, costs, encoding)
    for _ in range(ROUNDS):
        gamma = costs.log_cost.copy()
        gamma[hidden] = guess
        posterior = model.fit(costs.with_gamma(gamma), encoding, known)
        if len(costs) == 1:  # there is no other observation to go by
            break
        mean, variance = posterior.leave_one_out()
        before, guess = guess, expected_above(bound, mean[hidden], variance[hidden])
        if np.abs(guess - before).max() < STILL:
            break
    return posterior


def _first_guess(model: CostModel, costs: CostObservations, encoding: Encoding) -> Array:
    """What the exact costs say; when there are none, what lies above a bound that is itself the best guess."""
    hidden, seen = costs.censored, ~costs.censored
    bound = costs.log_cost[hidden]
    if not seen.any():
        return expected_above(bound, bound, np.full(len(bound), WIDEST))
    exact = model.fit(CostObservations(costs.U[seen], costs.log_cost[seen], costs.censored[seen]), encoding)
    return expected_above(bound, *exact.log_cost(costs.U[hidden]))


def expected_above(bound: Array, mean: Array, variance: Array) -> Array:
    """E[gamma | gamma > bound] for gamma ~ N(mean, variance), elementwise; never below the bound."""
    s = np.sqrt(np.minimum(variance, WIDEST))
    _, ratio = log_Phi((mean - bound) / s)
    return np.asarray(np.maximum(mean + s * ratio, bound))
