"""Carry out a plan: open or begin the study, and run its program until there is a reason to stop."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import MethodError, StudyError
from ..program import ProgramObjective
from ..program.logs import Logs
from ..trial import State, Trial
from .interruption import exit_code, interruptions
from .plan import Plan
from .speech import Trouble, command, note, printable, wants_json
from .standing import first_line
from .summary import conclude, interrupted, introduction
from .where import arguments, opened

if TYPE_CHECKING:
    from .. import Result, Study

OPTIONS = {
    "extend=True": "--extend", "name=...": "--name OTHER", "direction='maximize'": "--maximize",
    "direction='minimize'": "no --maximize",
}  # fmt: skip


def carry_out(plan: Plan, make: Mapping[str, Any] | None, quiet: bool) -> int:
    """Run the study and return the exit code. ``make`` is what it is begun with; None if it has to be there already."""
    if "{" not in plan.command[0] and shutil.which(plan.command[0]) is None:
        raise click.UsageError(f"there is no program {plan.command[0]!r} here; give a path, or one that is on the PATH")
    study: Study | None = None
    with interruptions(), opened(plan.where, make=make is not None) as storage:
        try:
            study, before = open_study(storage, plan, make)
            keep_plan(storage, study, plan)
            if not quiet and not wants_json():
                click.echo(printable(introduction(plan, study, before)))
            objective = ProgramObjective(plan.template(study.space), Logs(Path(plan.logs)), plan.name, plan.timeout)
            with objective:
                result = evaluate(study, objective, plan, quiet)
            return conclude(plan, study, result)
        except KeyboardInterrupt as stopped:  # before the first trial, after the last, or a second time
            if study is None:
                note("interrupted before the study was begun; the same command begins it")
                return exit_code(stopped)
            return interrupted(plan, study, "interrupted", exit_code(stopped))


def open_study(storage: Any, plan: Plan, make: Mapping[str, Any] | None) -> tuple[Study, int | None]:
    """The study, and how many trials it had; None if it is new."""
    from .. import Study

    record = storage.find(plan.name)
    folder = Path(plan.logs) / "checkpoints"
    try:
        if make is None:
            study = Study.load(storage, plan.name, checkpoints=folder)
        else:
            study = Study(**make, storage=storage, name=plan.name, budget=plan.budget, checkpoints=folder)
    except (StudyError, MethodError) as error:
        raise Trouble(in_our_words(str(error)), command("show", plan.name, *arguments(plan.where))) from None
    study.refresh()
    return study, None if record is None else record.trials


def in_our_words(text: str) -> str:
    """What the library says of its arguments, as options."""
    for theirs, ours in OPTIONS.items():
        text = text.replace(theirs, ours)
    return text


def keep_plan(storage: Any, study: Study, plan: Plan) -> None:
    """Keep with the study how it is run, for ``resume`` and ``show``.

    A plan is kept as a whole: of two that are made at the same time one stays, never a mixture that nobody has wanted.
    """
    logs = Logs(Path(plan.logs))
    logs.prepare()
    logs.remember(plan.command)
    storage.revise(study.ledger.study, {"run": plan.stored()})


def evaluate(study: Study, objective: ProgramObjective, plan: Plan, quiet: bool) -> Result:
    options: dict[str, Any] = {"confirm": plan.confirm, "callbacks": [] if quiet else [FirstFailure(plan)]}
    if quiet or wants_json():
        options["progress"] = False
    go = study.minimize if study.direction == "minimize" else study.maximize
    # Threads are enough, since they only wait for their programs; and they cannot be interrupted while they start one.
    return go(objective, plan.budget, workers=plan.workers, threads=True, retries=plan.retries, **options)


class FirstFailure:
    """Says so when a trial fails for the first time: a typing error in the program should not cost an hour."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.said = plan, False

    def __call__(self, study: Study, trial: Trial) -> None:
        if trial.state is State.FAILED and not self.said:
            self.said = True
            look = command("show", self.plan.name, str(trial.number), *arguments(self.plan.where))
            note(f"trial {trial.number} failed: {first_line(trial.error)}\n  look: {look}")
