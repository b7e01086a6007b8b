"""``import optuna``: a study from Optuna's database becomes a study here, with all its finished trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from ..wording import plural
from .options import json_option, storage_option
from .speech import Trouble, answer, command, rows_text
from .standing import best_rows, study_json
from .where import arguments, file_of, hidden, opened

if TYPE_CHECKING:
    from .. import Study
    from ..integrations.optuna_database import Found


@click.group(name="import", short_help="Take over a study from elsewhere.")
def import_() -> None:
    """Take over a study, with all its trials, from another program."""


@import_.command(short_help="From Optuna's database.")
@click.argument("url", metavar="URL")
@click.argument("study", required=False)
@click.option("--name", metavar="NAME", help="Of the new study.  [default: the same]")
@storage_option
@json_option
def optuna(url: str, study: str | None, name: str | None, where: str) -> None:
    """A study from the database at URL, as Optuna's own storage= has it (or a file). Optuna itself is not needed.

    Finished trials become results, with the time they took as their cost; failed ones keep the model away from such places.
    Trials that were pruned, are running or wait are left out. The database is only read.

    \b
    Examples:
      shoestring import optuna sqlite:///optuna.db
      shoestring import optuna sqlite:///optuna.db xgb --name xgb-again
    """
    from ..integrations.optuna_database import read_study

    path = file_of(url)
    if path is not None and not path.is_file():
        raise Trouble(f"there is no file {path}", command("import", "optuna", "--help"))
    found = read_study(url if "://" in url else f"sqlite:///{url}", study)
    with opened(where, make=True) as storage:
        title = name or found.name
        if storage.find(title) is not None:
            again = command("import", "optuna", hidden(url), found.name, "--name", f"{title}-2", *arguments(where))
            raise Trouble(f"there is a study {title!r} in {hidden(where)} already; give another name", again)
        made, counts = take_over(storage, title, found)
    document = study_json(made) | {"imported": dict(counts), "notes": list(found.notes)}
    left = ", ".join(f"{count} {why}" for why, count in counts.items() if why not in ("done", "failed"))
    taken = f"{plural(len(made.log), 'trial')}, {counts['failed']} failed"
    rows = [("study", f"{title}, in {hidden(where)}"), ("taken over", taken)]
    rows += [("left out", left)] if left else []
    rows += [("note", each) for each in found.notes] + best_rows(made)
    answer(document, rows_text(rows), command("ask", title, *arguments(where)))


def take_over(storage: Any, name: str, found: Found) -> tuple[Study, Counter[str]]:
    """A new study with what can be had of it, and how many trials went which way."""
    from .. import Study
    from ..integrations.optuna_database import fits

    study = Study(found.space, direction=found.direction, storage=storage, name=name)  # type: ignore[arg-type]
    counts: Counter[str] = Counter(done=0, failed=0)
    for trial in found.trials:
        if trial.state not in ("COMPLETE", "FAIL"):
            counts[trial.state.lower()] += 1
        elif fits(found.space, trial.config) is not None:
            counts["without some parameter"] += 1
        elif trial.state == "COMPLETE" and trial.value is not None:
            added = study.add(trial.config, trial.value, cost=trial.seconds)
            counts["done" if added.error is None else "failed"] += 1
        else:
            study.add(trial.config, error="failed in Optuna", cost=trial.seconds)
            counts["failed"] += 1
    return study, counts
