"""``demo``: tune a real model in about 40 seconds, and compare the best settings with the defaults.

The problem is a gradient-boosting classifier of handwritten digits with only 400 training images. scikit-learn's default settings
are made for larger data, so there is room for improvement, and one evaluation takes about half a second. The validation and test
sets are large, so that differences in error are not just noise.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from .. import Budget, Choice, Float, Int, Result, Space, Study, Trial, __version__
from .._format import duration
from ..report.progress_line import progress_line
from .console import EXIT_SIGINT, json_requested, log_lines, rows_text
from .doctor import INSTALL_EXTRAS, is_installed, require_package
from .options import check_budget, check_picture, json_option
from .serve import page_beside, require_web, wait_at_the_page

TRAINING_IMAGES, VALIDATION_IMAGES, TEST_IMAGES = 400, 797, 600  # of 1797
PROGRESS_LINES = 4  # one for each quarter of the budget; the last one is the summary
DEFAULT_PICTURE = Path("shoestring-demo.png")
EXAMPLE_SCRIPT = Path("examples") / "first_study.py"
EXAMPLE_CODE = "import shoestring as st; print(st.minimize(lambda c: (c['x'] - 2) ** 2, st.Space(x=st.Float(-5, 5)), budget=20))"

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


# -- the command -----------------------------------------------------------------------------------------------------


@click.command(short_help="Tune a real model in about 40 seconds.")
@click.option(
    "--budget", default="40s", show_default=True, callback=check_budget, metavar="BUDGET",
    help="Time of the search (40s, 2m), or a number of trials.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the search.")
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), callback=check_picture, metavar="PATH",
    help=f"File for the convergence plot.  [default: {DEFAULT_PICTURE}]",
)
@click.option("--open", "opens", is_flag=True, help="Show the study as a live page in a browser.")
@json_option
@click.pass_context
def demo(ctx: click.Context, budget: Budget, seed: int, picture: Path | None, opens: bool) -> None:
    """Tune a gradient-boosting classifier on handwritten digits, in about 40 seconds.

    It tunes eight hyperparameters of scikit-learn's HistGradientBoostingClassifier for the lowest validation error: real
    numbers, whole numbers, a choice, and a conditional one. Then it compares the best settings with the defaults on test
    images, and saves a plot of the best value against the time spent. Ctrl-C ends it early and shows the best settings so
    far (exit code 130).

    \b
    Examples:
      shoestring demo
      shoestring demo --budget 2m --seed 1
      shoestring demo --budget 30 --picture thirty-trials.svg
      shoestring demo --json > demo.json
    """
    require_package("sklearn", "scikit-learn", "the demo")
    if picture is not None:
        require_package("matplotlib", "matplotlib", "--picture")
    elif is_installed("matplotlib"):
        picture = DEFAULT_PICTURE
    else:
        click.echo(f"no picture will be saved, because matplotlib is not installed: {INSTALL_EXTRAS}", err=True)
    if opens:
        require_web("--open")
    silent = json_requested()
    say = (lambda text: None) if silent else click.echo

    digits = Digits()
    say(introduction(budget))
    default = Errors(digits.validation_error({}), digits.test_error({}))
    say(f"  default  {default.validation:.2f} % validation error with the default settings\n")
    callbacks = [] if silent or sys.stderr.isatty() else [ProgressLines(budget, say)]
    with log_lines(quiet=True):  # it has lines of its own
        study = Study(SPACE, seed=seed, name="demo")
        if opens:
            ctx.with_resource(page_beside(study.storage, "memory", opens=True))
        result = study.minimize(digits.validation_error, budget, callbacks=callbacks, on_interrupt="return")
    found = result.history.best
    best = None if found is None else Errors(float(found.value or 0.0), digits.test_error(found.config))
    failure = None
    if best is None:  # interrupted before the first trial was done: there is nothing to plot
        picture = None
    if picture is not None:
        try:
            save_picture(result, default.validation, picture)
        except OSError as error:  # a full disk or a read-only folder: the summary is still printed
            failure, picture = f"the picture could not be saved: {error}", None

    if silent:
        click.echo(json.dumps(summary_json(result, seed, default, best, picture)))
    else:
        say(summary(result))
        if best is not None:
            say("\n" + comparison(default, best))
        say("" if picture is None else f"\npicture: {picture}")
        say(f"next, a function of your own: {example_command()}")
    if failure is not None:
        raise click.ClickException(failure)
    if opens and result.stop.kind != "interrupted":
        wait_at_the_page()
    ctx.exit(EXIT_SIGINT if result.stop.kind == "interrupted" else 0)


# -- the problem -----------------------------------------------------------------------------------------------------


class Digits:
    """The digits data set, split once, and the errors of a configuration in percent. Needs scikit-learn."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, digits = load_digits(return_X_y=True)
        rest, self.test_images, rest_digits, self.test_digits = train_test_split(
            images, digits, test_size=TEST_IMAGES, stratify=digits, random_state=0
        )
        self.images, self.validation_images, self.digits, self.validation_digits = train_test_split(
            rest, rest_digits, train_size=TRAINING_IMAGES, test_size=VALIDATION_IMAGES, stratify=rest_digits, random_state=0
        )

    def validation_error(self, config: Mapping[str, Any]) -> float:
        """The objective."""
        return self._error(config, self.validation_images, self.validation_digits)

    def test_error(self, config: Mapping[str, Any]) -> float:
        """The error on images that were used neither for training nor for tuning."""
        return self._error(config, self.test_images, self.test_digits)

    def _error(self, config: Mapping[str, Any], images: Any, digits: Any) -> float:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=0, **config)
        with threadpool_limits(1):  # this model uses all cores; on one, its training time is more stable
            model.fit(self.images, self.digits)
            return 100.0 * (1.0 - float(model.score(images, digits)))


