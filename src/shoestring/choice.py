"""Options as a parameter: any JSON values, no order among them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigError, SpaceError
from .numerics import Array
from .parameters import condition_fields, plain

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
