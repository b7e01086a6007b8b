"""``shoestring demo``: tune a real model in well under a minute, and see what it gained."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from .. import Budget, Result, Study, __version__
from .digits import SPACE, TEST, TRAIN, VALIDATION, Digits
from .lines import SparingLines
from .options import check_budget, check_picture, json_option
from .packages import INSTALL, installed, require
from .report import Errors, as_json, comparison, convergence_picture, next_command, summary
from .speech import wants_json

PICTURE = Path("shoestring-demo.png")


@click.command(short_help="Tune a real model in about 40 seconds.")
@click.option(
    "--budget", default="40s", show_default=True, callback=check_budget, metavar="BUDGET",
    help="Training time (40s, 2m), or a number of trials.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the search.")
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), callback=check_picture, metavar="PATH",
    help=f"Where to save the convergence picture.  [default: {PICTURE}]",
)
@json_option
@click.pass_context
def demo(ctx: click.Context, budget: Budget, seed: int, picture: Path | None) -> None:
    """Tune a gradient-boosting classifier on handwritten digits, in about 40 seconds.

    Eight hyperparameters of scikit-learn's HistGradientBoostingClassifier (real, whole, a choice, and one that exists
    only under one option of it) are tuned for the lowest validation error; then the best settings are compared with the
    defaults on test images, and a picture shows the best value against the time spent. Ctrl-C ends it early, and keeps
    and shows what was learnt (exit code 130).

    \b
    Examples:
      shoestring demo
      shoestring demo --budget 2m --seed 1
      shoestring demo --budget 30 --picture thirty-trials.svg
      shoestring demo --json > demo.json
    """
    require("sklearn", "scikit-learn", "the demo")
    if picture is not None:
        require("matplotlib", "matplotlib", "--picture")
    elif installed("matplotlib"):
        picture = PICTURE
    else:
        click.echo(f"no picture will be saved, since matplotlib is not installed: {INSTALL}", err=True)
    silent = wants_json()
    say = (lambda text: None) if silent else click.echo

    digits = Digits()
    say(introduction(budget))
    default = Errors(digits.validation_error({}), digits.test_error({}))
    say(f"  default  {default.validation:.2f} % validation error with the default settings\n")
    result = tune(digits, budget, seed, [] if silent or sys.stderr.isatty() else [SparingLines(budget, say)])
    found = result.history.best
    best = None if found is None else Errors(float(found.value or 0.0), digits.test_error(found.config))
    failure = None
    if best is None:  # interrupted before the first trial was done: there is nothing to draw
        picture = None
    if picture is not None:
        try:
            convergence_picture(result, default.validation, picture)
        except OSError as error:  # a full disk or a read-only folder must not cost the summary
            failure, picture = f"the picture could not be saved: {error}", None

    if silent:
        click.echo(json.dumps(as_json(result, seed, default, best, picture)))
    else:
        say(summary(result))
        if best is not None:
            say("\n" + comparison(default, best))
        say("" if picture is None else f"\npicture: {picture}")
        say(f"next, a function of your own: {next_command()}")
    if failure is not None:
        raise click.ClickException(failure)
    ctx.exit(130 if result.stop.kind == "interrupted" else 0)


def introduction(budget: Budget) -> str:
    limit = f"{budget.trials} trials" if budget.cost is None else f"{budget.cost:g} s of training"
    return "\n".join((
        click.style(f"Shoestring {__version__}: tuning a gradient-boosting classifier", bold=True),
        f"  model    scikit-learn's HistGradientBoostingClassifier, {len(SPACE)} hyperparameters",
        f"  data     handwritten digits: {TRAIN} to learn from, {VALIDATION} to validate, {TEST} to test",
        f"  budget   {limit}, on one core",
    ))


def tune(digits: Digits, budget: Budget, seed: int, callbacks: list[SparingLines]) -> Result:
    """The study itself."""
    return Study(SPACE, seed=seed, name="demo").minimize(digits.validation_error, budget, callbacks=callbacks)
