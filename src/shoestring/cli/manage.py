"""Commands that manage studies and storages.

    stop, rm                         stop a running study; delete a study
    db backup, db upgrade, db check  copy, upgrade and check a storage
    export                           the trials of a study as CSV, JSON lines or Parquet, or to MLflow or Weights & Biases
    import optuna                    a study from Optuna's database becomes a new study, with all its finished trials
    replay                           compute a study's suggestions again from what is stored, and compare
    completion                       the script for shell completion of commands, options and names of studies
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from .._format import plural
from ..errors import ShoestringError
from ..state.persistence import read_id
from ..storage.address import looks_like_server, parse_server, shown_address
from .approval import find_all_logs, forget
from .console import (
    CommandError,
    confirmed,
    find_study,
    json_requested,
    load_study,
    opened_storage,
    print_result,
    rows_text,
    shoestring_command,
    sqlite_path,
    storage_arguments,
)
from .options import complete_names, json_option, name_argument, storage_option
from .show import best_rows, study_json

if TYPE_CHECKING:
    from .. import Study
    from ..integrations.optuna_database import OptunaStudy

COMPLETION_SETUP = {
    "bash": 'eval "$(shoestring completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(shoestring completion zsh)"       # in ~/.zshrc',
    "fish": "shoestring completion fish > ~/.config/fish/completions/shoestring.fish",
}


# -- stop, rm --------------------------------------------------------------------------------------------------------


@click.command(short_help="Stop a running study.")
@name_argument
@click.option("--reason", default="stopped by request", show_default=True, metavar="TEXT", help="Stored with the study.")
@storage_option
@json_option
def stop(name: str | None, reason: str, address: str) -> None:
    """Stop all workers of a study, on every machine, after the trials that they run now."""
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
        storage.revise(record.id, halted=reason)
    document = {"study": record.name, "halted": reason, "trials": record.trials}
    following = "resume" if record.settings.get("run") else "show"
    text = f"study {record.name} stops after the trials that run now"
    print_result(document, text, shoestring_command(following, record.name, *storage_arguments(address)))


@click.command(short_help="Delete a study.")
@click.argument("name", shell_complete=complete_names)
@click.option("--yes", is_flag=True, help="Confirm: this cannot be undone.")
@storage_option
@json_option
def rm(name: str, yes: bool, address: str) -> None:
    """Delete a study with all its trials, and its logs and checkpoints on this machine.

    A log folder that does not name this study is not touched, nor are files in it that others put there.
    """
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
        identity = read_id(record.settings)
        folders = [logs for logs in find_all_logs(identity, name) if logs.owner == identity] if identity else []
        if not yes:
            what = f"this deletes study {name!r} with {plural(record.trials, 'trial')} from {shown_address(address)}"
            what += "".join(f", its logs and checkpoints in {logs.folder}" for logs in folders)
            if not confirmed(f"{what}. It cannot be undone. Delete it?"):
                again = shoestring_command("rm", name, "--yes", *storage_arguments(address))
                raise CommandError(f"{what} and cannot be undone; add --yes to confirm", again)
        storage.delete(record.id)
    removed = [str(logs.folder) for logs in folders if logs.remove()]
    forget(identity)
    document = {"study": name, "deleted": True, "trials": record.trials, "folders": removed}
    text = f"study {name} is deleted" + "".join(f", with {folder}" for folder in removed)
    print_result(document, text, shoestring_command("ls", *storage_arguments(address)))


# -- db --------------------------------------------------------------------------------------------------------------


@click.group(short_help="Back up, upgrade or check a storage.")
def db() -> None:
    """Back up, upgrade or check the storage of the studies."""


@db.command(short_help="Copy a storage while others write to it.")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--yes", is_flag=True, help="Overwrite an existing file.")
@storage_option
@json_option
def backup(path: Path | None, yes: bool, address: str) -> None:
    """Copy all studies to a file, consistently, also while others write.  [default: shoestring-backup-TIME.db]"""
    if path is None:
        path = Path(f"shoestring-backup-{time.strftime('%Y%m%d-%H%M%S')}.db")
    if path.exists() and not yes:
        confirmed = shoestring_command("db", "backup", str(path), "--yes", *storage_arguments(address))
        raise CommandError(f"{path} already exists; add --yes to overwrite it", confirmed)
    with opened_storage(address) as storage:
        new = path.with_name(f"{path.name}.new") if path.exists() else path
        storage.backup(new)
        new.replace(path)  # the earlier file stays until the new one is complete
        trials = sum(record.trials for record in storage.studies())
    document = {"storage": shown_address(address), "backup": str(path), "trials": trials}
    text = f"{shown_address(address)} with {plural(trials, 'trial')} is copied to {path}"
    print_result(document, text, shoestring_command("ls", "--storage", str(path)))


@db.command(short_help="Upgrade a storage to this version.")
@storage_option
@json_option
def upgrade(address: str) -> None:
    """Upgrade an older storage to the schema of this version, and keep a copy of the old one.

    Every command does this when it opens a storage. This command does nothing else, and reports what was done.
    """
    with opened_storage(address) as storage:
        done = storage.upgrade()
    shown = shown_address(address)
    following = shoestring_command("db", "check", *storage_arguments(address))
    print_result({"storage": shown, "done": done}, f"{shown}: {done}", following)


@db.command(short_help="Check a storage for damage.")
@storage_option
@json_option
@click.pass_context
def check(ctx: click.Context, address: str) -> None:
    """Check that everything in the storage can be read and is consistent. Exit code 1 if not."""
    with opened_storage(address) as storage:
        problems = storage.check()
    shown = shown_address(address)
    document = {"storage": shown, "ok": not problems, "problems": problems}
    if not problems:
        print_result(document, f"{shown} is intact", shoestring_command("ls", *storage_arguments(address)))
        return
    text = "\n  ".join([f"{shown} is damaged:", *problems])
    print_result(document, text, shoestring_command("db", "backup", *storage_arguments(address)))
    ctx.exit(1)


# -- export, import --------------------------------------------------------------------------------------------------


FORMATS, TRACKERS = ("csv", "jsonl", "parquet"), ("mlflow", "wandb")


@click.command(short_help="Write the trials to a file or a tracker.")
@name_argument
@click.option("--to", "--format", "kind", type=click.Choice([*FORMATS, *TRACKERS]),
              help="[default: by the suffix of FILE, else csv]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to a file in place of standard output.")
@click.option("--tracking", metavar="URI", help="Of MLflow: its tracking URI.  Of W&B: the folder for its offline runs.")
@click.option("--experiment", metavar="NAME", help="Experiment of MLflow, or project of W&B.  [default: the study's name]")
@click.option("--yes", is_flag=True, help="Overwrite an existing file.")
@storage_option
@json_option
def export(
    name: str | None, kind: str | None, output: Path | None, tracking: str | None, experiment: str | None, yes: bool, address: str
) -> None:
    """Write all trials of a study, one line each: config, value, cost, state, error, metrics and attributes.

    JSONL has all fields of a trial. MLflow and Weights & Biases get one run for each finished trial; to export again adds those
    that are new. Runs of Weights & Biases are written offline: wandb sync uploads them.

    \b
    Examples:
      shoestring export xgb > xgb.csv
      shoestring export xgb -o xgb.jsonl
      shoestring export xgb --to mlflow --tracking sqlite:///mlflow.db
      shoestring export xgb --to wandb
    """
    if kind is None:
        kind = output.suffix[1:] if output is not None and output.suffix[1:] in FORMATS else "csv"
    if kind in TRACKERS and output is not None:
        raise click.UsageError(f"{kind} is no file: give --tracking in place of --output")
    if kind not in TRACKERS and (tracking is not None or experiment is not None):
        raise click.UsageError("--tracking and --experiment are for --to mlflow and --to wandb")
    if kind == "parquet" and output is None:
        raise click.UsageError("Parquet is no text: give a file, -o trials.parquet")
    if output is not None and output.exists() and not yes:
        words = ["export", *([name] if name else []), "-o", str(output), "--yes", *storage_arguments(address)]
        raise CommandError(f"{output} already exists; add --yes to overwrite it", shoestring_command(*words))
    with opened_storage(address) as storage:
        study = load_study(storage, name, address)
        result = study.result
        if kind in TRACKERS:
            export_to_tracker(study, kind, tracking, experiment)
            return
    if output is None and json_requested():
        print_result({"study": study.name, "trials": result.to_dicts()}, "")
        return
    from ..program.result_reader import open_private
    from ..report.export import to_parquet, utf8

    try:
        data = to_parquet(result.history) if kind == "parquet" else utf8(result.to_csv() if kind == "csv" else result.to_jsonl())
    except ImportError as missing:
        raise CommandError(str(missing), "pip install pyarrow") from None
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        with open_private(output) as file:
            file.write(data)
    except OSError as error:
        following = shoestring_command("export", study.name, "-o", "FILE")
        raise CommandError(f"{output} cannot be written: {error.strerror}", following) from None
    document = {"study": study.name, "trials": len(result.history), "file": str(output), "format": kind}
    text = f"{plural(len(result.history), 'trial')} of study {study.name} written to {output}"
    print_result(document, text, shoestring_command("show", study.name, *storage_arguments(address)))


def export_to_tracker(study: Study, kind: str, tracking: str | None, experiment: str | None) -> None:
    """Write the finished trials to MLflow or W&B, and print how many are new there."""
    try:
        if kind == "mlflow":
            from ..integrations.mlflow_export import to_mlflow

            new = to_mlflow(study, tracking, experiment)
        else:
            from ..integrations.wandb_export import to_wandb

            new = to_wandb(study, tracking or ".", experiment)
    except ImportError as missing:
        raise CommandError(str(missing), f"pip install {'mlflow-skinny' if kind == 'mlflow' else 'wandb'}") from None
    except ShoestringError:
        raise
    except Exception as error:  # whatever a tracker raises when it cannot be reached or written
        again = shoestring_command("export", study.name, "--to", kind)
        what = f"{kind} could not be written: {type(error).__name__}: {error}"
        raise CommandError(f"{what}; what is there already stays", again) from None
    what = {"mlflow": "experiment", "wandb": "project"}[kind]
    document = {"study": study.name, "to": kind, "new": new, what: experiment or study.name}
    text = f"{plural(new, 'new trial')} of study {study.name} written to {what} {experiment or study.name} of {kind}"
    if kind == "mlflow":
        following = shlex.join(["mlflow", "ui", *(["--backend-store-uri", shown_address(tracking)] if tracking else [])])
    else:
        following = f"wandb sync {shlex.quote(str(Path(tracking or '.') / 'wandb'))}/offline-run-*"
    print_result(document, text, following)


@click.group(name="import", short_help="Import a study from another library.")
def import_() -> None:
    """Import a study, with all its trials, from another library."""


@import_.command(short_help="Import from Optuna's database.")
@click.argument("url", metavar="URL")
@click.argument("study", required=False)
@click.option("--name", metavar="NAME", help="Name of the new study.  [default: the same]")
@storage_option
@json_option
def optuna(url: str, study: str | None, name: str | None, address: str) -> None:
    """Import a study from the database at URL, as in Optuna's storage= (or a file). Optuna itself is not needed.

    Finished trials become results, and the time they took becomes their cost. Failed trials are imported too: the model then
    avoids such settings. Trials that were pruned, are running or waiting are skipped. The database is only read.

    \b
    Examples:
      shoestring import optuna sqlite:///optuna.db
      shoestring import optuna sqlite:///optuna.db xgb --name xgb-again
    """
    from ..integrations.optuna_database import read_study

    is_file = "://" not in url or url.startswith("sqlite:///")
    if looks_like_server(url) or (not is_file and parse_server(url) is None):  # it is not shown, since it may hold a password
        example = "SCHEME://user:password@host/database, with @ : / in a password written as %40 %3A %2F"
        raise CommandError(f"this address cannot be read; write {example}", shoestring_command("import", "optuna", "--help"))
    path = sqlite_path(url)
    if path is not None and not path.is_file():
        raise CommandError(f"there is no file {path}", shoestring_command("import", "optuna", "--help"))
    found = read_study(url if "://" in url else f"sqlite:///{url}", study)
    shown = shown_address(address)
    with opened_storage(address, create=True) as storage:
        title = name or found.name
        if storage.find(title) is not None:
            words = ["import", "optuna", shown_address(url), found.name, "--name", f"{title}-2", *storage_arguments(address)]
            raise CommandError(f"there is already a study {title!r} in {shown}; give another name", shoestring_command(*words))
        imported, counts = import_study(storage, title, found)
        history = imported.history
    document = study_json(imported, history) | {"imported": dict(counts), "notes": list(found.notes)}
    skipped = ", ".join(f"{count} {state}" for state, count in counts.items() if state not in ("done", "failed"))
    rows = [("study", f"{title}, in {shown}"), ("imported", f"{plural(len(history), 'trial')}, {counts['failed']} failed")]
    rows += [("skipped", skipped)] if skipped else []
    rows += [("note", each) for each in found.notes] + best_rows(history)
    print_result(document, rows_text(rows), shoestring_command("ask", title, *storage_arguments(address)))


def import_study(storage: Any, name: str, found: OptunaStudy) -> tuple[Study, Counter[str]]:
    """Create a study from Optuna's, and count its trials by what became of them."""
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


