"""``ls``, ``show``, ``best`` and ``explain``: studies, trials and the best settings, as text and as JSON.

Everything is computed from the stored trials. No model is fitted, except by ``best --recommend`` and ``explain``.
"""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from .._format import amount, config_text, duration, plural, rounded, uncertain, value_text
from ..data.trial import State, Trial
from ..report.summary import failures_text, parameter_text, trials_text
from ..state.persistence import read_id
from ..storage.address import shown_address
from ..termination.regret import standard_error
from .approval import find_logs
from .console import (
    CommandError,
    find_study,
    load_study,
    opened_storage,
    print_result,
    rows_text,
    shoestring_command,
    storage_arguments,
    table_text,
)
from .options import json_option, name_argument, storage_option

if TYPE_CHECKING:
    from .. import History, Study
    from ..storage.base import StudyRecord

MAX_TRIALS_SHOWN = 8  # last trials, and running ones, that ``show`` lists
MAX_LOG_LINES = 20  # last lines of each log file that ``show`` prints
MAX_LOG_BYTES = 1 << 16  # these lines are looked for in so many last bytes
MAX_ERROR_CHARACTERS = 200  # of an error that is shown on one line
SUMMARY_FIELDS = ("number", "state", "value", "cost", "seconds", "config", "metrics", "attrs", "error")
SECONDS_OF_UNIT = ((86400, "day"), (3600, "hour"), (60, "minute"))


# -- commands --------------------------------------------------------------------------------------------------------


@click.command(name="ls", short_help="List the studies.")
@storage_option
@json_option
def list_studies(address: str) -> None:
    """List the studies in a storage: number of trials, best value, time of creation."""
    with opened_storage(address) as storage:
        records: list[StudyRecord] = storage.studies()
        bests: list[Trial | None] = [storage.best(record.id, is_maximized(record)) for record in records]
    document = [
        {
            "name": record.name, "id": read_id(record.settings) or None,
            "trials": record.counted, "waiting": record.waiting, "halted": record.halted,
            "direction": record.settings.get("direction"), "created_at": record.created_at,
            "best": None if best is None else trial_json(best),
        }
        for record, best in zip(records, bests, strict=True)
    ]  # fmt: skip
    rows = [
        [record.name, str(record.counted), rounded(best.value) if best else "-", time_ago(record.created_at), remarks(record)]
        for record, best in zip(records, bests, strict=True)
    ]
    text = table_text(["study", "trials", "best", "created", ""], rows, right=("trials", "best")) if rows else "no studies yet"
    following = ("show", records[-1].name, *storage_arguments(address)) if records else ("run", "--help")
    print_result(document, text, shoestring_command(*following))


def is_maximized(record: StudyRecord) -> bool:
    return record.settings.get("direction") == "maximize"


def remarks(record: StudyRecord) -> str:
    """Whether a study was stopped, and how many configs are enqueued."""
    stopped = [f"stopped: {record.halted}"] if record.halted else []
    return "; ".join([*stopped, f"{record.waiting} enqueued"] if record.waiting else stopped)


@click.command(short_help="Show the best settings so far.")
@name_argument
@click.option("--recommend", is_flag=True, help="Also fit the model and show the settings that it predicts to be best.")
@click.option("--command", is_flag=True, help="Print the command line of the study's program with the best settings.")
@storage_option
@json_option
def best(name: str | None, recommend: bool, command: bool, address: str) -> None:
    """Show the best trial of a study.

    With --recommend also the settings whose value the model predicts to be best. Noise misleads this prediction less.

    With --command only the command line that runs the program of shoestring run with the best settings, at the target
    fidelity. It is quoted for a shell.

    \b
    Examples:
      shoestring best xgb
      shoestring best xgb --json | jq .config
      eval "$(shoestring best xgb --command) --save model.pt"
    """
    if recommend and command:
        raise click.UsageError("give --recommend or --command, not both")
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
        found: Trial | None = storage.best(record.id, is_maximized(record))
        if found is None:
            following = shoestring_command("show", record.name, *storage_arguments(address))
            raise CommandError(f"no trial of study {record.name!r} has succeeded yet", following)
        document: dict[str, Any] = trial_json(found)
        if command:
            words = best_command(load_study(storage, record.name, address), record, found, address)
            print_result(document | {"command": words}, shlex.join(words))
            return
        value = f"{uncertain(found.value, standard_error(found.folds))} (trial {found.number} of {record.name})"
        rows = [("best", value), ("config", config_text(found.config)), *further_rows(found)]
        if recommend:
            recommended = load_study(storage, record.name, address, needs_code=True).recommend()
            assert recommended is not None  # a trial has succeeded
            evaluated = "not evaluated yet" if recommended.number is None else f"trial {recommended.number}"
            text = f"{config_text(recommended.config)}; predicted {rounded(recommended.value)} ({evaluated})"
            rows.append(("recommended", text))
            document["recommended"] = {
                "config": recommended.config, "predicted": recommended.value, "trial": recommended.number,
            }  # fmt: skip
    following = shoestring_command("show", record.name, str(found.number), *storage_arguments(address))
    print_result(document, rows_text(rows), following)


