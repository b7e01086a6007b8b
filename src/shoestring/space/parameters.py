"""Numbers as parameters: Float, Int, Fidelity.

Every parameter lives on one coordinate ``u`` of the unit cube. ``to_unit`` and ``from_unit`` are inverse to each other
on valid values, and uniform ``u`` gives the parameter's natural distribution: uniform, log-uniform, equal bins for whole
numbers (and equal shares for the options of a ``Choice``, which has its own file).

Options as a parameter: any JSON values, no order among them.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import plain
from ..errors import ConfigError, SpaceError
from ..numerics import Array


def condition_fields(when: Mapping[str, Any]) -> dict[str, Any]:
    """``when`` as JSON: a set as a sorted list."""
    return {key: plain(sorted(value, key=repr) if isinstance(value, set | frozenset) else value) for key, value in when.items()}


def _number(value: Any, what: str, error: type[Exception]) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise error(f"{what} must be a number, not {value!r}")
    if not math.isfinite(value):
        raise error(f"{what} must be finite, not {value!r}")
    return float(value)


@dataclass(frozen=True)
class Numeric:
    """What Float, Int and Fidelity share: a range, perhaps on a log scale, perhaps in steps."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = None

    whole: ClassVar[bool] = False
    fidelity: ClassVar[bool] = False

    def validate(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if this range cannot be."""
        kind = type(self).__name__
        low = _number(self.low, f"{name}: low of {kind}", SpaceError)
        high = _number(self.high, f"{name}: high of {kind}", SpaceError)
        if low >= high:
            raise SpaceError(f"{name}: low ({low:g}) must be below high ({high:g}); for a constant, leave it out of the space")
        if not math.isfinite(high - low):
            raise SpaceError(f"{name}: the range from {low:g} to {high:g} is too wide; use log=True or smaller bounds")
        if self.whole and (low != int(low) or high != int(high)):
            raise SpaceError(f"{name}: bounds of {kind} must be whole numbers, not {self.low!r} and {self.high!r}")
        if self.whole and max(abs(low), abs(high)) > 2**43:
            raise SpaceError(f"{name}: bounds of {kind} must lie within +-2**43; use Float, or count in larger units")
        if self.log and low <= 0:
            raise SpaceError(f"{name}: log=True needs low > 0, not {low:g}")
        if self.log and math.log(low) == math.log(high):
            raise SpaceError(f"{name}: {low!r} and {high!r} are too near for a log scale")
        if self.step is not None:
            step = _number(self.step, f"{name}: step of {kind}", SpaceError)
            if self.log:
                raise SpaceError(f"{name}: give log= or step=, not both")
            if step <= 0 or step > (high - low) * (1 + 1e-9):
                raise SpaceError(f"{name}: step must lie in (0, {high - low:g}], not {step:g}")
            if (high - low) / step > 2**43:
                raise SpaceError(f"{name}: step={step:g} makes too many values; use a larger step or none")
            if self.whole and step != int(step):
                raise SpaceError(f"{name}: step of {kind} must be a whole number, not {step:g}")

    @property
    def levels(self) -> int | None:
        """How many values there are; None when continuous."""
        if self.step is None and not self.whole:
            return None
        step = 1.0 if self.step is None else self.step
        return math.floor((self.high - self.low) / step + 1e-9) + 1

    def _scaled(self, value: Array | float) -> Array:
        return np.log(value) if self.log else np.asarray(value, dtype=float)

    def _ends(self) -> tuple[float, float]:
        """The ends of the unit coordinate on the scaled axis: half a step outside for discrete values, so that bins are equal."""
        levels = self.levels
        if levels is None:
            return float(self._scaled(self.low)), float(self._scaled(self.high))
        step = 1.0 if self.step is None else self.step
        half, top = step / 2, self.low + (levels - 1) * step
        return float(self._scaled(self.low - half)), float(self._scaled(top + half))

    def to_unit(self, value: Any) -> Array:
        """The unit coordinate of values (elementwise)."""
        levels = self.levels
        if levels is not None and not self.log:  # exactly the same for values equal up to rounding
            step = 1.0 if self.step is None else self.step
            return (np.clip(np.rint((np.asarray(value, dtype=float) - self.low) / step), 0, levels - 1) + 0.5) / levels
        low, high = self._ends()
        return np.clip((self._scaled(np.asarray(value, dtype=float)) - low) / (high - low), 0.0, 1.0)

    def stretch(self, value: float) -> float:
        """d value / d u at a value: what a slope by the value is multiplied with to be one by the unit coordinate."""
        low, high = self._ends()
        return value * (high - low) if self.log else high - low

    def relaxed(self, u: Array) -> Array:
        """Values at unit coordinates, those between two valid ones included (elementwise)."""
        low, high = self._ends()
        raw = low + np.clip(u, 0.0, 1.0) * (high - low)
        return np.exp(raw) if self.log else raw

    def values(self, u: Array) -> Array:
        """The valid values nearest to unit coordinates, as floats (elementwise)."""
        raw = self.relaxed(u)
        levels = self.levels
        if levels is None:
            return np.clip(raw, self.low, self.high)
        step = 1.0 if self.step is None else self.step
        return self.low + np.clip(np.rint((raw - self.low) / step), 0, levels - 1) * step

    def from_unit(self, u: float) -> float | int:
        """The value at a unit coordinate, as a config holds it."""
        value = float(self.values(np.asarray(u)))
        if self.whole:
            return round(value)
        if self.step is not None:
            return self._tidy(value)
        return value

    def _tidy(self, value: float) -> float:
        """0.1 + 2 * 0.1 written as 0.3: the sum of a grid rounded to the digits that the step needs."""
        assert self.step is not None
        tidy = round(value, max(0, 12 - math.floor(math.log10(self.step))))
        return min(max(tidy, float(self.low)), float(self.high))

    def snap(self, u: Array) -> Array:
        """Unit coordinates moved to those of the values they stand for."""
        return np.clip(u, 0.0, 1.0) if self.levels is None else self.to_unit(self.values(u))

    def index(self, u: Array) -> NDArray[np.intp]:
        """The number of the level at unit coordinates (discrete parameters only)."""
        step = 1.0 if self.step is None else self.step
        return np.rint((self.values(u) - self.low) / step).astype(np.intp)

    def level_of(self, value: Any, name: str) -> int:
        return int(self.index(self.to_unit(self.check(value, name))))

    def grid_units(self) -> Array:
        """The unit coordinates of all values (discrete parameters only)."""
        return self.units(np.arange(self.levels or 0))

    def units(self, levels: NDArray[np.intp]) -> Array:
        """The unit coordinates of some levels (discrete parameters only)."""
        step = 1.0 if self.step is None else self.step
        return self.to_unit(self.low + step * levels)

    def check(self, value: Any, name: str) -> float | int:
        """The value as a config holds it, or a ConfigError that names the parameter."""
        number = _number(value, f"{name}", ConfigError)
        if not self.low <= number <= self.high:
            raise ConfigError(f"{name} = {number:g} lies outside its bounds [{self.low:g}, {self.high:g}]")
        if self.levels is None:
            return number
        nearest = self.from_unit(float(self.to_unit(number)))
        if abs(nearest - number) > 1e-6 * (self.step or 1.0) + 1e-12 * abs(number):
            grid = "whole numbers" if self.step is None else f"{self.low:g}, {self.low + self.step:g}, ..."
            raise ConfigError(f"{name} = {number:g} is not on its grid ({grid}); the nearest value is {nearest:g}")
        return nearest

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": type(self).__name__.lower(), "low": plain(self.low), "high": plain(self.high)}
        if self.log:
            fields["log"] = True
        if self.step is not None:
            fields["step"] = plain(self.step)
        if self.when is not None:
            fields["when"] = condition_fields(self.when)
        return fields


@dataclass(frozen=True)
class Float(Numeric):
    """A real number in [low, high]; ``log=True`` for a log scale, or ``step=`` for a grid."""


@dataclass(frozen=True)
class Int(Numeric):
    """A whole number in [low, high], both included; ``log=True`` or ``step=`` as for Float."""

    whole: ClassVar[bool] = True


@dataclass(frozen=True)
class Fidelity(Numeric):
    """How much of an evaluation to buy: epochs, rows, trees. The answer is wanted at ``target`` (``high`` unless given).

    Whole numbers if both bounds are, except for the range from 0 to 1, which is a share.
    """

    target: float | None = None
    fidelity: ClassVar[bool] = True

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return isinstance(plain(self.low), int) and isinstance(plain(self.high), int) and (self.low, self.high) != (0, 1)

    @property
    def goal(self) -> float | int:
        """The fidelity at which the answer is wanted, as a config holds it."""
        return self.check(self.high if self.target is None else self.target, "target")

    def validate(self, name: str) -> None:
        super().validate(name)
        if self.when is not None:
            raise SpaceError(f"{name}: a fidelity cannot be conditional; remove when=")
        try:
            _ = self.goal
        except ConfigError as error:
            raise SpaceError(f"{name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | ({} if self.target is None else {"target": plain(self.target)})


Json = Any  # None, bool, int, float, str, list or dict, nested


def _key(value: Json) -> str:
    """Two options are the same when their JSON is: 1, 1.0, True and "1" are four options."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    if json.loads(text) != value:
        raise TypeError("it would not come back from JSON as it was, for example because a key is not a text")
    return text


@dataclass(frozen=True, init=False)
class Choice:
    """One of several options, each any JSON value: ``Choice("adam", "sgd")``, ``Choice(None, [64, 64], True)``."""

    options: tuple[Json, ...]
    when: Mapping[str, Any] | None = None

    fidelity: ClassVar[bool] = False

    def __init__(self, *options: Json, when: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "options", tuple(copy.deepcopy(plain(option)) for option in options))
        object.__setattr__(self, "when", when)

    def __hash__(self) -> int:
        return hash(tuple(map(_key, self.options)))

    def validate(self, name: str) -> None:
        if not self.options:
            raise SpaceError(f"{name}: a Choice needs at least one option")
        seen: set[str] = set()
        for option in self.options:
            try:
                key = _key(option)
            except (TypeError, ValueError):
                kinds = "text, finite number, true/false, null, list, dict"
                raise SpaceError(f"{name}: option {option!r} is not a JSON value ({kinds})") from None
            if key in seen:
                raise SpaceError(f"{name}: option {option!r} is given twice")
            seen.add(key)

    @property
    def levels(self) -> int:
        return len(self.options)

    def to_unit(self, level: Any) -> Array:
        return (np.asarray(level, dtype=float) + 0.5) / self.levels

    def index(self, u: Array) -> NDArray[np.intp]:
        return np.clip(np.floor(np.asarray(u) * self.levels), 0, self.levels - 1).astype(np.intp)

    def grid_units(self) -> Array:
        return self.units(np.arange(self.levels))

    def units(self, levels: NDArray[np.intp]) -> Array:
        return self.to_unit(levels)

    def from_unit(self, u: float) -> Json:
        return copy.deepcopy(self.options[int(self.index(np.asarray(u)))])

    def snap(self, u: Array) -> Array:
        return self.to_unit(self.index(u))

    def level_of(self, value: Any, name: str) -> int:
        value = plain(value)
        try:
            key = _key(value)
        except (TypeError, ValueError):
            key = ""
        for level, option in enumerate(self.options):
            if _key(option) == key:
                return level
        for level, option in enumerate(self.options):  # 1.0 for an option 1, as numpy and CSV files give it
            if not isinstance(value, bool) and not isinstance(option, bool) and key and value == option:
                return level
        raise ConfigError(f"{name} = {value!r} is not one of its options: {', '.join(map(repr, self.options))}")

    def check(self, value: Any, name: str) -> Json:
        return copy.deepcopy(self.options[self.level_of(value, name)])

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": "choice", "options": list(self.options)}
        if self.when is not None:
            fields["when"] = condition_fields(self.when)
        return fields
