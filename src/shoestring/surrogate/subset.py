"""Training subsets: which trials the model learns from once they are many.

``RandomSubset``, ``KMeansSubset`` and ``SeedSubset`` follow Mao and Li (2022), "Are all training data useful? An empirical
revisit of subset selection in Bayesian optimization"; the remarks below are theirs. ``AutoSubset`` is the default of a study.

Notation
    N           finished trials, in order of their number;  d  parameters
    N_r         trials at the last refresh: the first is at 30 d trials, one more after each 5 d new ones (remarks 2, 8)
    k = N_r / alpha, rounded down and at least 2 (remarks 1, 3): how many are selected of the first N_r trials. All later trials
                are used too (remark 7)
    random      k trials, each with the same probability (RS)
    k-means     k clusters of the features; the best trial of each (KCS: B.1, remark 4)
    seeds       k pivots by Latin hypercube sampling; each trial belongs to the nearest; the best trial of each (SCS: B.2,
                remark 5)

    A (n x p)   points to cluster;  c_1 .. c_k  centres;  distances are Euclidean
    k-means++   seeding (Arthur and Vassilvitskii 2007): each next point is drawn with a probability proportional to its squared
                distance from the nearest point before it, so that no point is drawn twice
    Lloyd       iteration from there: each point goes to its nearest centre, each centre to the mean of its points

All else stays the same (remark 6). The best trial of a cluster is the one with its lowest value; where there are fidelities, the
lowest value at the target, if it has any there. An empty cluster has no best trial, so fewer than k may be selected. Fewer than k
different points make fewer than k clusters.

There is no hidden state: the selection depends on the seed and the first N_r trials alone. A resumed study therefore computes
the same, and between two refreshes the subset only grows.

Lloyd's iteration is our own, in blocks of rows: at n = 10,000 and k = 500 it takes less than half the time of SciPy's
``kmeans2``, whose seeding fails on duplicates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import number_between
from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding

Rows = NDArray[np.intp]

FIRST_REFRESH_TRIALS = 30  # for each parameter: all trials are used until then
REFRESH_INTERVAL_TRIALS = 5  # for each parameter, between two refreshes
MIN_SELECTED_TRIALS = 2  # the paper asks for k > 1
RANDOM_STREAM = 0x5B5E7  # the number of the random stream that selections draw from

MAX_LLOYD_ITERATIONS = 20  # after these hardly a point changes its cluster
DISTANCE_BLOCK_ROWS = 512  # rows whose distances are computed at a time: they stay in the cache of the processor
SAME_POINT = 1e-16  # as a share of the largest squared norm: two points closer than this squared distance are one

MAX_EXACT_TRIALS = 300  # trials up to which ``AutoSubset`` learns everything from all of them
HYPERPARAMETER_TRIALS = 150  # beyond that, trials that hyperparameters are learnt from: half the best, the others evenly by rank
MAX_POSTERIOR_TRIALS = 500  # trials in the posterior, in addition to those since the last refresh


# -- when to refresh ----------------------------------------------------------------------------------------------------


def last_refresh(trials: int, parameters: int) -> int | None:
    """N_r; None while all trials are used."""
    first, every = FIRST_REFRESH_TRIALS * parameters, REFRESH_INTERVAL_TRIALS * parameters
    return None if trials < first else first + (trials - first) // every * every


def refreshed(trials: int, before: int, parameters: int) -> bool:
    """Whether there was a refresh between ``before`` and ``trials``: the last hyperparameters then belong to other data."""
    return last_refresh(trials, parameters) != last_refresh(before, parameters)


# -- the subsets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pool:
    """The first N_r trials: features, values, which are at the target fidelity, and the seed of the selection."""

    Z: Array
    y: Array
    at_target: NDArray[np.bool_]
    encoding: Encoding
    seed: tuple[int, ...]

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def best_of_each(self, labels: Rows) -> Rows:
        """The best row of each cluster that is not empty; of equal ones the first.

        By the lowest value of each cluster, without sorting all trials: there may be a hundred thousand.
        """
        has_target = np.zeros(int(labels.max()) + 1, dtype=bool)
        has_target[labels[self.at_target]] = True
        rows = np.flatnonzero(self.at_target | ~has_target[labels])
        lowest = np.full(len(has_target), np.inf)
        np.minimum.at(lowest, labels[rows], self.y[rows])
        rows = rows[self.y[rows] == lowest[labels[rows]]]
        _, first = np.unique(labels[rows], return_index=True)
        return np.asarray(rows[first])


@dataclass(frozen=True)
class Subset(ABC):
    """A part of the trials that represents all of them: the base class of the three below.

    Use one of them as ``subset=``; the default, ``"auto"``, does well without. It is used from 30 trials per parameter on, and
    selected again after each 5 more per parameter. Trials since then are all used.

    alpha      one trial in alpha is selected
    keep_best  True: the best trial is always among them; False: exactly as in the paper. This makes a difference for random
               selection only, since the best of all is also the best of its cluster

    >>> isinstance(st.KMeansSubset(alpha=10), st.Subset)
    True
    """

    alpha: float = 20
    keep_best: bool = True

    min_trials: ClassVar[int] = 2  # fewer trials than this are never too many: the model learns from all of them
    max_exact_trials: ClassVar[float] = math.inf  # so many that it learns from, and fewer, all teach the hyperparameters

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "alpha", number_between(self.alpha, f"{name}: alpha", 0, low_included=False))
        if not isinstance(self.keep_best, bool):
            raise MethodError(f"{name}: keep_best must be True or False, not {self.keep_best!r}")

    def rows(self, Z: Array, y: Array, at_target: NDArray[np.bool_], encoding: Encoding, seed: int) -> Rows:
        """The trials that the model learns from, in order, of finished trials with features Z and values y (lower is better).

        Pending trials are not among them: the belief adds them, so that they always count.
        """
        refresh = last_refresh(len(y), len(encoding.space))
        if refresh is None:
            return np.arange(len(y))
        pool = Pool(Z[:refresh], y[:refresh], at_target[:refresh], encoding, (seed, refresh, RANDOM_STREAM))
        selected = self.pick(pool, self.count(refresh))
        if self.keep_best:
            selected = np.union1d(selected, pool.best_of_each(np.zeros(refresh, dtype=np.intp)))
        return np.concatenate([np.unique(selected), np.arange(refresh, len(y))]).astype(np.intp)

    def hyperparameter_rows(self, y: Array) -> Rows:
        """The hyperparameter training subset: of the trials that the model learns from, by their values. By default all."""
        return np.arange(len(y))

    def in_use(self, trials: int, parameters: int) -> bool:
        """Whether so many trials are too many to learn from all of them."""
        return last_refresh(trials, parameters) is not None

    def count(self, refresh: int) -> int:
        """k, for N_r = ``refresh``."""
        return min(max(math.floor(refresh / self.alpha), MIN_SELECTED_TRIALS), refresh)

    @abstractmethod
    def pick(self, pool: Pool, count: int) -> Rows:
        """Up to ``count`` different rows of the pool."""


@dataclass(frozen=True)
class RandomSubset(Subset):
    """One trial in ``alpha``, selected at random (RS).

    The simplest of the three, for comparisons: ``KMeansSubset`` keeps the good trials of each region. The options are those of
    ``Subset``.

    >>> st.Study(st.Space(x=st.Float(0, 1)), subset=st.RandomSubset(alpha=10)).model.subset
    RandomSubset(alpha=10, keep_best=True)
    """

    def pick(self, pool: Pool, count: int) -> Rows:
        return np.asarray(pool.rng.choice(len(pool.Z), count, replace=False))


@dataclass(frozen=True)
class KMeansSubset(Subset):
    """Clusters by k-means, and of each cluster the best trial (KCS).

    The subset to choose where you want one: it follows where the trials are. ``SeedSubset`` spreads over the space instead. The
    options are those of ``Subset``.

    >>> st.Study(st.Space(x=st.Float(0, 1)), subset=st.KMeansSubset(alpha=10)).model.subset
    KMeansSubset(alpha=10, keep_best=True)
    """

    def pick(self, pool: Pool, count: int) -> Rows:
        return pool.best_of_each(k_means(pool.Z, count, pool.seed))


@dataclass(frozen=True)
class SeedSubset(Subset):
    """The cells around the points of a Latin hypercube, and of each cell the best trial (SCS).

    Faster than ``KMeansSubset``, and even over the space however the trials lie. The options are those of ``Subset``.

    >>> st.Study(st.Space(x=st.Float(0, 1)), subset=st.SeedSubset(alpha=10)).model.subset
    SeedSubset(alpha=10, keep_best=True)
    """

    def pick(self, pool: Pool, count: int) -> Rows:
        space = pool.encoding.space
        pivots = latin_hypercube(count, len(space), pool.rng)
        if pool.at_target.all():  # else the fidelity of a pivot would decide how many trials it gets
            pivots = space.at_target(pivots)
        return pool.best_of_each(nearest_centre(pool.Z, pool.encoding.features(pivots)))


@dataclass(frozen=True)
class AutoSubset(KMeansSubset):
    """``subset="auto"``: all trials while that is cheap, then hyperparameters from a part, and the posterior from many more.

    Exact fits grow with the cube of the trials: at 300 a suggestion takes about 50 ms, at 1,000 half a second. Most of that time
    goes into the hyperparameters. These are a dozen numbers, and HYPERPARAMETER_TRIALS trials determine them as well as a
    thousand do. The search itself goes by the values, and each value that is missing is a loss. So beyond MAX_EXACT_TRIALS trials
    the hyperparameters are learnt from a sample, and the posterior holds all trials up to MAX_POSTERIOR_TRIALS. Beyond these it
    holds the best trial of each of so many clusters (k-means), and all trials since the last refresh.

    Chosen on functions that are not in the reports (Styblinski-Tang, Rosenbrock, Salomon; d = 6, 600 trials, one seed each):
    regrets of 5e-5, 0.004 and 0.30, against 4e-4, 0.17 and 0.50 of the exact fit and 5e-4, 0.81 and 0.40 of clusters alone.
    """

    min_trials: ClassVar[int] = MAX_POSTERIOR_TRIALS
    max_exact_trials: ClassVar[float] = MAX_EXACT_TRIALS

    def rows(self, Z: Array, y: Array, at_target: NDArray[np.bool_], encoding: Encoding, seed: int) -> Rows:
        return np.arange(len(y)) if len(y) <= MAX_POSTERIOR_TRIALS else super().rows(Z, y, at_target, encoding, seed)

    def hyperparameter_rows(self, y: Array) -> Rows:
        if len(y) <= MAX_EXACT_TRIALS:
            return np.arange(len(y))
        order, half = np.argsort(y, kind="stable"), HYPERPARAMETER_TRIALS // 2
        others = order[half:]
        return np.sort(np.concatenate([order[:half], others[sample_by_rank(y[others], HYPERPARAMETER_TRIALS - half)]]))

    def in_use(self, trials: int, parameters: int) -> bool:
        return trials > MAX_POSTERIOR_TRIALS and super().in_use(trials, parameters)

    def count(self, refresh: int) -> int:
        return min(MAX_POSTERIOR_TRIALS, refresh)


# -- a model with its subset ---------------------------------------------------------------------------------------------


# -- samples and clusters -----------------------------------------------------------------------------------------------


def sample_by_rank(y: Array, count: int) -> Rows:
    """``count`` rows evenly by the rank of their values, lowest and highest included; all rows when there are no more."""
    if len(y) <= count:
        return np.arange(len(y))
    order = np.argsort(y, kind="stable")
    return np.sort(order[np.linspace(0, len(y) - 1, count).round().astype(np.intp)])


def latin_hypercube(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """``count`` points of the unit cube, with one point in each of ``count`` slices along each axis."""
    slices = rng.permuted(np.tile(np.arange(count)[:, None], (1, dimensions)), axis=0)
    return np.asarray((slices + rng.random((count, dimensions))) / count)


def spread(A: Array, count: int, rng: np.random.Generator, first: Rows | None = None) -> Rows:
    """k-means++ seeding: up to ``count`` different rows of A, far from each other; ``first`` are taken first, if they differ."""
    first = rng.integers(len(A), size=1) if first is None else first
    chosen: list[int] = []
    nearest = np.full(len(A), np.inf)
    squares = np.einsum("ij,ij->i", A, A)
    same = SAME_POINT * max(float(squares.max()), 1e-300)
    waiting = [int(row) for row in first[::-1]]
    while len(chosen) < min(count, len(A)):
        if waiting:
            row = waiting.pop()
            if nearest[row] <= same:
                continue
        else:
            total = np.cumsum(np.where(nearest > same, nearest, 0.0))
            if not total[-1] > 0.0:
                break
            row = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        chosen.append(row)
        apart = A - A[row]
        np.minimum(nearest, np.einsum("ij,ij->i", apart, apart), out=nearest)
    return np.array(chosen, dtype=np.intp)


def nearest_centre(A: Array, centres: Array) -> Rows:
    """For each row of A the centre nearest to it; of equal ones the first."""
    offset, labels = 0.5 * np.einsum("ij,ij->i", centres, centres), np.empty(len(A), dtype=np.intp)
    transposed = np.ascontiguousarray(centres.T)
    for start in range(0, len(A), DISTANCE_BLOCK_ROWS):
        rows = slice(start, start + DISTANCE_BLOCK_ROWS)
        closeness = A[rows] @ transposed
        closeness -= offset  # |a - c|^2 = |a|^2 - 2 closeness
        labels[rows] = closeness.argmax(axis=1)
    return labels


def k_means(A: Array, count: int, seed: tuple[int, ...]) -> Rows:
    """The cluster of each row of A, from 0 to count - 1; some may be empty.

    The last few answers are cached: between two refreshes of a subset every suggestion asks for the same.
    """
    A = np.ascontiguousarray(A, dtype=float)
    return _k_means(A.tobytes(), A.shape[1], count, seed)


@lru_cache(maxsize=4)
def _k_means(data: bytes, width: int, count: int, seed: tuple[int, ...]) -> Rows:
    A = np.frombuffer(data).reshape(-1, width)
    centres = A[spread(A, count, np.random.default_rng(seed))]
    labels = nearest_centre(A, centres)
    for _ in range(MAX_LLOYD_ITERATIONS):
        sizes = np.bincount(labels, minlength=len(centres))
        sums = np.column_stack([np.bincount(labels, column, minlength=len(centres)) for column in A.T])
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)  # an empty one stays
        before, labels = labels, nearest_centre(A, centres)
        if np.array_equal(before, labels):
            break
    labels.setflags(write=False)
    return labels
