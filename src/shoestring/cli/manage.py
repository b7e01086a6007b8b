"""``stop`` and ``rm``: what changes or ends a study from outside.

``db backup``, ``db upgrade`` and ``db check``: the place itself where studies are kept.

``export``: the trials of a study as CSV or as JSON lines.

``import optuna``: a study from Optuna's database becomes a study here, with all its finished trials.

``replay``: whether a study's suggestions can be computed again from what is stored.

``completion``: the script that lets a shell complete commands, options and the names of studies.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from .._format import plural
from .console import Trouble, answer, arguments, command, file_of, find, hidden, load, opened, rows_text, wants_json
from .options import complete_names, json_option, name_argument, storage_option
from .show import best_rows, study_json

if TYPE_CHECKING:
    from .. import Study
    from ..integrations.optuna_database import Found

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


HOW = {
    "bash": 'eval "$(shoestring completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(shoestring completion zsh)"       # in ~/.zshrc',
    "fish": "shoestring completion fish > ~/.config/fish/completions/shoestring.fish",
}


@click.command(short_help="Completion for your shell.", epilog="\b\n" + "\n".join(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names of studies. Put one of these where your shell starts:"""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "shoestring", "_SHOESTRING_COMPLETE")
    click.echo(script.source_template % script.source_vars())  # source() would first run the shell, to ask for its version
