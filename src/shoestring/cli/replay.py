"""``replay``: whether a study's suggestions can be computed again from what is stored."""

from __future__ import annotations

import click

from ..wording import plural
from .options import json_option, name_argument, storage_option
from .speech import answer, command
from .where import arguments, load, opened


@click.command(short_help="Compute a study's suggestions again, and compare.")
@name_argument
@storage_option
@json_option
@click.pass_context
def replay(ctx: click.Context, name: str | None, where: str) -> None:
    """Compute every suggestion of a study again from what was known when it was made, and report the first that differs.

    Exit code 0 if all are the same, 1 if one differs.
    """
    with opened(where) as storage:
        study = load(storage, name, where, suggests=True)
        replayed = study.replay()
    difference = replayed.first_difference
    document = {
        "study": study.name,
        "checked": replayed.checked,
        "first_difference": None if difference is None else {"number": difference[0], "what": str(difference[1])},
    }
    if difference is None:
        same = f"{plural(replayed.checked, 'suggestion')} checked, all the same"
        answer(document, same, command("show", study.name, *arguments(where)))
        return
    then = command("show", study.name, str(difference[0]), *arguments(where))
    answer(document, f"trial {difference[0]} differs: {difference[1]} ({replayed.checked} checked)", then)
    ctx.exit(1)
