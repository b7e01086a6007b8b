"""``run`` and ``resume``: tune any program, and continue a study with the program that is stored with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ShoestringError
from ..report.summary import parameter_text
from ..space.space import Parameter, Space
from ..state.persistence import read_id
from .approval import Request, make_request
from .console import (
    CommandError,
    confirmed,
    find_study,
    opened_storage,
    shoestring_command,
    storage_arguments,
)
from .execute_plan import execute_plan
from .options import (
    json_option,
    logs_option,
    make_budget,
    max_failures_option,
    max_retries_option,
    name_argument,
    no_fail_fast_option,
    read_parameter,
    read_seconds,
    storage_option,
)
from .run_plan import (
    Plan,
    make_plan,
    make_study_options,
    plan_from_dict,
)
from .serve import require_web

if TYPE_CHECKING:
    from ..storage.base import StudyRecord

PROGRAM_META_KEY = "shoestring.program"  # in click's meta: the words after --
USAGE_HINT = "write the program after --: shoestring run --param lr=log:1e-5:1e-1 --budget 10m -- python train.py --lr {lr}"


# -- run -------------------------------------------------------------------------------------------------------------


class ProgramCommand(click.Command):
    """A Click command that takes everything after ``--`` as the command line of another program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[PROGRAM_META_KEY] = args[at + 1 :]
            args = args[:at]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if PROGRAM_META_KEY in ctx.meta:
                raise
            raise click.UsageError(f"{error.message}; {USAGE_HINT}", ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM ARGUMENTS...]"]


@click.command(cls=ProgramCommand, short_help="Tune any program.")
@click.argument("file", nargs=-1, metavar="[FILE.toml]")
@click.option("--param", "params", multiple=True, metavar="NAME=SPEC", help="A parameter, see above. May be repeated.")
@click.option("--fidelity", "fidelities", multiple=True, metavar="NAME=LOW:HIGH", help="A fidelity of a trial: epochs=1:50.")
@click.option("--budget", metavar="BUDGET", help="For the whole study: time (10m, 3h), trials (40), or cost ('20 USD').")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Programs that run at once.  [default: 1]")
@click.option("--name", metavar="NAME", help="Name of the study.  [default: that of the script or the TOML file]")
@storage_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.  [default: 0]")
@click.option("--maximize", is_flag=True, default=None, help="Larger values are better.")
@click.option("--method", metavar="METHOD", help='auto, EI, KG, "EIAlpha(0.5)", Hyperband, Random, ...  [default: auto]')
@click.option("--stop", metavar="RULE", help='auto, none, "Patience(30)", "SureBound(0.01) | Patience(50)", ...  [default: auto]')
@click.option("--timeout", metavar="TIME", help="Limit for one trial; a trial that runs longer is stopped and has failed.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Retries of a failed trial.  [default: 0]")
@max_retries_option
@max_failures_option
@no_fail_fast_option
@click.option("--confirm", is_flag=True, default=None, help="Reserve budget to evaluate the recommended settings at the end.")
@click.option("--max-trials", type=click.IntRange(min=1), metavar="N", help="Further limit: trials in the whole study.")
@click.option("--max-time", metavar="TIME", help="Further limit: time, for example with a budget in cost.")
@click.option("--cost", metavar="METER",
              help='What is measured: seconds, cpu, gpu, energy or "Money(per_hour=2.5)".  [default: seconds]')
@click.option("--unit", metavar="UNIT", help="Unit of the costs that the program reports.  [default: seconds, measured]")
@click.option("--per-hour", type=float, metavar="PRICE", help="Price of an hour in that unit; the time is then charged.")
@click.option("--initial", type=click.IntRange(min=1), metavar="N", help="Trials of the initial design.  [default: 8]")
@logs_option
@click.option("--extend", is_flag=True, default=None, help="Widen the bounds and options of an existing study.")
@click.option("--pass-as-json", is_flag=True, default=None, help="The program reads other parameters from SHOESTRING_CONFIG.")
@click.option("--serve", "serves", is_flag=True, help="Show the study as a live page while it runs; the link is printed.")
@click.option("--quiet", is_flag=True, help="Print only the result.")
@json_option
@click.pass_context
def run(ctx: click.Context, /, file: tuple[str, ...], quiet: bool, serves: bool, **given: Any) -> None:
    """Tune any program: it gets the parameters as arguments, and its last line of output is the result.

    The study is stored in shoestring.db. The same command again continues it.

    \b
    Examples:
      shoestring run --param lr=log:1e-5:1e-1 --param depth=int:2:12 --param act=relu,tanh \\
          --budget 10m --workers 4 -- python train.py --lr {lr} --depth {depth} --act {act}
      shoestring run --param lr=log:1e-5:1e-1 --fidelity epochs=1:50 --budget 1h \\
          -- python train.py --lr {lr} --epochs {epochs}
      shoestring run tune.toml --budget 2h

    \b
    Parameters:
      lr=log:1e-5:1e-1    real, log scale       depth=int:2:12      whole number
      drop=0:0.5          real                  n=int:log:16:1024   whole number, log scale
      mix=0:1:0.1         real, in steps        act=relu,tanh       a choice
      "rate_drop=0:0.5 when booster=dart"       conditional

    \b
    The program:
      {lr} in an argument is the parameter's value, {trial} the trial's number; {{ and }} are literal braces.
      It must exit with code 0, and its last line must be a number or JSON: {"value": 0.03, "cost": 12.5}
      (also "folds", "gradient", "metrics", "attrs", "error"). Otherwise the trial has failed. The study
      continues, unless the first three trials fail in the same way.
      Environment variables: SHOESTRING_CONFIG, SHOESTRING_TRIAL, SHOESTRING_STUDY, SHOESTRING_RESULT (a
      file that may hold the result instead of the last line) and SHOESTRING_CHECKPOINT_DIR.
    """
    if serves:
        require_web("--serve")
    plan, study_options = read_plan(ctx, file, given)
    ctx.exit(execute_plan(plan, study_options, quiet, serves=serves))


