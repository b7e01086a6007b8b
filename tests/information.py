"""Beliefs for the tests of information-based acquisitions, and the mutual information of y and the minimiser by brute force."""

import dataclasses
import functools
import math

import numpy as np
from scipy.special import ndtr
from scipy.stats import spearmanr

from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from tests.problems import belief_of, plane, told_study

GRID = np.linspace(0, 1, 60)[:, None]


def line(count, noise, seed, length=0.2):
    """A belief after ``count`` observations of a function on a line, drawn from the model itself, and an optimizer."""
    belief, encoding, visited, best = _line(count, noise, seed, length)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), visited, best)


@functools.cache
def _line(count, noise, seed, length):
    rng = np.random.default_rng(seed)
    study = told_study(plane(1), lambda config: config["x0"], count, seed=seed)
    belief, encoding, seen = belief_of(study)
    Z = encoding.features(seen.U)
    kernel = Kernel("matern52", np.full(Z.shape[1], 1 / length), 1.0)
    covariance = kernel.covariance(kernel.scale(Z)) + (noise + 1e-9) * np.eye(count)
    posterior = Posterior.given(kernel, noise, Z, np.linalg.cholesky(covariance) @ rng.standard_normal(count), mean=0.0)
    incumbent = float(posterior.mean_at(Z).min())
    belief = dataclasses.replace(belief, objective=posterior, incumbent=incumbent, evaluated=seen.U)
    return belief, encoding, seen.visited, seen.U[:5]


def waves(config):
    return sum(math.sin(5 * value + i) for i, value in enumerate(config.values()))


def wavy(dimensions, noise=None, count=None):
    """A belief about waves in a few dimensions, and an optimizer; observations from now on have this noise."""
    belief, encoding, visited, best = _wavy(dimensions, count or 6 + 6 * dimensions)
    if noise is not None:
        belief = dataclasses.replace(belief, objective=dataclasses.replace(belief.objective, noise=noise))
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), visited, best)


@functools.cache
def _wavy(dimensions, count):
    belief, encoding, seen = belief_of(told_study(plane(dimensions), waves, count))
    return belief, encoding, seen.visited, seen.U[seen.order[:5]]


def brute_force(belief, grid=GRID, draws=40_000, bins=32, seed=0):
    """I(y; x*) at each point of the grid, x* its lowest point: counts of (bin of y, x*) over joint draws, Miller's correction."""
    posterior, Z = belief.objective, belief.encoding.features(grid)
    rng = np.random.default_rng(seed)
    mean, covariance = posterior.mean_at(Z), posterior.covariance(Z) + 1e-10 * np.eye(len(Z))
    f = mean + rng.standard_normal((draws, len(Z))) @ np.linalg.cholesky(covariance).T
    where = f.argmin(axis=1)
    deviation = np.sqrt(np.diag(covariance) + posterior.noise)

    def entropy(counts):
        p = counts[counts > 0] / draws
        return -(p * np.log(p)).sum() + (len(p) - 1) / (2 * draws)

    found = np.empty(len(Z))
    for j in range(len(Z)):
        y = f[:, j] + math.sqrt(posterior.noise) * rng.standard_normal(draws)
        row = np.minimum((bins * ndtr((y - mean[j]) / deviation[j])).astype(int), bins - 1)
        joint = np.bincount(row * len(Z) + where, minlength=bins * len(Z)).reshape(bins, len(Z))
        found[j] = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel())
    return found


@functools.cache
def truth_on_line(count, noise, seed):
    return brute_force(line(count, noise, seed)[0])


def ranked(acquisition, count, noise, seed):
    """Spearman's rank correlation of surface and truth, and the truth where the surface is highest, over its maximum."""
    belief, optimizer = line(count, noise, seed)
    truth = truth_on_line(count, noise, seed)
    values = acquisition.log_information(belief, optimizer)(GRID, False)[0]
    return spearmanr(truth, values)[0], truth[np.argmax(values)] / truth.max()
