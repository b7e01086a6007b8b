"""Points that need not be asked again, found among a hundred thousand without looking at each.

Two points are one when no coordinate differs by more than rounding: each is moved to a grid of width SAME, and gets a mark, a sum
of odd multiples of its places on the grid. Points with the same mark are compared in full; hardly ever are there others than
those that are sought.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .trial import State

if TYPE_CHECKING:
    from .history import History

SAME_POINT = 1e-9  # points nearer than this in every coordinate are one point
Whole = NDArray[np.int64]


def to_grid(U: Array) -> Whole:
    return np.asarray(np.rint(U / SAME_POINT).astype(np.int64))


def hash_rows(places: Whole) -> Whole:
    """One number for each row of places on the grid; it may overflow, which does no harm."""
    return np.asarray((places * _factors(places.shape[1])).sum(axis=1))


@cache
def _factors(count: int) -> Whole:
    return np.arange(1, 2 * count, 2, dtype=np.int64) * 0x9E3779B97F4A7C1


def is_among(U: Array, points: Array) -> NDArray[np.bool_]:
    """Which rows of U stand among the points."""
    if not len(points) or not len(U):
        return np.zeros(len(U), dtype=bool)
    sought, rows = to_grid(U), to_grid(points)
    if len(rows) > len(sought):
        rows = rows[np.isin(hash_rows(rows), hash_rows(sought))]
    there = {row.tobytes() for row in rows}
    return np.array([row.tobytes() in there for row in sought])


class VisitedSet:
    """The points of a history's trials, of the abandoned ones apart, and ``others``.

    Trials are found by the marks that the history's columns keep: what that takes does not grow with them.
    """

    def __init__(self, history: History, others: Array) -> None:
        self.history, self.others = history, others

    @classmethod
    def of(cls, history: History) -> VisitedSet:
        """All that a history has: trials, what they reported along the way, and where they were asked if stopped early."""
        pruned = history.table.pruned
        points = [waypoint.u for waypoint in history.intermediate] + [pruned[row] for row in sorted(pruned)]
        return cls(history, np.array(points).reshape(len(points), len(history.space)))

    def also(self, points: Array) -> VisitedSet:
        return VisitedSet(self.history, np.vstack([self.others, points]))

    def holds(self, U: Array) -> NDArray[np.bool_]:
        """Which rows of U are taken."""
        columns, marks = self.history.table, hash_rows(to_grid(U))
        found = is_among(U, self.others)
        suspects = np.array([mark in columns.hashes for mark in marks.tolist()], dtype=bool)
        if suspects.any():
            rows = np.flatnonzero(np.isin(columns.hash[: columns.count], marks[suspects]))
            found[suspects] |= is_among(U[suspects], columns.U[rows[~columns.having(State.ABANDONED)[rows]]])
        return found

    @property
    def points(self) -> Array:
        """All of them."""
        columns = self.history.table
        rows = np.flatnonzero(~columns.having(State.ABANDONED))
        return np.vstack([columns.U.take(rows, axis=0), self.others])

    def __getitem__(self, rows: slice) -> Array:
        """Some of them, as of an array of points."""
        return self.points[rows]
