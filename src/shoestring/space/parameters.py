"""The parameters of a search space: Float, Int, Fidelity and Choice.

Each parameter has one coordinate ``u`` of the unit cube. ``to_unit`` and ``from_unit`` are inverse to each other on valid
values. A uniform ``u`` gives the natural distribution of the parameter: uniform, log-uniform, equal bins for whole numbers
and steps, equal probabilities for the options of a Choice.

Notation
    u             coordinate in [0, 1]
    k             number of levels: the values of a discrete parameter, numbered 0, ..., k - 1
    [a, b]        ends of the scaled axis (logarithms where log=True) at u = 0 and u = 1. For a discrete parameter they lie
                  half a step outside the lowest and the highest value, so that all bins are equally wide
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import is_number, plain
from ..errors import ConfigError, SpaceError
from ..numerics import Array

MAX_WHOLE_NUMBER = 2**43  # largest bound of whole numbers, and most steps: floats still tell neighbouring values apart
ROUNDING_IN_STEPS = 1e-9  # (high - low) / step may fall short of a whole number by this much


def condition_fields(when: Mapping[str, Any]) -> dict[str, Any]:
    """``when`` ready for JSON: a set becomes a sorted list."""
    return {key: plain(sorted(value, key=repr) if isinstance(value, set | frozenset) else value) for key, value in when.items()}


def _finite_number(value: Any, what: str, error: type[Exception]) -> float:
    """The value as a float; an error if it is not a finite number."""
    value = plain(value)
    if not is_number(value):
        raise error(f"{what} must be a number, not {value!r}")
    if not math.isfinite(value):
        raise error(f"{what} must be finite, not {value!r}")
    return float(value)


@dataclass(frozen=True)
class Numeric:
    """Base class of Float, Int and Fidelity: a range of numbers, on a linear or log scale, continuous or in steps.

    ``levels`` is the number of values, None for a continuous parameter. It is computed once, when the parameter is made.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = None
    levels: int | None = field(init=False, repr=False, compare=False)

    whole: ClassVar[bool] = False
    fidelity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", self._number_of_levels())
        if is_number(self.low) and is_number(self.high) and self.low > self.high:  # the rest is checked with the parameter's name
            kind = type(self).__name__
            raise SpaceError(f"{kind}({self.low!r}, {self.high!r}): low is above high; write {kind}({self.high!r}, {self.low!r})")

    def _number_of_levels(self) -> int | None:
        if self.step is None and not self.whole:
            return None
        try:
            step = 1.0 if self.step is None else self.step
            return math.floor((self.high - self.low) / step + ROUNDING_IN_STEPS) + 1 if step > 0 else None
        except (TypeError, ValueError, ArithmeticError):  # bad bounds: ``validate`` reports them with the parameter's name
            return None

    def validate(self, name: str) -> None:
        """Raise SpaceError, with the parameter's name, if the range is not valid."""
        kind = type(self).__name__
        low = _finite_number(self.low, f"{name}: low of {kind}", SpaceError)
        high = _finite_number(self.high, f"{name}: high of {kind}", SpaceError)
        if low >= high:
            raise SpaceError(f"{name}: low ({low:g}) must be below high ({high:g}); for a constant, leave it out of the space")
        if not math.isfinite(high - low):
            raise SpaceError(f"{name}: the range from {low:g} to {high:g} is too wide; use log=True or smaller bounds")
        if self.whole and (low != int(low) or high != int(high)):
            raise SpaceError(f"{name}: bounds of {kind} must be whole numbers, not {self.low!r} and {self.high!r}")
        if self.whole and max(abs(low), abs(high)) > MAX_WHOLE_NUMBER:
            raise SpaceError(f"{name}: bounds of {kind} must lie within +-2**43; use Float, or count in larger units")
        if self.log and low <= 0:
            raise SpaceError(f"{name}: log=True needs low > 0, not {low:g}")
        if self.log and math.log(low) == math.log(high):
            raise SpaceError(f"{name}: {low!r} and {high!r} are too near for a log scale")
        if self.step is not None:
            step = _finite_number(self.step, f"{name}: step of {kind}", SpaceError)
            if self.log:
                raise SpaceError(f"{name}: give log= or step=, not both")
            if step <= 0 or step > (high - low) * (1 + ROUNDING_IN_STEPS):
                raise SpaceError(f"{name}: step must lie in (0, {high - low:g}], not {step:g}")
            if (high - low) / step > MAX_WHOLE_NUMBER:
                raise SpaceError(f"{name}: step={step:g} makes too many values; use a larger step or none")
            if self.whole and step != int(step):
                raise SpaceError(f"{name}: step of {kind} must be a whole number, not {step:g}")

    def _scaled(self, value: Array | float) -> Array:
        return np.log(value) if self.log else np.asarray(value, dtype=float)

    def ends(self) -> tuple[float, float]:
        """a and b: the ends of the scaled axis at u = 0 and u = 1."""
        levels = self.levels
        if levels is None:
            return float(self._scaled(self.low)), float(self._scaled(self.high))
        step = 1.0 if self.step is None else self.step
        half, top = step / 2, self.low + (levels - 1) * step
        return float(self._scaled(self.low - half)), float(self._scaled(top + half))

    def to_unit(self, value: Any) -> Array:
        """The unit coordinates of values (elementwise)."""
        levels = self.levels
        if levels is not None and not self.log:  # values that differ by rounding get exactly the same coordinate
            step = 1.0 if self.step is None else self.step
            return (np.clip(np.rint((np.asarray(value, dtype=float) - self.low) / step), 0, levels - 1) + 0.5) / levels
        low, high = self.ends()
        return np.clip((self._scaled(np.asarray(value, dtype=float)) - low) / (high - low), 0.0, 1.0)

    def derivative(self, value: float) -> float:
        """d value / d u at a value. By the chain rule, d f / d u = d f / d value * d value / d u."""
        low, high = self.ends()
        return value * (high - low) if self.log else high - low

    def relaxed(self, u: Array) -> Array:
        """Values at unit coordinates under the continuous relaxation: not rounded to whole numbers or steps (elementwise)."""
        low, high = self.ends()
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
            return self._rounded_to_step(value)
        return value

    def _rounded_to_step(self, value: float) -> float:
        """A value of a grid without rounding errors: 0.1 + 2 * 0.1 becomes 0.3."""
        assert self.step is not None
        value = round(value, max(0, 12 - math.floor(math.log10(self.step))))
        return min(max(value, float(self.low)), float(self.high))

    def snap(self, u: Array) -> Array:
        """Unit coordinates rounded to those of valid values (elementwise)."""
        return np.clip(u, 0.0, 1.0) if self.levels is None else self.to_unit(self.values(u))

    def index(self, u: Array) -> NDArray[np.intp]:
        """The number of the level at unit coordinates (discrete parameters only)."""
        step = 1.0 if self.step is None else self.step
        return np.rint((self.values(u) - self.low) / step).astype(np.intp)

    def level_of(self, value: Any, name: str) -> int:
        """The number of the level of a value, or a ConfigError that names the parameter."""
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
        number = _finite_number(value, f"{name}", ConfigError)
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
        """The parameter ready for JSON."""
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
    """A real number between ``low`` and ``high``.

    Use ``log=True`` where orders of magnitude matter, such as for learning rates, and ``step=`` for a grid of values.

    low, high  the bounds, both included
    log        True: uniform in the logarithm; the bounds must be above 0
    step       only low, low + step, low + 2 step, ...
    when       the parameter is active only then: see ``Space``

    >>> space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), dropout=st.Float(0, 0.5, step=0.1))
    >>> space.check({"lr": 0.01, "dropout": 0.2})
    {'lr': 0.01, 'dropout': 0.2}
    """


