"""How a study stands: in words and as JSON, from its trials alone, without fitting a model.

``ls``, ``show`` and ``best``: what is there and how it stands. None of them fits a model unless asked to.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._format import amount, config_text, duration, plural, rounded
from ..data.trial import State, Trial
from .console import Trouble, answer, arguments, command, find, hidden, load, opened, rows_text, table_text
from .options import json_option, name_argument, storage_option

if TYPE_CHECKING:
    from .. import Study, Trial
    from ..space.space import Parameter
    from ..storage.base import StudyRecord

def trial_json(trial: Trial) -> dict[str, Any]:
    """The part of a trial that most programs want; ``show`` and ``export`` give all of it."""
    keys = ("number", "state", "value", "cost", "seconds", "config", "error")
    return {key: value for key, value in trial.to_dict().items() if key in keys}


def study_json(study: Study) -> dict[str, Any]:
    """A study without its trials."""
    log = study.log
    return {
        "study": study.name,
        "direction": study.direction,
        "trials": len(log),
        "states": {str(state): count for state, count in Counter(trial.state for trial in log).items()},
        "spent": log.spent,
        "unit": study.unit,
        "best": None if log.best is None else trial_json(log.best),
    }


def standing_rows(study: Study) -> list[tuple[str, str]]:
    """Trials, spent, best, config."""
    log = study.log
    counts = Counter(trial.state for trial in log)
    others = [f"{counts[state]} {state}" for state in (State.FAILED, State.ABANDONED, State.RUNNING) if counts[state]]
    rows = [("trials", ", ".join([str(len(log)), *others])), ("spent", amount(log.spent, study.unit))]
    return rows + best_rows(study)


def best_rows(study: Study) -> list[tuple[str, str]]:
    best = study.log.best
    if best is not None:
        return [("best", f"{rounded(best.value)} (trial {best.number})"), ("config", config_text(best.config))]
    failed = study.log.having(State.FAILED)
    return [("best", "nothing has succeeded yet" + (f"; the last error: {first_line(failed[-1].error)}" if failed else ""))]


def running_rows(study: Study) -> list[tuple[str, str]]:
    """What is being evaluated at this moment, and for how long."""
    running = study.log.having(State.RUNNING)
    shown = [f"{trial.number}{'' if trial.asked_at is None else f' for {age(trial.asked_at)}'}" for trial in running[:8]]
    more = [f"{len(running) - 8} more"] if len(running) > 8 else []
    return [("running", "trial " + ", ".join([*shown, *more]))] if running else []


def parameter_text(parameter: Parameter) -> str:
    """A parameter in words: "whole number from 2 to 12, log scale"."""
    fields = parameter.to_dict()
    if "options" in fields:
        text = "one of " + ", ".join(map(str, fields["options"]))
    else:
        kind = "fidelity" if parameter.fidelity else "whole number" if fields["kind"] == "int" else "real number"
        text = f"{kind} from {fields['low']:g} to {fields['high']:g}"
    text += ", log scale" if fields.get("log") else ""
    text += f", steps of {fields['step']:g}" if fields.get("step") else ""
    text += f", target {fields['target']:g}" if fields.get("target") is not None else ""
    return text + (f", when {condition_text(fields['when'])}" if fields.get("when") else "")


def condition_text(when: Mapping[str, Any]) -> str:
    return " and ".join(
        f"{name} = {' or '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in when.items()
    )


def first_line(text: str | None, length: int = 200) -> str:
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= length else line[:length] + "..."


def age(moment: float) -> str:
    """How long ago a moment (seconds since 1970) was."""
    return duration(max(time.time() - moment, 0.0))


def ago(moment: float) -> str:
    """The same in coarse steps: "3 days ago"."""
    seconds = max(time.time() - moment, 0.0)
    for length, noun in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{plural(int(seconds // length), noun)} ago"
    return "just now"


LAST = 8  # trials that ``show`` lists
LINES = 20  # of a log


@click.command(name="ls", short_help="The studies that are there.")
@storage_option
@json_option
def list_studies(where: str) -> None:
    """The studies in a storage: their trials, their best values, when they were begun."""
    with opened(where) as storage:
        records: list[StudyRecord] = storage.studies()
        bests: list[Trial | None] = [storage.best(record.id, maximizes(record)) for record in records]
    document = [
        {
            "name": record.name, "trials": record.trials, "waiting": record.waiting, "halted": record.halted,
            "direction": record.settings.get("direction"), "created_at": record.created_at,
            "best": None if best is None else trial_json(best),
        }
        for record, best in zip(records, bests, strict=True)
    ]  # fmt: skip
    rows = [
        [record.name, str(record.trials), rounded(best.value) if best else "-", ago(record.created_at), note_on(record)]
        for record, best in zip(records, bests, strict=True)
    ]
    text = table_text(["study", "trials", "best", "begun", ""], rows, right=("trials", "best")) if rows else "no studies yet"
    then = command("show", records[-1].name, *arguments(where)) if records else command("run", "--help")
    answer(document, text, then)


def maximizes(record: StudyRecord) -> bool:
    return record.settings.get("direction") == "maximize"


def note_on(record: StudyRecord) -> str:
    notes = [f"stopped: {record.halted}"] if record.halted else []
    return "; ".join([*notes, f"{record.waiting} enqueued"] if record.waiting else notes)


@click.command(short_help="The best settings so far.")
@name_argument
@click.option("--recommend", is_flag=True, help="Fit the model, and say what it predicts to be best as well.")
@storage_option
@json_option
def best(name: str | None, recommend: bool, where: str) -> None:
    """The best trial of a study.

    With --recommend also the settings whose value the model predicts to be best, which noise fools less.

    \b
    Examples:
      shoestring best xgb
      shoestring best xgb --json | jq .config
    """
    with opened(where) as storage:
        record = find(storage, name, where)
        found: Trial | None = storage.best(record.id, maximizes(record))
        if found is None:
            raise Trouble(f"nothing has succeeded yet in study {record.name!r}", command("show", record.name, *arguments(where)))
        document: dict[str, Any] = trial_json(found)
        value = f"{rounded(found.value)} (trial {found.number} of {record.name})"
        rows = [("best", value), ("config", config_text(found.config))]
        if recommend:
            picked = load(storage, record.name, where, suggests=True).recommend()
            assert picked is not None  # there is a finished trial
            evaluated = "not evaluated yet" if picked.number is None else f"trial {picked.number}"
            rows.append(("model's pick", f"{config_text(picked.config)}; predicted {rounded(picked.value)} ({evaluated})"))
            document["recommended"] = {"config": picked.config, "predicted": picked.value, "trial": picked.number}
    answer(document, rows_text(rows), command("show", record.name, str(found.number), *arguments(where)))


@click.command(short_help="How a study, or one of its trials, stands.")
@name_argument
@click.argument("trial", type=click.IntRange(min=0), required=False)
@storage_option
@json_option
def show(name: str | None, trial: int | None, where: str) -> None:
    """A study: its space, its program, how far it is, its last trials. Or one trial, with the end of its logs.

    \b
    Examples:
      shoestring show xgb
      shoestring show xgb 17
    """
    with opened(where) as storage:
        record = find(storage, name, where)
        study = load(storage, record.name, where)
    if trial is None:
        show_study(study, record, where)
        return
    if trial >= len(study.log):
        has = f"study {record.name!r} has {plural(len(study.log), 'trial')}"
        raise Trouble(f"there is no trial {trial}: {has}, numbered from 0", command("show", record.name, *arguments(where)))
    show_trial(study, record, study.log[trial], where)


def show_study(study: Study, record: StudyRecord, where: str) -> None:
    kept = record.settings.get("run") or {}
    rows = [("study", f"{record.name}, in {hidden(where)}, begun {ago(record.created_at)}"), ("direction", study.direction)]
    rows += [(f"  {name}", parameter_text(parameter)) for name, parameter in study.space.items()]
    rows += [("program", shlex.join(kept["command"]))] if "command" in kept else []
    rows += standing_rows(study) + running_rows(study)
    rows += [("enqueued", str(record.waiting))] if record.waiting else []
    rows += [("stopped", record.halted)] if record.halted else []
    head = ["trial", "state", "value", "cost", ""]
    last = [
        [str(each.number), str(each.state), rounded(each.value), "-" if each.cost is None else amount(each.cost, study.unit),
         first_line(each.error) if each.error else config_text(each.config)]
        for each in study.log[-LAST:]
    ]  # fmt: skip
    table = "\n\n" + table_text(head, last, right=("trial", "value", "cost")) if last else ""
    then = ("resume", record.name) if kept else ("ask", record.name)
    document = study_json(study) | {
        "storage": hidden(where), "created_at": record.created_at, "halted": record.halted, "waiting": record.waiting,
        "seconds": record.seconds, "run": kept or None, "space": {name: each.to_dict() for name, each in study.space.items()},
        "last": [trial_json(each) for each in study.log[-LAST:]],
    }  # fmt: skip
    answer(document, rows_text(rows) + table, command(*then, *arguments(where)))


def show_trial(study: Study, record: StudyRecord, trial: Trial, where: str) -> None:
    from ..program.result_reader import Logs, tail

    rows = [("trial", f"{trial.number} of {record.name}"), ("state", str(trial.state)), ("value", rounded(trial.value, 6))]
    rows += [("cost", amount(trial.cost, study.unit) + (" or more" if trial.censored else ""))] if trial.cost is not None else []
    rows += [("time", duration(trial.seconds))] if trial.seconds is not None else []
    rows += [("asked", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trial.asked_at)))] if trial.asked_at else []
    rows += [(f"  {name}", str(value)) for name, value in trial.config.items()]
    rows += [("folds", ", ".join(map(rounded, trial.folds)))] if trial.folds else []
    rows += [("why", str(trial.suggestion["why"]))] if trial.suggestion.get("why") else []
    rows += [("error", trial.error)] if trial.error else []
    document: dict[str, Any] = trial.to_dict()
    kept = record.settings.get("run") or {}
    text = rows_text(rows)
    if "logs" in kept:
        files = Logs(Path(kept["logs"])).of(trial.number)
        document["logs"] = {"out": str(files.out), "err": str(files.err)}
        for path in (files.out, files.err):
            lines = tail(path, 1 << 16).splitlines()
            if lines:
                more = f", the last {LINES} lines" if len(lines) > LINES else ""
                text += f"\n\n{path}{more}:\n" + "\n".join(f"  {line}" for line in lines[-LINES:])
    answer(document, text, command("show", record.name, *arguments(where)))
