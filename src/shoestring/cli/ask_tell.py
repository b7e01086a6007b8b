"""``ask``, ``tell`` and ``enqueue``: a study whose trials are evaluated by whoever asks for them, a shell script for example."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from typing import Any

import click

from .._format import config_text, rounded
from .console import answer, arguments, command, load, note, opened, wants_json
from .options import check_seconds, complete_names, json_option, name_argument, storage_option
from .params import number, option
from .show import trial_json

_NEGATIVE = re.compile(r"-(\d|\.\d|inf|nan).*", re.IGNORECASE)


@click.command(short_help="The next settings to try.")
@name_argument
@click.option("--lease", default="24h", show_default=True, callback=check_seconds, metavar="TIME",
              help="How long the trial is yours; without a tell until then its settings are asked again.")
@storage_option
@json_option
def ask(name: str | None, lease: float, where: str) -> None:
    """The next trial to evaluate, as JSON: {"number": 17, "config": {...}}. Then tell its result.

    \b
    Example, in a shell script with jq:
      trial=$(shoestring ask xgb)
      value=$(./evaluate --lr $(echo $trial | jq .config.lr))
      shoestring tell xgb $(echo $trial | jq .number) $value
    """
    with opened(where) as storage:
        study = load(storage, name, where, suggests=True)
        trial = study.ask(lease=lease)
    click.echo(json.dumps({"study": study.name, "number": trial.number, "config": trial.config}))
    if sys.stderr.isatty() and not wants_json():
        note(f"next: {command('tell', study.name, str(trial.number), 'VALUE', *arguments(where))}")


class WithNumbers(click.Command):
    """A command in which -0.5 is a number and no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with_values = {name for each in self.params if isinstance(each, click.Option) and not each.is_flag for name in each.opts}
        options, words, rest = list[str](), list[str](), iter(args)
        for word in rest:
            if word == "--":
                words += rest
            elif word.startswith("-") and not _NEGATIVE.fullmatch(word):
                options += [word, *islice(rest, 1 if word in with_values else 0)]
            else:
                words.append(word)
        return super().parse_args(ctx, [*options, "--", *words])


@click.command(cls=WithNumbers, short_help="The result of a trial.")
@click.argument("name", shell_complete=complete_names)
@click.argument("trial", metavar="NUMBER", type=click.IntRange(min=0))
@click.argument("value", required=False)
@click.option("--cost", type=float, metavar="COST", help="What it cost, in the study's unit.  [default: the time since ask]")
@click.option("--folds", metavar="A,B,...", help="The values of the folds; their mean is the value.")
@click.option("--error", metavar="TEXT", help="It failed, and why.")
@storage_option
@json_option
def tell(
    name: str, trial: int, value: str | None, cost: float | None, folds: str | None, error: str | None, where: str
) -> None:
    """Tell what came of a trial: its value, or its folds, or why it failed. Telling the same twice does no harm.

    \b
    Examples:
      shoestring tell xgb 17 0.031 --cost 12.5
      shoestring tell xgb 18 --folds 0.31,0.28,0.35
      shoestring tell xgb 19 --error "out of memory"
    """
    if value is None and folds is None and error is None:
        raise click.UsageError("what came of it? give a VALUE, --folds or --error")
    told = None if value is None else read_number(value, "VALUE")
    parts = None if folds is None else [read_number(fold, "--folds") for fold in folds.split(",")]
    with opened(where) as storage:
        study = load(storage, name, where)
        finished = study.tell(trial, told, cost=cost, folds=parts, error=error)
    result = rounded(finished.value) if finished.error is None else finished.error
    answer(trial_json(finished), f"trial {trial} is {finished.state}: {result}", command("ask", name, *arguments(where)))


def read_number(text: str, what: str) -> float:
    found = number(text.strip())
    if found is None:
        raise click.UsageError(f"{what} must be a number, not {text!r}")
    return float(found)


@click.command(short_help="Settings to be tried next.")
@click.argument("name", shell_complete=complete_names)
@click.argument("settings", nargs=-1, required=True, metavar="JSON | KEY=VALUE...")
@storage_option
@json_option
def enqueue(name: str, settings: tuple[str, ...], where: str) -> None:
    """Have settings evaluated next, for example some that are known to be good.

    \b
    Examples:
      shoestring enqueue xgb '{"lr": 0.01, "depth": 6}'
      shoestring enqueue xgb lr=0.01 depth=6
    """
    config = read_config(settings)
    with opened(where) as storage:
        study = load(storage, name, where)
        checked = study.space.check(config)
        study.enqueue(config)
        record = storage.find(study.name)
        then = command("resume" if record.settings.get("run") else "ask", name, *arguments(where))
    answer({"study": name, "config": checked, "waiting": record.waiting}, f"asked next: {config_text(checked)}", then)


def read_config(settings: tuple[str, ...]) -> dict[str, Any]:
    """One JSON object, or KEY=VALUE with values as for the options of a parameter."""
    if len(settings) == 1 and settings[0].lstrip().startswith("{"):
        try:
            found = json.loads(settings[0])
        except ValueError as error:
            raise click.UsageError(f"{settings[0]!r} is not JSON: {error}") from None
        assert isinstance(found, dict)
        return found
    config: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{setting!r} cannot be read; write KEY=VALUE, or one JSON object")
        config[key] = option(value)
    return config
