"""Points that stand for many: spread over data, or the centres of clusters.

Notation
    A       n x p       points;  c_1 .. c_k  centres;  distances are Euclidean
    spread              k-means++ seeding (Arthur, Vassilvitskii 2007): each next point is drawn with a chance proportional to
                        its squared distance from the nearest of those before it, so that no point is drawn twice
    k-means             Lloyd's iteration from there: each point to its nearest centre, each centre to the mean of its points

Fewer than k different points make fewer than k clusters. Lloyd's own loop in blocks of rows: at n = 10,000, k = 500 it takes
less than half the time of SciPy's ``kmeans2``, whose seeding stumbles over duplicates, and needs no further import.

Which trials the model learns from once they are many: a small part that stands for all (Mao, Li 2022, "Are all training
data useful? A empirical revisit of subset selection in Bayesian optimization").

Notation
    N           finished trials, in order of their number;  d  parameters
    N_r         trials at the last refresh: the first is at FIRST d trials, one more after each EVERY d new ones (remarks 2, 8)
    k = N_r / alpha, whole and two at least (remarks 1, 3): how many are picked of the first N_r trials;  all later ones are
                used too (remark 7)
    random      k trials, each with the same chance
    k-means     k clusters of the features; the best trial of each (B.1, remark 4)
    seeds       k pivots by Latin-hypercube sampling; each trial belongs to the nearest; the best trial of each (B.2, remark 5)

Everything else goes on as before (remark 6). The best trial of a cluster is its lowest value; where there are fidelities, its
lowest value at the target, if it has any there. A cluster without a trial has no best one, so that fewer than k may be picked.

Nothing is remembered: what is picked depends on the seed and the first N_r trials alone, so that a study that is resumed
elsewhere computes the same, and that the part only grows between two refreshes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding

ROUNDS = 20  # of Lloyd's iteration at most: after these hardly a point changes its cluster
BLOCK = 512  # rows whose distances are computed at a time: they stay in the cache
SAME = 1e-16  # a share of the largest squared distance below which two points are one


def spread(A: Array, count: int, rng: np.random.Generator, first: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Up to ``count`` different rows of A, far from each other; ``first`` are taken already (those among them that differ)."""
    first = rng.integers(len(A), size=1) if first is None else first
    chosen: list[int] = []
    nearest = np.full(len(A), np.inf)
    squares = np.einsum("ij,ij->i", A, A)
    least = SAME * max(float(squares.max()), 1e-300)
    waiting = [int(row) for row in first[::-1]]
    while len(chosen) < min(count, len(A)):
        if waiting:
            row = waiting.pop()
            if nearest[row] <= least:
                continue
        else:
            total = np.cumsum(np.where(nearest > least, nearest, 0.0))
            if not total[-1] > 0.0:
                break
            row = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        chosen.append(row)
        apart = A - A[row]
        np.minimum(nearest, np.einsum("ij,ij->i", apart, apart), out=nearest)
    return np.array(chosen, dtype=np.intp)


def nearest_centre(A: Array, centres: Array) -> NDArray[np.intp]:
    """For each row of A the centre nearest to it; the first of several."""
    offset, labels = 0.5 * np.einsum("ij,ij->i", centres, centres), np.empty(len(A), dtype=np.intp)
    turned = np.ascontiguousarray(centres.T)
    for start in range(0, len(A), BLOCK):
        rows = slice(start, start + BLOCK)
        closeness = A[rows] @ turned
        closeness -= offset  # |a - c|^2 = |a|^2 - 2 closeness
        labels[rows] = closeness.argmax(axis=1)
    return labels


def k_means(A: Array, count: int, seed: tuple[int, ...]) -> NDArray[np.intp]:
    """The cluster of each row of A, from 0 to count - 1; some may be empty.

    The last few answers are kept: between two refreshes of a subset the same is asked for every suggestion.
    """
    A = np.ascontiguousarray(A, dtype=float)
    return _k_means(A.tobytes(), A.shape[1], count, seed)


@lru_cache(maxsize=4)
def _k_means(data: bytes, width: int, count: int, seed: tuple[int, ...]) -> NDArray[np.intp]:
    A = np.frombuffer(data).reshape(-1, width)
    centres = A[spread(A, count, np.random.default_rng(seed))]
    labels = nearest_centre(A, centres)
    for _ in range(ROUNDS):
        sizes = np.bincount(labels, minlength=len(centres))
        sums = np.column_stack([np.bincount(labels, column, minlength=len(centres)) for column in A.T])
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)  # an empty one stays
        before, labels = labels, nearest_centre(A, centres)
        if np.array_equal(before, labels):
            break
    labels.setflags(write=False)
    return labels


Rows = NDArray[np.intp]

FIRST, EVERY = 30, 5  # trials a parameter: until the first subset, and between two of them
FEWEST = 2  # the paper asks for k > 1
DRAWS = 0x5B5E7  # subsets are drawn with randomness of their own


def last_refresh(trials: int, parameters: int) -> int | None:
    """N_r; None while all trials are used."""
    first, every = FIRST * parameters, EVERY * parameters
    return None if trials < first else first + (trials - first) // every * every


