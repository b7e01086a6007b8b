"""The outcome of an evaluation: its numbers are read and checked here, once, and end the trial.

A value that is NaN or infinite is a result: a failed trial. A value that is not a number, or a cost that is not positive, is bad
input: it raises OutcomeError, and the trial stays open, so that nothing is lost.
"""

from __future__ import annotations

import json
import math
import numbers
import re
import sys
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

MAX_ERROR_BYTES = 1 << 16  # of an error, or of a traceback, that is kept with a trial
MAX_CHARACTERS_SHOWN = 80  # of a value in an error message
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True)
class Outcome:
    """The result of an evaluation, which an objective may return in place of a number.

    Use it to report more than the value: what it cost, the folds of a cross-validation, a gradient, further numbers and facts.

    value     the number; None for the mean of the folds
    cost      cost of the evaluation in the study's unit; None for the measured seconds, or their price
    folds     the values of the folds of a cross-validation
    gradient  d value / d parameter, by parameter name, in the user's units
    metrics   further numbers to keep with the trial, such as {"accuracy": 0.93}; the optimizer does not look at them
    attrs     further facts to keep with the trial: anything that JSON can hold

    >>> def train(config):
    ...     return st.Outcome(0.31, cost=config["epochs"], metrics={"accuracy": 0.93}, attrs={"host": "gpu3"})
    >>> trial = st.minimize(train, st.Space(epochs=st.Int(1, 9)), 1, method=st.Random()).best
    >>> trial.value, trial.metrics, trial.cost == trial.config["epochs"]
    (0.31, {'accuracy': 0.93}, True)
    """

    value: float | None
    cost: float | None = None
    folds: Sequence[float] | None = None
    gradient: Mapping[str, float] | None = None
    metrics: Mapping[str, float | None] | None = None
    attrs: Mapping[str, Any] | None = None


def finish_trial(
    trial: Trial,
    outcome: Outcome,
    error: str | None,
    seconds: float | None,
    *,
    reports: Sequence[Mapping[str, Any]] = (),
    censored: bool = False,
    price: float = 1.0,
    space: Space | None = None,
    stopped: Mapping[str, str] | None = None,
    traceback: str | None = None,
) -> Trial:
    """The trial with its outcome: done, or failed.

    Without a cost, the cost is the last one reported, or else the seconds times their ``price``. Without a value, the value is
    the mean of the folds. With the ``space``, a gradient by a Choice of numbers is refused too.

    ``stopped`` says why a trial was stopped early. If it was stopped below the fidelity that was asked, it becomes a trial of the
    fidelity of its last report, with the value of that report.
    """
    results: dict[str, Any] = {"seconds": seconds, "reports": tuple(reports) or trial.reports, "censored": censored}
    reported = last_reported_cost(reports)
    charged = min(seconds * price, sys.float_info.max) if seconds is not None else None
    measured = charged if reported is None else reported
    results["cost"] = measured if outcome.cost is None else read_cost(outcome.cost)
    if outcome.metrics:
        results["metrics"] = read_metrics(outcome.metrics)
    if outcome.attrs:
        results["attrs"] = {**trial.attrs, **read_attrs(outcome.attrs)}
    if outcome.folds is not None:
        results["folds"] = read_folds(outcome.folds)
    if outcome.gradient is not None:
        results["gradient"] = read_gradient(outcome.gradient, trial.config, space)
    if error is not None:
        results["traceback"] = None if traceback is None else capped(traceback)
        return trial.finish(State.FAILED, error=capped(error), **results)
    if outcome.value is None and outcome.folds is None:
        raise OutcomeError(f"trial {trial.number}: give a value, folds= or error=")
    value = mean(results["folds"]) if outcome.value is None else read_value(outcome.value)
    if math.isfinite(value):
        if stopped is not None and (fidelity := reached_fidelity(trial, reports)) is not None:
            trial, value = truncated(trial, fidelity, stopped), float(reports[-1]["value"])
        return trial.finish(State.DONE, value=value, **results)
    return trial.finish(State.FAILED, error=f"the value was {value!r}", **results)


def last_reported_cost(reports: Sequence[Mapping[str, Any]]) -> float | None:
    """What a trial had paid at its last report with a cost; None if none has one."""
    return next((report["cost"] for report in reversed(reports) if report["cost"] is not None), None)


