"""Continuations as candidates: the configs that were begun, at the fidelities to which they could go on.

An acquisition optimizer draws points over the whole space. It would never hit a config that was begun, and a nearby point begins
a new run. So the continuations of the most promising runs are candidates of their own, beside all others, of the same search:
whether to go on with an old run or to begin a new one is decided by the acquisition, at what each costs.
"""

from __future__ import annotations

import numpy as np

from ..data.dataset import Dataset
from ..data.training_run import fidelity_columns, idle_starts
from ..data.trial_table import SAME_POINT
from ..numerics import Array
from ..space.space import Space
from ..surrogate.belief import Belief
from ..surrogate.curves_target import CurveSurrogate

MAX_CONTINUED_RUNS = 16  # the most promising ones; a space of curves has few more that are worth a look
MIN_CHANCE = 0.05  # to become the best, of a run that goes on: twice what a running one is pruned at, so that it is not at once
STEPS = (0.125, 0.25, 0.5, 0.75, 1.0)  # of the way from the fidelity that was reached to the target, on the scale of the fidelity


def continuation_points(data: Dataset, space: Space, belief: Belief) -> Array:
    """The points at which the most promising runs would go on (m x D), the most promising first."""
    return points_ahead(promising_runs(data, space, belief), space)


def promising_runs(data: Dataset, space: Space, belief: Belief, limit: int = MAX_CONTINUED_RUNS) -> Array:
    """Of the runs that may go on, those with the lowest posterior mean at the target (k x D): where they have ended."""
    started = idle_starts(data.started, np.vstack([data.pending, data.failed]), space)  # what has failed would fail again
    if isinstance(belief.model, CurveSurrogate):
        started = started[belief.model.curves.chances(started) >= MIN_CHANCE]
    if len(started) <= 1:
        return started
    expected = belief.fitted_mean(belief.encoding.features(space.at_target(started)))
    return started[np.argsort(expected, kind="stable")[:limit]]


def points_ahead(started: Array, space: Space) -> Array:
    """The continuations of runs: one step after the other towards the target, each once."""
    columns = fidelity_columns(space)
    goal = np.array([space.target_units[column] for column in columns.tolist()])
    blocks = []
    for u in started:
        block = np.repeat(u[None, :], len(STEPS), axis=0)
        block[:, columns] += np.array(STEPS)[:, None] * np.maximum(goal - u[columns], 0.0)
        block = space.snap(block)
        ahead = (block[:, columns] - u[columns]).sum(axis=1) > SAME_POINT
        _, first = np.unique(np.rint(block[:, columns] / SAME_POINT), axis=0, return_index=True)
        keep = np.zeros(len(block), dtype=bool)
        keep[first] = True
        blocks.append(block[keep & ahead])
    return np.vstack(blocks) if blocks else np.empty((0, len(space)))
