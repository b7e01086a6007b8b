"""Samples of the value of the minimum, from what is believed at many points.

Source: Wang and Jegelka 2017, section 3.1 (for maxima; here the signs are turned round).

Notation: points i with mean mu_i and deviation s_i, M the value of the minimum.
    "gumbel"    P(M > m) = prod_i Phi((mu_i - m) / s_i), as if the points were independent, made a Gumbel distribution
                P(M > m) = exp(-exp((m - a) / b)) by its quartiles: b = (m_1/4 - m_3/4) / (log log 4 - log log 4/3) and
                a = m_1/2 - b log log 2, where P(M > m_q) = q
    "sampled"   the lowest value of each joint draw of f at the points

Independence makes the minimum too low, a finite number of points makes it too high. No sample is left above the lowest mean:
the minimum is not worse than what can be had already.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from ..numerics import Array
from ..surrogate.posterior import Posterior

JOINT = 256  # points of a joint draw
HALVINGS = 30
REACH = 8.0  # deviations below the lowest value within which the quartiles are looked for
QUARTILES = np.array([0.25, 0.5, 0.75])


def minimum_values(posterior: Posterior, Z: Array, how: str, count: int, rng: np.random.Generator) -> Array:
    """``count`` samples of the lowest value of f at the points with features Z."""
    mean, variance = posterior.mean_and_variance(Z)
    deviation = np.sqrt(variance)
    if how == "sampled":
        low = np.argsort(mean - 2.0 * deviation, kind="stable")[:JOINT]
        values = posterior.sample(Z[low], count, rng).min(axis=1)
    else:
        a, b = gumbel_fit(mean, deviation)
        # one draw from each of ``count`` equally probable strata, all shifted by the same random share of one
        above = (np.arange(count) + rng.random()) / count
        values = a + b * np.log(-np.log(np.clip(above, 1e-12, 1.0 - 1e-12)))
    return np.asarray(np.minimum(values, mean.min()))


def gumbel_fit(mean: Array, deviation: Array) -> tuple[float, float]:
    """a and b."""
    low = np.full(3, float((mean - REACH * deviation).min()))  # here M > m is sure, and above the lowest mean it is not likely
    high = np.full(3, float((mean + REACH * deviation).min()))
    wanted = np.log(QUARTILES)
    near = mean - REACH * deviation < high[0]  # the others are above for sure
    mean, deviation = mean[near], deviation[near]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        sure = log_ndtr((mean - middle[:, None]) / deviation).sum(axis=1) > wanted
        low, high = np.where(sure, middle, low), np.where(sure, high, middle)
    quarter, half, three = 0.5 * (low + high)
    b = max((quarter - three) / (math.log(math.log(4.0)) - math.log(math.log(4.0 / 3.0))), 1e-12)
    return float(half - b * math.log(math.log(2.0))), float(b)
