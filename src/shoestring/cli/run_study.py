"""Carry out a plan: open or begin the study, and run its program until there is a reason to stop.

``shoestring resume``: go on with a study that ``shoestring run`` began, with the program that it was begun with.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..data.trial import State, Trial
from ..errors import MethodError, StudyError
from ..program import ProgramObjective
from ..program.result_reader import Logs
from .console import Trouble, arguments, command, exit_code, find, interruptions, note, opened, printable, wants_json
from .options import json_option, name_argument, storage_option
from .run_plan import Plan, conclude, interrupted, introduction
from .show import first_line

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
    storage.revise(study.state.study, {"run": plan.stored()})


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


@click.command(short_help="Go on with a study.")
@name_argument
@click.option("--budget", metavar="BUDGET", help="In all, what was spent included; as for run.  [default: the study's]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Programs that run at once.  [default: as it was begun]")
@click.option("--timeout", metavar="TIME", help="For one trial.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Times that a failed trial is run again.")
@click.option("--yes", is_flag=True, help="Run the program that the database names, although it was not begun from here.")
@storage_option
@click.option("--quiet", is_flag=True, help="Say nothing but the result.")
@json_option
@click.pass_context
def resume(ctx: click.Context, /, name: str | None, where: str, quiet: bool, yes: bool, **given: Any) -> None:
    """Go on with a study: the same program, in this folder, until its budget is used up.

    NAME may be left out where there is one study only. A trial that was interrupted is evaluated again first.

    The program is kept in the database, but not everybody who can write there should decide what runs here: one that was not
    begun from this folder is shown, and needs --yes.

    \b
    Examples:
      shoestring resume
      shoestring resume xgb --budget 2h --workers 8
    """
    from .options import make_budget, seconds
    from .run_plan import restored
    from .run_study import carry_out

    with opened(where) as storage:
        record = find(storage, name, where)
    kept = record.settings.get("run")
    if not kept:
        own = command("run", "--name", record.name, *arguments(where), "...", "--", "PROGRAM")
        raise Trouble(f"study {record.name!r} was not begun by a program, so there is none to run", own)
    if not yes and not Logs(Path(kept["logs"])).has_model(kept["command"]):
        raise Trouble(
            f"study {record.name!r} was not begun from this folder; the database says that its program is\n"
            f"  {shlex.join(kept['command'])}\nif that is what you want to run, say --yes",
            command("resume", record.name, "--yes", *arguments(where)),
        )
    changes = {key: given[key] for key in ("workers", "retries") if given[key] is not None}
    if given["timeout"] is not None:
        changes["timeout"] = seconds(given, "timeout")
    if given["budget"] is not None:
        price = {key: kept["budget"][key] for key in ("unit", "per_hour") if kept["budget"].get(key) is not None}
        changes["budget"] = make_budget({"budget": given["budget"], **price})
    ctx.exit(carry_out(restored(record.name, where, kept, changes), None, quiet))
