"""How much time a suggestion may take, where the time of the optimizer counts too.

Under a budget in time, and under one in measured seconds, a suggestion that takes longer than what it can save is made with less
effort:

    "full"      as always
    "reduced"   hyperparameters are kept for several suggestions, and the acquisition is searched from fewer points. It takes a
                third of the time, and is nearly as good. So it is better once a suggestion takes as long as FULL_EFFORT_IN_TRIALS
                trials: then more trials fit into the same time
    "random"    no model. A suggestion of the model is worth about WORTH_IN_TRIALS random trials. So it has to take longer than
                these. Then the model gets half of the time, and random trials the other half

Both numbers are read off ``benchmarks.effort``, parts ``levels`` and ``worth``, on the tuning problems. What was chosen is stored
with the trial, so that ``replay`` can do the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..budget import Budget
from ..data.history import History
from ..data.trial import State

FULL_EFFORT_IN_TRIALS = 3.0
WORTH_IN_TRIALS = 100.0
TRIALS_TIMED = 20  # the last ones, whose median is the time of a trial
SHARE_OF_THE_MODEL = 0.5  # of the time, where a suggestion never pays
SMOOTHING = 0.3  # weight of the last suggestion's time in the running average

Level = Literal["full", "reduced", "random"]


@dataclass
class Effort:
    """The level of effort of the next suggestion, from the times of those before it.

    seconds   a suggestion takes at each level: a running average;   guided  seconds of all that used a model
    """

    seconds: dict[Level, float] = field(default_factory=dict)
    guided: float = 0.0
    _began: float = field(default_factory=time.perf_counter)

    def choose(self, history: History, workers: int, *, in_time: bool) -> Level:
        """The level for the next suggestion. ``in_time``: the budget is in time, so the work for a random trial counts too."""
        trial_seconds = typical_seconds(history)
        if trial_seconds is None:
            return "full"
        if self.seconds.get("full", 0.0) <= FULL_EFFORT_IN_TRIALS * trial_seconds / workers:  # free workers wait for it
            return "full"
        random_seconds = trial_seconds / workers + (self.seconds.get("random", 0.0) if in_time else 0.0)
        if self.seconds.get("reduced", 0.0) <= WORTH_IN_TRIALS * random_seconds:
            return "reduced"
        return "reduced" if self.guided <= SHARE_OF_THE_MODEL * (time.perf_counter() - self._began) else "random"

    def add(self, level: Level, seconds: float) -> None:
        """A suggestion of this level took so long."""
        known = self.seconds.get(level, seconds)
        self.seconds[level] = known + SMOOTHING * (seconds - known)
        if level != "random":
            self.guided += seconds


def counts_time(budget: Budget | None, history: History) -> bool:
    """Whether the time of a suggestion counts: the budget is in time, or in cost that is measured time."""
    if budget is None or (budget.seconds is None and budget.cost is None):
        return False
    table = history.table
    return budget.seconds is not None or bool(table.measured[: table.count][table.having(State.DONE)].all())


def typical_seconds(history: History) -> float | None:
    """The median time of the last trials; None while there is none."""
    table = history.table
    ended = np.flatnonzero(table.having(State.DONE, State.FAILED))[-TRIALS_TIMED:]
    return float(np.median(table.seconds[ended])) if len(ended) else None