def refreshed(trials: int, before: int, parameters: int) -> bool:
    """Whether a new subset came between ``before`` and ``trials``: the last hyperparameters are those of other data then."""
    return last_refresh(trials, parameters) != last_refresh(before, parameters)


@dataclass(frozen=True)
class Pool:
    """The first N_r trials: their features, values, which are at the target, and what randomness they are drawn with."""

    Z: Array
    y: Array
    at_target: NDArray[np.bool_]
    encoding: Encoding
    seed: tuple[int, ...]

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def best_of_each(self, labels: Rows) -> Rows:
        """The best row of each cluster that has any; of equal ones the first.

        By the lowest value of each, without putting all trials in order: there may be a hundred thousand.
        """
        proven = np.zeros(int(labels.max()) + 1, dtype=bool)
        proven[labels[self.at_target]] = True
        rows = np.flatnonzero(self.at_target | ~proven[labels])
        least = np.full(len(proven), np.inf)
        np.minimum.at(least, labels[rows], self.y[rows])
        rows = rows[self.y[rows] == least[labels[rows]]]
        _, first = np.unique(labels[rows], return_index=True)
        return np.asarray(rows[first])


@dataclass(frozen=True)
class Subset(ABC):
    """A part of the trials that stands for all.

    alpha      one trial in so many is picked
    keep_best  True: the best trial is always among them; False: exactly as in the paper. It makes a difference where they
               are picked at random: the best of all is the best of its cluster
    """

    alpha: float = 20
    keep_best: bool = True

    def __post_init__(self) -> None:
        name, alpha = type(self).__name__, self.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < math.inf:
            raise MethodError(f"{name}: alpha must be a number above 0 (20 by default), not {alpha!r}")
        if not isinstance(self.keep_best, bool):
            raise MethodError(f"{name}: keep_best must be True or False, not {self.keep_best!r}")

    def rows(self, Z: Array, y: Array, at_target: NDArray[np.bool_], encoding: Encoding, seed: int) -> Rows:
        """Of finished trials with features Z and values y (lower is better), those that the model learns from, in order.

        Trials that still run are no part of this: whoever forms a belief adds them to it, so that they always count.
        """
        refresh = last_refresh(len(y), len(encoding.space))
        if refresh is None:
            return np.arange(len(y))
        pool = Pool(Z[:refresh], y[:refresh], at_target[:refresh], encoding, (seed, refresh, DRAWS))
        picked = self.pick(pool, self.count(refresh))
        if self.keep_best:
            picked = np.union1d(picked, pool.best_of_each(np.zeros(refresh, dtype=np.intp)))
        return np.concatenate([np.unique(picked), np.arange(refresh, len(y))]).astype(np.intp)

    def hyperparameter_rows(self, y: Array) -> Rows:
        """Of the trials that were picked, by their values, those that hyperparameters are learnt from: all of them."""
        return np.arange(len(y))

    def in_use(self, trials: int, parameters: int) -> bool:
        """Whether so many trials are too many to learn from them all."""
        return last_refresh(trials, parameters) is not None

    def count(self, refresh: int) -> int:
        """k."""
        return min(max(math.floor(refresh / self.alpha), FEWEST), refresh)

    @abstractmethod
    def pick(self, pool: Pool, count: int) -> Rows:
        """Up to ``count`` different rows of the pool."""


@dataclass(frozen=True)
class RandomSubset(Subset):
    """``RandomSubset(alpha=20)``: the model learns from one trial in ``alpha``, picked at random (RS).

    Used from 30 trials a parameter on and picked anew after each 5 more; trials since then are all used. With
    ``keep_best=False`` exactly as in the paper: the best trial may be left out.
    """

    def pick(self, pool: Pool, count: int) -> Rows:
        return np.asarray(pool.rng.choice(len(pool.Z), count, replace=False))


@dataclass(frozen=True)
class KMeansSubset(Subset):
    """``KMeansSubset(alpha=20)``: as many clusters by k-means, of each the best trial (KCS); when, as for ``RandomSubset``."""

    def pick(self, pool: Pool, count: int) -> Rows:
        return pool.best_of_each(k_means(pool.Z, count, pool.seed))


@dataclass(frozen=True)
class SeedSubset(Subset):
    """``SeedSubset(alpha=20)``: the space cut into as many parts around pivots of a Latin hypercube, of each the best trial
    (SCS); when, as for ``RandomSubset``.
    """

    def pick(self, pool: Pool, count: int) -> Rows:
        space = pool.encoding.space
        pivots = latin_hypercube(count, len(space), pool.rng)
        if pool.at_target.all():  # or a pivot's fidelity would decide how many trials it gets
            pivots = space.at_target(pivots)
        return pool.best_of_each(nearest_centre(pool.Z, pool.encoding.features(pivots)))


def latin_hypercube(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """``count`` points of the unit cube: cut into as many slices along any axis, it has one point in each."""
    slices = rng.permuted(np.tile(np.arange(count)[:, None], (1, dimensions)), axis=0)
    return np.asarray((slices + rng.random((count, dimensions))) / count)
