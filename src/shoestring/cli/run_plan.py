"""The plan of a run, and what a run prints at its beginning and at its end.

A plan is made from the command line, a TOML file and the defaults. All of it is checked before any budget is spent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._format import amount, plural
from .._validation import whole_number
from ..budget import Budget
from ..data.trial import State
from ..errors import ShoestringError
from ..program import CommandTemplate
from ..report.summary import parameter_text
from ..space.space import Parameter, Space
from ..state.registry import read_meter, read_method, read_stop
from ..storage.address import shown_address
from ..storage.trial_lifecycle import MAX_RETRIES
from .console import (
    DEFAULT_STORAGE,
    CommandError,
    interruption_exit_code,
    json_requested,
    print_note,
    print_result,
    rows_text,
    shoestring_command,
    storage_arguments,
)
from .options import make_budget, read_seconds
from .show import first_line, status_rows, study_json

if TYPE_CHECKING:
    from .. import History, Recommendation, Result, Study

STORED_FIELDS = (
    "command", "budget", "workers", "timeout", "retries", "max_retries", "max_failures", "fail_fast", "confirm", "pass_as_json",
)  # fmt: skip
_SCRIPT = re.compile(r"[^-{}=][^{}=]*\.[A-Za-z]\w{0,3}")  # train.py, bin/model.jl


# -- the plan --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run of a program. What ``resume`` needs of it is stored with the study as ``settings["run"]``.

    address   of the storage
    timeout   seconds for one trial; None for no limit
    logs      the folder of the log files; empty for the default one, whose name needs the study's identity. It is not stored:
              what is in a database must not decide where files are written

    ``max_retries``, ``max_failures`` and ``fail_fast`` are those of ``Study.minimize``. A plan from before they existed has
    their defaults.
    """

    command: tuple[str, ...]
    budget: Budget
    name: str
    address: str
    workers: int = 1
    timeout: float | None = None
    retries: int = 0
    max_retries: int = MAX_RETRIES
    max_failures: int | None = None
    fail_fast: bool = True
    confirm: bool = False
    logs: str = ""
    pass_as_json: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The stored fields, JSON-ready; ``plan_from_dict`` is the inverse."""
        fields = {key: getattr(self, key) for key in STORED_FIELDS}
        return fields | {"command": list(self.command), "budget": asdict(self.budget)}

    def template(self, space: Space) -> CommandTemplate:
        """The command line with its placeholders; a ConfigError if it does not match the space."""
        return CommandTemplate(self.command, space, self.pass_as_json)

    @property
    def resume_command(self) -> str:
        return shoestring_command("resume", self.name, *storage_arguments(self.address))


def plan_from_dict(name: str, address: str, stored: Mapping[str, Any], changes: Mapping[str, Any]) -> Plan:
    """The plan of a stored study, with some of its fields replaced."""
    fields = {key: stored[key] for key in STORED_FIELDS if key in stored}
    fields["command"], fields["budget"] = tuple(fields["command"]), Budget(**fields["budget"])
    return Plan(name=name, address=address, **fields | dict(changes))


def make_plan(options: Mapping[str, Any], file: Path | None) -> Plan:
    """A plan from merged options; those that were not given are None or absent."""
    given = {key: value for key, value in options.items() if value is not None}
    command = tuple(given.get("command") or ())
    if not command:
        raise click.UsageError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
    name = str(given.get("name") or default_name(command, file))
    return Plan(
        command=command,
        budget=make_budget(given),
        name=name,
        address=str(given.get("storage", DEFAULT_STORAGE)),
        workers=read_count(given, "workers", 1, 1),
        timeout=read_seconds(given, "timeout"),
        retries=read_count(given, "retries", 0, 0),
        max_retries=read_count(given, "max_retries", 0, MAX_RETRIES),
        max_failures=read_count(given, "max_failures", 0, 0) if "max_failures" in given else None,
        fail_fast=not given.get("no_fail_fast", False),
        confirm=bool(given.get("confirm", False)),
        logs=str(given.get("logs") or ""),
        pass_as_json=bool(given.get("pass_as_json", False)),
    )


def default_name(command: Sequence[str], file: Path | None) -> str:
    """The name of the TOML file, or of the script: ``python train.py`` is the study train."""
    if file is not None:
        return file.stem
    scripts = (word for word in command[1:] if _SCRIPT.fullmatch(word))
    return Path(next(scripts, command[0])).stem or "study"


def read_count(given: Mapping[str, Any], key: str, least: int, default: int) -> int:
    """A whole number of ``least`` or more."""
    try:
        return whole_number(given.get(key, default), key.replace("_", "-"), least)
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None


def make_study_options(given: Mapping[str, Any], budget: Budget, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The arguments of ``Study`` except name and storage: the space is made, method and stopping rule are read."""
    if not parameters:
        raise click.UsageError("there is nothing to tune; give --param lr=log:1e-5:1e-1, or [params] in a TOML file")
    try:
        options: dict[str, Any] = {"space": Space(parameters)}
        options["method"] = read_method(given.get("method") or "auto")
        options["stop"] = read_stop(given.get("stop") or "auto")
        options["cost"] = read_meter(given.get("cost"))
        if options["cost"] is not None and budget.unit is not None:
            options["cost"] = options["cost"].in_unit(budget.unit)
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None
    options["seed"] = 0 if given.get("seed") is None else int(given["seed"])
    options["direction"] = "maximize" if given.get("maximize") else "minimize"
    options["unit"] = budget.unit or ("s" if options["cost"] is None else options["cost"].unit)
    options["per_hour"] = budget.per_hour
    if given.get("initial") is not None:
        options["initial"] = int(given["initial"])
    return options


