"""Intermediate values: which points of a trial's learning curve are observations, and where a trial that was stopped early ends.

A trial of 50 epochs passes through 10, 20, ... epochs. The values that it reports there are values of its config at lower
fidelities, at no extra cost. They are worth less than the same number of trials: the values of one run rise and fall together,
and a model that is given all of them sees little else and is slow. So only a few are used, spread evenly over the second half of
the run on the scale of the fidelity. The first part of a learning curve is steep and says little about its end: on curves
a + b s^-k with a linear scale, a model that was given the first part predicted the target worse than one without any reports.

Notation
    progress   of a report: the sum of the unit coordinates of its fidelities. It grows along a run
    end        progress at which the trial itself ended with a result; None if it has no result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics import Array
from ..space.space import Space
from .trial import State, Trial

MAX_VALUES_PER_TRIAL = 4  # intermediate values of one trial that are used
MAX_VALUES_PER_STUDY = 400  # intermediate values of all trials that are used; with many trials, fewer of each
SAME_FIDELITY = 1e-9  # fidelities whose unit coordinates differ by less are the same
ABSENT = object()  # stands for the value of a parameter that is not active
PRUNED, BUDGET = "hopeless", "budget"  # why a trial was stopped early, as stored with it

Report = Mapping[str, Any]  # "value"; "fidelity": those that were named, by name; "cost": up to there, or None


@dataclass(frozen=True)
class IntermediateValue:
    """An intermediate value as an observation: a point of the unit cube, the value in the user's units, and the cost if known."""

    u: Array
    value: float
    cost: float | None


IntermediateMemo = tuple[int, list[IntermediateValue]]  # the limit, and what was found under it


def intermediate_values(trial: Trial, space: Space, limit: int = MAX_VALUES_PER_TRIAL) -> list[IntermediateValue]:
    """The points of a trial's learning curve that are used as observations, at most ``limit``.

    At the fidelity where the trial itself has ended, its result is used and not the report. A report without a fidelity is not
    used, since its place on the curve is unknown. Of several reports at one fidelity, the last is used.
    """
    located = [report for report in trial.reports if report["fidelity"]]
    if not located or limit < 1:
        return []
    u = space.encode(trial.config)
    points = np.repeat(u[None, :], len(located), axis=0)
    columns = [space.names.index(name) for name in space.fidelities]
    for column, name in zip(columns, space.fidelities, strict=True):
        amounts = [report["fidelity"].get(name, trial.config[name]) for report in located]
        points[:, column] = space[name].to_unit(np.array(amounts, dtype=float))
    progress = points[:, columns].sum(axis=1)
    end = float(u[columns].sum()) if trial.state is State.DONE else None
    last = {float(step): row for row, step in enumerate(progress) if end is None or step < end - SAME_FIDELITY}
    rows = np.array(sorted(last.values()), dtype=int)
    chosen = rows[spread_evenly(progress[rows], limit, end)]
    before = trial.resumed_from  # a report's cost is that of its trial, and the cost model learns that of the run from its start
    paid = 0.0 if before is None else before.paid
    priced = paid is not None and "interrupted" not in trial.suggestion
    costs = [None if each["cost"] is None or not priced else each["cost"] + paid for each in located]
    return [IntermediateValue(points[row], float(located[row]["value"]), costs[row]) for row in chosen]


def spread_evenly(progress: Array, limit: int, end: float | None) -> list[int]:
    """Which reports to use, at most ``limit``, given the progress at each: as evenly spread as they allow.

    They lie between the middle of the run and its last report; or, if the trial has an ``end``, between the middle and the end
    without the end itself.
    """
    if len(progress) <= limit:
        return list(range(len(progress)))
    middle = (progress[0] + (progress[-1] if end is None else end)) / 2
    wanted = np.linspace(middle, progress[-1], limit) if end is None else np.linspace(middle, end, limit + 1)[:-1]
    return sorted({int(np.argmin(np.abs(progress - each))) for each in wanted})


def all_intermediate_values(
    reporting: Sequence[Trial], trials: Sequence[Trial], space: Space, memo: dict[int, IntermediateMemo]
) -> list[IntermediateValue]:
    """The intermediate values used as observations, of the finished trials that have reported any (``reporting``).

    Those of an abandoned trial are used until its config is suggested again, so that a study that was interrupted goes on as if
    it had not been. ``memo`` keeps what was found by number: an ended trial does not change.
    """
    reporting = [trial for trial in reporting if trial.state is not State.ABANDONED or not asked_again(trial, trials, space)]
    limit = min(MAX_VALUES_PER_TRIAL, MAX_VALUES_PER_STUDY // len(reporting)) if reporting else 0
    found = []
    for trial in reporting:
        known = memo.get(trial.number)
        if known is None or known[0] != limit:
            known = memo[trial.number] = limit, intermediate_values(trial, space, limit)
        found += known[1]
    return found


def asked_again(trial: Trial, trials: Sequence[Trial], space: Space) -> bool:
    """Whether a later trial has the same config, at any fidelity."""

    names = [name for name, parameter in space.items() if not parameter.fidelity]

    def inputs(config: Mapping[str, Any]) -> list[Any]:
        return [config.get(name, ABSENT) for name in names]

    wanted = inputs(trial.config)
    return any(inputs(other.config) == wanted for other in trials if other.number > trial.number)


def reached_fidelity(trial: Trial, reports: Sequence[Report]) -> dict[str, float] | None:
    """The fidelities of the last report, if they are below those that were asked; None if not, or if they are unknown."""
    last = {name: amount for each in reports for name, amount in each["fidelity"].items()}  # of each fidelity, the last one named
    return {**trial.fidelity, **last} if any(amount < trial.config[name] for name, amount in last.items()) else None


def truncated(trial: Trial, fidelity: Mapping[str, float], stopped: Mapping[str, str]) -> Trial:
    """The trial as one of the fidelity that it has reached; its suggestion records what was asked, and why it was stopped."""
    noted = {**trial.suggestion, "asked": dict(trial.fidelity), "stopped": dict(stopped)}
    return replace(trial, config={**trial.config, **fidelity}, fidelity=dict(fidelity), suggestion=noted)


def was_pruned(trial: Trial) -> bool:
    """Whether the trial was stopped early by pruning, and not by the budget."""
    return bool((trial.suggestion.get("stopped") or {}).get("kind") == PRUNED)
