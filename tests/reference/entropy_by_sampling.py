"""Entropy search by plain Monte Carlo: a slow oracle for ``ES``, without gradient.

Source: the slides on computationally expensive acquisition functions, "Entropy Search: Pseudocode for Monte Carlo
Approximation". Line by line, for one candidate x, representer points r, S outcomes and N draws:

    1   for s = 1 to S
    2       sample an outcome y_s at x; update the posterior with (x, y_s)
    3       F[r] = 0 for all r
    4-7     N times: sample f at all r from the updated posterior; add 1 to F at the lowest
    8       p_min,s = F / N
    9       H_s = -sum_r p_min,s(r) log p_min,s(r)
    10  u = const - mean of H_s

The constant is H(p_min) before the observation, estimated in the same way, so that u is the expected drop. An entropy estimated
from N draws is too low by about (number of r that were the lowest - 1) / (2 N) (Miller 1955), which is added.
"""

import math

import numpy as np


def entropy_search_by_sampling(posterior, x, representers, outcomes, draws, rng):
    """u(x): x (p) and representers (R x p) by their features; ``outcomes`` is S and ``draws`` is N."""
    mean, variance = posterior.mean_and_variance(x[None, :])
    deviation = math.sqrt(float(variance[0]) + posterior.noise)
    entropies = []
    for _ in range(outcomes):  # line 1
        outcome = mean + deviation * rng.standard_normal(1)  # line 2
        entropies.append(entropy_of_minimiser(posterior.condition(x[None, :], outcome), representers, draws, rng))
    return entropy_of_minimiser(posterior, representers, draws * outcomes, rng) - float(np.mean(entropies))  # line 10


def entropy_of_minimiser(posterior, representers, draws, rng):
    """H(p_min) from joint draws, lines 3 to 9."""
    lowest = np.argmin(posterior.sample(representers, draws, rng), axis=1)
    times = np.bincount(lowest)
    p = times[times > 0] / draws
    return float(-(p * np.log(p)).sum() + (len(p) - 1) / (2 * draws))
