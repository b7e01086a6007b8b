"""``db backup``, ``db upgrade`` and ``db check``: the place itself where studies are kept."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..wording import plural
from .options import json_option, storage_option
from .speech import Trouble, answer, command
from .where import arguments, hidden, opened


@click.group(short_help="Back up, upgrade or check the storage.")
def db() -> None:
    """Look after the place where studies are kept."""


@db.command(short_help="A copy, while others go on writing.")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--yes", is_flag=True, help="Write over a file that is there.")
@storage_option
@json_option
def backup(path: Path | None, yes: bool, where: str) -> None:
    """A consistent copy of all studies, also while others write.  [default: the file's name with the time in it]"""
    if path is None:
        path = Path(f"shoestring-backup-{time.strftime('%Y%m%d-%H%M%S')}.db")
    if path.exists() and not yes:
        again = command("db", "backup", str(path), "--yes", *arguments(where))
        raise Trouble(f"{path} is there already; say --yes to write over it", again)
    with opened(where) as storage:
        fresh = path.with_name(f"{path.name}.new") if path.exists() else path
        storage.backup(fresh)
        fresh.replace(path)  # what was there stays there until the new one is whole
        trials = sum(record.trials for record in storage.studies())
    document = {"storage": hidden(where), "backup": str(path), "trials": trials}
    said = f"{hidden(where)} with {plural(trials, 'trial')} is copied to {path}"
    answer(document, said, command("ls", "--storage", str(path)))


@db.command(short_help="To the schema of this version.")
@storage_option
@json_option
def upgrade(where: str) -> None:
    """Bring an older storage to the schema of this version, and keep a copy of it as it was.

    Every command does so when it opens one; this one does nothing else, and says what was done.
    """
    with opened(where) as storage:
        done = storage.upgrade()
    answer({"storage": hidden(where), "done": done}, f"{hidden(where)}: {done}", command("db", "check", *arguments(where)))


@db.command(short_help="Whether it is whole.")
@storage_option
@json_option
@click.pass_context
def check(ctx: click.Context, where: str) -> None:
    """Whether everything in the storage can be read and fits together. Exit code 1 if not."""
    with opened(where) as storage:
        problems = storage.check()
    document = {"storage": hidden(where), "ok": not problems, "problems": problems}
    if not problems:
        answer(document, f"{hidden(where)} is in order", command("ls", *arguments(where)))
        return
    said = "\n  ".join([f"{hidden(where)} is damaged:", *problems])
    answer(document, said, command("db", "backup", *arguments(where)))
    ctx.exit(1)