@click.command(short_help="Say what the study does next, and why.")
@name_argument
@storage_option
@json_option
def explain(name: str | None, address: str) -> None:
    """Say what chooses the next trial of a study and why, what was rejected, and what was expected of the last trial.

    \b
    Examples:
      shoestring explain xgb
      shoestring explain xgb --json | jq -r .why
    """
    with opened_storage(address) as storage:
        study = load_study(storage, name, address, needs_code=True)
        found = study.explain()
        following = shoestring_command("show", study.name, *storage_arguments(address))
    print_result(found.to_dict(), str(found), following)


def best_command(study: Study, record: StudyRecord, trial: Trial, address: str) -> list[str]:
    """The command line of a trial's settings at the target fidelity, from the stored plan; an error if there is no program."""
    from ..program import CommandTemplate
    from ..program.command import argument_text
    from ..state.checkpoints import Checkpoints

    config = {**trial.config, **study.space.target}
    plan = record.settings.get("run")
    if not plan:
        options = shlex.join(word for name, value in config.items() for word in (f"--{name}", argument_text(value)))
        why = f"study {record.name!r} has no program: it was not made by shoestring run"
        following = shoestring_command("best", record.name, *storage_arguments(address))
        raise CommandError(f"{why}; its best settings as options are\n  {options}", following)
    logs = find_logs(study.id, record.name)
    checkpoints = Checkpoints(logs.checkpoints, lambda: study.id)
    extras = {
        "trial": trial.number, "study": record.name, "result": logs.files(trial.number).result.absolute(),
        "checkpoint_dir": checkpoints.path(config, study.space, trial.suggestion.get("run")),
    }  # fmt: skip
    extras["checkpoint"] = extras["checkpoint_dir"]
    template = CommandTemplate(tuple(plan["command"]), study.space, plan.get("pass_as_json", False))
    words = template.fill(config, {name: str(value) for name, value in extras.items()})
    reads_config = template.config_from_environment or template.rest_from_environment
    return ["env", f"SHOESTRING_CONFIG={json.dumps(config)}", *words] if reads_config else words


@click.command(short_help="Show a study, or one of its trials.")
@name_argument
@click.argument("trial", type=click.IntRange(min=0), required=False)
@storage_option
@json_option
def show(name: str | None, trial: int | None, address: str) -> None:
    """Show a study: its space, its program, what was spent, its last trials. Or one trial, with the end of its logs.

    \b
    Examples:
      shoestring show xgb
      shoestring show xgb 17
    """
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
        study = load_study(storage, record.name, address)
        history, attrs = study.history, dict(study.attrs)
    if trial is None:
        show_study(study, history, attrs, record, address)
        return
    if trial >= len(history):
        count = f"study {record.name!r} has {plural(len(history), 'trial')}, numbered from 0"
        following = shoestring_command("show", record.name, *storage_arguments(address))
        raise CommandError(f"there is no trial {trial}: {count}", following)
    show_trial(study, record, history[trial], address)


def show_study(study: Study, history: History, attrs: Mapping[str, Any], record: StudyRecord, address: str) -> None:
    """Print a study: settings, counts, best trial, last trials."""
    plan = record.settings.get("run") or {}
    title = f"{record.name}, in {shown_address(address)}, created {time_ago(record.created_at)}"
    rows = [("study", title), ("direction", study.direction)]
    rows += [(f"  {name}", parameter_text(parameter)) for name, parameter in study.space.items()]
    rows += [("program", shlex.join(plan["command"]))] if "command" in plan else []
    rows += [("attributes", named_text(attrs))] if attrs else []
    rows += status_rows(history, study.unit) + running_rows(history)
    rows += [("enqueued", str(record.waiting))] if record.waiting else []
    rows += [("stopped", record.halted)] if record.halted else []
    head = ["trial", "state", "value", "cost", ""]
    last = [
        [str(each.number), str(each.state), rounded(each.value), "-" if each.cost is None else amount(each.cost, study.unit),
         first_line(each.error) if each.error else config_text(each.config)]
        for each in history[-MAX_TRIALS_SHOWN:]
    ]  # fmt: skip
    table = "\n\n" + table_text(head, last, right=("trial", "value", "cost")) if last else ""
    document = study_json(study, history) | {
        "id": read_id(record.settings) or None, "storage": shown_address(address),
        "created_at": record.created_at, "halted": record.halted, "waiting": record.waiting,
        "seconds": record.seconds, "run": plan or None, "space": {name: each.to_dict() for name, each in study.space.items()},
        "attrs": attrs,
        "last": [trial_json(each) for each in history[-MAX_TRIALS_SHOWN:]],
    }  # fmt: skip
    following = shoestring_command("resume" if plan else "ask", record.name, *storage_arguments(address))
    print_result(document, rows_text(rows) + table, following)


