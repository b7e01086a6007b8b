"""Checks of what users pass in: numbers, whole numbers, lengths of time. Each says what is wrong and what to write instead."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .errors import BudgetError, MethodError, ShoestringError

_UNITS = {
    0.001: "ms millisecond milliseconds", 1.0: "s sec secs second seconds", 60.0: "m min mins minute minutes",
    3600.0: "h hr hrs hour hours", 86400.0: "d day days", 604800.0: "w week weeks",
}  # fmt: skip
SECONDS_OF = {word: seconds for seconds, words in _UNITS.items() for word in words.split()}
_TIME = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*")


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python number it stands for, and a tuple as a list; also inside lists and dicts."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def is_number(value: Any) -> bool:
    """True for an int or a float, of Python or of NumPy. False for a bool, a text and anything else."""
    value = plain(value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_number(value: Any, what: str, least: int | None = None, error: type[ShoestringError] = MethodError) -> int:
    """The value as an int; an error if it is not a whole number, or less than ``least``."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int) or (least is not None and number < least):
        wanted = "a whole number" if least is None else f"a whole number of {least} or more"
        raise error(f"{what} must be {wanted}, not {value!r}")
    return number


def number_between(
    value: Any,
    what: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    low_included: bool = True,
    high_included: bool = True,
    optional: bool = False,
    error: type[ShoestringError] = MethodError,
) -> float | int | None:
    """The value as a Python number; an error unless it is finite and lies between ``low`` and ``high``.

    ``optional``: None is allowed too, and is returned.
    """
    if value is None and optional:
        return None
    number = plain(value)
    fits = is_number(number) and math.isfinite(number)
    fits = fits and (number >= low if low_included else number > low) and (number <= high if high_included else number < high)
    if not fits:
        wanted = _range_text(low, high, low_included, high_included) + (", or None" if optional else "")
        raise error(f"{what} must be {wanted}, not {value!r}")
    return number  # type: ignore[no-any-return]


def _range_text(low: float, high: float, low_included: bool, high_included: bool) -> str:
    """a number of 0 or more; a number above 0 and at most 1"""
    parts = []
    if math.isfinite(low):
        parts.append(f"of {low:g} or more" if low_included else f"above {low:g}")
    if math.isfinite(high):
        parts.append(f"at most {high:g}" if high_included else f"below {high:g}")
    return " ".join(["a number", " and ".join(parts)]) if parts else "a finite number"


def seconds_of(text: str) -> float:
    """``"1h 30m"`` as 5400."""
    total, position = 0.0, 0
    while position < len(text):
        match = _TIME.match(text.lower(), position)
        if match is None or match[2] not in SECONDS_OF:
            raise BudgetError(f'budget={text!r} cannot be read; write it like "45s", "10m", "3h", "1h 30m" or "10 minutes"')
        total += float(match[1]) * SECONDS_OF[match[2]]
        position = match.end()
    if total <= 0:
        raise BudgetError(f"budget={text!r} must be more than nothing")
    return total


def duration_seconds(value: Any, what: str) -> float:
    """``"10m"`` or a number of seconds, as seconds."""
    number = plain(value)
    if isinstance(number, str):
        try:
            return seconds_of(number)
        except BudgetError as error:
            raise MethodError(f'{what}={value!r} cannot be read; write it like "45s" or "10m"') from error
    if not is_number(number) or not 0 < number < math.inf:
        raise MethodError(f'{what} must be a positive number of seconds, or text like "10m", not {value!r}')
    return float(number)
