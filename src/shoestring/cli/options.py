"""Options that several commands share, and readers of the text in options: durations, budgets, parameters.

All of it is checked before any budget is spent. A parameter is written the same on the command line and in a TOML file:

    lr=log:1e-5:1e-1            a real number on a log scale
    drop=0:0.5                  a real number;   width=0:1:0.1  in steps of 0.1
    depth=int:2:12              a whole number;   n=int:log:16:1024,  units=int:32:512:32
    act=relu,tanh               a choice; an option that is JSON (1, true, null) is read as such, any other as text
    layers=[[64, 64], [128]]    a choice as a JSON list, for options with commas or brackets in them
    rate_drop=0:0.5 when booster=dart                    conditional;   when booster=dart,gblinear and depth=3
    epochs=1:50                 as a fidelity: whole numbers if both bounds are;   epochs=1:81 target=27 resumable
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from .._validation import duration_seconds, is_number
from ..budget import HOW_TO_WRITE, Budget, read_budget
from ..errors import BudgetError, ShoestringError, SpaceError
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Parameter
from ..storage.address import STORAGE_VARIABLE
from .console import DEFAULT_STORAGE, JSON_META_KEY, opened_storage, sqlite_path

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

PICTURE_FORMATS = (".png", ".svg", ".pdf", ".jpg")
RANGE_PREFIXES = ("int", "float", "log")
PARAMETER_FIELDS = ("low", "high", "log", "step", "int", "target", "resumable", "options", "when")
_WHEN = re.compile(r"\s+when\s+")
_RESUMABLE = re.compile(r"\s+resumable(?:\s*=\s*(?P<stands>true|false))?(?=\s|$)")
_TARGET = re.compile(r"\s+target\s*=\s*(?P<target>\S+)\s*$")


# -- options that several commands share -----------------------------------------------------------------------------


def json_option(command: Decorated) -> Decorated:
    """``--json``; kept in Click's meta, where the error messages find it too."""
    return click.option(
        "--json", "wants_json", is_flag=True, is_eager=True, expose_value=False, callback=_store_json,
        help="Print one JSON document on standard output and nothing else there.",
    )(command)


def _store_json(ctx: click.Context, param: click.Parameter, wanted: bool) -> bool:
    ctx.meta[JSON_META_KEY] = wanted
    return wanted


def storage_option(command: Decorated) -> Decorated:
    """``--storage``, the address of the storage."""
    return click.option(
        "--storage", "address", default=DEFAULT_STORAGE, show_default=True, envvar=STORAGE_VARIABLE, metavar="ADDRESS",
        help=f"A file, sqlite:///FILE or postgresql://HOST/DATABASE; also set by {STORAGE_VARIABLE} in the environment.",
    )(command)


def logs_option(command: Decorated) -> Decorated:
    """``--logs``"""
    return click.option(
        "--logs", type=click.Path(file_okay=False), metavar="DIR", help="Log folder.  [default: shoestring-logs/NAME-ID]"
    )(command)


def max_failures_option(command: Decorated) -> Decorated:
    """``--max-failures``"""
    return click.option(
        "--max-failures", type=click.IntRange(min=0), metavar="N",
        help="For programs that often fail: end when more than N trials have failed.",
    )(command)


def max_retries_option(command: Decorated) -> Decorated:
    """``--max-retries``"""
    return click.option(
        "--max-retries", type=click.IntRange(min=0), metavar="N",
        help="How often settings are tried again with which this process or its machine died.  [default: 4]",
    )(command)


def no_fail_fast_option(command: Decorated) -> Decorated:
    """``--no-fail-fast``"""
    return click.option(
        "--no-fail-fast", is_flag=True, default=None, help="Go on although the first three trials fail in the same way."
    )(command)


def name_argument(command: Decorated) -> Decorated:
    """``NAME`` of a study; optional if the storage has only one."""
    return click.argument("name", required=False, shell_complete=complete_names)(command)


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion for names of studies; empty if the storage cannot be read."""
    address = ctx.params.get("address") or DEFAULT_STORAGE
    path = sqlite_path(address)
    if path is not None and not path.is_file():
        return []
    try:
        with opened_storage(address) as storage:
            return [CompletionItem(record.name) for record in storage.studies() if record.name.startswith(incomplete)]
    except Exception:  # an error message has no place in a command line that is being typed
        return []


def check_picture(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Reject a path that cannot be written before the time is spent, not after."""
    if path is None:
        return None
    if path.suffix.lower() not in PICTURE_FORMATS:
        raise click.BadParameter(f"{str(path)!r} must end in one of {', '.join(PICTURE_FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; create it first")
    return path


# -- durations and budgets -------------------------------------------------------------------------------------------


