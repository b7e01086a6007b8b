"""The trials of a study as arrays, one row per trial, so that a suggestion need not read thousands of records.

Arrays have spare capacity and are written in place: a trial costs one write when it starts and one when it ends. ``version``
grows with every write, so that a reader can tell whether the table has changed. Many trials are written at once, which takes a
twentieth of the time of one by one, and gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.parameters import Choice, Numeric
from ..space.space import Space
from .intermediate import IntermediateMemo, was_pruned
from .trial import State, Trial

CODES = {state: code for code, state in enumerate(State)}
INITIAL_CAPACITY = 64  # rows; doubled when they are full
ROWS_PER_WRITE = 1000  # trials written at once: few enough that their data stays in the processor's cache

SAME_POINT = 1e-9  # points that differ by less in every coordinate of the unit cube are the same

ARRAYS = (
    "U", "state", "value", "cost", "seconds", "at_target", "censored", "measured", "has_model", "has_reports", "added",
    "priced", "hash",
)  # fmt: skip

IntArray = NDArray[np.int64]


class TrialTable:
    """The trials as arrays, ``count`` rows of which are in use.

    U, state      point of the unit cube; state as a code of CODES
    value         NaN where there is none;   cost, seconds  0 where there is none
    at_target     whether the trial is at the target fidelity
    censored      whether the cost is a lower bound
    measured      whether the cost is the measured seconds, since no other was given
    has_model     whether the suggestion holds a warm start
    has_reports   whether the trial has ended and has reported intermediate values
    added         whether the trial is a result from elsewhere
    priced        whether the cost is known: it may be 0
    hash          hash of the point (see ``visited``)
    gradients     row -> gradient by the unit cube, in the user's sign, for trials with gradient observations
    pruned        row -> the point that was asked, for trials that were pruned at a lower fidelity
    on_curve      row -> the intermediate values that were last found for it: a memo, see ``intermediate``

    Where a fidelity is resumable (see ``training_run``), also:

    paid_before   row -> what was paid for the part of the run that the trial went on from; NaN if that is not known
    runs          row -> the number of its run, for trials of all but the first run of their config
    saved         rows of trials that have saved files in their checkpoint folder
    lost          rows of trials whose files are gone
    """

    def __init__(self, space: Space) -> None:
        self.space, self.count, self.version = space, 0, 0
        self._target = tuple(space.target.items())
        self.U = np.empty((INITIAL_CAPACITY, len(space)))
        self.state = np.empty(INITIAL_CAPACITY, dtype=np.int8)
        self.value, self.cost, self.seconds = (np.empty(INITIAL_CAPACITY) for _ in range(3))
        flags = (np.empty(INITIAL_CAPACITY, dtype=bool) for _ in range(7))
        self.at_target, self.censored, self.measured, self.has_model, self.has_reports, self.added, self.priced = flags
        self.hash = np.empty(INITIAL_CAPACITY, dtype=np.int64)
        self.gradients: dict[int, Array] = {}
        self.pruned: dict[int, Array] = {}
        self.on_curve: dict[int, IntermediateMemo] = {}
        self.paid_before: dict[int, float] = {}
        self.runs: dict[int, int] = {}
        self.saved: set[int] = set()
        self.lost: set[int] = set()
        self._hashes: set[int] | None = None

    def put(self, row: int, trial: Trial) -> None:
        """Write one row: the next, or an existing one."""
        self._put(row, [trial])

    def put_all(self, first: int, trials: Sequence[Trial]) -> None:
        """Write one row per trial, from row ``first`` on. If a trial does not fit the space, those before it may be written."""
        for start in range(0, len(trials), ROWS_PER_WRITE):
            self._put(first + start, trials[start : start + ROWS_PER_WRITE])

    def _put(self, first: int, trials: Sequence[Trial]) -> None:
        """Write all of them, or none if one does not fit the space."""
        U, rows = encode_configs([trial.config for trial in trials], self.space), slice(first, first + len(trials))
        gradients, pruned = dict[int, Array](), dict[int, Array]()
        for row, trial in enumerate(trials, first):
            if trial.gradient:
                gradients[row] = unit_gradient(trial, self.space)
            if "asked" in trial.suggestion and trial.state is State.DONE and was_pruned(trial):
                pruned[row] = self.space.encode({**trial.config, **trial.suggestion["asked"]})
        self._reserve(rows.stop)
        self.U[rows], self.hash[rows] = U, hash_rows(to_grid(U))
        self.state[rows] = [CODES[trial.state] for trial in trials]
        self.value[rows] = [np.nan if trial.value is None else trial.value for trial in trials]
        self.cost[rows] = [trial.cost or 0.0 for trial in trials]
        self.seconds[rows] = [trial.seconds or 0.0 for trial in trials]
        self.at_target[rows] = True
        for name, goal in self._target:
            self.at_target[rows] &= [trial.config[name] == goal for trial in trials]
        self.censored[rows] = [trial.censored for trial in trials]
        self.measured[rows] = [trial.cost == trial.seconds for trial in trials]
        self.has_model[rows] = ["model" in trial.suggestion for trial in trials]
        self.has_reports[rows] = [bool(trial.reports) and trial.finished for trial in trials]
        self.added[rows] = [trial.added for trial in trials]
        self.priced[rows] = [trial.cost is not None for trial in trials]
        for kept in (self.gradients, self.pruned, self.on_curve):
            for row in kept.keys() & range(rows.start, rows.stop):
                del kept[row]
        self.gradients |= gradients
        self.pruned |= pruned
        if self.space.resumable:
            self._put_runs(first, trials)
        if self._hashes is not None:
            self._hashes.update(self.hash[rows].tolist())
        self.count, self.version = max(self.count, rows.stop), self.version + 1

    def _put_runs(self, first: int, trials: Sequence[Trial]) -> None:
        for row, trial in enumerate(trials, first):
            if (before := trial.resumed_from) is not None:
                self.paid_before[row] = np.nan if before.paid is None else before.paid
            else:
                self.paid_before.pop(row, None)
            if "run" in trial.suggestion:
                self.runs[row] = trial.suggestion["run"]
            if trial.suggestion.get("saved"):
                self.saved.add(row)
            if trial.suggestion.get("interrupted"):
                self.censored[row] = True  # what was paid before the interruption is not in its cost

    def _reserve(self, needed: int) -> None:
        """Grow the arrays to hold ``needed`` rows."""
        capacity = len(self.state)
        while capacity < needed:
            capacity *= 2
        if capacity > len(self.state):
            for name in ARRAYS:
                old = getattr(self, name)
                new = np.empty((capacity, *old.shape[1:]), dtype=old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)

    @classmethod
    def of(cls, trials: Iterable[Trial], space: Space) -> TrialTable:
        """The table of some trials."""
        table = cls(space)
        table.put_all(0, tuple(trials))
        return table

    def head(self, count: int) -> TrialTable:
        """A copy of the first ``count`` rows."""
        table = TrialTable(self.space)
        table.count = min(count, self.count)
        for name in ARRAYS:
            setattr(table, name, getattr(self, name)[: max(table.count, INITIAL_CAPACITY)].copy())
        table.gradients = {row: gradient for row, gradient in self.gradients.items() if row < table.count}
        table.pruned = {row: point for row, point in self.pruned.items() if row < table.count}
        table.paid_before = {row: paid for row, paid in self.paid_before.items() if row < table.count}
        table.runs = {row: run for row, run in self.runs.items() if row < table.count}
        table.saved, table.lost = ({row for row in rows if row < table.count} for rows in (self.saved, self.lost))
        return table

    def having(self, *states: State) -> NDArray[np.bool_]:
        """Which rows are in one of these states."""
        mask = np.zeros(self.count, dtype=bool)
        for state in states:
            mask |= self.state[: self.count] == CODES[state]
        return mask

    @property
    def hashes(self) -> set[int]:
        """The hashes of all points, and perhaps of points that are no longer there: a row that was rewritten may have moved."""
        if self._hashes is None:
            self._hashes = set(self.hash[: self.count].tolist())
        return self._hashes


def encode_configs(configs: Sequence[Mapping[str, Any]], space: Space) -> Array:
    """``space.encode`` of many configs at once: the same numbers, bit for bit."""
    if len(configs) == 1:
        return space.encode(configs[0])[None, :]
    U, entries = np.full((len(configs), len(space)), 0.5), 0
    for column, (name, parameter) in enumerate(space.items()):
        rows: slice | list[int] = slice(None)
        try:
            values = [config[name] for config in configs]
        except KeyError:  # it is not active in all of them
            rows = [row for row, config in enumerate(configs) if name in config]
            values = [configs[row][name] for row in rows]
        U[rows, column] = parameter.to_unit(levels_of(values, parameter, name) if isinstance(parameter, Choice) else values)
        entries += len(values)
    if entries < sum(map(len, configs)):
        raise KeyError(next(name for config in configs for name in config if name not in space))
    return U


def levels_of(values: Sequence[Any], parameter: Choice, name: str) -> list[int]:
    """The numbers of options; each distinct one is searched for once."""
    texts = list(map(repr, values))
    levels = {text: parameter.level_of(value, name) for text, value in dict(zip(texts, values, strict=True)).items()}
    return [levels[text] for text in texts]


def unit_gradient(trial: Trial, space: Space) -> Array:
    """A trial's gradient by the coordinates of the unit cube, in the user's sign; NaN where it is unknown."""
    gradient = np.full(len(space), np.nan)
    for column, (name, parameter) in enumerate(space.items()):
        if trial.gradient and name in trial.gradient and isinstance(parameter, Numeric):
            derivative = trial.gradient[name] * parameter.derivative(trial.config[name])
            gradient[column] = derivative if np.isfinite(derivative) else np.nan  # above the largest float: unknown
    return gradient


def to_grid(U: Array) -> IntArray:
    """Points as whole numbers: their places on a grid of width SAME_POINT."""
    return np.asarray(np.rint(U / SAME_POINT).astype(np.int64))


def hash_rows(places: IntArray) -> IntArray:
    """The hash of each row of places on the grid. It may overflow, which does no harm."""
    return np.asarray((places * _factors(places.shape[1])).sum(axis=1))


@cache
def _factors(count: int) -> IntArray:
    return np.arange(1, 2 * count, 2, dtype=np.int64) * 0x9E3779B97F4A7C1