# -- replay, completion ----------------------------------------------------------------------------------------------


@click.command(short_help="Compute a study's suggestions again, and compare.")
@name_argument
@storage_option
@json_option
@click.pass_context
def replay(ctx: click.Context, name: str | None, address: str) -> None:
    """Compute every suggestion of a study again from what was known when it was made, and report the first difference.

    Exit code 0 if all suggestions are the same, 1 if one differs.
    """
    with opened_storage(address) as storage:
        study = load_study(storage, name, address, needs_code=True)
        replayed = study.replay()
    difference = replayed.first_difference
    document = {
        "study": study.name,
        "checked": replayed.checked,
        "identical": replayed.identical,
        "first_difference": None if difference is None else {"number": difference[0], "what": str(difference[1])},
    }
    if difference is None:
        how = "all the same"
        if replayed.identical < replayed.checked:
            how = f"all the same but for rounding; {replayed.identical} bit for bit"
        text = f"{plural(replayed.checked, 'suggestion')} checked, {how}"
        print_result(document, text, shoestring_command("show", study.name, *storage_arguments(address)))
        return
    following = shoestring_command("show", study.name, str(difference[0]), *storage_arguments(address))
    print_result(document, f"trial {difference[0]} differs: {difference[1]} ({replayed.checked} checked)", following)
    ctx.exit(1)


@click.command(short_help="Print the completion script of a shell.", epilog="\b\n" + "\n".join(COMPLETION_SETUP.values()))
@click.argument("shell", type=click.Choice(list(COMPLETION_SETUP)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names of studies. To use it, run one of these:"""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "shoestring", "_SHOESTRING_COMPLETE")
    click.echo(script.source_template % script.source_vars())  # source() would start the shell to read its version
