"""Ranks of methods within a problem and seed, and how sure one can be of their averages.

Ranks are used because regrets of different problems have no common unit. The intervals resample problems
first and seeds within each problem drawn: a method is meant to do well on problems like these, not only on
these, so the choice of problems has to count as a source of uncertainty.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

Array = NDArray[np.float64]
RESAMPLES = 2000


def rank(regrets: Array) -> Array:
    """Ranks along the last axis, the best method first; ties share their average rank."""
    return np.asarray(rankdata(regrets, method="average", axis=-1), dtype=float)


def bootstrap(samples: Sequence[Array], resamples: int = RESAMPLES) -> tuple[Array, Array, Array]:
    """Mean over problems of means over seeds, with the ends of its 95 % interval.

    Every entry of ``samples`` belongs to one problem and has the shape (seeds, methods); the number of seeds
    may differ between problems.
    """
    rng = np.random.default_rng(0)
    count = len(samples)
    chosen = rng.integers(count, size=(resamples, count))
    totals = np.zeros((resamples, samples[0].shape[1]))
    for index, sample in enumerate(samples):
        draws, _ = np.nonzero(chosen == index)
        seeds = rng.integers(len(sample), size=(len(draws), len(sample)))
        np.add.at(totals, draws, sample[seeds].mean(axis=1))
    low, high = np.quantile(totals / count, [0.025, 0.975], axis=0)
    return np.mean([sample.mean(axis=0) for sample in samples], axis=0), low, high


def exact_interval(count: int, total: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson 1934): every run alike, problems not resampled."""
    ends = binomtest(count, total).proportion_ci(confidence_level=0.95, method="exact")
    return float(ends.low), float(ends.high)
