"""The cost of going on: what a trial pays if it continues a run that was trained to a lower fidelity before.

A cost model learns what a run costs from its start. A trial that continues a run pays for the rest alone.

Notation
    x, s, s0        a config, the fidelity that is asked, and the one that the run has reached
    c(x, s)         the cost of a run from its start: log c ~ N(m(x, s), v(x, s)), the posterior of the cost model

    (1)  c(x, s | s0) = c(x, s) - c(x, s0), at least f c(x, s)
    (2)  r = exp(m(x, s0) - m(x, s)),   log c(x, s | s0) ~ N(m(x, s) + log max(1 - r, f), v(x, s))
    (3)  f = max(MIN_SHARE, PART_OF_FIDELITY (1 - s0 / s)), of several fidelities the highest

A learnt cost may be flat in the fidelity somewhere, or fall: going on would then seem to be free, and the search would choose
just these points. Hence (3). In (2) both costs of (1) are off by the same factor: a config that is twice as slow as expected is
so at every fidelity. So the share of the rest is taken as known, by the medians, and the uncertainty is that of the whole run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.dataset import Dataset
from ..data.intermediate import SAME_FIDELITY
from ..data.training_run import fidelity_columns, other_columns
from ..data.trial_table import hash_rows, to_grid
from ..numerics import Array
from ..space.parameters import Fidelity
from ..space.space import Space
from .base import CostPosterior

MIN_SHARE = 0.01  # of the cost of a run from its start: what going on costs at least
PART_OF_FIDELITY = 0.25  # of the share of the fidelity that is left: so much of the cost at least


@dataclass(frozen=True)
class StartedRuns:
    """The runs that may go on: finds those that points would continue.

    points   k x D   the configs, with the fidelities that they have reached
    pending  m x D   running trials. A run that is running is continued by its own pending point alone: another trial of its
                     config begins a new run
    """

    points: Array
    space: Space
    pending: Array | None = None

    @cached_property
    def _by_config(self) -> dict[bytes, list[int]]:
        grouped: dict[bytes, list[int]] = {}
        for row, key in enumerate(to_grid(self.points[:, other_columns(self.space)])):
            grouped.setdefault(key.tobytes(), []).append(row)
        return grouped

    @cached_property
    def _hashes(self) -> set[int]:
        return set(hash_rows(to_grid(self.points[:, other_columns(self.space)])).tolist())

    @cached_property
    def _running(self) -> tuple[set[bytes], set[bytes]]:
        """The configs of running trials, and the running trials themselves."""
        pending = self.points[:0] if self.pending is None else self.pending
        configs = to_grid(pending[:, other_columns(self.space)])
        return {row.tobytes() for row in configs}, {row.tobytes() for row in to_grid(pending)}

    def match(self, U: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of U that would continue a run, and the row of that run: of several, the one that has come furthest."""
        columns, keys = fidelity_columns(self.space), to_grid(U[:, other_columns(self.space)])
        rows, runs = list[int](), list[int]()
        for row, hashed in enumerate(hash_rows(keys).tolist()):
            if hashed not in self._hashes:
                continue
            ahead = {run: U[row, columns] - self.points[run, columns] for run in self._by_config.get(keys[row].tobytes(), ())}
            if keys[row].tobytes() in self._running[0] and to_grid(U[row]).tobytes() not in self._running[1]:
                continue
            below = [run for run, by in ahead.items() if (by > -SAME_FIDELITY).all() and by.sum() > SAME_FIDELITY]
            if below:
                rows.append(row)
                runs.append(min(below, key=lambda run: float(ahead[run].sum())))
        return np.array(rows, dtype=np.intp), np.array(runs, dtype=np.intp)

    def log_rest(self, U: Array, runs: NDArray[np.intp], total: Array, reached: Array) -> Array:
        """log max(1 - r, f), equations (2) and (3), for points and their runs.

        total, reached   the logarithms of the cost of the whole run, at the points and where the runs have ended
        """
        rest: Array = np.maximum(-np.expm1(np.minimum(reached - total, 0.0)), self._floor(U, runs).max(axis=1))
        return np.log(rest)

    def log_rest_slopes(self, U: Array, runs: NDArray[np.intp], total: Array, reached: Array) -> tuple[Array, Array]:
        """The derivatives of ``log_rest`` by ``total``, and by the unit coordinates of the resumable fidelities (m x columns)."""
        rest, floor = -np.expm1(np.minimum(reached - total, 0.0)), self._floor(U, runs)
        learnt = rest >= floor.max(axis=1)
        by_total = np.where(learnt, 1.0 / np.where(learnt, rest, 1.0) - 1.0, 0.0)  # r / (1 - r)
        by_fidelity = np.zeros(floor.shape)
        for place, (name, j) in enumerate(zip(self.space.resumable, fidelity_columns(self.space), strict=True)):
            fidelity = self.space[name]
            assert isinstance(fidelity, Fidelity)
            now, then = fidelity.relaxed(U[:, j]), fidelity.relaxed(self.points[runs, j])
            counts = ~learnt & (floor.argmax(axis=1) == place) & (floor[:, place] > MIN_SHARE)
            ahead = np.where(counts, now - then, 1.0)
            slope = np.array([fidelity.derivative(value) for value in now])
            by_fidelity[:, place] = np.where(counts, then / np.where(counts, now, 1.0) / ahead * slope, 0.0)
        return by_total, by_fidelity

    def _floor(self, U: Array, runs: NDArray[np.intp]) -> Array:
        """f of equation (3), for each resumable fidelity (m x columns)."""
        floor = np.full((len(U), len(self.space.resumable)), MIN_SHARE)
        for place, (name, j) in enumerate(zip(self.space.resumable, fidelity_columns(self.space), strict=True)):
            fidelity = self.space[name]
            assert isinstance(fidelity, Fidelity)
            now, then = fidelity.relaxed(U[:, j]), fidelity.relaxed(self.points[runs, j])
            share = np.where(now > 0.0, 1.0 - np.maximum(then, 0.0) / np.where(now > 0.0, now, 1.0), 0.0)
            floor[:, place] = np.maximum(MIN_SHARE, PART_OF_FIDELITY * share)
        return floor


