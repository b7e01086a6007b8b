"""The knowledge gradient by a million draws of the outcome, each future mean minimised over the whole space: an oracle.

Notation (see ``knowledge_gradient``): g(w) = min_x' (mu(x') + b(x') w), concave in w. It is tabulated at nodes by minimizing from
many starts. Between two nodes it lies above their chord and below the lines of their two minimisers. Draws are averaged over
both, so that the truth is known up to the gap. Nothing is shared with the library but the hyperparameters: the future mean is
written anew, as a sum of kernels at the data and at x.
"""

import dataclasses
import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from shoestring.acquisition.optimize.batched_bfgs import ascend
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from tests.problems import belief_of, plane, told_study

NODES = np.unique(np.concatenate([np.linspace(-4, 4, 161), np.linspace(-7, 7, 71)]).round(6))
REPLICATES, STRATA = 10, 100_000  # a million draws
LOG2_STARTS = 10  # minimizations start from the best of 2^(LOG2_STARTS + D) points, in 2 D parts


def drawn_from_the_model(dimensions, count, noise, length, seed):
    """A belief after ``count`` observations of a function drawn from the model itself, and an optimizer."""
    rng = np.random.default_rng([seed, count, dimensions])
    belief, encoding, seen = belief_of(told_study(plane(dimensions), lambda config: config["x0"], count, seed=seed))
    Z = encoding.features(seen.U)
    kernel = Kernel("matern52", np.full(dimensions, 1 / length), 1.0)
    covariance = kernel.covariance(kernel.scale(Z)) + (noise + 1e-9) * np.eye(count)
    posterior = Posterior.given(kernel, noise, Z, np.linalg.cholesky(covariance) @ rng.standard_normal(count), mean=0.0)
    best = seen.U[np.argsort(posterior.mean_at(Z))[:5]]
    belief = dataclasses.replace(belief, objective=posterior, incumbent=float(posterior.mean_at(Z).min()), evaluated=seen.U)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, best)


def kg_by_a_million_draws(belief, u):
    """KG, its standard error, and half the gap between chords and tangents."""
    future = FutureMean(belief.objective, u[None, :])
    a, b = lowest_lines(future, u, belief.evaluated)
    g, now = a + b * NODES, int(np.argmin(np.abs(NODES)))
    rng, found = np.random.default_rng(0), []
    for _ in range(REPLICATES):
        w = np.clip(ndtri((np.arange(STRATA) + rng.random(STRATA)) / STRATA), NODES[0], NODES[-1])
        left = np.clip(np.searchsorted(NODES, w) - 1, 0, len(NODES) - 2)
        tangent = np.minimum(a[left] + b[left] * w, a[left + 1] + b[left + 1] * w)
        control = a[now] + b[now] * w  # a control variate: the mean at the present minimiser, whose expectation is a[now]
        found.append([(control - tangent).mean(), (control - np.interp(w, NODES, g)).mean()])
    least, most = np.mean(found, axis=0)
    error = np.std(np.mean(found, axis=1), ddof=1) / math.sqrt(REPLICATES)
    return (least + most) / 2, error, (most - least) / 2


class FutureMean:
    """mu + b w after an observation at x, as weights of kernels at the data and x; features are points (a plane of floats)."""

    def __init__(self, posterior, x):
        self.scale, self.s2, self.mean = posterior.kernel.inverse_lengths, posterior.kernel.variance, posterior.mean
        data = posterior.Z * self.scale
        self.centres = np.vstack([data, x * self.scale])
        K = self.kernel(data, data)[0] + posterior.noise * np.eye(len(data))
        k = self.kernel(data, self.centres[-1:])[0][:, 0]
        pull = np.linalg.solve(K, k)
        self.constant = np.append(np.linalg.solve(K, posterior.y - self.mean), 0.0)
        self.linear = np.append(-pull, 1.0) / math.sqrt(self.s2 - k @ pull + posterior.noise)

    def kernel(self, A, B):
        """Matern-5/2, and its derivative with respect to the squared distance."""
        r = np.sqrt(5 * np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T, 0.0))
        decay = np.exp(-r)
        return self.s2 * (1 + r + r * r / 3) * decay, -5 / 6 * self.s2 * (1 + r) * decay

    def lines(self, X):
        """a and b at each row of X."""
        k, _ = self.kernel(X * self.scale, self.centres)
        return self.mean + k @ self.constant, k @ self.linear

    def value_and_gradient(self, X, w):
        """At each row of X for its own w."""
        A = X * self.scale
        k, by_square = self.kernel(A, self.centres)
        weights = self.constant + w[:, None] * self.linear
        pulled = by_square * weights
        gradient = 2 * (pulled.sum(axis=1)[:, None] * A - pulled @ self.centres) * self.scale
        return self.mean + (k * weights).sum(axis=1), gradient

    def descend(self, X, w):
        """Local minima from the rows of X, each for its own w, which a last, fixed coordinate names."""

        def negative(labelled):
            value, gradient = self.value_and_gradient(labelled[:, :-1], w[np.rint(labelled[:, -1] * len(w)).astype(int)])
            return -value, np.column_stack([-gradient, np.zeros(len(labelled))])

        free = np.append(np.ones(X.shape[1], dtype=bool), False)
        labelled = np.column_stack([X, np.arange(len(w)) / len(w)])
        return ascend(negative, labelled, free, steps=150, tolerance=1e-13)[0][:, :-1]


def lowest_lines(future, x, evaluated, seed=0):
    """a and b of the line that is the lowest at each node, over the whole space."""
    rng = np.random.default_rng(seed)
    spread = qmc.Sobol(len(x), rng=rng).random_base2(LOG2_STARTS + len(x))
    around = np.clip(x + 10.0 ** rng.uniform(-3, -0.5, (256, 1)) * rng.standard_normal((256, len(x))), 0, 1)
    parts = 2 * len(x)
    groups = [*(spread[part::parts] for part in range(parts)), around, np.vstack([evaluated, x])]
    for _ in range(20):
        starts = []
        for group in groups:
            a, b = future.lines(group)
            starts.append(group[np.argmin(a[:, None] + b[:, None] * NODES, axis=0)])
        ends = future.descend(np.vstack(starts), np.tile(NODES, len(groups)))
        a, b = future.lines(np.vstack([ends, *starts]))
        values = a[:, None] + b[:, None] * NODES
        at = np.argmin(values, axis=0)
        own = values[np.arange(len(NODES)), np.arange(len(NODES))]
        if len(groups) == 1 and (own - values.min(axis=0)).max() < 1e-10:
            break
        groups = [np.vstack([ends, *starts])[np.unique(at)]]  # minimisers of one node are starts for the others
    return a[at], b[at]
