"""Censored costs: evaluations that were stopped, so that only a lower bound of their cost is known.

Each censored log cost is replaced by its expectation given the bound and the other observations, and the model is fitted again,
until nothing changes: expectation-maximisation. The expectations use leave-one-out predictions, so that a flexible model does not
take its own guess for evidence. The first guess comes from the exact costs alone. From the bounds it would take many more rounds.

Notation: b the bound, N(m, v) the prediction from the others, s = sqrt(v), z = (m - b) / s
    (1)  E[gamma | gamma > b] = m + s phi(z) / Phi(z)       the mean of a truncated normal; never below b
"""

from __future__ import annotations

import numpy as np

from ..numerics import Array, log_Phi
from ..space.encoding import Encoding
from .base import CostModel, CostObservations, CostPosterior, WarmStart
from .linear import PRIOR_NOISE

MAX_ROUNDS = 8
TOLERANCE = 0.01  # of log cost: a smaller change does not matter
MAX_VARIANCE = PRIOR_NOISE  # of log cost: a vaguer prediction would put a guess orders of magnitude beyond the bound


def fit_costs(
    model: CostModel, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None
) -> CostPosterior:
    """The model's posterior, with censored costs at their expectations."""
    hidden = costs.censored
    if not hidden.any():
        return model.fit(costs, encoding, warm_start)
    bound = costs.log_cost[hidden]
    guess = _first_guess(model, costs, encoding)
    for _ in range(MAX_ROUNDS):
        gamma = costs.log_cost.copy()
        gamma[hidden] = guess
        posterior = model.fit(costs.with_gamma(gamma), encoding, warm_start)
        if len(costs) == 1:  # there is no other observation to predict it from
            break
        mean, variance = posterior.leave_one_out()
        before, guess = guess, expected_above(bound, mean[hidden], variance[hidden])
        if np.abs(guess - before).max() < TOLERANCE:
            break
    return posterior


def _first_guess(model: CostModel, costs: CostObservations, encoding: Encoding) -> Array:
    """From the exact costs; where there are none, from a prediction that equals the bound."""
    hidden, exact = costs.censored, ~costs.censored
    bound = costs.log_cost[hidden]
    if not exact.any():
        return expected_above(bound, bound, np.full(len(bound), MAX_VARIANCE))
    posterior = model.fit(CostObservations(costs.U[exact], costs.log_cost[exact], costs.censored[exact]), encoding)
    return expected_above(bound, *posterior.log_cost(costs.U[hidden]))


def expected_above(bound: Array, mean: Array, variance: Array) -> Array:
    """Equation (1), elementwise, for gamma ~ N(mean, variance)."""
    s = np.sqrt(np.minimum(variance, MAX_VARIANCE))
    _, ratio = log_Phi((mean - bound) / s)
    return np.asarray(np.maximum(mean + s * ratio, bound))
