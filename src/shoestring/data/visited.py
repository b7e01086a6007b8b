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
    """The points of a history's trials, without abandoned ones, ``others``, and ``pruned``: where pruned trials were asked.

    Trials are found by the hashes in the history's table: the time does not grow with their number.
    """

    def __init__(self, history: History, others: Array, pruned: Array | None = None) -> None:
        self.history, self.others = history, others
        self.pruned = others[:0] if pruned is None else pruned

    @classmethod
    def of(cls, history: History, pruned: bool = True) -> VisitedSet:
        """The points of the trials and of their intermediate values; with ``pruned``, those at which pruned trials were asked."""
        asked = history.table.pruned if pruned else {}
        reached, stopped = [each.u for each in history.intermediate], [asked[row] for row in sorted(asked)]
        shaped = [np.array(points).reshape(len(points), len(history.space)) for points in (reached, stopped)]
        return cls(history, *shaped)

    def with_points(self, points: Array) -> VisitedSet:
        """This set with further points."""
        return VisitedSet(self.history, np.vstack([self.others, points]), self.pruned)

    def reopened(self, points: Array) -> VisitedSet:
        """This set without those of the points at which a pruned trial was asked: its run may go on to them."""
        return VisitedSet(self.history, self.others, self.pruned[~is_among(self.pruned, points)])

    def contains(self, U: Array) -> NDArray[np.bool_]:
        """Which rows of U have been visited."""
        table, hashes = self.history.table, hash_rows(to_grid(U))
        known, mask = table.hashes, is_among(U, np.vstack([self.others, self.pruned]))
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
        return np.vstack([table.U.take(rows, axis=0), self.others, self.pruned])

    def __getitem__(self, rows: slice) -> Array:
        """Some rows of ``points``."""
        return self.points[rows]
