"""``export``: the trials of a study as CSV or as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..wording import plural
from .options import json_option, name_argument, storage_option
from .speech import Trouble, answer, command, wants_json
from .where import arguments, load, opened


@click.command(short_help="The trials as CSV or JSONL.")
@name_argument
@click.option("--format", "kind", type=click.Choice(["csv", "jsonl"]), help="[default: as FILE ends, else csv]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="In place of the screen.")
@click.option("--yes", is_flag=True, help="Write over a file that is there.")
@storage_option
@json_option
def export(name: str | None, kind: str | None, output: Path | None, yes: bool, where: str) -> None:
    """All trials of a study: one line each, with config, value, cost, state and error. JSONL has everything that is known.

    \b
    Examples:
      shoestring export xgb > xgb.csv
      shoestring export xgb -o xgb.jsonl
    """
    if kind is None:
        kind = "jsonl" if output is not None and output.suffix == ".jsonl" else "csv"
    if output is not None and output.exists() and not yes:
        again = command("export", *([name] if name else []), "-o", str(output), "--yes", *arguments(where))
        raise Trouble(f"{output} is there already; say --yes to write over it", again)
    with opened(where) as storage:
        study = load(storage, name, where)
        result = study.result
    if output is None and wants_json():
        answer({"study": study.name, "trials": result.to_dicts()}, "")
        return
    text = result.to_csv() if kind == "csv" else "".join(json.dumps(record) + "\n" for record in result.to_dicts())
    data = text.encode("utf-8", "backslashreplace")  # half a surrogate pair, say, in a name that JSON lets through
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise Trouble(f"{output} cannot be written: {error.strerror}", command("export", study.name, "-o", "FILE")) from None
    said = f"{plural(len(result.history), 'trial')} of study {study.name} in {output}"
    document = {"study": study.name, "trials": len(result.history), "file": str(output), "format": kind}
    answer(document, said, command("show", study.name, *arguments(where)))
