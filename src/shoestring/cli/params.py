"""Parameters as one writes them on a command line, or in a TOML file.

    lr=log:1e-5:1e-1            a real number on a log scale
    drop=0:0.5                  a real number;   width=0:1:0.1  in steps of 0.1
    depth=int:2:12              a whole number;   n=int:log:16:1024,  units=int:32:512:32
    act=relu,tanh               one of several; options are read as JSON where they can be (1, true, null), else as text
    layers=[[64, 64], [128]]    a JSON list, for options with commas or brackets in them
    rate_drop=0:0.5 when booster=dart                    only then;   when booster=dart,gblinear and depth=3
    epochs=1:50                 as a fidelity: whole numbers if both bounds are;   epochs=1:81 target=27
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import SpaceError
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Parameter

KINDS = ("int", "float", "log")
FIELDS = ("low", "high", "log", "step", "int", "target", "options", "when")
_WHEN = re.compile(r"\s+when\s+")
_TARGET = re.compile(r"\s+target\s*=\s*(?P<target>\S+)\s*$")


def read_param(text: str, fidelity: bool = False) -> tuple[str, Parameter]:
    """``NAME=SPEC`` as a name and a parameter, or a SpaceError that shows how to write it."""
    name, equals, spec = text.partition("=")
    name = name.strip()
    if not equals or not name or not spec.strip():
        example = "epochs=1:50" if fidelity else "lr=log:1e-5:1e-1, depth=int:2:12 or act=relu,tanh"
        raise SpaceError(f"{text!r} cannot be read; write NAME=SPEC, for example {example}")
    return name, read_spec(name, spec, fidelity)


def read_spec(name: str, spec: str, fidelity: bool = False) -> Parameter:
    """The part after the ``=``."""
    when: dict[str, Any] | None = None
    target = _TARGET.search(spec) if fidelity else None
    if target:
        spec = spec[: target.start()]
    options, rest = listed(name, spec)
    if options is None:
        rest, *condition = _WHEN.split(spec.strip(), maxsplit=1)
        when = read_when(name, condition[0]) if condition else None
        bounds = rest.strip().split(":")
        if bounds[0].strip() in KINDS or (len(bounds) > 1 and all(number(bound) is not None for bound in bounds)):
            return ranged(name, rest.strip(), bounds, when, fidelity, target["target"] if target else None)
        if ":" in rest and "," not in rest:
            raise unreadable(name, rest, fidelity)
        options = [option(part) for part in rest.split(",")]
        if not all(part.strip() for part in rest.split(",")):
            raise SpaceError(f"{name}: {rest!r} has an empty option; for an empty text write a JSON list: {name}=" + '["", "a"]')
    elif rest:
        if not rest.startswith("when "):
            raise SpaceError(f"{name}: {rest!r} after the list of options cannot be read")
        when = read_when(name, rest.removeprefix("when "))
    if fidelity:
        raise unreadable(name, spec, fidelity)
    if len(options) < 2:
        raise SpaceError(f"{name}: {spec!r} is one option only; write a range low:high, or several options, or leave it out")
    return Choice(*options, when=when)


def ranged(
    name: str, text: str, bounds: list[str], when: Mapping[str, Any] | None, fidelity: bool, target: str | None
) -> Parameter:
    """``[int:|float:|log:]low:high[:step]``."""
    kinds = [bound.strip() for bound in bounds if bound.strip() in KINDS]
    numbers = [number(bound) for bound in bounds[len(kinds) :]]
    if None in numbers or len(numbers) not in (2, 3) or len(set(kinds)) < len(kinds) or {"int", "float"} <= set(kinds):
        raise unreadable(name, text, fidelity)
    low, high, *step = (value for value in numbers if value is not None)
    goal = number(target) if target is not None else None
    if target is not None and goal is None:
        raise SpaceError(f"{name}: target={target} is not a number")
    return made(name, low, high, "log" in kinds, step[0] if step else None, "int" in kinds, when, fidelity, goal)


def made(
    name: str, low: Any, high: Any, log: bool, step: Any, whole: bool, when: Mapping[str, Any] | None, fidelity: bool, target: Any
) -> Parameter:
    """The parameter itself, checked."""
    parameter: Parameter
    if fidelity:
        if when is not None:
            raise SpaceError(f"{name}: a fidelity cannot be conditional; leave out the condition")
        parameter = Fidelity(low, high, log=log, step=step, target=target)
    else:
        parameter = (Int if whole else Float)(low, high, log=log, step=step, when=when)
    parameter.validate(name)
    return parameter


def read_table(name: str, given: Any, fidelity: bool = False) -> Parameter:
    """A parameter in a TOML file: the same text, a list of options, or a table ``{low = 2, high = 12, int = true}``."""
    if isinstance(given, str):
        return read_spec(name, given, fidelity)
    if isinstance(given, list) and not fidelity:
        return Choice(*given)
    if not isinstance(given, Mapping):
        raise SpaceError(f'{name}: {given!r} cannot be read; write a text such as "log:1e-5:1e-1", a list of options, or a table')
    if unknown := [key for key in given if key not in FIELDS]:
        raise SpaceError(f"{name}: {unknown[0]!r} is not known here; there are {', '.join(FIELDS)}")
    when = given.get("when")
    if isinstance(when, str):
        when = read_when(name, when)
    if "options" in given:
        return Choice(*given["options"], when=when)
    if missing := [key for key in ("low", "high") if key not in given]:
        raise SpaceError(f"{name}: {missing[0]} is missing; write {{low = 0, high = 1}} or {{options = [...]}}")
    low, high, log, step = given["low"], given["high"], given.get("log", False), given.get("step")
    return made(name, low, high, log, step, given.get("int", False), when, fidelity, given.get("target"))


def read_when(name: str, text: str) -> dict[str, Any]:
    """``booster=dart,gblinear and depth=3`` as {"booster": ["dart", "gblinear"], "depth": 3}."""
    when: dict[str, Any] = {}
    for part in re.split(r"\s+and\s+", text.strip()):
        parent, equals, values = part.partition("=")
        if not equals or not parent.strip() or not values.strip():
            raise SpaceError(f"{name}: the condition {part!r} cannot be read; write for example: when booster=dart")
        options, rest = listed(name, values)
        if options is None:
            options = [option(value) for value in values.split(",")]
        elif rest or not options:
            raise SpaceError(f"{name}: {values!r} in the condition cannot be read")
        when[parent.strip()] = options if len(options) > 1 else options[0]
    return when


def listed(name: str, text: str) -> tuple[list[Any] | None, str]:
    """The options of a JSON list at the start of a text, and what follows it; None if there is no list."""
    text = text.strip()
    if not text.startswith("["):
        return None, text
    try:
        options, end = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        raise SpaceError(f'{name}: {text!r} is not a JSON list: {error}; write it like ["a", "b"]') from None
    return options, text[end:].strip()


def option(text: str) -> Any:
    """JSON where it is (1, 0.5, true, null, "1"), else the text itself."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text.strip()


def number(text: str) -> int | float | None:
    """A whole number as such, so that a fidelity can tell epochs from shares."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def unreadable(name: str, text: str, fidelity: bool) -> SpaceError:
    ways = "1:50, log:100:10000" if fidelity else "0:0.5, log:1e-5:1e-1, int:2:12, int:32:512:32 (with a step), relu,tanh"
    return SpaceError(f"{name}: {text!r} cannot be read; write it like one of {ways}")
