"""``ask``, ``tell`` and ``enqueue``: the ask-and-tell interface for shell scripts, which evaluate the trials themselves."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from .._format import config_text, rounded
from .console import (
    json_requested,
    load_study,
    opened_storage,
    print_note,
    print_result,
    shoestring_command,
    storage_arguments,
)
from .options import check_seconds, complete_names, json_option, name_argument, read_number, read_value, storage_option
from .show import trial_json

_NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan).*", re.IGNORECASE)


@click.command(short_help="Get the next settings to evaluate.")
@name_argument
@click.option("--lease", default="24h", show_default=True, callback=check_seconds, metavar="TIME",
              help="How long the trial is reserved. If no result is reported by then, its settings are asked again.")
@storage_option
@json_option
def ask(name: str | None, lease: float, address: str) -> None:
    """Get the next trial to evaluate, as JSON: {"number": 17, "config": {...}}. Report its result with tell.

    \b
    Example, in a shell script with jq:
      trial=$(shoestring ask xgb)
      value=$(./evaluate --lr $(echo $trial | jq .config.lr))
      shoestring tell xgb $(echo $trial | jq .number) $value
    """
    with opened_storage(address) as storage:
        study = load_study(storage, name, address, needs_code=True)
        trial = study.ask(lease=lease)
    click.echo(json.dumps({"study": study.name, "number": trial.number, "config": trial.config}))
    if sys.stderr.isatty() and not json_requested():
        following = shoestring_command("tell", study.name, str(trial.number), "VALUE", *storage_arguments(address))
        print_note(f"next: {following}")


class NegativeNumbersCommand(click.Command):
    """A Click command that reads -0.5 as a number, not as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the options first and everything else after ``--``."""
        with_values = {name for each in self.params if isinstance(each, click.Option) and not each.is_flag for name in each.opts}
        options, words, rest = list[str](), list[str](), iter(args)
        for word in rest:
            if word == "--":
                words += rest
            elif word.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(word):
                options += [word, *islice(rest, 1 if word in with_values else 0)]
            else:
                words.append(word)
        return super().parse_args(ctx, [*options, "--", *words])


@click.command(cls=NegativeNumbersCommand, short_help="Report the result of a trial.")
@click.argument("name", shell_complete=complete_names)
@click.argument("trial", metavar="NUMBER", type=click.IntRange(min=0))
@click.argument("value", required=False)
@click.option("--cost", type=float, metavar="COST", help="Cost of the trial in the study's unit.  [default: the time since ask]")
@click.option("--folds", metavar="A,B,...", help="The values of the folds; their mean is the value.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME=NUMBER", help="A number to keep with it. May be repeated.")
@click.option("--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="A fact to keep with it. May be repeated.")
@click.option("--error", metavar="TEXT", help="The trial failed, for this reason.")
@storage_option
@json_option
def tell(
    name: str,
    trial: int,
    value: str | None,
    cost: float | None,
    folds: str | None,
    metrics: tuple[str, ...],
    attrs: tuple[str, ...],
    error: str | None,
    address: str,
) -> None:
    """Report the result of a trial: its value, or its folds, or why it failed. Reporting the same result twice does no harm.

    \b
    Examples:
      shoestring tell xgb 17 0.031 --cost 12.5 --metric accuracy=0.93 --attr host=gpu3
      shoestring tell xgb 18 --folds 0.31,0.28,0.35
      shoestring tell xgb 19 --error "out of memory"
    """
    if value is None and folds is None and error is None:
        raise click.UsageError("the result is missing; give a VALUE, --folds or --error")
    if error is not None and not (value is None and folds is None):
        raise click.UsageError("a trial has a value or an error, not both; leave out --error, or VALUE and --folds")
    result = None if value is None else require_number(value, "VALUE")
    fold_values = None if folds is None else [require_number(fold, "--folds") for fold in folds.split(",")]
    numbers = {key: require_number(text, f"--metric {key}") for key, text in read_pairs(metrics)}
    facts = {key: read_value(text) for key, text in read_pairs(attrs)}
    with opened_storage(address) as storage:
        study = load_study(storage, name, address)
        finished = study.tell(trial, result, cost=cost, folds=fold_values, metrics=numbers, attrs=facts, error=error)
    text = f"trial {trial} is {finished.state}: {rounded(finished.value) if finished.error is None else finished.error}"
    print_result(trial_json(finished), text, shoestring_command("ask", name, *storage_arguments(address)))


def require_number(text: str, what: str) -> float:
    """The text as a float; a wrong command line if it is not a number."""
    found = read_number(text.strip())
    if found is None:
        raise click.UsageError(f"{what} must be a number, not {text!r}")
    return float(found)


@click.command(short_help="Add settings to be evaluated next.")
@click.argument("name", shell_complete=complete_names)
@click.argument("settings", nargs=-1, required=True, metavar="JSON | KEY=VALUE...")
@storage_option
@json_option
def enqueue(name: str, settings: tuple[str, ...], address: str) -> None:
    """Add settings to be evaluated next, for example some that are known to be good.

    Parameters that are left out are suggested when the settings are asked.

    \b
    Examples:
      shoestring enqueue xgb '{"lr": 0.01, "depth": 6}'
      shoestring enqueue xgb lr=0.01 depth=6
      shoestring enqueue xgb lr=0.01
    """
    config = read_config(settings)
    if not config:
        raise click.UsageError("no parameter is given; write for example lr=0.01, or '{\"lr\": 0.01}'")
    with opened_storage(address) as storage:
        study = load_study(storage, name, address)
        study.enqueue(config)
        queued = study.state.queue[-1]
        record = storage.find(study.name)
        following = shoestring_command("resume" if record.settings.get("run") else "ask", name, *storage_arguments(address))
    partial = bool(queued.suggestion.get("partial"))
    document = {"study": name, "config": dict(queued.config), "partial": partial, "waiting": record.waiting}
    rest = "; the other parameters are suggested when it is asked" if partial else ""
    print_result(document, f"enqueued: {config_text(queued.config)}{rest}", following)


def read_config(settings: tuple[str, ...]) -> dict[str, Any]:
    """A config from one JSON object, or from KEY=VALUE words."""
    if len(settings) == 1 and settings[0].lstrip().startswith("{"):
        try:
            found = json.loads(settings[0])
        except ValueError as error:
            raise click.UsageError(f"{settings[0]!r} is not JSON: {error}") from None
        assert isinstance(found, dict)
        return found
    return {key: read_value(value) for key, value in read_pairs(settings, "KEY=VALUE, or one JSON object")}


def read_pairs(texts: tuple[str, ...], how: str = "NAME=VALUE") -> Iterator[tuple[str, str]]:
    """Names and values of words such as ``accuracy=0.93``."""
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{text!r} cannot be read; write {how}")
        yield key, value
