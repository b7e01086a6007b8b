"""The trials of a study as arrays, a row a trial, so that nothing has to be read from thousands of records at each ask.

Arrays have room to grow and are written in place: a trial costs one row when it is opened and one when it is closed. ``stamp``
moves on with every write, so that whoever looked before can tell that they have changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .numerics import Array
from .parameters import Numeric
from .space import Space
from .traces import gave_up
from .trial import State, Trial

CODES = {state: code for code, state in enumerate(State)}
ROOM = 64  # rows at first; doubled when they are full


ARRAYS = ("U", "state", "value", "cost", "at_target", "censored", "measured", "remembers")


class Columns:
    """Notation, for row i:

    U, state      its point; a code of CODES
    value, cost   NaN and 0 where there is none
    at_target     whether it is a trial of the target fidelity
    censored      whether the cost is a lower bound
    measured      whether the cost is the seconds that it took, since nobody gave another
    remembers     whether its suggestion left a model behind
    sloped        i -> slopes in the user's sign, where some were told
    given_up      i -> the point at which a trial was asked that was stopped early, as it no longer promised anything
    """

    def __init__(self, space: Space) -> None:
        self.space, self.count, self.stamp = space, 0, 0
        self._goal = tuple(space.target.items())
        self.U = np.empty((ROOM, len(space)))
        self.state = np.empty(ROOM, dtype=np.int8)
        self.value, self.cost = np.empty(ROOM), np.empty(ROOM)
        self.at_target, self.censored, self.measured, self.remembers = (np.empty(ROOM, dtype=bool) for _ in range(4))
        self.sloped: dict[int, Array] = {}
        self.given_up: dict[int, Array] = {}

    def put(self, row: int, trial: Trial) -> None:
        """Write a row: the next one, or one that is there."""
        if row == len(self.state):
            for name in ARRAYS:
                setattr(self, name, np.concatenate([getattr(self, name), np.empty_like(getattr(self, name))]))
        self.U[row] = self.space.encode(trial.config)
        self.state[row] = CODES[trial.state]
        self.value[row] = np.nan if trial.value is None else trial.value
        self.cost[row] = trial.cost or 0.0
        self.at_target[row] = all(trial.config[name] == goal for name, goal in self._goal)
        self.censored[row], self.measured[row] = trial.censored, trial.cost == trial.seconds
        self.remembers[row] = "model" in trial.suggestion
        if trial.gradient:
            self.sloped[row] = unit_slopes(trial, self.space)
        if trial.state is State.DONE and gave_up(trial):
            self.given_up[row] = self.space.encode({**trial.config, **trial.suggestion["asked"]})
        self.count, self.stamp = max(self.count, row + 1), self.stamp + 1

    @classmethod
    def of(cls, trials: Iterable[Trial], space: Space) -> Columns:
        found = cls(space)
        for row, trial in enumerate(trials):
            found.put(row, trial)
        return found

    def first(self, count: int) -> Columns:
        """A copy of the first rows."""
        found = Columns(self.space)
        found.count = min(count, self.count)
        for name in ARRAYS:
            setattr(found, name, getattr(self, name)[: max(found.count, ROOM)].copy())
        found.sloped = {row: slopes for row, slopes in self.sloped.items() if row < found.count}
        found.given_up = {row: point for row, point in self.given_up.items() if row < found.count}
        return found

    def having(self, *states: State) -> NDArray[np.bool_]:
        """Which rows are in one of these states."""
        return np.isin(self.state[: self.count], [CODES[state] for state in states])


def unit_slopes(trial: Trial, space: Space) -> Array:
    """A trial's gradient by the coordinates of the unit cube, in the user's sign; NaN where it has none."""
    slopes = np.full(len(space), np.nan)
    for column, (name, parameter) in enumerate(space.items()):
        if trial.gradient and name in trial.gradient and isinstance(parameter, Numeric):
            slope = trial.gradient[name] * parameter.stretch(trial.config[name])
            slopes[column] = slope if np.isfinite(slope) else np.nan  # beyond the largest float: as good as unknown
    return slopes
