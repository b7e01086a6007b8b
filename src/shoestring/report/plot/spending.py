"""Plots of where the budget goes: the cost by fidelity, and several studies against the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._format import plural
from ...study import Study
from ..result import Result
from ..views.base import Source
from ..views.comparison import compare as compared
from ..views.cost_curves import fidelity_ladder
from .style import FONT, INK, SavePath, axes_for, finish_axes, set_title_and_legend

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a8447f", "#8a6d00", "#3a9bd1", "#333d47", "#7d9cc4")  # as on the page
BAND = 0.18  # how opaque a band is

Compared = Result | Study


def ladder(study: Compared, path: SavePath | None = None, ax: Any = None, *, parameter: str | None = None) -> Any:
    """Plot what was spent at each fidelity, and on how many trials.

    Look at it to see whether the budget went into cheap trials or into the target.

    parameter   the name of a fidelity; the first one unless given

    >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)))
    >>> for epochs in (1, 1, 9):
    ...     study.enqueue({"x": 0.5, "epochs": epochs})
    ...     trial = study.tell(study.ask(), 1 / epochs, cost=epochs)
    >>> ax = st.plot.ladder(study, ax=st.plot.new_axes())  # or path="ladder.png"
    >>> ax.get_title(loc="left")
    'cost by epochs, 3 trials'
    """
    found = fidelity_ladder(Source(history=study.history, unit=study.unit), parameter)
    ax = axes_for(path, ax)
    bars = found.get("bars", [])
    drawn = ax.barh(range(len(bars)), [bar["value"] for bar in bars], color=INK, height=0.66, zorder=2)
    ax.bar_label(drawn, [bar["text"] for bar in bars], padding=4, fontsize=FONT - 2)
    ax.set_yticks(range(len(bars)), [bar["label"] for bar in bars])
    ax.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.4 * max((bar["value"] for bar in bars), default=1.0) or 1.0)
    ax.set(xlabel=found["x"]["label"], ylabel=found["y"]["label"])
    if bars:
        title = f"cost by {found['parameter']}, {plural(sum(bar['count'] for bar in bars), 'trial')}"
    else:
        title = "no trials yet" if study.history.space.fidelities else "this study has no fidelity"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return finish_axes(ax, path, legend="lower right")


def compare(
    studies: Mapping[str, Compared | Sequence[Compared]] | Sequence[Compared], path: SavePath | None = None, ax: Any = None
) -> Any:
    """Plot the best value against the cost for several studies, or for groups of them by name: the seeds of one method, say.

    Look at it to compare methods at equal cost. A group is drawn as its median, with a band: from the first to the third
    quartile, or over all runs if there are fewer than four. A run that has ended keeps its last value.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> runs = [st.minimize(lambda c: c["x"], space, 4, method=st.Random(), seed=seed) for seed in range(2)]
    >>> ax = st.plot.compare({"random": runs}, ax=st.plot.new_axes())  # or path="compare.png"
    >>> ax.get_legend_handles_labels()[1]
    ['random']
    """
    found = compared(
        {name: owners(each) for name, each in studies.items()} if isinstance(studies, Mapping) else owners(studies)
    )
    ax = axes_for(path, ax)
    for each in found["series"]:
        colour = COLOURS[int(each["role"].removeprefix("study"))]
        ax.step(each["x"], each["y"], where="post", color=colour, linewidth=2.0, label=each["name"], zorder=3)
        if "low" in each:
            ax.fill_between(each["x"], each["low"], each["high"], step="post", color=colour, alpha=BAND, linewidth=0, zorder=2)
    if found["y"]["scale"] == "log":
        ax.set_yscale("log")
    ax.set_xlabel(found["x"]["label"], fontsize=FONT)
    ax.set_ylabel(found["y"]["label"], fontsize=FONT)
    finish_axes(ax, None, legend="best")
    set_title_and_legend(ax, plural(found["runs"], "run") if found["series"] else "nothing has succeeded yet")
    if path is not None:
        ax.figure.savefig(path)
    return ax


def owners(studies: Any) -> list[Study]:
    """The studies of studies and results."""
    given = studies if isinstance(studies, Sequence) else [studies]
    return [each if isinstance(each, Study) else each.study for each in given]
