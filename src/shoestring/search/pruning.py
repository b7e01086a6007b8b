"""Pruning: whether a running trial may still become the answer, given its learning curve so far.

    mu, s    mean and deviation of the configuration's value at the target fidelity, under a model of all trials and of this
             trial's intermediate values so far
    y*       the lowest mean at the target among the configurations that have finished
    P        Phi((y* - mu) / s), the probability of improvement

A trial is pruned when P is below PRUNING_PROBABILITY: then what it would still cost buys next to nothing (where P was below it
before the first report, when it is below that share of what it was). There is no forecast
while no model has chosen a trial (unless the study says ``prune=True``), while nothing has finished at the target, and while
fewer than MIN_OTHER_CONFIGS other configurations have a value as early in their runs as this one is now. Without the last
condition, 39 % of the trials that the plain model pruned on a linear scale and 8 % on a logarithmic one would have become the
best; with it 3 % (Branin and Hartmann-3 along learning curves, with noise and without, 30 trials, four seeds each).

A forecast is made only when the objective asks ``trial.should_stop()``. There are two ways to it:

    curves   where trials have reported learning curves: the model of ``surrogate.curves``, unless the plain one predicts better.
             It is fitted when a trial ends. A check is one small solve for the running curve alone
    plain    where the other trials have results alone: the model of the last suggestion, fitted once more with this trial's
             intermediate values (as few of them as count later, see ``data.intermediate``). It is asked when the fidelity has
             doubled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..data.intermediate import SAME_FIDELITY, intermediate_values
from ..data.trial import Trial
from ..numerics import Array, special
from ..surrogate.curves_evidence import Points
from ..surrogate.curves_posterior import RunForecaster
from ..surrogate.curves_study import CurveFit, points_of
from .base import SearchContext, no_curves
from .halving_start import is_start

PRUNING_PROBABILITY = 0.025
MIN_OTHER_CONFIGS = 5  # other configurations with a value as early in their runs as this one is now


@dataclass(frozen=True)
class PruningForecast:
    """The probability that the trial's configuration is better than the best one at the target fidelity, now and before.

    Only intermediate values that took its chance away prune a trial. One of a method that seeks information may never have been
    likely to be the best: it was asked for what it tells. One that the model of curves gave no chance from the start was asked
    because the model of the search sees one: it is pruned if its own values lower that chance by as much. Else the search
    would ask for the same place again and again, and learn nothing there.

    threshold   the probability below which a trial is pruned
    """

    probability: float
    before: float = 1.0
    seeks_information: bool = False
    threshold: float = PRUNING_PROBABILITY

    @property
    def should_prune(self) -> bool:
        """Whether the trial should be pruned."""
        if self.before < self.threshold and not self.seeks_information:
            return self.probability < self.threshold * self.before
        return self.probability < self.threshold <= self.before

    @property
    def reason(self) -> str:
        below = "below" if self.should_prune else "not below"
        return f"the chance to become better than the best is {self.probability:.2g}, {below} {self.threshold:g}"


def pruning_forecast(
    context: SearchContext,
    trial: Trial,
    reports: Sequence[Mapping[str, Any]],
    *,
    seeks_information: bool = False,
    curves: CurveFit | None = None,
    always: bool = False,
    threshold: float = PRUNING_PROBABILITY,
) -> PruningForecast | None:
    """The forecast for a running trial with such reports; None where there can be none.

    curves      the model of the study's learning curves, where there is one
    always      also for methods without a model
    threshold   the probability below which the trial is pruned
    """
    if context.warm_start is None and not always:
        return None
    if curves is not None and covers(curves, trial, reports):
        return curve_forecast(context, curves, trial, reports, seeks_information, threshold)
    space, data = context.space, context.data
    values = intermediate_values(replace(trial, reports=tuple(reports)), space)
    if context.warm_start is None or not values or not data.at_target[: data.finished].any():
        return None
    u = values[-1].u
    if configs_seen_as_early(context, u) < MIN_OTHER_CONFIGS:
        return None
    without = replace(data, pending=data.pending[:0])  # what is only assumed of pending trials is no reason to prune
    now = improvement_probability(context, without.with_intermediate(values, space), u)
    compare = now < threshold and seeks_information
    before = improvement_probability(context, without, u) if compare else 1.0
    return PruningForecast(now, before, seeks_information, threshold)


# -- by the model of curves ---------------------------------------------------------------------------------------------


def covers(curves: CurveFit, trial: Trial, reports: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the model of curves is about this trial: it reports the traced fidelity, and all others are at their target."""
    data, target = curves.data, curves.data.encoding.space.target
    others_at_target = all(trial.config[name] == goal for name, goal in target.items() if name != data.traced)
    return others_at_target and bool(reports) and data.traced in reports[-1]["fidelity"]


