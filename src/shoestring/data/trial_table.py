"""The trials of a study as arrays, a row a trial, so that nothing has to be read from thousands of records at each ask.

Arrays have room to grow and are written in place: a trial costs one row when it is opened and one when it is closed. ``stamp``
moves on with every write, so that whoever looked before can tell that they have changed. Many trials are written together, which
takes a twentieth of the time of one after the other, and gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.parameters import Choice, Numeric
from ..space.space import Space
from .intermediate import was_pruned
from .trial import State, Trial
from .visited import hash_rows, to_grid

CODES = {state: code for code, state in enumerate(State)}
INITIAL_CAPACITY = 64  # rows at first; doubled when they are full
ROWS_PER_WRITE = 1000  # trials that are written at once: all that belongs to them stays in the processor's cache

ARRAYS = ("U", "state", "value", "cost", "at_target", "censored", "measured", "has_model", "has_reports", "hash")


class TrialTable:
    """Notation, for row i:

    U, state      its point; a code of CODES
    value, cost   NaN and 0 where there is none
    at_target     whether it is a trial of the target fidelity
    censored      whether the cost is a lower bound
    measured      whether the cost is the seconds that it took, since nobody gave another
    remembers     whether its suggestion left a model behind
    told          whether it has ended and has reported along the way
    mark          by which its point is found (see ``taken``)
    sloped        i -> slopes in the user's sign, where some were told
    given_up      i -> the point at which a trial was asked that was stopped early, as it no longer promised anything
    """

    def __init__(self, space: Space) -> None:
        self.space, self.count, self.version = space, 0, 0
        self._goal = tuple(space.target.items())
        self.U = np.empty((INITIAL_CAPACITY, len(space)))
        self.state = np.empty(INITIAL_CAPACITY, dtype=np.int8)
        self.value, self.cost = np.empty(INITIAL_CAPACITY), np.empty(INITIAL_CAPACITY)
        self.at_target, self.censored, self.measured, self.has_model, self.has_reports = (np.empty(INITIAL_CAPACITY, dtype=bool) for _ in range(5))
        self.hash = np.empty(INITIAL_CAPACITY, dtype=np.int64)
        self.gradients: dict[int, Array] = {}
        self.pruned: dict[int, Array] = {}
        self._marks: set[int] | None = None

    def put(self, row: int, trial: Trial) -> None:
        """Write a row: the next one, or one that is there."""
        self._put(row, [trial])

    def put_all(self, first: int, trials: Sequence[Trial]) -> None:
        """Write a row a trial, from row ``first`` on, up to one that does not fit."""
        for start in range(0, len(trials), ROWS_PER_WRITE):
            self._put(first + start, trials[start : start + ROWS_PER_WRITE])

    def _put(self, first: int, trials: Sequence[Trial]) -> None:
        """All of them, or none if one does not fit."""
        U, rows = encode_configs([trial.config for trial in trials], self.space), slice(first, first + len(trials))
        sloped, pruned = dict[int, Array](), dict[int, Array]()
        for row, trial in enumerate(trials, first):
            if trial.gradient:
                sloped[row] = unit_gradient(trial, self.space)
            if "asked" in trial.suggestion and trial.state is State.DONE and was_pruned(trial):
                pruned[row] = self.space.encode({**trial.config, **trial.suggestion["asked"]})
        self._make_room(rows.stop)
        self.U[rows], self.hash[rows] = U, hash_rows(to_grid(U))
        self.state[rows] = [CODES[trial.state] for trial in trials]
        self.value[rows] = [np.nan if trial.value is None else trial.value for trial in trials]
        self.cost[rows] = [trial.cost or 0.0 for trial in trials]
        self.at_target[rows] = True
        for name, goal in self._goal:
            self.at_target[rows] &= [trial.config[name] == goal for trial in trials]
        self.censored[rows] = [trial.censored for trial in trials]
        self.measured[rows] = [trial.cost == trial.seconds for trial in trials]
        self.has_model[rows] = ["model" in trial.suggestion for trial in trials]
        self.has_reports[rows] = [bool(trial.reports) and trial.finished for trial in trials]
        for kept, new in ((self.gradients, sloped), (self.pruned, pruned)):
            for row in kept.keys() & range(rows.start, rows.stop):
                del kept[row]
            kept |= new
        if self._marks is not None:
            self._marks.update(self.hash[rows].tolist())
        self.count, self.version = max(self.count, rows.stop), self.version + 1

    def _make_room(self, needed: int) -> None:
        room = len(self.state)
        while room < needed:
            room *= 2
        if room > len(self.state):
            for name in ARRAYS:
                old = getattr(self, name)
                new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)

    @classmethod
    def of(cls, trials: Iterable[Trial], space: Space) -> TrialTable:
        found = cls(space)
        found.put_all(0, tuple(trials))
        return found

    def first(self, count: int) -> TrialTable:
        """A copy of the first rows."""
        found = TrialTable(self.space)
        found.count = min(count, self.count)
        for name in ARRAYS:
            setattr(found, name, getattr(self, name)[: max(found.count, INITIAL_CAPACITY)].copy())
        found.gradients = {row: slopes for row, slopes in self.gradients.items() if row < found.count}
        found.pruned = {row: point for row, point in self.pruned.items() if row < found.count}
        return found

    def having(self, *states: State) -> NDArray[np.bool_]:
        """Which rows are in one of these states."""
        found = np.zeros(self.count, dtype=bool)
        for state in states:
            found |= self.state[: self.count] == CODES[state]
        return found

    @property
    def hashes(self) -> set[int]:
        """All marks, and some that are no more: a row that was written anew may have moved."""
        if self._marks is None:
            self._marks = set(self.hash[: self.count].tolist())
        return self._marks


def encode_configs(configs: Sequence[Mapping[str, Any]], space: Space) -> Array:
    """``space.encode`` of many configs at once: the same numbers."""
    if len(configs) == 1:
        return space.encode(configs[0])[None, :]
    U, read = np.full((len(configs), len(space)), 0.5), 0
    for column, (name, parameter) in enumerate(space.items()):
        rows: slice | list[int] = slice(None)
        try:
            values = [config[name] for config in configs]
        except KeyError:  # it is not active in all of them
            rows = [row for row, config in enumerate(configs) if name in config]
            values = [configs[row][name] for row in rows]
        U[rows, column] = parameter.to_unit(levels_of(values, parameter, name) if isinstance(parameter, Choice) else values)
        read += len(values)
    if read < sum(map(len, configs)):
        raise KeyError(next(name for config in configs for name in config if name not in space))
    return U


def levels_of(values: Sequence[Any], parameter: Choice, name: str) -> list[int]:
    """The numbers of options; each that looks different is looked up once."""
    looks = list(map(repr, values))
    levels = {look: parameter.level_of(value, name) for look, value in dict(zip(looks, values, strict=True)).items()}
    return [levels[look] for look in looks]


def unit_gradient(trial: Trial, space: Space) -> Array:
    """A trial's gradient by the coordinates of the unit cube, in the user's sign; NaN where it has none."""
    slopes = np.full(len(space), np.nan)
    for column, (name, parameter) in enumerate(space.items()):
        if trial.gradient and name in trial.gradient and isinstance(parameter, Numeric):
            slope = trial.gradient[name] * parameter.stretch(trial.config[name])
            slopes[column] = slope if np.isfinite(slope) else np.nan  # beyond the largest float: as good as unknown
    return slopes
