"""What comes of an evaluation, read and checked once: from here on a result is either recorded or refused.

A NaN or infinite value is a result, namely a failure. What is not a number at all, or a cost that is not positive, is bad
input: it raises OutcomeError and the trial stays open, so that nothing is lost.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .._validation import plain
from ..errors import OutcomeError
from ..space.parameters import Numeric
from ..space.space import Config, Space
from .intermediate import reached_fidelity, truncated
from .trial import State, Trial


@dataclass(frozen=True)
class Outcome:
    """What an objective may return in place of a bare number.

    value     the number; None for the mean of the folds
    cost      what the evaluation cost, in the study's unit; when left out the measured seconds, or their price
    folds     the values of the folds of a cross-validation
    gradient  d value / d parameter, by parameter name, in the user's units
    """

    value: float | None
    cost: float | None = None
    folds: Sequence[float] | None = None
    gradient: Mapping[str, float] | None = None


def finish_trial(
    trial: Trial,
    told: Outcome,
    error: str | None,
    seconds: float | None,
    reports: Sequence[Mapping[str, Any]] = (),
    censored: bool = False,
    price: float = 1.0,
    space: Space | None = None,
    stopped: Mapping[str, str] | None = None,
) -> Trial:
    """The finished trial. Without a cost, what was last reported or else the seconds times their ``price``; without a value,
    the folds' mean. With the ``space``, a slope by a choice of numbers is refused too.

    A trial that was ``stopped`` short of the fidelity that was asked is one of the fidelity that it last reported, with the value
    that it reported there.
    """
    results: dict[str, Any] = {"seconds": seconds, "reports": tuple(reports) or trial.reports, "censored": censored}
    reported = next((report["cost"] for report in reversed(reports) if report["cost"] is not None), None)
    charged = seconds * price if seconds is not None else None
    measured = charged if reported is None else reported
    results["cost"] = measured if told.cost is None else read_cost(told.cost)
    if told.folds is not None:
        results["folds"] = read_folds(told.folds)
    if told.gradient is not None:
        results["gradient"] = read_gradient(told.gradient, trial.config, space)
    if error is not None:
        return trial.finish(State.FAILED, error=str(error), **results)
    if told.value is None and told.folds is None:
        raise OutcomeError(f"trial {trial.number}: give a value, folds= or error=")
    value = mean(results["folds"]) if told.value is None else read_value(told.value)
    if math.isfinite(value):
        if stopped is not None and (fidelity := reached_fidelity(trial, reports)) is not None:
            trial, value = truncated(trial, fidelity, stopped), float(reports[-1]["value"])
        return trial.finish(State.DONE, value=value, **results)
    return trial.finish(State.FAILED, error=f"the value was {value!r}", **results)


def read_value(value: Any) -> float:
    """A result as a float, which may be NaN or infinite; an OutcomeError if it is not a number at all."""
    value = plain(value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        shown = repr(value) if len(repr(value)) < 80 else repr(value)[:77] + "..."
        raise OutcomeError(f"a result must be a number or an st.Outcome, not {shown} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the largest float
        return -math.inf if str(value).startswith("-") else math.inf


def mean(values: Sequence[float]) -> float:
    """Without overflow on the way."""
    return sum(value / len(values) for value in values)


def read_cost(cost: Any) -> float:
    number = read_value(cost)
    if not math.isfinite(number) or number <= 0:
        raise OutcomeError(f"a cost must be a positive, finite number, not {number!r}; leave it out to have the seconds measured")
    return number


def is_cost(cost: Any) -> bool:
    try:
        read_cost(cost)
    except OutcomeError:
        return False
    return True


def read_folds(folds: Sequence[float]) -> tuple[float, ...]:
    if isinstance(folds, str | bytes | Mapping) or not hasattr(folds, "__iter__"):
        raise OutcomeError(f"folds= must be a list of numbers, not {folds!r}")
    values = tuple(read_value(fold) for fold in folds)
    if len(values) < 2:
        raise OutcomeError(f"folds= needs the values of two folds or more, not {len(values)}")
    return values


def read_gradient(gradient: Mapping[str, float], config: Config, space: Space | None = None) -> dict[str, float]:
    if not isinstance(gradient, Mapping):
        raise OutcomeError(f"gradient= must be a dict from parameter names to slopes, not {gradient!r}")
    gradients: dict[str, float] = {}
    for name, slope in gradient.items():
        if name not in config:
            raise OutcomeError(f"gradient= names {name!r}, which is not in this trial's config ({', '.join(config)})")
        if isinstance(config[name], bool) or not isinstance(config[name], int | float):
            raise OutcomeError(f"gradient= names {name!r}, which is not a number")
        if space is not None and not isinstance(space[name], Numeric):
            raise OutcomeError(f"gradient= names {name!r}, which is a choice: there is no slope between its options")
        try:
            gradients[name] = read_value(slope)
        except OutcomeError:
            raise OutcomeError(f"gradient= must have one number for {name!r}, not {slope!r}") from None
        if not math.isfinite(gradients[name]):
            raise OutcomeError(f"gradient= has {gradients[name]!r} for {name!r}; leave it out where it is not known")
    return gradients
