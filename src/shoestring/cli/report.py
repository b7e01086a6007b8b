"""``report``: a study as one HTML file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ..errors import MethodError
from .console import CommandError, load_study, opened_storage, print_result, shoestring_command, storage_arguments
from .options import json_option, name_argument, storage_option

_NOT_IN_FILE_NAMES = re.compile(r"[^\w.-]+")


@click.command(short_help="Write a study into one HTML file, for sharing.")
@name_argument
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="The file.  [default: NAME.html]"
)
@click.option("--fit/--no-fit", default=None, help="Whether to fit models for it.  [default: if the study does not run]")
@storage_option
@json_option
def report(name: str | None, out: Path | None, fit: bool | None, address: str) -> None:
    """Write a study into one HTML file: summary, explanation, all pictures and the first 1,000 trials.

    The file needs no network and no other file, and holds no script. NAME may be left out if there is only one study.

    \b
    Examples:
      shoestring report xgb -o study.html
      shoestring report xgb --no-fit
    """
    from ..report.export import write_private
    from ..report.html_report import html_report

    with opened_storage(address) as storage:
        own_models = True
        try:
            study = load_study(storage, name, address, needs_code=True)
        except MethodError:
            study, own_models = load_study(storage, name, address), False
        if fit and not own_models:
            raise CommandError(
                f"study {study.name!r} was made with code that is not stored, so its model cannot be fitted here; omit --fit",
                shoestring_command("report", study.name, *storage_arguments(address)),
            )
        text = html_report(study, fit=fit, with_model=own_models)
        path = out or Path(f"{_NOT_IN_FILE_NAMES.sub('-', study.name)}.html")
        try:
            write_private(path, text)
        except OSError as error:
            message = f"the report could not be written to {str(path)!r}: {error.strerror or error}; give another file with -o"
            raise CommandError(message, shoestring_command("report", "--help")) from error
    following = shoestring_command("show", study.name, *storage_arguments(address))
    print_result({"study": study.name, "file": str(path), "bytes": len(text.encode())}, str(path), following)
