"""One trial of Optuna as a record of this library: its result, cost, folds and intermediate values.

A pruned trial is no result. It is a trial of the fidelity that it has reached, below the target; where it has no value below the
target, it is a failed trial. Both are marked as pruned, so that they are PRUNED again when they are exported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from .._validation import is_number, plain
from ..data.intermediate import PRUNED, Report, truncated
from ..data.outcome import read_value
from ..data.trial import State, Trial
from ..errors import MethodError, OutcomeError
from ..space.space import Config

STEP = "shoestring step"  # the fidelity of a space whose trials report intermediate values
FOLDS_KEY = "folds"  # user attribute: the results of the folds of a cross-validation
CV_SCORES_KEY = "terminator:cv_scores"  # where optuna.terminator.report_cross_validation_scores keeps the folds
MAX_REPORTS = 200  # of one trial that are kept; of more, so many, spread evenly
STOPPED = {"kind": PRUNED, "reason": "pruned in Optuna"}


def to_trial(frozen: FrozenTrial, row: int, config: Config, steps: tuple[int, int] | None, cost: str | None) -> Trial:
    """A trial of Optuna as a record of this library, in the space of a mirror whose fidelity is STEP."""
    target = {} if steps is None else {STEP: steps[1] - steps[0] + 1}
    trial = Trial(row, {**config, **target}, fidelity=target)
    if frozen.state is TrialState.RUNNING:
        return trial
    trial = replace(trial, reports=to_reports(frozen, steps))
    return ended(frozen, trial, cost, STEP, 1, target.get(STEP))


def ended(frozen: FrozenTrial, trial: Trial, cost: str | None, fidelity: str | None, low: float, target: float | None) -> Trial:
    """A trial that has ended, with its result; of a fidelity, ``low`` is the lowest amount and ``target`` the highest."""
    paid, seconds = cost_of(frozen, cost)
    trial = replace(trial, folds=folds_of(frozen), cost=paid, seconds=seconds)
    if frozen.state is TrialState.FAIL:
        return failed(trial, "failed in Optuna")
    if frozen.state is TrialState.PRUNED:
        return pruned(trial, fidelity, low, -math.inf if target is None else target)
    value = frozen.value
    if value is None or not math.isfinite(value):
        return failed(trial, f"the value was {value!r}")
    return replace(trial, state=State.DONE, value=float(value))


def pruned(trial: Trial, fidelity: str | None, low: float, target: float) -> Trial:
    """A pruned trial: at its last report below the target, with the value there; failed if there is none."""
    below = [each for each in trial.reports if fidelity in each["fidelity"] and low <= each["fidelity"][fidelity] < target]
    if not below:
        why = "with no value below the last step" if trial.reports else "before it reported a value"
        return replace(failed(trial, f"pruned in Optuna {why}"), suggestion={**trial.suggestion, "stopped": dict(STOPPED)})
    last = below[-1]
    done = replace(trial, state=State.DONE, value=float(last["value"]))
    return truncated(done, {**trial.fidelity, **last["fidelity"]}, STOPPED)


def failed(trial: Trial, why: str) -> Trial:
    """A trial without a result."""
    return replace(trial, state=State.FAILED, error=why, folds=None)


def read_cost(cost: Any) -> str | None:
    """What a trial costs, checked: "seconds", the name of a user attribute, or None."""
    if cost is not None and (not isinstance(cost, str) or not cost):
        raise MethodError(f'cost must be "seconds", the name of a user attribute or None, not {cost!r}')
    return cost


def cost_of(frozen: FrozenTrial, cost: str | None) -> tuple[float | None, float | None]:
    """The cost and the seconds of a trial."""
    seconds = None if frozen.duration is None else max(frozen.duration.total_seconds(), 0.0)
    if cost is None:
        return None, None
    if cost == "seconds":
        return seconds, seconds
    given = frozen.user_attrs.get(cost)
    if given is None:
        return None, seconds
    try:
        paid = read_value(given)
    except OutcomeError:
        paid = math.nan
    if not math.isfinite(paid) or paid < 0:
        what = f"trial {frozen.number}: its cost, the user attribute {cost!r}, is {given!r}"
        raise MethodError(f"{what}; set a number of 0 or more: trial.set_user_attr({cost!r}, number)")
    return paid, seconds


def folds_of(frozen: FrozenTrial) -> tuple[float, ...] | None:
    """The results of the folds: a user attribute, or as ``optuna.terminator.report_cross_validation_scores`` keeps them."""
    found = read_folds(frozen.user_attrs.get(FOLDS_KEY))
    return read_folds(frozen.system_attrs.get(CV_SCORES_KEY)) if found is None else found


def read_folds(given: Any) -> tuple[float, ...] | None:
    """Folds, if this is a list of two finite numbers or more; None for anything else: the name "folds" may mean other things."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes) or len(listed) < 2:
        return None
    if not all(is_number(fold) and math.isfinite(fold) for fold in listed):
        return None
    return tuple(float(plain(fold)) for fold in listed)


def last_step(frozen: FrozenTrial) -> int | None:
    """The step of the last intermediate value that is a finite number."""
    return max((step for step, value in frozen.intermediate_values.items() if math.isfinite(value)), default=None)


def to_reports(frozen: FrozenTrial, steps: tuple[int, int] | None) -> tuple[Report, ...]:
    """The intermediate values that are finite, in order of their steps; steps that no finished trial has had are left out."""
    if steps is None:
        return ()
    low, high = steps
    found = [
        {"value": float(value), "fidelity": {STEP: step - low + 1}, "cost": None}
        for step, value in sorted(frozen.intermediate_values.items())
        if low <= step <= high and math.isfinite(value)
    ]
    if len(found) > MAX_REPORTS:
        found = [found[round(k * (len(found) - 1) / (MAX_REPORTS - 1))] for k in range(MAX_REPORTS)]
    return tuple(found)
