"""The knowledge gradient by plain Monte Carlo: a slow oracle for ``KG``, without gradient.

Source: the slides on computationally expensive acquisition functions, "Knowledge Gradient: Pseudocode for Monte Carlo
Approximation". Line by line, for one candidate x and S outcomes:

    1   for s = 1 to S
    2       sample an outcome y_s at x
    3       update the posterior with (x, y_s); its mean is mu_s
    4       e_s = min over the space of mu_s
    5   u = const - mean of e_s

The constant is the minimum of the mean before the observation, so that u is the expected drop. Minima are taken over the whole
space at the target fidelity: gradient descent from the evaluated points, from x, and from quasi-random points.
"""

import math

import numpy as np

from shoestring.acquisition.optimize.batched_bfgs import ascend
from shoestring.acquisition.optimize.candidates import quasi_random

N_CANDIDATES = 256  # quasi-random points; those with the lowest mean are starts
N_STARTS = 12  # of a descent
MAX_DESCENT_STEPS = 60


def knowledge_gradient_by_sampling(belief, u, samples, rng):
    """u(x) at one point (D) and its standard error; ``samples`` is S."""
    encoding, posterior = belief.encoding, belief.objective
    space = encoding.space
    spread = space.snap(quasi_random(N_CANDIDATES, len(space), rng))
    starts = space.at_target(np.vstack([belief.evaluated, u, spread]))
    x = encoding.features(u[None, :])
    mean, variance = posterior.mean_and_variance(x)
    deviation = math.sqrt(float(variance[0]) + posterior.noise)
    e = np.empty(samples)
    for s in range(samples):  # line 1
        outcome = mean + deviation * rng.standard_normal(1)  # line 2
        e[s] = lowest_mean(posterior.condition(x, outcome), encoding, starts)  # lines 3 and 4
    return lowest_mean(posterior, encoding, starts) - float(e.mean()), float(e.std(ddof=1)) / math.sqrt(samples)  # line 5


def lowest_mean(posterior, encoding, starts):
    """The lowest posterior mean that gradient descent finds from the best of ``starts``."""
    values = posterior.mean_at(encoding.features(starts))
    best = np.argsort(values, kind="stable")[:N_STARTS]
    free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])

    def negative_mean(points):
        mean, _, d_mean, _ = posterior.with_gradients(encoding.features(points))
        return -mean, -encoding.pull_back(points, d_mean)

    ends, _ = ascend(negative_mean, starts[best], free, steps=MAX_DESCENT_STEPS, tolerance=1e-9)
    return float(min(values.min(), posterior.mean_at(encoding.features(encoding.space.snap(ends))).min()))
