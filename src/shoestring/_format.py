"""Numbers as people like to read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def rounded(value: float | None, digits: int = 4) -> str:
    """Four significant digits, no more zeros than needed."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """85 as "1 m 25 s", 0.0123 as "12.3 ms"."""
    if seconds == 0:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"


def amount(cost: float, unit: str) -> str:
    """A cost with its unit; seconds as a duration."""
    return duration(cost) if unit == "s" else f"{rounded(cost)} {unit}"


def value_text(value: Any) -> str:
    return rounded(value) if isinstance(value, float) else str(value)


def config_text(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value_text(value)}" for name, value in config.items())


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
