"""Options that several commands share; what they say is checked before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from .. import Budget, BudgetError
from ..budget import read_budget, seconds_of
from .speech import WANTED
from .where import DEFAULT, VARIABLE, file_of, opened

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
