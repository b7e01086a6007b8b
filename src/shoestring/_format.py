"""Formatting of numbers, durations, costs and configs for summaries and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

MAX_WHOLE = 1e9  # a larger number is written with a power of ten
MAX_EXACT_HOURS = 1e6  # a longer time is rounded: its minutes say nothing


def rounded(value: float | None, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, without trailing zeros; "-" for None. 51234.6 is "51235", not "5.123e+04"."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    if 10.0**digits - 0.5 <= abs(value) < MAX_WHOLE:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """A length of time: 85 is "1 m 25 s", 0.0123 is "12.3 ms"."""
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:  # or it would be shown as 1e+03 ms
        return f"{seconds * 1000:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    if seconds > MAX_EXACT_HOURS * 3600:
        return f"{seconds / 3600:.3g} h"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"


def amount(cost: float, unit: str) -> str:
    """A cost with its unit; seconds are shown as a duration."""
    return duration(cost) if unit == "s" else f"{rounded(cost)} {unit}"


def uncertain(value: float | None, error: float | None) -> str:
    """A number with its standard error, rounded to two digits of it: "0.0312 ± 0.0011"; without an error, the number alone."""
    if value is None or error is None or not (math.isfinite(value) and 0.0 < error < math.inf):
        return rounded(value)
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 6 or max(abs(value), error) >= 1e6:
        return f"{rounded(value)} ± {rounded(error, 2)}"
    places = max(decimals, 0)
    return f"{value:.{places}f} ± {error:.{places}f}"


def uncertain_amount(cost: float, error: float | None, unit: str) -> str:
    """A cost with its standard error and its unit: "14 s ± 3 s", "1.20 ± 0.30 USD"."""
    if error is None or not 0.0 < error < math.inf:
        return amount(cost, unit)
    return f"{amount(cost, unit)} ± {amount(error, unit)}" if unit == "s" else f"{uncertain(cost, error)} {unit}"


def value_text(value: Any) -> str:
    """The value of one parameter; a float is rounded."""
    return rounded(value) if isinstance(value, float) else str(value)


def config_text(config: Mapping[str, Any]) -> str:
    """A config on one line: "lr = 0.001, depth = 6"."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in config.items())


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 trial", "2 trials"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Names joined as in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