def read_plan(ctx: click.Context, file: tuple[str, ...], given: dict[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """The plan and the arguments of the study: the command line wins over the file, the file over the defaults."""
    from .tune_file import read_tune_file  # loads a TOML parser

    program = ctx.meta.get(PROGRAM_META_KEY)
    if len(file) > 1 or (file and not file[0].endswith(".toml")):
        raise click.UsageError(f"{file[0]!r} is not a TOML file; {USAGE_HINT}" if len(file) == 1 else USAGE_HINT)
    path = Path(file[0]) if file else None
    options, parameters = read_tune_file(path) if path else ({}, {})
    parameters |= read_parameters(given.pop("params"), given.pop("fidelities"))
    address = given.pop("address")
    if "storage" not in options or ctx.get_parameter_source("address") is not click.core.ParameterSource.DEFAULT:
        options["storage"] = address
    options |= {key: value for key, value in given.items() if value is not None}
    if program:
        options["command"] = program
    plan = make_plan(options, path)
    study_options = make_study_options(options, plan.budget, parameters)
    try:
        plan.template(study_options["space"])
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None
    return plan, study_options | ({"extend": True} if options.get("extend") else {})


def read_parameters(params: tuple[str, ...], fidelities: tuple[str, ...]) -> dict[str, Parameter]:
    """The parameters of all --param and --fidelity options."""
    found: dict[str, Parameter] = {}
    for texts, fidelity in ((params, False), (fidelities, True)):
        for text in texts:
            try:
                name, parameter = read_parameter(text, fidelity)
            except ShoestringError as error:
                raise click.UsageError(f"--{'fidelity' if fidelity else 'param'} {error}") from None
            if name in found:
                raise click.UsageError(f"--param {name} is given twice")
            found[name] = parameter
    return found


# -- resume ----------------------------------------------------------------------------------------------------------


@click.command(short_help="Continue a study.")
@name_argument
@click.option("--budget", metavar="BUDGET", help="For the whole study, what is spent included; as for run.  [default: as before]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Programs that run at once.  [default: as before]")
@click.option("--timeout", metavar="TIME", help="Limit for one trial.  [default: as before]")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Retries of a failed trial.  [default: as before]")
@max_retries_option
@max_failures_option
@no_fail_fast_option
@logs_option
@click.option("--yes", is_flag=True, help="Run the stored program although you have not approved it here.")
@storage_option
@click.option("--quiet", is_flag=True, help="Print only the result.")
@json_option
@click.pass_context
def resume(ctx: click.Context, /, name: str | None, address: str, quiet: bool, yes: bool, **given: Any) -> None:
    """Continue a study: run the same program, in this folder, until the budget is used up.

    NAME is not needed if there is only one study. Trials that were interrupted are evaluated again first.

    The program is stored in the database, but write access to a database must not decide what runs on this machine. So
    what you have not run from this folder before is shown first, and runs if you say so: another program, another space of
    its parameters, another environment. Without a terminal it needs --yes.

    \b
    Examples:
      shoestring resume
      shoestring resume xgb --budget 2h --workers 8
    """
    with opened_storage(address) as storage:
        record = find_study(storage, name, address)
    stored = record.settings.get("run")
    if not stored:
        words = ["run", "--name", record.name, *storage_arguments(address), "...", "--", "PROGRAM"]
        raise CommandError(f"study {record.name!r} has no program: it was not made by shoestring run", shoestring_command(*words))
    request = stored_request(record)
    if not yes and not request.is_approved:
        text = approval_text(request)
        if not confirmed(f"{text}\nRun it?"):
            again = shoestring_command("resume", record.name, "--yes", *storage_arguments(address))
            raise CommandError(f"{text}\nadd --yes to run it", again)
    changes = {key: given[key] for key in ("workers", "retries", "max_retries", "max_failures") if given[key] is not None}
    if given["no_fail_fast"]:
        changes["fail_fast"] = False
    if given["timeout"] is not None:
        changes["timeout"] = read_seconds(given, "timeout")
    if given["budget"] is not None:
        price = {key: stored["budget"][key] for key in ("unit", "per_hour") if stored["budget"].get(key) is not None}
        changes["budget"] = make_budget({"budget": given["budget"], **price})
    changes["logs"] = given["logs"] or request.logs
    ctx.exit(execute_plan(plan_from_dict(record.name, address, stored, changes), None, quiet, request))


def stored_request(record: StudyRecord) -> Request:
    """What the database asks this machine to run."""
    stored = record.settings["run"]
    command = stored.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        again = shoestring_command("run", "--help")
        raise CommandError(f"the program of study {record.name!r} cannot be read; give it again with shoestring run", again)
    space = Space.from_json(record.settings["space"])
    return make_request(read_id(record.settings), record.name, command, bool(stored.get("pass_as_json", False)), space)


def approval_text(request: Request) -> str:
    """What would run, and why it is not approved."""
    changes = request.changes()
    why = f"; since you ran it, this has changed: {', '.join(changes)}" if changes else ""
    parameters = [f"    {name}  {parameter_text(parameter)}" for name, parameter in request.parameters.items()]
    program = f"  {shlex.join(request.command)}\n  in {request.folder}, with the parameters"
    return "\n".join([f"study {request.name!r} has a program that you have not run from here{why}\n{program}", *parameters])
