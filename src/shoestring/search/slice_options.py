"""From what the user wrote of a slice (``along=``, ``at=``, ``outcome=``, ``method=``) to what it is cut with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..acquisition.entropy import ES
from ..acquisition.improvement import EI, Acquisition
from ..acquisition.knowledge import KG
from ..choice import Choice
from ..errors import MethodError, OutcomeError
from ..numerics import Array
from ..parameters import plain
from ..space import Config, Space
from ..surrogate.belief import Belief
from ..wording import config_text


def read_acquisitions(method: Any) -> dict[str, Acquisition]:
    """An acquisition or several, by name; with their settings where two have the same name."""
    given: list[Any] = [EI(), KG(), ES()] if method is None else list(method) if isinstance(method, list | tuple) else [method]
    if not given:
        raise MethodError("method=[] names no acquisition; give st.EI(), [st.EI(), st.KG()], ... or leave it out")
    for each in given:
        if isinstance(each, type):
            raise MethodError(f"method={each.__name__} is a class; write {each.__name__}()")
        if not hasattr(each, "on"):
            raise MethodError(f"method={each!r} is no acquisition; give one such as st.EI() or st.KG(), or a list of them")
    names = [type(each).__name__ for each in given]
    return {name if names.count(name) == 1 else repr(each): each for name, each in zip(names, given, strict=True)}


def read_numbers(space: Space, along: str | None) -> list[str]:
    """The parameters that can be an axis; an error if there are none, or if the one that was asked for is none of them."""
    numbers = [name for name, parameter in space.items() if not isinstance(parameter, Choice) and not parameter.fidelity]
    if not numbers:
        raise MethodError("this space has no axis to draw along: that takes a Float or an Int")
    if along is not None and along not in numbers:
        raise MethodError(f"along={along!r} is no Float or Int of this space; choose one of {', '.join(numbers)}")
    return numbers


def choose_axis(space: Space, numbers: list[str], along: str | None, best: Array) -> str:
    """The parameter asked for, or the first; active at the recommended config, or nothing would change along it."""
    config = space.decode(best)
    active = [name for name in numbers if name in config]
    if along in active:
        return str(along)
    if along is None and active:
        return active[0]
    mend = f"; choose one of {', '.join(active)}" if active else ""
    raise MethodError(f"{along or ', '.join(numbers)} is not active at the recommended config ({config_text(config)}){mend}")


def imagined_config(space: Space, held: Config, at: Mapping[str, Any]) -> Config:
    """``at``, completed by what of the recommended config is active there; a ConfigError if it does not fit."""
    if not isinstance(at, Mapping) or any(name not in space for name in at):
        return space.check(at)  # says what is wrong
    given = {name: space[name].check(value, name) for name, value in at.items()}
    merged = held | given
    active = space.decode(space.encode(merged))
    return space.check({name: value for name, value in merged.items() if name in active or name in given})


def read_outcome(outcome: Any, sign: float, belief: Belief) -> float:
    value = plain(outcome)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OutcomeError(f"outcome must be a finite number, not {outcome!r}")
    if belief.output.kind == "log" and sign * value <= 0.0:
        raise OutcomeError(f"outcome = {value!r} cannot be: the model takes the logarithm of all values; give a positive one")
    return float(value)
