"""The visited set: points that need not be suggested again, found by hash and not by comparison with every trial.

Two points are the same if no coordinate differs by more than rounding. Each point is rounded to a grid of width SAME_POINT, and
its hash is a sum of odd multiples of its places on the grid. Points with the same hash are compared in full; they are almost
always the same point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .history import History
from .trial import State
from .trial_table import hash_rows, to_grid


def is_among(U: Array, points: Array) -> NDArray[np.bool_]:
    """Which rows of U are among the points."""
    if not len(points) or not len(U):
        return np.zeros(len(U), dtype=bool)
    wanted, rows = to_grid(U), to_grid(points)
    if len(rows) > len(wanted):
        rows = rows[np.isin(hash_rows(rows), hash_rows(wanted))]
    known = {row.tobytes() for row in rows}
    return np.array([row.tobytes() in known for row in wanted])


class VisitedSet:
    """The points of a history's trials, without abandoned ones, and ``others``.

    Trials are found by the hashes in the history's table: the time does not grow with their number.
    """

    def __init__(self, history: History, others: Array) -> None:
        self.history, self.others = history, others

    @classmethod
    def of(cls, history: History, pruned: bool = True) -> VisitedSet:
        """The points of the trials and of their intermediate values; with ``pruned``, those at which pruned trials were asked."""
        asked = history.table.pruned if pruned else {}
        points = [each.u for each in history.intermediate] + [asked[row] for row in sorted(asked)]
        return cls(history, np.array(points).reshape(len(points), len(history.space)))

    def with_points(self, points: Array) -> VisitedSet:
        """This set with further points."""
        return VisitedSet(self.history, np.vstack([self.others, points]))

    def contains(self, U: Array) -> NDArray[np.bool_]:
        """Which rows of U have been visited."""
        table, hashes = self.history.table, hash_rows(to_grid(U))
        known, mask = table.hashes, is_among(U, self.others)
        suspects = np.array([each in known for each in hashes.tolist()], dtype=bool)
        if suspects.any():
            rows = np.flatnonzero(np.isin(table.hash[: table.count], hashes[suspects]))
            mask[suspects] |= is_among(U[suspects], table.U[rows[~table.having(State.ABANDONED)[rows]]])
        return mask

    @property
    def points(self) -> Array:
        """All points (n x D)."""
        table = self.history.table
        rows = np.flatnonzero(~table.having(State.ABANDONED))
        return np.vstack([table.U.take(rows, axis=0), self.others])

    def __getitem__(self, rows: slice) -> Array:
        """Some rows of ``points``."""
        return self.points[rows]
