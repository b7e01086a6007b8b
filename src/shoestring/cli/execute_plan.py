"""Running the program of a study: the checks before it, the study that it belongs to, and the messages after it."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..data.outcome import Outcome
from ..data.trial import State, Trial
from ..errors import ConfigError, MethodError, ObjectiveError, StudyError
from ..execution.evaluate import LiveTrial
from ..execution.signals import interruptible
from ..program import ProgramObjective
from ..program.command import Cancelled
from ..program.result_reader import Logs, default_log_folder
from ..report.progress import table_in_terminal
from ..space.space import Config
from .approval import Request, make_request
from .console import (
    CommandError,
    interruption_exit_code,
    json_requested,
    log_lines,
    opened_storage,
    print_note,
    printable,
    remember_addresses,
    shoestring_command,
    storage_arguments,
)
from .run_plan import Plan, introduction, print_interruption, print_summary, summary_json
from .serve import page_beside

if TYPE_CHECKING:
    from .. import Result, Study

OPTION_NAMES = {  # arguments of the library that its messages mention, as options
    "extend=True": "--extend", "name=...": "--name OTHER", "direction='maximize'": "--maximize",
    "direction='minimize'": "no --maximize", "max_failures=": "--max-failures ", "larger max_failures": "larger --max-failures",
    "fail_fast=False": "--no-fail-fast", "cost=st.": "--cost ",
}  # fmt: skip
MAX_LINES_OF_OUTPUT = 5  # of standard error, in the error message for a broken program
PYTHON = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?")
OTHER_INTERPRETERS = ("bash", "sh", "zsh", "Rscript", "julia", "node", "ruby", "perl", "php", "lua", "torchrun")
OPTIONS_WITH_VALUES = ("-W", "-X", "--check-hash-based-pycs")  # of Python, before the script


def execute_plan(
    plan: Plan, study_options: Mapping[str, Any] | None, quiet: bool, approved: Request | None = None, *, serves: bool = False
) -> int:
    """Open or create the study, run its program until there is a reason to stop, and return the exit code.

    study_options   the arguments of a new study; None if the study must exist already
    approved        what the user allows to run; None: what is in the plan, which the user has typed
    serves          show the study as a page while it runs
    """
    remember_addresses([plan.address])
    check_program(plan.command)
    study: Study | None = None
    can_resume = study_options is None
    with interruptible(hangup=True), opened_storage(plan.address, create=study_options is not None) as storage:
        try:
            study, trials_before = open_study(storage, plan, study_options)
            request = store_plan(storage, plan, study, approved)
            can_resume = True
            plan = prepare(plan, study, request)
            if not quiet and not json_requested():
                click.echo(printable(introduction(plan, study, trials_before)))
            logs = Logs(Path(plan.logs), study.id)
            objective = ApprovedObjective(plan.template(study.space), logs, plan.name, plan.timeout)
            page = page_beside(storage, plan.address) if serves else nullcontext()
            with log_lines(quiet or json_requested()), page, objective:
                result = optimize(study, objective, plan, quiet)
            if objective.refused is not None:
                raise CommandError(objective.refused, plan.resume_command)
            return print_summary(plan, study, result)
        except ObjectiveError as error:
            assert study is not None
            raise broken_program(error, plan, study) from None
        except KeyboardInterrupt as interruption:  # before the first trial, after the last, or a second Ctrl-C
            if study is None or not can_resume:
                print_note("interrupted before the first trial; run the same command again")
            else:
                print_interruption(plan, study, study.log, "interrupted")  # the trials in memory: the storage may not answer
            return interruption_exit_code(interruption)


def check_program(command: Sequence[str]) -> None:
    """A wrong command line if the program or its script does not exist: nothing is spent for a misspelt name."""
    if "{" not in command[0] and shutil.which(command[0]) is None:
        raise click.UsageError(f"there is no program {command[0]!r}; give its path, or a name that is on the PATH")
    script = script_of(command)
    if script is None or Path(script).exists() or shutil.which(script) is not None:
        return
    folder = Path(script).parent
    others = [str(path) for path in folder.glob(f"*{Path(script).suffix}")] if folder.is_dir() else []
    close = difflib.get_close_matches(script, others, 1)
    raise click.UsageError(f"there is no file {script!r} here" + (f"; did you mean {close[0]!r}?" if close else ""))


def script_of(command: Sequence[str]) -> str | None:
    """The script that an interpreter is to run; None if there is none, or if it is not known."""
    program, words = Path(command[0]).name, iter(command[1:])
    if program in OTHER_INTERPRETERS:
        first = next(words, "-")
        return None if first.startswith("-") or "{" in first else first
    if not PYTHON.fullmatch(program):
        return None
    for word in words:
        if word in OPTIONS_WITH_VALUES:
            next(words, None)
        elif not word.startswith("-"):
            return None if "{" in word else word
        elif word == "-" or re.fullmatch(r"-[A-Za-z]*[mc].*", word):  # standard input, a module or a text
            return None
    return None


def open_study(storage: Any, plan: Plan, study_options: Mapping[str, Any] | None) -> tuple[Study, int | None]:
    """The study and the number of trials that it had; None if it is new."""
    from .. import Study

    record = storage.find(plan.name)
    try:
        if study_options is None:
            study = Study.load(storage, plan.name)
        else:
            study = Study(**study_options, storage=storage, name=plan.name, budget=plan.budget)
    except (StudyError, MethodError) as error:
        message = in_option_words(str(error))
        raise CommandError(message, shoestring_command("show", plan.name, *storage_arguments(plan.address))) from None
    study.refresh()
    if study_options is not None and study.direction != study_options["direction"]:
        given = "--maximize" if study.direction == "maximize" else "no --maximize"
        message = f"study {plan.name!r} was begun to {study.direction}; give {given}, or begin another study with --name OTHER"
        raise CommandError(message, shoestring_command("show", plan.name, *storage_arguments(plan.address)))
    return study, None if record is None else record.counted


def in_option_words(message: str) -> str:
    """A message of the library, with the options of the command line in place of arguments of Python."""
    for argument, option in OPTION_NAMES.items():
        message = message.replace(argument, option)
    return message


def broken_program(error: ObjectiveError, plan: Plan, study: Study) -> CommandError:
    """The error for a run that ended because its program fails: the reason, and the end of the last trial's output."""
    trial = error.trial
    assert isinstance(trial, Trial)
    lines = (trial.traceback or "").splitlines()[-MAX_LINES_OF_OUTPUT:]
    text = "\n  ".join([in_option_words(str(error)), *(lines if len(lines) > 1 else [])])
    following = shoestring_command("show", plan.name, str(trial.number), *storage_arguments(plan.address))
    return CommandError(text, following, summary_json(plan, study, study.log, in_option_words(str(error)), "failures"))


