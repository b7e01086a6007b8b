"""Progress for a pipe or a log file: a few plain lines in place of one that is redrawn.

``shoestring run``: tune any program.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .. import Budget, Study, Trial
from ..errors import ShoestringError
from ..report.progress import line
from ..space.space import Parameter
from .options import json_option, storage_option


class SparingLines:
    """A callback of ``Study.minimize`` that says how far it is each time another quarter of the budget is spent."""

    def __init__(self, budget: Budget, say: Callable[[str], object], parts: int = 4) -> None:
        self.budget, self.say, self.parts, self.said = budget, say, parts, 0

    def __call__(self, study: Study, trial: Trial) -> None:
        reached = int(self.parts * self.share(study))
        if self.said < reached < self.parts:  # the end needs no line: the summary follows
            self.say(line(study, self.budget))
        self.said = max(self.said, reached)

    def share(self, study: Study) -> float:
        """How much of the budget is spent, by the limit that is nearest."""
        used = (
            (study.log.counted, self.budget.trials),
            (study.seconds, self.budget.seconds),
            (study.log.spent, self.budget.cost),
        )
        return max(amount / limit for amount, limit in used if limit is not None)


HINT = "write the program after --: shoestring run --param lr=log:1e-5:1e-1 --budget 10m -- python train.py --lr {lr}"


class WithProgram(click.Command):
    """A command whose last part, after ``--``, is the command line of another program and is not looked at."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["shoestring.program"] = args[at + 1 :]
            args = args[:at]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if "shoestring.program" in ctx.meta:
                raise
            raise click.UsageError(f"{error.message}; {HINT}", ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM ARGUMENTS...]"]


@click.command(cls=WithProgram, short_help="Tune any program.")
@click.argument("file", nargs=-1, metavar="[FILE.toml]")
@click.option("--param", "params", multiple=True, metavar="NAME=SPEC", help="A parameter; see below. Once for each.")
@click.option("--fidelity", "fidelities", multiple=True, metavar="NAME=LOW:HIGH", help="How much of a trial to buy: epochs=1:50.")
@click.option("--budget", metavar="BUDGET", help="In all: running time (10m, 3h), a number of trials (40), or money (20USD).")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Programs that run at once.  [default: 1]")
@click.option("--name", metavar="NAME", help="Of the study.  [default: the script's or the TOML file's]")
@storage_option
@click.option("--seed", type=click.IntRange(min=0), help="Of the search.  [default: 0]")
@click.option("--maximize", is_flag=True, default=None, help="Larger is better.")
@click.option("--method", metavar="METHOD", help='auto, EI, KG, "EIAlpha(0.5)", Hyperband, Random, ...  [default: auto]')
@click.option("--stop", metavar="RULE", help='auto, none, "Patience(30)", "SureBound(0.01) | Patience(50)", ...  [default: auto]')
@click.option("--timeout", metavar="TIME", help="For one trial: it is ended and has failed.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Times that a failed trial is run again.  [default: 0]")
@click.option("--confirm", is_flag=True, default=None, help="Keep enough to evaluate at the end what is recommended.")
@click.option("--max-trials", type=click.IntRange(min=1), metavar="N", help="Trials in all, besides the budget.")
@click.option("--max-time", metavar="TIME", help="By the clock, besides the budget.")
@click.option("--unit", metavar="UNIT", help="Of the costs that the program tells.  [default: seconds, which are measured]")
@click.option("--per-hour", type=float, metavar="PRICE", help="What an hour costs in that unit: then the time is charged.")
@click.option("--initial", type=click.IntRange(min=1), metavar="N", help="Trials of the space-filling start.  [default: 8]")
@click.option("--logs", type=click.Path(file_okay=False), metavar="DIR", help="[default: shoestring-logs/NAME]")
@click.option("--extend", is_flag=True, default=None, help="Widen the bounds and options of a study that is there.")
@click.option("--pass-as-json", is_flag=True, default=None, help="The program reads SHOESTRING_CONFIG for the rest.")
@click.option("--quiet", is_flag=True, help="Say nothing but the result.")
@json_option
@click.pass_context
def run(ctx: click.Context, /, file: tuple[str, ...], quiet: bool, **given: Any) -> None:
    """Tune any program: it gets the parameters as arguments, and its last line of output is the result.

    The same command again goes on where it was: the study is kept in shoestring.db.

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
      mix=0:1:0.1         real, in steps        act=relu,tanh       one of several
      "rate_drop=0:0.5 when booster=dart"       only then

    \b
    The program:
      {lr} in an argument is the parameter's value, {trial} the trial's number, {{ and }} are braces.
      It ends with exit code 0 and a last line that is a number or JSON: {"value": 0.03, "cost": 12.5}
      (also "folds", "gradient", "error"). Anything else is a failed trial, and the study goes on.
      It also has SHOESTRING_CONFIG, SHOESTRING_TRIAL, SHOESTRING_STUDY, SHOESTRING_RESULT (a file for
      the result, if its output is not to be touched) and SHOESTRING_CHECKPOINT_DIR.
    """
    from .run_study import carry_out

    plan, make = read_plan(ctx, file, given)
    ctx.exit(carry_out(plan, make, quiet))


def read_plan(ctx: click.Context, file: tuple[str, ...], given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The plan, and what the study is made with: the command line over the file over the defaults."""
    from .run_plan import make_plan, make_study_options
    from .tune_file import read_file

    program = ctx.meta.get("shoestring.program")
    if len(file) > 1 or (file and not file[0].endswith(".toml")):
        raise click.UsageError(f"{file[0]!r} is not a TOML file; {HINT}" if len(file) == 1 else HINT)
    path = Path(file[0]) if file else None
    options, parameters = read_file(path) if path else ({}, {})
    named: dict[str, Parameter] = parameters | read_parameters(given.pop("params"), given.pop("fidelities"))
    where = given.pop("where")
    if "storage" not in options or ctx.get_parameter_source("where") is not click.core.ParameterSource.DEFAULT:
        options["storage"] = where
    options |= {key: value for key, value in given.items() if value is not None}
    if program:
        options["command"] = program
    plan = make_plan(options, path)
    make = make_study_options(options, plan.budget, named)
    try:
        plan.template(make["space"])
    except ShoestringError as error:
        raise click.UsageError(str(error)) from None
    return plan, make | ({"extend": True} if options.get("extend") else {})


def read_parameters(params: tuple[str, ...], fidelities: tuple[str, ...]) -> dict[str, Parameter]:
    from .params import read_param

    found: dict[str, Parameter] = {}
    for texts, fidelity in ((params, False), (fidelities, True)):
        for text in texts:
            try:
                name, parameter = read_param(text, fidelity)
            except ShoestringError as error:
                raise click.UsageError(f"--{'fidelity' if fidelity else 'param'} {error}") from None
            if name in found:
                raise click.UsageError(f"--param {name} is given twice")
            found[name] = parameter
    return found
