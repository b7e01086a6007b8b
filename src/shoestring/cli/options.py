"""Options that several commands share; what they say is checked before anything is spent.

What a run may spend, from the words of a command line: ``10m``, ``40`` (trials), ``20 USD``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from .._validation import seconds_of
from ..budget import Budget, read_budget
from ..errors import BudgetError
from .console import DEFAULT, VARIABLE, WANTED, file_of, opened

PICTURES = (".png", ".svg", ".pdf", ".jpg")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def check_budget(ctx: click.Context, param: click.Parameter, text: str) -> Budget:
    """``40s``, ``10m``, ``1h 30m``, or a bare number of trials."""
    try:
        return read_budget(int(text) if text.strip().isdecimal() else text)
    except BudgetError as error:
        raise click.BadParameter(str(error)) from error


def check_seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """``90s``, ``5m``, ``24h``."""
    try:
        return None if text is None else seconds_of(text)
    except BudgetError as error:
        raise click.BadParameter(str(error).removeprefix("budget=")) from error


def check_picture(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a path that cannot be written before the time is spent, not after."""
    if path is None:
        return None
    if path.suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{str(path)!r} must end in one of {', '.join(PICTURES)}")
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first")
    return path


def json_wanted(ctx: click.Context, param: click.Parameter, wanted: bool) -> bool:
    ctx.meta[WANTED] = wanted
    return wanted


def json_option(command: Decorated) -> Decorated:
    """``--json``; whether it was given is kept where errors find it too."""
    return click.option(
        "--json", "wants_json", is_flag=True, is_eager=True, expose_value=False, callback=json_wanted,
        help="One JSON document on standard output, and nothing else there.",
    )(command)


def storage_option(command: Decorated) -> Decorated:
    return click.option(
        "--storage", "where", default=DEFAULT, show_default=True, envvar=VARIABLE, metavar="WHERE",
        help=f"A file, sqlite:///FILE or postgresql://HOST/DATABASE; also {VARIABLE} in the environment.",
    )(command)


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the studies that are there; none if they cannot be read."""
    where = ctx.params.get("where") or DEFAULT
    path = file_of(where)
    if path is not None and not path.is_file():
        return []
    try:
        with opened(where) as storage:
            return [CompletionItem(record.name) for record in storage.studies() if record.name.startswith(incomplete)]
    except Exception:  # whatever it is, a person who presses Tab does not want to read it
        return []


def name_argument(command: Decorated) -> Decorated:
    """``NAME``, which may be left out where there is one study only."""
    return click.argument("name", required=False, shell_complete=complete_names)(command)


_PRICE = re.compile(r"\s*(?P<number>\d+\.?\d*|\.\d+)\s*(?P<unit>[^\d\s.,+-]\S*)\s*")


def make_budget(given: Mapping[str, Any]) -> Budget:
    """``--budget``, ``--max-trials``, ``--max-time``, ``--unit`` and ``--per-hour`` as one budget."""
    if not any(key in given for key in ("budget", "max_trials", "max_time")):
        raise click.UsageError("how much may it spend? give --budget 10m, --budget 40 (trials) or --budget '20 USD'")
    unit, per_hour = given.get("unit"), given.get("per_hour")
    limits: dict[str, Any] = {"trials": given.get("max_trials"), "seconds": seconds(given, "max_time")}
    try:
        total = budget_of(given["budget"]) if "budget" in given else None
        if total is not None and total.cost is not None:
            if unit is not None and total.unit != unit:
                raise BudgetError(f"costs are counted in {unit}, so write --budget '20 {unit}'; --max-time is for the clock")
            limits |= {"cost": total.cost, "unit": total.unit}
        elif total is not None:
            limits["trials"] = min(total.trials or 0, limits["trials"] or total.trials or 0)
        if per_hour is not None and limits.get("unit", unit) in (None, "s"):
            raise BudgetError("--per-hour is the price of an hour in what? give --unit USD")
        return Budget(**{"unit": unit, "per_hour": per_hour} | limits)
    except BudgetError as error:
        raise click.UsageError(str(error)) from None


def budget_of(text: Any) -> Budget:
    """``10m``, ``40``, ``20 USD``."""
    words = str(text).strip()
    if words.isdecimal():
        return Budget(trials=int(words))
    price = _PRICE.fullmatch(words)
    try:
        return read_budget(words)
    except BudgetError:
        if price is None:
            raise
    return Budget(cost=float(price["number"]), unit=price["unit"])


def seconds(given: Mapping[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is None or isinstance(value, float):
        return value
    try:
        return seconds_of(str(value))
    except BudgetError:
        raise click.UsageError(f"{key.replace('_', '-')} {value!r} cannot be read; write it like 90s, 5m or 2h") from None