def curve_forecast(
    context: SearchContext, curves: CurveFit, trial: Trial, reports: Sequence[Mapping[str, Any]], seeks_information: bool,
    threshold: float,
) -> PruningForecast | None:  # fmt: skip
    """The forecast of the model of curves."""
    data, best = curves.data, curves.incumbent
    if best is None:
        return None
    run = first_of_run(context, trial)
    points: Points = dict(data.points[data.runs.index(run)]) if run in data.runs else {}
    points.update(points_of(reports, data.traced, data.goal))
    now = max(points)
    if int((data.first_times <= now + SAME_FIDELITY).sum()) - (run in data.runs) < MIN_OTHER_CONFIGS:
        return None
    forecaster = curves.forecaster(context.space.encode(trial.config), run)
    times, values = data.thinned(points)
    probability = chance_below(best, *forecaster.at(times, curves.output.forward(values)))
    before = chance_below(best, *forecaster.at((), ())) if probability < threshold else 1.0
    return PruningForecast(probability, before, seeks_information, threshold)


def runs_that_went_on(context: SearchContext, curves: CurveFit) -> int:
    """How many runs went on to the target where a check would have stopped them: the objective does not seem to ask.

    By the first halves of their curves, against the complete runs before them. Runs of the start are not stopped.
    """
    data, posterior = curves.data, curves.posterior
    complete = np.flatnonzero(data.at_target)
    if not len(complete):
        return 0
    ends, _ = posterior.mean_and_variance(posterior.started(complete))
    best_before = np.minimum.accumulate(np.append(np.inf, ends[:-1]))
    mean, covariance = posterior.without_own()
    found = 0
    for row, best in zip(complete.tolist(), best_before.tolist(), strict=True):
        if row < MIN_OTHER_CONFIGS or is_start(context.history.trials[data.runs[row]]):
            continue
        t, y = (each[: (len(each) + 1) // 2] for each in (posterior.curves.times[row], posterior.curves.values[row]))
        chance = chance_below(best, *RunForecaster(posterior.shape, mean[row], covariance[row]).at(t, y))
        found += chance < PRUNING_PROBABILITY
    return found


def first_of_run(context: SearchContext, trial: Trial) -> int:
    """The number of the first trial of a trial's run."""
    while (before := trial.resumed_from) is not None:
        trial = context.history.trials[before.number]
    return trial.number


def chance_below(best: float, mean: float, variance: float) -> float:
    """P: that a value with this mean and variance is lower than the best."""
    return float(special.ndtr((best - mean) / np.sqrt(max(variance, 1e-300))))


# -- by the plain model -------------------------------------------------------------------------------------------------


def fidelity_doubled(fidelity: Mapping[str, float], before: Mapping[str, float]) -> bool:
    """Whether a fidelity is twice what it was when the plain model was asked last, which costs a fit."""
    return any(amount >= 2 * before.get(name, 0.0) for name, amount in fidelity.items())


def improvement_probability(context: SearchContext, data: Dataset, u: Array) -> float:
    """P: that a configuration is better than the best one, at the target fidelity."""
    warm_start = {**(context.warm_start or {}), "trials": len(data.y)}  # no fit from scratch in between
    model = replace(context.model, inference="map") if context.model.inference != "map" else context.model  # type: ignore[type-var]
    belief = context.with_data(data, warm_start=warm_start, model=model, curves=no_curves).belief(costs=False)
    features, space = belief.encoding.features, context.space
    best = float(belief.fitted_mean(features(space.at_target(data.U[: data.finished]))).min())
    mean, variance = belief.moments(features(space.at_target(u[None, :])))
    return float(special.ndtr((best - mean[0]) / np.sqrt(variance[0])))


def configs_seen_as_early(context: SearchContext, u: Array) -> int:
    """How many configurations have a value at a point's fidelities or at lower ones."""
    space, U = context.space, context.data.U
    columns = [space.names.index(name) for name in space.fidelities]
    as_early = U[(U[:, columns] <= u[columns] + SAME_FIDELITY).all(axis=1)]
    return len(np.unique(space.at_target(as_early).round(9), axis=0))
