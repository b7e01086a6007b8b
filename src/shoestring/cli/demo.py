"""The demo's problem: a gradient-boosting classifier that learns to read digits from few examples.

With 400 images to learn from, scikit-learn's default settings (made for larger data) leave room, and one evaluation
takes about half a second. Validation and test images are many, so that the errors mean something.

What the demo says at its end: for people, for programs, and as a picture.

``shoestring demo``: tune a real model in well under a minute, and see what it gained.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from .. import Budget, Choice, Float, Int, Result, Space, Study, __version__
from .console import rows_text, wants_json
from .doctor import INSTALL, installed, require
from .options import check_budget, check_picture, json_option
from .run import SparingLines

TRAIN, VALIDATION, TEST = 400, 797, 600  # of 1797 images

SPACE = Space(
    learning_rate=Float(0.02, 0.5, log=True),
    max_iter=Int(20, 120, log=True),
    max_leaf_nodes=Int(3, 31, log=True),
    min_samples_leaf=Int(2, 50, log=True),
    l2_regularization=Float(1e-4, 10.0, log=True),
    max_features=Float(0.05, 1.0),
    early_stopping=Choice(False, True),
    n_iter_no_change=Int(3, 20, when={"early_stopping": True}),
)


class Digits:
    """The data, split once, and the errors of a configuration in percent. Needs scikit-learn."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, digits = load_digits(return_X_y=True)
        rest, self.test_images, rest_digits, self.test_digits = train_test_split(
            images, digits, test_size=TEST, stratify=digits, random_state=0
        )
        self.images, self.validation_images, self.digits, self.validation_digits = train_test_split(
            rest, rest_digits, train_size=TRAIN, test_size=VALIDATION, stratify=rest_digits, random_state=0
        )

    def validation_error(self, config: Mapping[str, Any]) -> float:
        """What is minimised."""
        return self._error(config, self.validation_images, self.validation_digits)

    def test_error(self, config: Mapping[str, Any]) -> float:
        """On images that neither training nor tuning has seen."""
        return self._error(config, self.test_images, self.test_digits)

    def _error(self, config: Mapping[str, Any], images: Any, digits: Any) -> float:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=0, **config)
        with threadpool_limits(1):  # steady times: this model uses every core it finds
            model.fit(self.images, self.digits)
            return 100.0 * (1.0 - float(model.score(images, digits)))


EXAMPLE = Path("examples") / "first_study.py"
ONE_LINER = "import shoestring as st; print(st.minimize(lambda c: (c['x'] - 2) ** 2, st.Space(x=st.Float(-5, 5)), budget=20))"


@dataclass(frozen=True)
class Errors:
    """Shares of images read wrongly, in percent."""

    validation: float
    test: float


def summary(result: Result) -> str:
    """The library's own summary, without its advice for people who hold the result in Python."""
    return rows_text([(label, text) for label, text in result.rows() if label != "go on"])


def comparison(default: Errors, best: Errors) -> str:
    """Default and best settings side by side, and the difference in words."""
    lines = [f"{'error':<18}{'validation':>12}{'test':>10}"]
    for label, errors in (("default settings", default), ("best found", best)):
        lines.append(f"{label:<18}{errors.validation:>10.2f} %{errors.test:>8.2f} %")
    saved = 100.0 * (1.0 - best.test / default.test) if default.test > 0 else 0.0
    gained = f"{saved:.0f} % fewer test errors than with the default settings"
    lines.append(click.style(gained, bold=True) if saved > 0 else "no gain on the test images yet; try a larger --budget")
    return "\n".join(lines)


def as_json(result: Result, seed: int, default: Errors, best: Errors | None, picture: Path | None) -> dict[str, Any]:
    return {
        "shoestring": __version__,
        "command": "demo",
        "seed": seed,
        "trials": len(result.history),
        "spent": result.spent,
        "unit": result.unit,
        "stop": result.stop.reason,
        "stop_kind": result.stop.kind,
        "error_percent": {"default": asdict(default), "best": None if best is None else asdict(best)},
        "config": result.history.best.config if result.history.best else None,
        "picture": None if picture is None else str(picture),
        "history": [
            {"number": trial.number, "state": str(trial.state), "value": trial.value, "cost": trial.cost}
            for trial in result.history
        ],
    }


def convergence_picture(result: Result, default: float, path: Path) -> None:
    """The convergence plot, with the error of the default settings as a line to compare with."""
    from ..report import plot

    ax = plot.new_axes()
    ax.axhline(default, color="#777777", linestyle="--", linewidth=1.3, label="default settings", zorder=1)
    plot.convergence(result, ax=ax)
    ax.set_xlabel("training time spent (s)", fontsize=plot.FONT)
    ax.set_ylabel("validation error (%)", fontsize=plot.FONT)
    ax.figure.savefig(path)


def next_command() -> str:
    """A command that works from here: an example if this is a checkout, else one line of Python."""
    python = min(sys.executable or "python", os.path.relpath(sys.executable or "python"), key=len)
    return f"{python} {EXAMPLE}" if EXAMPLE.is_file() else f'{python} -c "{ONE_LINER}"'


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
