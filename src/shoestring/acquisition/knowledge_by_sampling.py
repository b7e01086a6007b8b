"""The knowledge gradient as the slides have it: the reference for ``knowledge``, slow and without gradient.

Source: the slides on computationally expensive acquisition functions, "Knowledge Gradient: Pseudocode for Monte Carlo
Approximation". Line by line, for one candidate x and S outcomes:

    1   for s = 1 to S
    2       sample an outcome y_s at x
    3       update the posterior with (x, y_s); its mean is mu_s
    4       e_s = min over the space of mu_s
    5   u = const - mean of e_s

The constant is the minimum of the mean before the observation, so that u is the expected drop. Minima are those over the whole
space at the target fidelity: gradient descent from what was tried, from x, and from quasi-random points.
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics import Array
from ..space.encoding import Encoding
from ..surrogate.belief import Belief
from ..surrogate.posterior import Posterior
from .optimize.batched_bfgs import ascend
from .optimize.candidates import quasi_random

SPREAD = 256  # quasi-random points; those at which the mean is lowest are starts
STARTS = 12  # of a descent
STEPS = 60


def knowledge_gradient_by_sampling(belief: Belief, u: Array, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    """u(x) at one point (D) and its standard error; ``samples`` is S."""
    encoding, posterior = belief.encoding, belief.objective
    space = encoding.space
    spread = space.snap(quasi_random(SPREAD, len(space), rng))
    starts = space.at_target(np.vstack([belief.evaluated, u, spread]))
    x = encoding.features(u[None, :])
    mean, variance = posterior.mean_and_variance(x)
    spread_of_y = math.sqrt(float(variance[0]) + posterior.noise)
    e = np.empty(samples)
    for s in range(samples):
        outcome = mean + spread_of_y * rng.standard_normal(1)
        e[s] = lowest_mean(posterior.condition(x, outcome), encoding, starts)
    return lowest_mean(posterior, encoding, starts) - float(e.mean()), float(e.std(ddof=1)) / math.sqrt(samples)


def lowest_mean(posterior: Posterior, encoding: Encoding, starts: Array) -> float:
    """The lowest posterior mean that descent of the numbers finds from the best of ``starts``."""
    there = posterior.mean_at(encoding.features(starts))
    best = np.argsort(there, kind="stable")[:STARTS]
    free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])

    def falling(points: Array) -> tuple[Array, Array]:
        mean, _, d_mean, _ = posterior.with_gradients(encoding.features(points))
        return -mean, -encoding.pull_back(points, d_mean)

    ends, _ = ascend(falling, starts[best], free, steps=STEPS, tolerance=1e-9)
    return float(min(there.min(), posterior.mean_at(encoding.features(encoding.space.snap(ends))).min()))
