"""The fast knowledge gradient against a million draws of the outcome, each future mean minimised over the whole space.

Notation (see ``knowledge``): g(w) = min_x' (mu(x') + b(x') w), concave in w. It is tabulated at nodes by minimising from many
starts. Between two nodes it lies above their chord and below the lines of their two minimisers, so that draws are averaged over
both and the truth is known up to the gap. Nothing is shared with the code but the hyperparameters: the future mean is written
anew, as a sum of kernels at the data and at x.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from shoestring.acquisition.knowledge_gradient import KG, knowledge_gradient
from shoestring.acquisition.optimize.batched_bfgs import ascend
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from tests.problems import belief_of, plane, told_study

NODES = np.unique(np.concatenate([np.linspace(-4, 4, 161), np.linspace(-7, 7, 71)]).round(6))
REPLICATES, STRATA = 10, 100_000  # a million draws
POOL = 10  # minimisations start from the best of 2^(POOL + D) points, in 2 D parts
LEAST = 1e-5  # of KG: below, it is a matter of outcomes so rare that a million draws do not measure it


def drawn_from_the_model(dimensions, count, noise, length, seed):
    """A belief after ``count`` observations of a function drawn from the model itself, and a seeker."""
    rng = np.random.default_rng([seed, count, dimensions])
    belief, encoding, seen = belief_of(told_study(plane(dimensions), lambda config: config["x0"], count, seed=seed))
    Z = encoding.features(seen.U)
    kernel = Kernel("matern52", np.full(dimensions, 1 / length), 1.0)
    covariance = kernel.covariance(kernel.scale(Z)) + (noise + 1e-9) * np.eye(count)
    posterior = Posterior.given(kernel, noise, Z, np.linalg.cholesky(covariance) @ rng.standard_normal(count), mean=0.0)
    best = seen.U[np.argsort(posterior.mean_at(Z))[:5]]
    belief = dataclasses.replace(belief, objective=posterior, incumbent=float(posterior.mean_at(Z).min()), evaluated=seen.U)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, best)


class FutureMean:
    """mu + b w after an observation at x, as weights of kernels at the data and x; features are points (a plane of floats)."""

    def __init__(self, posterior, x):
        self.scale, self.s2, self.mean = posterior.kernel.inverse_lengths, posterior.kernel.variance, posterior.mean
        data = posterior.Z * self.scale
        self.centres = np.vstack([data, x * self.scale])
        K = self.kernel(data, data)[0] + posterior.noise * np.eye(len(data))
        k = self.kernel(data, self.centres[-1:])[0][:, 0]
        pull = np.linalg.solve(K, k)
        self.still = np.append(np.linalg.solve(K, posterior.y - self.mean), 0.0)
        self.moving = np.append(-pull, 1.0) / math.sqrt(self.s2 - k @ pull + posterior.noise)

    def kernel(self, A, B):
        """Matern-5/2, and its derivative with respect to the squared distance."""
        r = np.sqrt(5 * np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T, 0.0))
        return self.s2 * (1 + r + r * r / 3) * np.exp(-r), -5 / 6 * self.s2 * (1 + r) * np.exp(-r)

    def lines(self, X):
        k, _ = self.kernel(X * self.scale, self.centres)
        return self.mean + k @ self.still, k @ self.moving

    def value_and_slope(self, X, w):
        """At each row of X for its own w."""
        A = X * self.scale
        k, by_square = self.kernel(A, self.centres)
        weights = self.still + w[:, None] * self.moving
        pulled = by_square * weights
        slope = 2 * (pulled.sum(axis=1)[:, None] * A - pulled @ self.centres) * self.scale
        return self.mean + (k * weights).sum(axis=1), slope

    def descend(self, X, w):
        """Local minima from the rows of X. A last coordinate that stays says whose w it is."""

        def rising(marked):
            value, slope = self.value_and_slope(marked[:, :-1], w[np.rint(marked[:, -1] * len(w)).astype(int)])
            return -value, np.column_stack([-slope, np.zeros(len(marked))])

        free = np.append(np.ones(X.shape[1], dtype=bool), False)
        marked = np.column_stack([X, np.arange(len(w)) / len(w)])
        return ascend(rising, marked, free, steps=150, tolerance=1e-13)[0][:, :-1]


def lowest_lines(future, x, tried, seed=0):
    """a and b of the line that is the lowest at each node, over the whole space."""
    rng = np.random.default_rng(seed)
    spread = qmc.Sobol(len(x), rng=rng).random_base2(POOL + len(x))
    around = np.clip(x + 10.0 ** rng.uniform(-3, -0.5, (256, 1)) * rng.standard_normal((256, len(x))), 0, 1)
    parts = 2 * len(x)
    groups = [*(spread[part::parts] for part in range(parts)), around, np.vstack([tried, x])]
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


def by_a_million_draws(belief, u):
    """KG, its standard error, and half the gap between chords and tangents."""
    future = FutureMean(belief.objective, u[None, :])
    a, b = lowest_lines(future, u, belief.evaluated)
    g, now = a + b * NODES, int(np.argmin(np.abs(NODES)))
    rng, found = np.random.default_rng(0), []
    for _ in range(REPLICATES):
        w = np.clip(ndtri((np.arange(STRATA) + rng.random(STRATA)) / STRATA), NODES[0], NODES[-1])
        left = np.clip(np.searchsorted(NODES, w) - 1, 0, len(NODES) - 2)
        tangent = np.minimum(a[left] + b[left] * w, a[left + 1] + b[left + 1] * w)
        stays = a[now] + b[now] * w  # what is the minimum now, of the same mean as a[now]; it leaves little variance
        found.append([(stays - tangent).mean(), (stays - np.interp(w, NODES, g)).mean()])
    least, most = np.mean(found, axis=0)
    error = np.std(np.mean(found, axis=1), ddof=1) / math.sqrt(REPLICATES)
    return (least + most) / 2, error, (most - least) / 2


def relative_errors(dimensions, count, noise, length, seed):
    """Of the fast KG at the point it chooses, at random ones and next to a tried one, wherever the truth is well known."""
    belief, optimizer = drawn_from_the_model(dimensions, count, noise, length, seed)
    rng = np.random.default_rng([seed, 99])  # not the points that were tried
    near = np.clip(belief.evaluated[0] + 0.01, 0, 1)
    U = np.vstack([KG().select(belief, optimizer).u, rng.random((3, dimensions)), near])
    errors = []
    for u, fast in zip(U, np.exp(knowledge_gradient(belief, optimizer, U)), strict=True):
        truth, error, gap = by_a_million_draws(belief, u)
        if truth > LEAST and error < 0.002 * truth and gap < 0.002 * truth:
            errors.append(fast / truth - 1)
    return errors


def cases(dimensions):
    """(trials, noise, length scale): nearly nothing known, some trials, many; the variance of the function is 1."""
    few, many = 5 * dimensions, 10 * dimensions
    return [(3, 1e-4, 0.3), (few, 1e-6, 0.3), (few, 1e-2, 0.5), (many, 0.1, 0.3), (many, 1e-4, 0.8)]


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_it_is_accurate_to_a_per_cent(dimensions):
    errors = [error for case in cases(dimensions)[:3] for error in relative_errors(dimensions, *case, 0)]
    assert len(errors) >= 10
    assert np.abs(errors).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
def test_it_is_accurate_to_a_per_cent_in_many_cases(dimensions):
    errors = [error for case in cases(dimensions) for seed in range(10, 15) for error in relative_errors(dimensions, *case, seed)]
    assert len(errors) >= 80
    assert np.abs(errors).max() < 0.01


@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_reference_is_that_of_a_fine_grid(dimensions):
    """Without descents, brackets or strata: every future mean over a grid, integrated over the outcome."""
    belief, optimizer = drawn_from_the_model(dimensions, 5, 0.01, 0.4, 2)
    u = KG().select(belief, optimizer).u
    axis = np.linspace(0, 1, 3001 if dimensions == 1 else 121)
    grid = np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)
    posterior, w = belief.objective, np.linspace(-6, 6, 601)
    b = posterior.covariance(grid, u[None, :])[:, 0] / math.sqrt(posterior.covariance(u[None, :])[0, 0] + posterior.noise)
    lowest = np.array([(posterior.mean_at(grid) + b * each).min() for each in w])
    density = np.exp(-0.5 * w * w) / math.sqrt(2 * math.pi)
    expected = posterior.mean_at(grid).min() - np.trapezoid(lowest * density, w)
    truth, error, gap = by_a_million_draws(belief, u)
    assert truth == pytest.approx(expected, rel=3e-3)
    assert error + gap < 1e-3 * truth
