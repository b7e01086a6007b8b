"""Options that are read and checked before anything is spent."""

from __future__ import annotations

from pathlib import Path

import click

from .. import Budget, BudgetError
from ..budget import read_budget

PICTURES = (".png", ".svg", ".pdf", ".jpg")


def check_budget(ctx: click.Context, param: click.Parameter, text: str) -> Budget:
    """``40s``, ``10m``, ``1h 30m``, or a bare number of trials."""
    try:
        return read_budget(int(text) if text.strip().isdecimal() else text)
    except BudgetError as error:
        raise click.BadParameter(str(error)) from error


def check_picture(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a path that cannot be written before the time is spent, not after."""
    if path is None:
        return None
    if path.suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{str(path)!r} must end in one of {', '.join(PICTURES)}")
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first")
    return path