def read_value(value: Any) -> float:
    """A result as a float, which may be NaN or infinite; an OutcomeError if it is not a number."""
    if type(value) is float:
        return value
    value = single_number(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise OutcomeError(f"a result must be a number or an st.Outcome, not {shown(value)} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:  # a whole number above the largest float
        return -math.inf if value < 0 else math.inf


def single_number(value: Any) -> Any:
    """The number in an array or a tensor of one element, of NumPy, PyTorch, JAX or TensorFlow; anything else as it is."""
    if not hasattr(value, "item") and hasattr(value, "numpy"):
        value = value.numpy()
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, TypeError, RuntimeError):  # it has several elements
        return value


def capped(given: Any, limit: int = MAX_ERROR_BYTES) -> str:
    """An error or a traceback as it is kept: at most ``limit`` bytes, its beginning and its end, and how long it was.

    Errors repeat the data that caused them: without a limit, a few failed trials would fill a database.
    """
    text = joined(str(given))
    if 4 * len(text) <= limit:  # no character takes more than four bytes
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    gap = f"\n... (the middle is left out: the whole text has {len(text):,} characters) ...\n"
    half = max(0, limit - len(gap)) // 2
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:half], data[-half:]))  # half a character at a cut is dropped
    return head + gap + tail


def shown(value: Any) -> str:
    """A value in an error message: its repr, cut where it is long, or only its type where that raises."""
    try:
        text = repr(value)
    except Exception:  # a repr of the user's may raise anything
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= MAX_CHARACTERS_SHOWN else text[: MAX_CHARACTERS_SHOWN - 3] + "..."


def joined(text: str) -> str:
    """The same text as a plain ``str``; a character that was written in two halves (a surrogate pair) is one character."""
    text = str.__str__(text)
    if text.isascii() or not _SURROGATE_PAIR.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def mean(values: Sequence[float]) -> float:
    """The mean, computed such that the sum cannot overflow."""
    return sum(value / len(values) for value in values)


def read_cost(cost: Any) -> float:
    """A cost as a float; an OutcomeError unless it is finite and not below 0."""
    try:
        number = read_value(cost)
    except OutcomeError:
        raise OutcomeError(f"a cost must be a number, not {cost!r}") from None
    if not math.isfinite(number) or number < 0:
        raise OutcomeError(f"a cost must be a finite number of 0 or more, not {number!r}; leave it out to have the time measured")
    return number


def is_cost(cost: Any) -> bool:
    """Whether this is a finite number of 0 or more."""
    try:
        read_cost(cost)
    except OutcomeError:
        return False
    return True


def read_metrics(metrics: Any) -> dict[str, float | None]:
    """Metrics as floats, by name; None for one that is NaN or infinite. An OutcomeError unless all are numbers."""
    if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
        raise OutcomeError(f'metrics= must be a dict from names to numbers, such as {{"accuracy": 0.93}}, not {shown(metrics)}')
    found: dict[str, float | None] = {}
    for name, value in metrics.items():
        try:
            number = None if value is None else read_value(value)
        except OutcomeError:
            what = f"metrics= must have a number for {shown(name)}, not {shown(value)}"
            raise OutcomeError(f"{what}; put other facts into attrs=") from None
        found[joined(name)] = number if number is not None and math.isfinite(number) else None
    return found


def read_attrs(attrs: Any) -> dict[str, Any]:
    """Attributes as JSON holds them, by name; an OutcomeError if it cannot."""
    if not isinstance(attrs, Mapping) or not all(isinstance(name, str) for name in attrs):
        raise OutcomeError(f'attrs= must be a dict from names to values, such as {{"host": "gpu3"}}, not {shown(attrs)}')
    return {joined(name): read_attr(name, value) for name, value in attrs.items()}


def read_attr(name: Any, value: Any) -> Any:
    """One attribute as JSON holds it."""
    if not isinstance(name, str) or not name:
        raise OutcomeError(f"the name of an attribute must be a text, not {shown(name)}")
    if value is None or isinstance(value, bool) or (type(value) is int and abs(value) < 1 << 63):
        return value
    if type(value) is str:
        return joined(value)
    try:
        return json.loads(json.dumps(plain(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        kinds = "text, finite numbers, true/false, None, lists and dicts of these"
        raise OutcomeError(f"the attribute {shown(name)} cannot be stored: {error}; it may hold {kinds}") from None


def read_folds(folds: Sequence[float]) -> tuple[float, ...]:
    """The values of the folds as floats; an OutcomeError unless there are two or more."""
    if isinstance(folds, str | bytes | Mapping) or not hasattr(folds, "__iter__"):
        raise OutcomeError(f"folds= must be a list of numbers, not {shown(folds)}")
    values = tuple(read_value(fold) for fold in folds)
    if len(values) < 2:
        raise OutcomeError(f"folds= needs the values of two folds or more, not {len(values)}")
    return values


def read_gradient(gradient: Mapping[str, float], config: Config, space: Space | None = None) -> dict[str, float]:
    """Partial derivatives as floats, by parameter name; an OutcomeError unless all are by numeric parameters of the config."""
    if not isinstance(gradient, Mapping):
        raise OutcomeError(f"gradient= must be a dict from parameter names to numbers, not {shown(gradient)}")
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
            raise OutcomeError(f"gradient= must have one number for {name!r}, not {shown(derivative)}") from None
        if not math.isfinite(gradients[name]):
            raise OutcomeError(f"gradient= has {gradients[name]!r} for {name!r}; leave it out where it is not known")
    return gradients