def check_seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Click callback for a duration: ``90s``, ``5m``, ``24h``."""
    try:
        return None if text is None else duration_seconds(text, "time")
    except ShoestringError as error:
        raise click.BadParameter(str(error)) from error


def read_seconds(given: Mapping[str, Any], key: str) -> float | None:
    """The option ``key`` as seconds; None if it was not given."""
    value = given.get(key)
    if value is None or isinstance(value, float):
        return value
    try:
        return duration_seconds(str(value), key)
    except ShoestringError:
        raise click.UsageError(f"{key.replace('_', '-')} {value!r} cannot be read; write it like 90s, 5m or 2h") from None


def check_budget(ctx: click.Context, param: click.Parameter, text: str) -> Budget:
    """Click callback for a time (``40s``, ``10m``, ``1h 30m``) or a number of trials."""
    try:
        budget = read_budget(text)
    except BudgetError as error:
        raise click.BadParameter(str(error).replace(HOW_TO_WRITE, "write it like 40s, 2m or 30 (trials)")) from error
    if budget.cost is not None:
        raise click.BadParameter(f"{text!r} is neither a time nor a number of trials; write it like 40s, 2m or 30")
    return budget


def make_budget(given: Mapping[str, Any]) -> Budget:
    """One budget from ``--budget``, ``--max-trials``, ``--max-time``, ``--unit`` and ``--per-hour``."""
    if not any(key in given for key in ("budget", "max_trials", "max_time")):
        raise click.UsageError("a budget is missing; give --budget 10m, --budget 40 (trials) or --budget '20 USD'")
    unit, per_hour = given.get("unit"), given.get("per_hour")
    trials, seconds = given.get("max_trials"), read_seconds(given, "max_time")
    try:
        total = read_budget(given["budget"]) if "budget" in given else None
        if total is not None and total.unit is not None:
            if unit not in (None, total.unit):
                raise BudgetError(f"costs are in {unit}, so write --budget '20 {unit}', or give no --unit")
            unit = total.unit
        if per_hour is not None and unit in (None, "s"):
            raise BudgetError("--per-hour is the price of an hour, so it needs a unit; give --unit USD")
        if total is None:
            return Budget(trials=trials, seconds=seconds, unit=unit, per_hour=per_hour)
        trials, seconds = smaller(total.trials, trials), smaller(total.seconds, seconds)
        return Budget(trials=trials, seconds=seconds, cost=total.cost, unit=unit, per_hour=per_hour)
    except BudgetError as error:
        how = "write it like 10m (time), '20 USD' (cost) or 40 (trials)"
        raise click.UsageError(str(error).replace(HOW_TO_WRITE, how)) from None


def smaller(one: Any, other: Any) -> Any:
    """The smaller of two limits; None stands for no limit."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


# -- parameters ------------------------------------------------------------------------------------------------------


def read_parameter(text: str, fidelity: bool = False) -> tuple[str, Parameter]:
    """The name and the parameter of ``NAME=SPEC``; a SpaceError shows how to write it."""
    name, equals, spec = text.partition("=")
    name = name.strip()
    if not equals or not name or not spec.strip():
        example = "epochs=1:50" if fidelity else "lr=log:1e-5:1e-1, depth=int:2:12 or act=relu,tanh"
        raise SpaceError(f"{text!r} cannot be read; write NAME=SPEC, for example {example}")
    return name, read_spec(name, spec, fidelity)


def read_spec(name: str, spec: str, fidelity: bool = False) -> Parameter:
    """The parameter of ``SPEC``, the part after the ``=``."""
    when: dict[str, Any] | None = None
    resumable = _RESUMABLE.search(spec) if fidelity else None
    stands = None if resumable is None else resumable["stands"] != "false"
    if resumable is not None:
        spec = spec[: resumable.start()] + spec[resumable.end() :]
    target = _TARGET.search(spec) if fidelity else None
    if target:
        spec = spec[: target.start()]
    options, rest = read_json_list(name, spec)
    if options is None:
        rest, *condition = _WHEN.split(spec.strip(), maxsplit=1)
        when = read_condition(name, condition[0]) if condition else None
        fields = rest.strip().split(":")
        if fields[0].strip() in RANGE_PREFIXES or (len(fields) > 1 and all(read_number(field) is not None for field in fields)):
            goal = target["target"] if target else None
            return read_range(name, rest.strip(), fields, when=when, fidelity=fidelity, target=goal, resumable=stands)
        if ":" in rest and "," not in rest:
            raise _unreadable(name, rest, fidelity)
        options = [read_value(part) for part in rest.split(",")]
        if not all(part.strip() for part in rest.split(",")):
            raise SpaceError(f"{name}: {rest!r} has an empty option; for an empty text write a JSON list: {name}=" + '["", "a"]')
    elif rest:
        if not rest.startswith("when "):
            raise SpaceError(f"{name}: {rest!r} after the list of options cannot be read")
        when = read_condition(name, rest.removeprefix("when "))
    if fidelity:
        raise _unreadable(name, spec, fidelity)
    if len(options) < 2:
        raise SpaceError(f"{name}: {spec!r} is one option only; write a range low:high, several options, or omit the parameter")
    return Choice(options, when=when)