@dataclass(frozen=True)
class Errors:
    """Share of misclassified images, in percent."""

    validation: float
    test: float


# -- what it prints --------------------------------------------------------------------------------------------------


class ProgressLines:
    """A callback that prints a line of progress at each quarter of the budget, for a pipe or a log file."""

    def __init__(self, budget: Budget, say: Callable[[str], object]) -> None:
        self.budget, self.say, self.reached = budget, say, 0

    def __call__(self, study: Study, trial: Trial) -> None:
        reached = int(PROGRESS_LINES * self.share_spent(study))
        if self.reached < reached < PROGRESS_LINES:
            self.say(progress_line(study.state, self.budget))
        self.reached = max(self.reached, reached)

    def share_spent(self, study: Study) -> float:
        """The share of the budget that is spent, by the limit that is closest to its end."""
        history = study.history
        used = (
            (history.trials_used, self.budget.trials), (history.spent, self.budget.cost), (study.seconds, self.budget.seconds),
        )  # fmt: skip
        return max(spent / limit for spent, limit in used if limit is not None)


def introduction(budget: Budget) -> str:
    """The model, the data and the budget."""
    limit = duration(budget.seconds) if budget.seconds is not None else f"{budget.trials} trials"
    images = f"{TRAINING_IMAGES} for training, {VALIDATION_IMAGES} for validation, {TEST_IMAGES} for testing"
    return "\n".join((
        click.style(f"Shoestring {__version__}: tuning a gradient-boosting classifier", bold=True),
        f"  model    scikit-learn's HistGradientBoostingClassifier, {len(SPACE)} hyperparameters",
        f"  data     images of handwritten digits: {images}",
        f"  budget   {limit}, on one core",
    ))


def summary(result: Result) -> str:
    """The summary of the result, without the row that names Python code to continue with."""
    return rows_text([(label, text) for label, text in result.rows() if label != "next"])


def comparison(default: Errors, best: Errors) -> str:
    """The errors of the default and of the best settings, and the difference in words."""
    lines = [f"{'error':<18}{'validation':>12}{'test':>10}"]
    for label, errors in (("default settings", default), ("best found", best)):
        lines.append(f"{label:<18}{errors.validation:>10.2f} %{errors.test:>8.2f} %")
    reduction = 100.0 * (1.0 - best.test / default.test) if default.test > 0 else 0.0
    gain = click.style(f"{reduction:.0f} % fewer test errors than with the default settings", bold=True)
    lines.append(gain if reduction > 0 else "no gain on the test images yet; try a larger --budget")
    return "\n".join(lines)


def summary_json(result: Result, seed: int, default: Errors, best: Errors | None, picture: Path | None) -> dict[str, Any]:
    """The result as a JSON document."""
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


def save_picture(result: Result, default: float, path: Path) -> None:
    """Save the convergence plot, with the error of the default settings as a reference line."""
    from ..report import plot

    ax = plot.new_axes()
    ax.axhline(default, color="#777777", linestyle="--", linewidth=1.3, label="default settings", zorder=1)
    plot.convergence(result, ax=ax)
    ax.set_xlabel("training time spent (s)", fontsize=plot.FONT)
    ax.set_ylabel("validation error (%)", fontsize=plot.FONT)
    ax.figure.savefig(path)


def example_command() -> str:
    """A command to try next: an example if the working directory is a checkout, otherwise one line of Python."""
    python = min(sys.executable or "python", os.path.relpath(sys.executable or "python"), key=len)
    return f"{python} {EXAMPLE_SCRIPT}" if EXAMPLE_SCRIPT.is_file() else f'{python} -c "{EXAMPLE_CODE}"'
