"""Points that stand for many: spread over data, or the centres of clusters.

Notation
    A       n x p       points;  c_1 .. c_k  centres;  distances are Euclidean
    spread              k-means++ seeding (Arthur, Vassilvitskii 2007): each next point is drawn with a chance proportional to
                        its squared distance from the nearest of those before it, so that no point is drawn twice
    k-means             Lloyd's iteration from there: each point to its nearest centre, each centre to the mean of its points

Fewer than k different points make fewer than k clusters. Lloyd's own loop in blocks of rows: at n = 10,000, k = 500 it takes
less than half the time of SciPy's ``kmeans2``, whose seeding stumbles over duplicates, and needs no further import.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array

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
