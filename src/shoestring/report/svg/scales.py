"""Scales: from numbers to places, and the numbers that have a label at an axis.

Labels never overlap: of several sets of round numbers, the first one is taken whose labels leave a gap between each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .elements import FONT, cut, text_width

GAP = 8.0  # between two labels
LINE = 1.25 * FONT  # the height of a label
MAX_TICKS = 9
MIN_OPTION_CHARACTERS = 3  # an option that would be cut to fewer is left out
EXACT_BELOW, EXACT_ABOVE = 1e6, 1e-4  # numbers in this range are written in full


@dataclass(frozen=True)
class Scale:
    """A map from the numbers of an axis to places between ``start`` and ``end``. Numbers outside are put at the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def of(cls, axis: Mapping[str, Any], start: float, end: float) -> Scale:
        return cls(float(axis["low"]), float(axis["high"]), start, end, axis["scale"] == "log")

    def share(self, value: float) -> float:
        """Where a number lies: 0 at the low end of the axis, 1 at the high end."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            found = (math.log(value) - low) / (high - low) if value > 0.0 else 0.0
        else:
            half = self.high / 2.0 - self.low / 2.0  # the whole range may overflow
            found = (value / 2.0 - self.low / 2.0) / half if half > 0.0 else 0.5
        return min(max(found, 0.0), 1.0)

    def at(self, value: float) -> float:
        """The place of a number."""
        return self.start + self.share(value) * (self.end - self.start)


@dataclass(frozen=True)
class Tick:
    """A label at an axis: its place, what is written, and what that is short for."""

    at: float
    text: str
    full: str


def ticks(axis: Mapping[str, Any], scale: Scale, *, upright: bool = False) -> list[Tick]:
    """The labels of an axis; ``upright``: of one that goes up, where labels need height and not width."""
    if axis["scale"] == "options":
        return option_ticks(axis["options"], scale, upright=upright)
    last: list[Tick] = []
    for values, step in candidates(scale, bool(axis.get("whole"))):
        last = [Tick(scale.at(value), text, text) for value, text in zip(values, texts(values, step), strict=True)]
        if last and fits(last, upright=upright):
            return last
    return last[:1]


def candidates(scale: Scale, whole: bool) -> Iterator[tuple[list[float], float | None]]:
    """Sets of round numbers in the range of a scale, from many to few, and the distance between them if it is one."""
    low, high = scale.low, scale.high
    decades = math.log10(high) - math.log10(low) if scale.log else 0.0
    if scale.log and decades >= 1.0:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if decades < 3.0:
            for parts in ((1, 2, 5), (1, 3)):
                found = [part * 10.0**power for power in range(first - 1, last + 1) for part in parts]
                yield [value for value in found if low <= value <= high], None
        for stride in range(1, max(last - first, 1) + 1):
            powers = range(first, last + 1, stride)
            if len(powers) <= MAX_TICKS:
                yield [10.0**power for power in powers], None
        return
    for count in range(MAX_TICKS, 0, -1):
        step = round_step((high - low) / count if math.isfinite(high - low) else high / count - low / count)
        step = max(1.0, step) if whole else step
        first = math.ceil(low / step - 1e-9)
        found = [(first + k) * step for k in range(count + 2)]
        yield [value for value in found if value <= high + 1e-9 * step], step


def round_step(step: float) -> float:
    """The next larger of 1, 2 or 5 times a power of ten."""
    if not step > 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    if power == 0.0:
        return step
    return next((part * power for part in (1.0, 2.0, 5.0) if part * power >= step * (1.0 - 1e-9)), 10.0 * power)


def texts(values: Sequence[float], step: float | None) -> list[str]:
    """Numbers as labels, all with the same number of decimals if they are evenly spaced."""
    largest = max((abs(value) for value in values), default=0.0)
    if step is None:
        return [short_number(value) for value in values]
    if largest >= EXACT_BELOW or (0.0 < largest < EXACT_ABOVE) or step < 1e-9:
        digits = max(0, math.floor(math.log10(largest)) - math.floor(math.log10(step))) if largest > 0 else 0
        return [scientific(value, min(digits, 12)) for value in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value + 0.0:,.{decimals}f}".replace("-0" if float(value) == 0.0 else "\0", "0") for value in values]


def short_number(value: float) -> str:
    """A number by itself: "0.001", "20,000", "1e-5"."""
    if value == 0.0:
        return "0"
    if 1e-3 <= abs(value) < EXACT_BELOW:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.6g}"
    return scientific(value, 6)


def scientific(value: float, digits: int) -> str:
    """A number with a power of ten: "1e-5", "2.5e7"."""
    if value == 0.0:
        return "0"
    front, _, power = f"{value:.{digits}e}".partition("e")
    front = front.rstrip("0").rstrip(".") if "." in front else front
    return f"{front}e{int(power)}"


def option_ticks(options: Sequence[str], scale: Scale, *, upright: bool) -> list[Tick]:
    """The options of a choice: all of them, or every second, third, ... if there is no space; long ones are cut."""
    places = [scale.at(float(place)) for place in range(len(options))]
    width = abs(scale.end - scale.start) / max(len(options), 1)
    for stride in range(1, len(options) + 1):
        shown = range(0, len(options), stride)
        if upright:
            found = [Tick(places[k], options[k], options[k]) for k in shown]
        else:
            longest = max(width * stride - GAP, CHARACTERS_WIDTH)
            found = [Tick(places[k], cut(options[k], longest), options[k]) for k in shown]
        if fits(found, upright=upright):
            return found
    return []


CHARACTERS_WIDTH = text_width("x" * MIN_OPTION_CHARACTERS)


def fits(found: Sequence[Tick], *, upright: bool) -> bool:
    """Whether no two labels overlap."""
    placed = sorted(found, key=lambda tick: tick.at)
    if upright:
        return all(after.at - before.at >= LINE for before, after in pairwise(placed))
    return all(
        after.at - before.at >= 0.5 * (text_width(before.text) + text_width(after.text)) + GAP
        for before, after in pairwise(placed)
    )