@dataclass(frozen=True)
class IncrementalCost(CostPosterior):
    """The posterior of what a trial pays: that of the whole run, or equation (2) where it would continue a run.

    total   the posterior of the cost of runs from their start
    """

    total: CostPosterior
    started: StartedRuns
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.total.name)

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, variance = self.total.log_cost(U)
        rows, runs = self.started.match(U)
        if not len(rows):
            return mean, variance
        mean = mean.copy()
        reached = self.total.log_cost(self.started.points[runs])[0]
        mean[rows] += self.started.log_rest(U[rows], runs, mean[rows], reached)
        return mean, variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        """As a fidelity moves, the run stays the same; in all other directions, the gradient is that of the whole run."""
        mean, variance, d_mean, d_variance = self.total.log_cost_with_gradient(U)
        rows, runs = self.started.match(U)
        if not len(rows):
            return mean, variance, d_mean, d_variance
        mean, d_mean = mean.copy(), d_mean.copy()
        reached = self.total.log_cost(self.started.points[runs])[0]
        by_total, by_fidelity = self.started.log_rest_slopes(U[rows], runs, mean[rows], reached)
        mean[rows] += self.started.log_rest(U[rows], runs, mean[rows], reached)
        place = np.ix_(rows, fidelity_columns(self.started.space))
        d_mean[place] = d_mean[place] * (1.0 + by_total)[:, None] + by_fidelity
        return mean, variance, d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        """Of the observations, which are costs of runs from their start."""
        return self.total.leave_one_out()


def started_runs(data: Dataset, space: Space) -> StartedRuns | None:
    """The runs that may go on; None where there are none."""
    return None if data.started is None or not len(data.started) else StartedRuns(data.started, space, data.pending)


def incremental_cost(total: CostPosterior, data: Dataset, space: Space) -> CostPosterior:
    """The posterior of what trials pay, given the runs that may go on (``data.started``); the same where there are none."""
    started = started_runs(data, space)
    return total if started is None else IncrementalCost(total, started)


def incremental_log_cost(total: CostPosterior, U: Array, points: Array, space: Space) -> Array:
    """The expected logarithm of what trials at U pay, given where the runs of some configs have ended (``points``)."""
    return IncrementalCost(total, StartedRuns(points, space)).log_cost(U)[0]