def read_range(
    name: str,
    text: str,
    fields: list[str],
    *,
    when: Mapping[str, Any] | None,
    fidelity: bool,
    target: str | None,
    resumable: bool | None,
) -> Parameter:
    """The parameter of ``[int:|float:|log:]low:high[:step]``; ``fields`` is the text split at its colons."""
    prefixes = [field.strip() for field in fields if field.strip() in RANGE_PREFIXES]
    numbers = [read_number(field) for field in fields[len(prefixes) :]]
    if None in numbers or len(numbers) not in (2, 3) or len(set(prefixes)) < len(prefixes) or {"int", "float"} <= set(prefixes):
        raise _unreadable(name, text, fidelity)
    low, high, *step = (value for value in numbers if value is not None)
    goal = read_number(target) if target is not None else None
    if target is not None and goal is None:
        raise SpaceError(f"{name}: target={target} is not a number")
    return make_numeric(
        name, low, high, log="log" in prefixes, step=step[0] if step else None, integer="int" in prefixes, when=when,
        fidelity=fidelity, target=goal, resumable=resumable,
    )  # fmt: skip


def make_numeric(
    name: str,
    low: Any,
    high: Any,
    *,
    log: bool,
    step: Any,
    integer: bool,
    when: Mapping[str, Any] | None,
    fidelity: bool,
    target: Any,
    resumable: Any,
) -> Parameter:
    """A Float, Int or Fidelity, validated."""
    if is_number(low) and is_number(high) and low > high:  # the parameter itself would say so in the words of Python
        raise SpaceError(f"{name}: low ({low:g}) must be below high ({high:g})")
    parameter: Parameter
    if fidelity:
        if when is not None:
            raise SpaceError(f"{name}: a fidelity cannot be conditional; omit the condition")
        parameter = Fidelity(low, high, log=log, step=step, target=target, resumable=resumable)
    else:
        parameter = (Int if integer else Float)(low, high, log=log, step=step, when=when)
    parameter.validate(name)
    return parameter


def read_toml_parameter(name: str, given: Any, fidelity: bool = False) -> Parameter:
    """A parameter in a TOML file: a SPEC, a list of options, or a table ``{low = 2, high = 12, int = true}``."""
    if isinstance(given, str):
        return read_spec(name, given, fidelity)
    if isinstance(given, list) and not fidelity:
        return Choice(given)
    if not isinstance(given, Mapping):
        raise SpaceError(f'{name}: {given!r} cannot be read; write a text such as "log:1e-5:1e-1", a list of options, or a table')
    if unknown := [key for key in given if key not in PARAMETER_FIELDS]:
        raise SpaceError(f"{name}: {unknown[0]!r} is not known here; there are {', '.join(PARAMETER_FIELDS)}")
    when = given.get("when")
    if isinstance(when, str):
        when = read_condition(name, when)
    if "options" in given:
        return Choice(list(given["options"]), when=when)
    if missing := [key for key in ("low", "high") if key not in given]:
        raise SpaceError(f"{name}: {missing[0]} is missing; write {{low = 0, high = 1}} or {{options = [...]}}")
    return make_numeric(
        name, given["low"], given["high"], log=given.get("log", False), step=given.get("step"), integer=given.get("int", False),
        when=when, fidelity=fidelity, target=given.get("target"), resumable=given.get("resumable"),
    )  # fmt: skip


def read_condition(name: str, text: str) -> dict[str, Any]:
    """The condition ``booster=dart,gblinear and depth=3`` as {"booster": ["dart", "gblinear"], "depth": 3}."""
    when: dict[str, Any] = {}
    for part in re.split(r"\s+and\s+", text.strip()):
        parent, equals, values = part.partition("=")
        if not equals or not parent.strip() or not values.strip():
            raise SpaceError(f"{name}: the condition {part!r} cannot be read; write for example: when booster=dart")
        options, rest = read_json_list(name, values)
        if options is None:
            options = [read_value(value) for value in values.split(",")]
        elif rest or not options:
            raise SpaceError(f"{name}: {values!r} in the condition cannot be read")
        when[parent.strip()] = options if len(options) > 1 else options[0]
    return when


def read_json_list(name: str, text: str) -> tuple[list[Any] | None, str]:
    """The JSON list at the start of a text, and the text after it; None if it does not start with a list."""
    text = text.strip()
    if not text.startswith("["):
        return None, text
    try:
        options, end = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        raise SpaceError(f'{name}: {text!r} is not a JSON list: {error}; write it like ["a", "b"]') from None
    return options, text[end:].strip()


def read_value(text: str) -> Any:
    """A value: JSON (1, 0.5, true, null, "1") if the text is JSON, otherwise the text itself."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text.strip()


def read_number(text: str) -> int | float | None:
    """A number, as an int if it is written as one: a fidelity of whole numbers differs from one of real numbers."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _unreadable(name: str, text: str, fidelity: bool) -> SpaceError:
    ways = "1:50, log:100:10000" if fidelity else "0:0.5, log:1e-5:1e-1, int:2:12, int:32:512:32 (with a step), relu,tanh"
    return SpaceError(f"{name}: {text!r} cannot be read; write it like one of {ways}")
