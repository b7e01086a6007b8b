"""``plot``: draw a study into a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..errors import MethodError
from .console import CommandError, load_study, opened_storage, print_result, shoestring_command, storage_arguments
from .doctor import require_package
from .options import check_picture, complete_names, json_option, storage_option

if TYPE_CHECKING:
    from .. import Study

KINDS = {
    "history": "the value of every trial, and the best so far",
    "convergence": "the best value so far against the cost",
    "importance": "the share of each parameter in what makes the value change",
    "slice": "the predicted value along each parameter",
    "contour": "the predicted value over two parameters",
    "parallel": "all trials as lines over all parameters",
    "timeline": "when each trial ran, and how many at once",
    "costs": "actual against expected costs",
    "ladder": "what was spent at each fidelity",
    "pareto": "expected improvement against expected cost of the next trial",
    "stopping": "the bound on the regret, and when it stops the study",
    "lookahead": "what one more trial would change",
}
MODEL_KINDS = ("importance", "slice", "contour", "pareto", "stopping", "lookahead")  # they need the study's own model
PARAMETER_KINDS = ("slice", "contour", "lookahead")  # they take --param
_ALONG = re.compile(r"along='([^']*)' is not a Float or Int of this space")
_NOT_IN_FILE_NAMES = re.compile(r"[^\w.-]+")


def complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion for names of studies and kinds of plots."""
    kinds = [CompletionItem(kind, help=text) for kind, text in KINDS.items() if kind.startswith(incomplete)]
    return [*kinds, *complete_names(ctx, param, incomplete)]


@click.command(
    short_help="Draw a study into a file.",
    epilog="\b\nKinds:\n" + "\n".join(f"  {kind:<12} {text}" for kind, text in KINDS.items()),
)
@click.argument("words", nargs=-1, required=True, metavar="[NAME] KIND", shell_complete=complete_words)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), callback=check_picture, metavar="FILE",
    help="The file: .png, .svg, .pdf or .jpg.  [default: NAME-KIND.png]",
)
@click.option(
    "--param", "parameters", multiple=True, metavar="NAME",
    help="A parameter to draw, for slice, contour (give two) and lookahead; may be repeated.",
)
@storage_option
@json_option
def plot(words: Sequence[str], out: Path | None, parameters: tuple[str, ...], address: str) -> None:
    """Draw a study into a file, and print the path of the file. NAME may be left out if there is only one study.

    \b
    Examples:
      shoestring plot history
      shoestring plot xgb importance
      shoestring plot xgb contour --param lr --param depth --out map.svg
    """
    name, kind = read_words(words)
    options = plot_options(kind, parameters)
    require_package("matplotlib", "matplotlib", "plot")
    from .. import plot as plots

    with opened_storage(address) as storage:
        study = load_study(storage, name, address, needs_code=kind in MODEL_KINDS)
        path = out or Path(f"{_NOT_IN_FILE_NAMES.sub('-', study.name)}-{kind}.png")
        check_names(parameters, study, shoestring_command("show", study.name, *storage_arguments(address)))
        try:
            getattr(plots, kind)(study, path=path, **options)
        except MethodError as error:
            message = _ALONG.sub(r"--param \1 is not a number", str(error)).replace("st.plot.slice draws", "the plot slice draws")
            raise CommandError(message, shoestring_command("plot", "--help")) from None
        except OSError as error:
            raise CommandError(f"the plot could not be saved: {error}", shoestring_command("plot", "--help")) from error
    following = shoestring_command("show", study.name, *storage_arguments(address))
    print_result({"study": study.name, "kind": kind, "file": str(path)}, str(path), following)


def check_names(parameters: Sequence[str], study: Study, following: str) -> None:
    """An error for a parameter that the study does not have."""
    for name in parameters:
        if name not in study.space:
            known = ", ".join(study.space)
            raise CommandError(f"--param {name}: study {study.name!r} has no such parameter; choose from {known}", following)


def read_words(words: Sequence[str]) -> tuple[str | None, str]:
    """The name of the study, None if it is left out, and the kind of plot."""
    *names, kind = words
    if len(names) > 1:
        raise click.UsageError(f"give at most one study and one kind of plot, not {len(words)} words")
    if kind not in KINDS:
        swapped = f"; the kind comes last: plot {kind} {names[0]}" if names and names[0] in KINDS else ""
        raise click.UsageError(f"there is no plot {kind!r}; choose from {', '.join(KINDS)}{swapped}")
    return names[0] if names else None, kind


def plot_options(kind: str, parameters: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of the plot that --param stands for."""
    if not parameters:
        return {}
    if kind not in PARAMETER_KINDS:
        raise click.UsageError(f"--param is for {', '.join(PARAMETER_KINDS)}; {kind} shows all parameters")
    if kind == "lookahead":
        if len(parameters) > 1:
            raise click.UsageError("lookahead is drawn along one parameter; give --param once")
        return {"along": parameters[0]}
    if kind == "contour" and len(parameters) != 2:
        raise click.UsageError(f"contour is drawn over two parameters, not {len(parameters)}; give --param twice")
    return {"parameters": list(parameters)}
