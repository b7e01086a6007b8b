"""The outcome of an evaluation: its numbers are read and checked here, once, and end the trial.

A value that is NaN or infinite is a result: a failed trial. A value that is not a number, or a cost that is not positive, is bad
input: it raises OutcomeError, and the trial stays open, so that nothing is lost.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .._validation import is_number, plain
from ..errors import OutcomeError
from ..space.parameters import Numeric
from ..space.space import Config, Space
from .intermediate import reached_fidelity, truncated
from .trial import State, Trial


@dataclass(frozen=True)
class Outcome:
    """The result of an evaluation, which an objective may return in place of a number.

    value     the number; None for the mean of the folds
    cost      cost of the evaluation in the study's unit; None for the measured seconds, or their price
    folds     the values of the folds of a cross-validation
    gradient  d value / d parameter, by parameter name, in the user's units
    """

    value: float | None
    cost: float | None = None
    folds: Sequence[float] | None = None
    gradient: Mapping[str, float] | None = None


def finish_trial(
    trial: Trial,
    outcome: Outcome,
    error: str | None,
    seconds: float | None,
    reports: Sequence[Mapping[str, Any]] = (),
    censored: bool = False,
    price: float = 1.0,
    space: Space | None = None,
    stopped: Mapping[str, str] | None = None,
) -> Trial:
    """The trial with its outcome: done, or failed.

    Without a cost, the cost is the last one reported, or else the seconds times their ``price``. Without a value, the value is
    the mean of the folds. With the ``space``, a gradient by a Choice of numbers is refused too.

    ``stopped`` says why a trial was stopped early. If it was stopped below the fidelity that was asked, it becomes a trial of the
    fidelity of its last report, with the value of that report.
    """
    results: dict[str, Any] = {"seconds": seconds, "reports": tuple(reports) or trial.reports, "censored": censored}
    reported = next((report["cost"] for report in reversed(reports) if report["cost"] is not None), None)
    charged = seconds * price if seconds is not None else None
    measured = charged if reported is None else reported
    results["cost"] = measured if outcome.cost is None else read_cost(outcome.cost)
    if outcome.folds is not None:
        results["folds"] = read_folds(outcome.folds)
    if outcome.gradient is not None:
        results["gradient"] = read_gradient(outcome.gradient, trial.config, space)
    if error is not None:
        return trial.finish(State.FAILED, error=str(error), **results)
    if outcome.value is None and outcome.folds is None:
        raise OutcomeError(f"trial {trial.number}: give a value, folds= or error=")
    value = mean(results["folds"]) if outcome.value is None else read_value(outcome.value)
    if math.isfinite(value):
        if stopped is not None and (fidelity := reached_fidelity(trial, reports)) is not None:
            trial, value = truncated(trial, fidelity, stopped), float(reports[-1]["value"])
        return trial.finish(State.DONE, value=value, **results)
    return trial.finish(State.FAILED, error=f"the value was {value!r}", **results)


def read_value(value: Any) -> float:
    """A result as a float, which may be NaN or infinite; an OutcomeError if it is not a number."""
    if type(value) is float:
        return value
    value = plain(value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        shown = repr(value) if len(repr(value)) < 80 else repr(value)[:77] + "..."
        raise OutcomeError(f"a result must be a number or an st.Outcome, not {shown} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:  # a whole number above the largest float
        return -math.inf if str(value).startswith("-") else math.inf


def mean(values: Sequence[float]) -> float:
    """The mean, computed such that the sum cannot overflow."""
    return sum(value / len(values) for value in values)


def read_cost(cost: Any) -> float:
    """A cost as a float; an OutcomeError unless it is positive and finite."""
    number = read_value(cost)
    if not math.isfinite(number) or number <= 0:
        raise OutcomeError(f"a cost must be a positive, finite number, not {number!r}; leave it out to have the seconds measured")
    return number


def is_cost(cost: Any) -> bool:
    """Whether this is a positive, finite number."""
    try:
        read_cost(cost)
    except OutcomeError:
        return False
    return True


def read_folds(folds: Sequence[float]) -> tuple[float, ...]:
    """The values of the folds as floats; an OutcomeError unless there are two or more."""
    if isinstance(folds, str | bytes | Mapping) or not hasattr(folds, "__iter__"):
        raise OutcomeError(f"folds= must be a list of numbers, not {folds!r}")
    values = tuple(read_value(fold) for fold in folds)
    if len(values) < 2:
        raise OutcomeError(f"folds= needs the values of two folds or more, not {len(values)}")
    return values


def read_gradient(gradient: Mapping[str, float], config: Config, space: Space | None = None) -> dict[str, float]:
    """Partial derivatives as floats, by parameter name; an OutcomeError unless all are by numeric parameters of the config."""
    if not isinstance(gradient, Mapping):
        raise OutcomeError(f"gradient= must be a dict from parameter names to numbers, not {gradient!r}")
    gradients: dict[str, float] = {}
    for name, derivative in gradient.items():
        if name not in config:
            raise OutcomeError(f"gradient= names {name!r}, which is not in this trial's config ({', '.join(config)})")
        if not is_number(config[name]):
            raise OutcomeError(f"gradient= names {name!r}, which is not a number")
        if space is not None and not isinstance(space[name], Numeric):
            raise OutcomeError(f"gradient= names {name!r}, which is a choice: there is no derivative by its options")
        try:
            gradients[name] = read_value(derivative)
        except OutcomeError:
            raise OutcomeError(f"gradient= must have one number for {name!r}, not {derivative!r}") from None
        if not math.isfinite(gradients[name]):
            raise OutcomeError(f"gradient= has {gradients[name]!r} for {name!r}; leave it out where it is not known")
    return gradients