def show_trial(study: Study, record: StudyRecord, trial: Trial, address: str) -> None:
    """Print one trial, with the end of its log files."""
    from ..program.result_reader import tail

    rows = [("trial", f"{trial.number} of {record.name}"), ("state", str(trial.state)), ("value", rounded(trial.value, 6))]
    before = trial.resumed_from
    rows += [("resumed", f"from trial {before.number}, at {named_text(before.fidelity)}")] if before is not None else []
    rows += [("cost", amount(trial.cost, study.unit) + (" or more" if trial.censored else ""))] if trial.cost is not None else []
    rows += [("time", duration(trial.seconds))] if trial.seconds is not None else []
    rows += [("asked", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trial.asked_at)))] if trial.asked_at else []
    rows += [(f"  {name}", str(value)) for name, value in trial.config.items()]
    rows += [("folds", ", ".join(map(rounded, trial.folds)))] if trial.folds else []
    rows += further_rows(trial)
    rows += [("why", str(trial.suggestion["why"]))] if trial.suggestion.get("why") else []
    rows += [("error", trial.error)] if trial.error else []
    document: dict[str, Any] = trial.to_dict()
    plan = record.settings.get("run") or {}
    text = rows_text(rows)
    traceback = trial.traceback
    if plan:
        files = find_logs(read_id(record.settings), record.name).files(trial.number)
        document["logs"] = {"out": str(files.out), "err": str(files.err)}
        for path in (files.out, files.err):
            lines = tail(path, MAX_LOG_BYTES).splitlines()
            if lines:
                traceback = None if path == files.err else traceback  # it is the end of this file
                part = f", the last {MAX_LOG_LINES} lines" if len(lines) > MAX_LOG_LINES else ""
                text += f"\n\n{path}{part}:\n" + "\n".join(f"  {line}" for line in lines[-MAX_LOG_LINES:])
    if traceback:
        text += "\n\n" + "\n".join(f"  {line}" for line in traceback.splitlines())
    print_result(document, text, shoestring_command("show", record.name, *storage_arguments(address)))


# -- studies and trials as JSON and as text --------------------------------------------------------------------------


def trial_json(trial: Trial) -> dict[str, Any]:
    """The fields of a trial that most programs need; ``show`` and ``export`` give all of them."""
    return {key: value for key, value in trial.to_dict().items() if key in SUMMARY_FIELDS}


def study_json(study: Study, history: History) -> dict[str, Any]:
    """A study without its trials."""
    return {
        "study": study.name,
        "direction": study.direction,
        "trials": history.trials_started,
        "interrupted": len(history) - history.trials_started,
        "states": {str(state): count for state, count in Counter(trial.state for trial in history).items()},
        "spent": history.spent,
        "unit": study.unit,
        "best": None if history.best is None else trial_json(history.best),
    }


def status_rows(history: History, unit: str) -> list[tuple[str, str]]:
    """Number of trials, cost spent, best value and its config."""
    rows = [("trials", trials_text(history)), ("spent", amount(history.spent, unit)), *best_rows(history)]
    failures = failures_text(history)
    return [*rows, ("failed", failures)] if failures and history.best is not None else rows


def further_rows(trial: Trial) -> list[tuple[str, str]]:
    """The metrics and the attributes of a trial."""
    rows = [("metrics", named_text(trial.metrics))] if trial.metrics else []
    return [*rows, ("attributes", named_text(trial.attrs))] if trial.attrs else rows


def named_text(values: Mapping[str, Any]) -> str:
    """Values by name: "accuracy = 0.93, host = gpu3"; what is neither a number nor a text is shown as JSON."""
    return ", ".join(
        f"{name} = {value_text(value) if isinstance(value, str | float) else json.dumps(value)}" for name, value in values.items()
    )


def best_rows(history: History) -> list[tuple[str, str]]:
    """The best value and its config, or the last error if no trial has succeeded."""
    best = history.best
    if best is not None:
        value = uncertain(best.value, standard_error(best.folds))
        return [("best", f"{value} (trial {best.number})"), ("config", config_text(best.config))]
    failed = history.having(State.FAILED)
    return [("best", "no trial has succeeded yet" + (f"; the last error: {first_line(failed[-1].error)}" if failed else ""))]


def running_rows(history: History) -> list[tuple[str, str]]:
    """The trials that are running now, and for how long."""
    running = history.having(State.RUNNING)
    shown = [
        f"{trial.number}{'' if trial.asked_at is None else f' for {duration(seconds_since(trial.asked_at))}'}"
        for trial in running[:MAX_TRIALS_SHOWN]
    ]
    more = [f"{len(running) - MAX_TRIALS_SHOWN} more"] if len(running) > MAX_TRIALS_SHOWN else []
    return [("running", "trial " + ", ".join([*shown, *more]))] if running else []


def first_line(text: str | None) -> str:
    """The first line of an error, cut if it is very long."""
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= MAX_ERROR_CHARACTERS else line[:MAX_ERROR_CHARACTERS] + "..."


def seconds_since(moment: float) -> float:
    """Seconds since a moment (in seconds since 1970); 0 if the clocks disagree."""
    return max(time.time() - moment, 0.0)


def time_ago(moment: float) -> str:
    """The time since a moment in one unit: "3 days ago"."""
    seconds = seconds_since(moment)
    for length, unit in SECONDS_OF_UNIT:
        if seconds >= length:
            return f"{plural(int(seconds // length), unit)} ago"
    return "just now"
