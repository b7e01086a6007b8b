"""Whether a trial that is running may still become the answer, given what it has reported.

    mu, s    mean and deviation of the configuration's value at the target fidelity, under the model of all trials and of this
             trial's reports so far (as few of them as count later, see ``traces``)
    y*       the lowest mean at the target among the configurations that have finished
    chance   Phi((y* - mu) / s)

It is hopeless when the chance is below ENOUGH: then what the trial would still cost buys next to nothing, be it that it is better
than the best or that more is known of where the best is. Nobody can tell where no model chose the trials, where nothing has
finished at the target yet, and where fewer than FEWEST other configurations were seen as early in their runs as this one is now:
without this condition, 39 % of the trials that were stopped on a linear scale and 8 % on a logarithmic one would have become the
best, with it 3 % (Branin and Hartmann-3 along learning curves, with noise and without, 30 trials, four seeds each).

Asked only when the objective asks ``trial.should_stop()``; one fit, from the last suggestion's hyperparameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..data.dataset import Dataset
from ..data.intermediate import SAME_FIDELITY, intermediate_values
from ..data.trial import Trial
from ..numerics import Array
from .base import SearchContext, fit_context_belief

PRUNING_PROBABILITY = 0.025
TEACHING = ("KG", "CFKG", "DKG", "CFDKG", "StochasticKG", "ES", "PES", "MES", "BOCA")
MIN_OTHER_CONFIGS = 5  # other configurations that were seen as early in their runs as this one is now


@dataclass(frozen=True)
class PruningForecast:
    """The chance that the trial's configuration is better than the best one at the target fidelity, and what it was before.

    A trial of a method that looks for knowledge may never have been likely to be the best: it was asked for what it teaches, and
    only reports that took its chance away end it. Of other methods ``before`` is not asked for.
    """

    probability: float
    before: float = 1.0

    @property
    def hopeless(self) -> bool:
        return self.probability < PRUNING_PROBABILITY <= self.before

    @property
    def reason(self) -> str:
        below = "below" if self.hopeless else "not below"
        return f"the chance to become better than the best is {self.probability:.2g}, {below} {PRUNING_PROBABILITY:g}"


def pruning_forecast(context: SearchContext, trial: Trial, reports: Sequence[Mapping[str, Any]]) -> PruningForecast | None:
    """The chance that a running trial with such reports will matter; None where it cannot be told."""
    space, seen = context.space, context.data
    waypoints = intermediate_values(replace(trial, reports=tuple(reports)), space)
    known = context.warm_start
    if known is None or not waypoints or not seen.at_target[: seen.finished].any():
        return None
    if seen_as_early(context, waypoints[-1].u) < MIN_OTHER_CONFIGS:
        return None
    without = replace(seen, pending=seen.pending[:0])  # what is only supposed is no reason to stop
    u = waypoints[-1].u
    now = improvement_probability(context, without.with_intermediate(waypoints, space), u)
    teaches = now < PRUNING_PROBABILITY and trial.suggestion.get("by") in TEACHING
    return PruningForecast(now, improvement_probability(context, without, u) if teaches else 1.0)


def improvement_probability(context: SearchContext, seen: Dataset, u: Array) -> float:
    """That a configuration is better than the best one, at the target fidelity."""
    space, known = context.space, context.warm_start or {}
    last = {**known, "trials": len(seen.y)}  # no fit from scratch on the way
    model = replace(context.model, inference="map")
    belief = fit_context_belief(replace(context, load_dataset=lambda: seen, warm_start=last, model=model), costs=False)
    features = belief.encoding.features
    best = float(belief.fitted_mean(features(space.at_target(seen.U[: seen.finished]))).min())
    mean, variance = belief.moments(features(space.at_target(u[None, :])))
    return float(ndtr((best - mean[0]) / np.sqrt(variance[0])))


def seen_as_early(context: SearchContext, u: Array) -> int:
    """How many configurations have a value at a point's fidelities or lower ones."""
    space, U = context.space, context.data.U
    columns = [space.names.index(name) for name in space.fidelities]
    as_early = U[(U[:, columns] <= u[columns] + SAME_FIDELITY).all(axis=1)]
    return len(np.unique(space.at_target(as_early).round(9), axis=0))