@dataclass(frozen=True)
class Int(Numeric):
    """A whole number between ``low`` and ``high``, both included.

    Use it for counts, such as layers or trees, and ``log=True`` where doubling matters more than adding one. The arguments are
    those of ``Float``; bounds and step are whole numbers.

    >>> st.Int(16, 64, step=16).levels
    4
    """

    whole: ClassVar[bool] = True


@dataclass(frozen=True)
class Fidelity(Numeric):
    """How much of an evaluation to run: epochs, rows, trees.

    Use it where a cheap evaluation says something about the full one. Methods for fidelities (``st.CFKG()``, ``st.BOCA()``,
    ``st.Hyperband()``) choose it; all others evaluate at its target. Values are whole numbers if both bounds are, except in the
    range from 0 to 1, which is a fraction.

    low, high, log, step  as for ``Float``
    target                the fidelity at which the best config is wanted; None: ``high``
    resumable             whether a run can go on: a config that was trained to 10 epochs and is asked at 50 then pays for 40.
                          None: it can if the objective saves files in ``trial.checkpoint_dir``

    >>> space = st.Space(lr=st.Float(0, 1), epochs=st.Fidelity(1, 81, log=True))
    >>> space.fidelities, space.target
    (('epochs',), {'epochs': 81})
    """

    target: float | None = None
    resumable: bool | None = None
    fidelity: ClassVar[bool] = True

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return isinstance(plain(self.low), int) and isinstance(plain(self.high), int) and (self.low, self.high) != (0, 1)

    @property
    def goal(self) -> float | int:
        """The target fidelity, as a config holds it."""
        return self.check(self.high if self.target is None else self.target, "target")

    def validate(self, name: str) -> None:
        super().validate(name)
        if self.when is not None:
            raise SpaceError(f"{name}: a fidelity cannot be conditional; remove when=")
        if self.resumable is not None and not isinstance(self.resumable, bool):
            raise SpaceError(f"{name}: resumable must be True, False or None, not {self.resumable!r}")
        try:
            _ = self.goal
        except ConfigError as error:
            raise SpaceError(f"{name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        given = {"target": plain(self.target), "resumable": self.resumable}
        return super().to_dict() | {name: value for name, value in given.items() if value is not None}


Json = Any  # None, bool, int, float, str, list or dict, nested


def _json_key(value: Json) -> str:
    """The JSON text by which options are compared: 1, 1.0, True and "1" are four different options."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    if json.loads(text) != value:
        raise TypeError("JSON does not give the value back unchanged, for example because a key is not a text")
    return text


@dataclass(frozen=True, init=False)
class Choice:
    """A categorical parameter: one of several options without an order.

    Use it for names and switches; numbers with an order are better an ``Int`` or a ``Float`` with ``step=``, since the model then
    knows that neighbours are alike. An option is any JSON value. A single list or tuple is taken as the options. So write
    ``Choice([[64, 64]])`` for exactly one option that is a list.

    options  the options;  levels  how many they are
    when     the parameter is active only then: see ``Space``

    >>> st.Choice("adam", "sgd") == st.Choice(["adam", "sgd"])
    True
    >>> st.Choice(None, [64, 64], True).levels
    3
    """

    options: tuple[Json, ...]
    when: Mapping[str, Any] | None = None
    levels: int = field(init=False, repr=False, compare=False)

    fidelity: ClassVar[bool] = False

    def __init__(self, *options: Json, when: Mapping[str, Any] | None = None) -> None:
        if len(options) == 1 and isinstance(options[0], list | tuple):
            options = tuple(options[0])
        object.__setattr__(self, "options", tuple(copy.deepcopy(plain(option)) for option in options))
        object.__setattr__(self, "when", when)
        object.__setattr__(self, "levels", len(options))

    def __hash__(self) -> int:
        return hash(tuple(map(_json_key, self.options)))

    def validate(self, name: str) -> None:
        """Raise SpaceError, with the parameter's name, unless the options are different JSON values."""
        if not self.options:
            raise SpaceError(f"{name}: a Choice needs at least one option")
        seen: set[str] = set()
        for option in self.options:
            try:
                key = _json_key(option)
            except (TypeError, ValueError):
                kinds = "text, finite number, true/false, null, list, dict"
                how = "; give a name, and look it up in the objective" if callable(option) else ""
                raise SpaceError(f"{name}: option {option!r} is not a JSON value ({kinds}){how}") from None
            if key in seen:
                raise SpaceError(f"{name}: option {option!r} is given twice")
            seen.add(key)

    def to_unit(self, level: Any) -> Array:
        """The unit coordinates of options, given by their numbers: the middle of each of k equal bins (elementwise)."""
        return (np.asarray(level, dtype=float) + 0.5) / self.levels

    def index(self, u: Array) -> NDArray[np.intp]:
        """The numbers of the options at unit coordinates (elementwise)."""
        return np.clip(np.floor(np.asarray(u) * self.levels), 0, self.levels - 1).astype(np.intp)

    def grid_units(self) -> Array:
        """The unit coordinates of all options."""
        return self.units(np.arange(self.levels))

    def units(self, levels: NDArray[np.intp]) -> Array:
        """The unit coordinates of some options, given by their numbers."""
        return self.to_unit(levels)

    def from_unit(self, u: float) -> Json:
        """The option at a unit coordinate, as a config holds it."""
        return copy.deepcopy(self.options[int(self.index(np.asarray(u)))])

    def snap(self, u: Array) -> Array:
        """Unit coordinates rounded to those of the options (elementwise)."""
        return self.to_unit(self.index(u))

    def level_of(self, value: Any, name: str) -> int:
        """The number of an option, or a ConfigError that names the parameter."""
        value = value if type(value) is str else plain(value)
        try:
            key = _json_key(value)
        except (TypeError, ValueError):
            key = ""
        for level, option in enumerate(self.options):
            if _json_key(option) == key:
                return level
        for level, option in enumerate(self.options):  # 1.0 stands for an option 1: NumPy and CSV files give it so
            if not isinstance(value, bool) and not isinstance(option, bool) and key and value == option:
                return level
        raise ConfigError(f"{name} = {value!r} is not one of its options: {', '.join(map(repr, self.options))}")

    def check(self, value: Any, name: str) -> Json:
        """The option as a config holds it, or a ConfigError that names the parameter."""
        return copy.deepcopy(self.options[self.level_of(value, name)])

    def to_dict(self) -> dict[str, Any]:
        """The parameter ready for JSON."""
        fields: dict[str, Any] = {"kind": "choice", "options": list(self.options)}
        if self.when is not None:
            fields["when"] = condition_fields(self.when)
        return fields
