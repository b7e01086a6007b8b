"""``stop`` and ``rm``: what changes or ends a study from outside."""

from __future__ import annotations

import click

from ..wording import plural
from .options import complete_names, json_option, name_argument, storage_option
from .speech import Trouble, answer, command
from .where import arguments, find, hidden, opened


@click.command(short_help="Have a running study stop.")
@name_argument
@click.option("--reason", default="stopped by request", show_default=True, metavar="TEXT", help="Kept with the study.")
@storage_option
@json_option
def stop(name: str | None, reason: str, where: str) -> None:
    """Have all workers of a study, on whatever machine, stop after the trials that they are at."""
    with opened(where) as storage:
        record = find(storage, name, where)
        storage.revise(record.id, halted=reason)
    document = {"study": record.name, "halted": reason, "trials": record.trials}
    then = command("resume" if record.settings.get("run") else "show", record.name, *arguments(where))
    answer(document, f"study {record.name} stops after the trials that run now", then)


@click.command(short_help="Delete a study.")
@click.argument("name", shell_complete=complete_names)
@click.option("--yes", is_flag=True, help="Really: there is no way back.")
@storage_option
@json_option
def rm(name: str, yes: bool, where: str) -> None:
    """Delete a study with all its trials. Its logs stay where they are."""
    with opened(where) as storage:
        record = find(storage, name, where)
        if not yes:
            what = f"this deletes study {name!r} with {plural(record.trials, 'trial')} from {hidden(where)}, for ever"
            raise Trouble(f"{what}; if you mean it, say --yes", command("rm", name, "--yes", *arguments(where)))
        storage.delete(record.id)
    document = {"study": name, "deleted": True, "trials": record.trials}
    answer(document, f"study {name} is deleted", command("ls", *arguments(where)))