def store_plan(storage: Any, plan: Plan, study: Study, approved: Request | None) -> Request:
    """Check what is to run, and store with the study how it is run, for ``resume`` and ``show``.

    The plan is one value: of two processes that store one at the same time, one wins, and the two are never mixed. It is stored
    before anything else is done: after an interruption, ``resume`` must find it.
    """
    request = make_request(study.id, plan.name, plan.command, plan.pass_as_json, study.space)
    if approved is not None and replace(approved, study=approved.study or study.id) != request:
        changed = f"study {plan.name!r} was changed by another program at this moment; look at it again"
        raise CommandError(changed, plan.resume_command)
    storage.revise(study.state.study, {"run": plan.to_dict()})
    return request


def prepare(plan: Plan, study: Study, request: Request) -> Plan:
    """Note the approval, and make the log folder; the plan with its log folder."""
    plan = replace(plan, logs=plan.logs or str(default_log_folder(plan.name, study.id)))
    logs = Logs(Path(plan.logs), study.id)
    study.checkpoints = logs.checkpoints
    try:
        request.approve(plan.logs)
    except OSError as error:
        print_note(f"your approval of this program could not be stored ({error}): resume will ask for it again")
    logs.create()
    return plan


class ApprovedObjective(ProgramObjective):
    """A program that runs with settings of the space alone that its user has seen.

    Another process may extend the space while it runs, and settings become arguments.
    """

    refused: str | None = None

    def evaluate(self, config: Config, trial: LiveTrial) -> Outcome:
        try:
            self.template.space.check(config)
        except ConfigError as error:
            self.refused = f"the space of the study was changed while it ran, and trial {trial.number} is outside of it: {error}"
            raise Cancelled from None
        return super().evaluate(config, trial)


def optimize(study: Study, objective: ProgramObjective, plan: Plan, quiet: bool) -> Result:
    """Run the study in its direction."""
    silent = quiet or json_requested()
    options: dict[str, Any] = {"confirm": plan.confirm, "fail_fast": plan.fail_fast, "max_failures": plan.max_failures}
    options |= {"retries": plan.retries, "max_retries": plan.max_retries}
    options |= {"on_interrupt": "return", "callbacks": [] if silent else [FirstFailureNote(plan)]}
    if silent:
        options["progress"] = False
    method = study.minimize if study.direction == "minimize" else study.maximize
    # Threads suffice: they only wait for their programs, and a signal cannot interrupt them while they start one.
    with table_in_terminal():
        return method(objective, plan.budget, workers=plan.workers, threads=True, **options)


class FirstFailureNote:
    """A callback that says where the output of the first failed trial is. The log line above it says why it failed."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.reported = plan, False

    def __call__(self, study: Study, trial: Trial) -> None:
        if trial.state is State.FAILED and not self.reported:
            self.reported = True
            details = shoestring_command("show", self.plan.name, str(trial.number), *storage_arguments(self.plan.address))
            print_note(f"to see the output of trial {trial.number}: {details}")
