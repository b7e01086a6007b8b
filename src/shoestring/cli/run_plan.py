"""What ``shoestring run`` is to do: from the command line, a TOML file and the defaults, all checked before anything is spent.

What a run says: when it begins, when it has ended, and when it was interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._format import amount, plural
from ..budget import Budget
from ..data.trial import State
from ..errors import ShoestringError, StorageError
from ..program.command import Template
from ..program.result_reader import folder_for
from ..space.space import Parameter, Space
from ..state.registry import read_method, read_stop
from ..storage.patience import SHORT, patience
from .console import DEFAULT, Trouble, answer, arguments, command, exit_code, hidden, note, rows_text, wants_json
from .options import make_budget, seconds
from .show import best_rows, parameter_text, standing_rows, study_json

if TYPE_CHECKING:
    from .. import Recommendation, Result, Study

_SCRIPT = re.compile(r"[^-{}=][^{}=]*\.[A-Za-z]\w{0,3}")  # train.py, bin/model.jl
STORED = ("command", "budget", "workers", "timeout", "retries", "confirm", "logs", "pass_as_json")


@dataclass(frozen=True)
class Plan:
    """One run. What is needed to resume it is kept with the study as its ``settings["run"]``."""

    command: tuple[str, ...]
    budget: Budget
    name: str
    where: str
    workers: int = 1
    timeout: float | None = None
    retries: int = 0
    confirm: bool = False
    logs: str = ""
    pass_as_json: bool = False

    def stored(self) -> dict[str, Any]:
        """JSON-ready; ``restored`` is its inverse."""
        kept = {key: getattr(self, key) for key in STORED}
        return kept | {"command": list(self.command), "budget": asdict(self.budget)}

    def template(self, space: Space) -> Template:
        return Template(self.command, space, self.pass_as_json)


def restored(name: str, where: str, kept: Mapping[str, Any], changes: Mapping[str, Any]) -> Plan:
    """The plan of a stored study, with some of it changed."""
    known = {key: kept[key] for key in STORED if key in kept}
    known["command"], known["budget"] = tuple(known["command"]), Budget(**known["budget"])
    return Plan(name=name, where=where, **known | dict(changes))


def make_plan(options: Mapping[str, Any], file: Path | None) -> Plan:
    """Of merged options; missing ones are None or absent."""
    given = {key: value for key, value in options.items() if value is not None}
    command = tuple(given.get("command") or ())
    if not command:
        raise click.UsageError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
    name = str(given.get("name") or default_name(command, file))
    return Plan(
        command=command,
        budget=make_budget(given),
        name=name,
        where=str(given.get("storage", DEFAULT)),
        workers=at_least(given, "workers", 1, 1),
        timeout=seconds(given, "timeout"),
        retries=at_least(given, "retries", 0, 0),
        confirm=bool(given.get("confirm", False)),
        logs=str(given.get("logs") or folder_for(name)),
        pass_as_json=bool(given.get("pass_as_json", False)),
    )


def default_name(command: Sequence[str], file: Path | None) -> str:
    """The TOML file's name, or the script's: ``python train.py`` is the study train."""
    if file is not None:
        return file.stem
    scripts = (word for word in command[1:] if _SCRIPT.fullmatch(word))
    return Path(next(scripts, command[0])).stem or "study"


def at_least(given: Mapping[str, Any], key: str, lowest: int, default: int) -> int:
    value = int(given.get(key, default))
    if value < lowest:
        raise click.UsageError(f"{key} must be {lowest} or more, not {value}")
    return value


def make_study_options(given: Mapping[str, Any], budget: Budget, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """What ``Study`` takes besides name and storage; method and rule are read here, the space is made here."""
    if not parameters:
        raise click.UsageError("there is nothing to tune; give --param lr=log:1e-5:1e-1, or [params] in a TOML file")
    try:
        options: dict[str, Any] = {"space": Space(parameters)}
        options["method"] = read_method(given.get("method") or "auto")
        options["stop"] = read_stop(given.get("stop") or "auto")
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None
    options["seed"] = 0 if given.get("seed") is None else int(given["seed"])
    options["direction"] = "maximize" if given.get("maximize") else "minimize"
    options["unit"] = budget.unit or "s"
    options["per_hour"] = budget.per_hour
    if given.get("initial") is not None:
        options["initial"] = int(given["initial"])
    return options


def introduction(plan: Plan, study: Study, before: int | None) -> str:
    """What is about to happen."""
    known = f"going on with study {plan.name}: {plural(before, 'trial')} so far" if before is not None else f"study {plan.name}"
    if before is not None:
        return f"{known}, in {hidden(plan.where)}"
    rows = [(f"  {name}", parameter_text(parameter)) for name, parameter in study.space.items()]
    rows.append(("  budget", budget_text(plan, study.unit) + (f", {plan.workers} at once" if plan.workers > 1 else "")))
    rows.append(("  kept in", f"{hidden(plan.where)}; logs in {plan.logs}"))
    if plan.template(study.space).by_environment:
        rows.append(("  config", "in SHOESTRING_CONFIG, as JSON: no argument names a parameter"))
    return f"{known}\n{rows_text(rows)}\n"


def budget_text(plan: Plan, unit: str) -> str:
    budget = plan.budget
    limits = [
        None if budget.cost is None else amount(budget.cost, unit) + (" of running time" if unit == "s" else ""),
        None if budget.trials is None else plural(budget.trials, "trial"),
        None if budget.seconds is None else f"{amount(budget.seconds, 's')} by the clock",
    ]
    return " or ".join(limit for limit in limits if limit)


def conclude(plan: Plan, study: Study, result: Result) -> int:
    """The summary and the exit code."""
    if result.stop.kind == "interrupted":
        return interrupted(plan, study, result.stop.reason, exit_code(result.stop.reason))
    study.refresh()  # others may be working on it as well
    document = summary_json(plan, study, result.stop.reason, result.stop.kind)
    if study.log.best is None:
        failed = study.log.having(State.FAILED)
        look = command("show", plan.name, *(str(trial.number) for trial in failed[-1:]), *arguments(plan.where))
        raise Trouble(f"no trial has succeeded; {result.stop.reason}\n{best_rows(study)[0][1]}", look, document)
    if wants_json():
        answer(document | {"recommended": recommended_json(result.recommended)}, "")
        return 0
    rows = [row for row in result.rows() if row[0] != "go on"]
    rows += [("logs", plan.logs), ("go on", f"{document['resume']} --budget MORE")]
    answer(document, rows_text(rows), command("best", plan.name, *arguments(plan.where)))
    return 0


def interrupted(plan: Plan, study: Study, reason: str, code: int) -> int:
    """The summary without fitting a model, and without waiting for a storage: whoever interrupts wants to be out."""
    try:
        with patience(SHORT):
            answer(summary_json(plan, study, reason, "interrupted"), rows_text([*standing_rows(study), ("stopped", reason)]))
    except StorageError as error:
        note(str(error))
    note(f"interrupted; to go on:\n  {resuming(plan)}{unsaid(plan)}")
    return code


def resuming(plan: Plan) -> str:
    return command("resume", plan.name, *arguments(plan.where))


def summary_json(plan: Plan, study: Study, reason: str, kind: str) -> dict[str, Any]:
    kept = {"storage": hidden(plan.where), "logs": plan.logs}
    return study_json(study) | kept | {"stop": reason, "stop_kind": kind, "resume": resuming(plan)}


def recommended_json(found: Recommendation | None) -> dict[str, Any] | None:
    return None if found is None else {"config": found.config, "predicted": found.value, "trial": found.number}


def unsaid(plan: Plan) -> str:
    """A password is not printed, so the command that is lacks it."""
    hides = hidden(plan.where) != plan.where and bool(arguments(plan.where))
    return "\n  (with the password in place of ***; or put the address into SHOESTRING_STORAGE)" if hides else ""
