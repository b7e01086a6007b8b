"""``shoestring resume``: go on with a study that ``shoestring run`` began, with the program that it was begun with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from ..program.logs import Logs
from .options import json_option, name_argument, storage_option
from .speech import Trouble, command
from .where import arguments, find, opened


@click.command(short_help="Go on with a study.")
@name_argument
@click.option("--budget", metavar="BUDGET", help="In all, what was spent included; as for run.  [default: the study's]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Programs that run at once.  [default: as it was begun]")
@click.option("--timeout", metavar="TIME", help="For one trial.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Times that a failed trial is run again.")
@click.option("--yes", is_flag=True, help="Run the program that the database names, although it was not begun from here.")
@storage_option
@click.option("--quiet", is_flag=True, help="Say nothing but the result.")
@json_option
@click.pass_context
def resume(ctx: click.Context, /, name: str | None, where: str, quiet: bool, yes: bool, **given: Any) -> None:
    """Go on with a study: the same program, in this folder, until its budget is used up.

    NAME may be left out where there is one study only. A trial that was interrupted is evaluated again first.

    The program is kept in the database, but not everybody who can write there should decide what runs here: one that was not
    begun from this folder is shown, and needs --yes.

    \b
    Examples:
      shoestring resume
      shoestring resume xgb --budget 2h --workers 8
    """
    from .money import make_budget, seconds
    from .plan import restored
    from .running import carry_out

    with opened(where) as storage:
        record = find(storage, name, where)
    kept = record.settings.get("run")
    if not kept:
        own = command("run", "--name", record.name, *arguments(where), "...", "--", "PROGRAM")
        raise Trouble(f"study {record.name!r} was not begun by a program, so there is none to run", own)
    if not yes and not Logs(Path(kept["logs"])).remembers(kept["command"]):
        raise Trouble(
            f"study {record.name!r} was not begun from this folder; the database says that its program is\n"
            f"  {shlex.join(kept['command'])}\nif that is what you want to run, say --yes",
            command("resume", record.name, "--yes", *arguments(where)),
        )
    changes = {key: given[key] for key in ("workers", "retries") if given[key] is not None}
    if given["timeout"] is not None:
        changes["timeout"] = seconds(given, "timeout")
    if given["budget"] is not None:
        price = {key: kept["budget"][key] for key in ("unit", "per_hour") if kept["budget"].get(key) is not None}
        changes["budget"] = make_budget({"budget": given["budget"], **price})
    ctx.exit(carry_out(restored(record.name, where, kept, changes), None, quiet))