# -- what a run prints -----------------------------------------------------------------------------------------------


def introduction(plan: Plan, study: Study, trials_before: int | None) -> str:
    """The text before the first trial; ``trials_before`` is None for a new study."""
    if trials_before is not None:
        return f"resuming study {plan.name}: {plural(trials_before, 'trial')} so far, in {shown_address(plan.address)}"
    rows = [(f"  {name}", parameter_text(parameter)) for name, parameter in study.space.items()]
    rows.append(("  budget", budget_text(plan.budget, study.unit) + (f", {plan.workers} at once" if plan.workers > 1 else "")))
    rows.append(("  storage", f"{shown_address(plan.address)}; logs in {plan.logs}"))
    if plan.template(study.space).config_from_environment:
        rows.append(("  config", "passed in SHOESTRING_CONFIG, as JSON: no argument names a parameter"))
    return f"study {plan.name}\n{rows_text(rows)}\n"


def budget_text(budget: Budget, unit: str) -> str:
    """The limits of a budget in words."""
    limits = [
        None if budget.cost is None else amount(budget.cost, unit) + (" of running time" if unit == "s" else ""),
        None if budget.trials is None else plural(budget.trials, "trial"),
        None if budget.seconds is None else f"{amount(budget.seconds, 's')} of wall-clock time",
    ]
    return " or ".join(limit for limit in limits if limit)


def print_summary(plan: Plan, study: Study, result: Result) -> int:
    """Print the summary of a run that has ended, and return the exit code."""
    reason = result.stop.reason
    if result.stop.kind == "interrupted":
        print_interruption(plan, study, result.history, reason)
        return interruption_exit_code(reason)
    history = study.history  # read again: other processes may work on the same study
    document = summary_json(plan, study, history, reason, result.stop.kind)
    if history.best is None:
        failed = history.having(State.FAILED)
        last_error = f"\nthe last error: {first_line(failed[-1].error)}" if failed else ""
        words = ["show", plan.name, *(str(trial.number) for trial in failed[-1:]), *storage_arguments(plan.address)]
        raise CommandError(f"no trial has succeeded; {reason}{last_error}", shoestring_command(*words), document)
    if json_requested():
        print_result(document | {"recommended": recommendation_json(result.recommended)}, "")
        return 0
    rows = [(label, text) for label, text in result.rows() if label != "next"]  # that is code for Python users
    rows += [("logs", plan.logs), ("continue", continue_text(plan, result.stop.kind))]
    print_result(document, rows_text(rows), shoestring_command("best", plan.name, *storage_arguments(plan.address)))
    return 0


def continue_text(plan: Plan, kind: str) -> str:
    """How to go on with a study that has ended for a reason of this kind."""
    if kind == "rule":  # it would stop again at once
        return "the same shoestring run command with --stop none"
    if kind == "exhausted":
        return "the same shoestring run command with a wider space and --extend"
    return plan.resume_command if kind == "halted" else f"{plan.resume_command} --budget MORE"


def print_interruption(plan: Plan, study: Study, history: History, reason: str) -> None:
    """Print a summary at once, without fitting a model or reading the storage, and the command that continues."""
    rows = [*status_rows(history, study.unit), ("stopped", reason)]
    print_result(summary_json(plan, study, history, reason, "interrupted"), rows_text(rows))
    print_note(f"interrupted; to continue:\n  {plan.resume_command}{password_hint(plan.address)}")


def summary_json(plan: Plan, study: Study, history: History, reason: str, kind: str) -> dict[str, Any]:
    """The summary of a run as a JSON document."""
    return study_json(study, history) | {
        "storage": shown_address(plan.address), "logs": plan.logs, "stop": reason, "stop_kind": kind,
        "resume": plan.resume_command,
    }  # fmt: skip


def recommendation_json(found: Recommendation | None) -> dict[str, Any] | None:
    return None if found is None else {"config": found.config, "predicted": found.value, "trial": found.number}


def password_hint(address: str) -> str:
    """A line about the password that the printed command lacks; empty if it lacks none."""
    is_hidden = shown_address(address) != address and bool(storage_arguments(address))
    return "\n  (write the password in place of ***, or put the address into SHOESTRING_STORAGE)" if is_hidden else ""
