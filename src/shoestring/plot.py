"""Pictures of a study; each function draws one kind, and needs matplotlib (``pip install "shoestring[plots]"``).

All take a Result or a Study, and ``path=`` (save there) or ``ax=`` (draw there); they return the Axes. With a path the
picture is made without pyplot, so it needs no display; your backend is never changed and nothing is ever shown for you.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .numerics import Array
from .outputs import middle_and_spread
from .termination.auto import find_bound
from .termination.regret import RegretBound
from .termination.sure import SureBound
from .trial import State, Trial
from .wording import plural, rounded

if TYPE_CHECKING:
    from .result import Result
    from .study import Study

INK, DOTS, BAD = "#1b4f8f", "#9db4d0", "#c0392b"
SIZE, DPI, FONT = (6.4, 4.2), 200, 12  # 1280 x 840 pixels, with letters that can be read on a phone
WIDE = 50.0  # positive values that span more than this factor are drawn on a log scale


def convergence(study: Result | Study, path: str | PathLike[str] | None = None, ax: Any = None) -> Any:
    """The best value so far against the cost spent, with each trial as a dot and failed ones marked on the axis."""
    history, unit = study.history, study.unit
    ax = _axes(path, ax)
    spent = np.cumsum([trial.cost or 0.0 for trial in history])
    scale, unit = _time_unit(float(spent[-1]) if len(spent) else 0.0) if unit == "s" else (1.0, unit)
    done = np.array([trial.state is State.DONE for trial in history], dtype=bool)
    failed = np.array([trial.state is State.FAILED for trial in history], dtype=bool)
    x = spent / scale

    values = _values(history.having(State.DONE))
    low, high = _window(values, history.maximize)
    ax.plot(x[done], np.clip(values, low, high), "o", color=DOTS, markersize=5, label="trial", zorder=2)
    steps = history.bests()
    if steps:
        at, best = np.array(steps).T
        at, best = np.append(at / scale, x[-1]), np.append(best, best[-1])  # level to the end of what was spent
        ax.step(at, np.clip(best, low, high), where="post", color=INK, linewidth=2.2, label="best so far", zorder=3)
        if values.min() > 0 and min(high, values.max()) > WIDE * values.min():
            ax.set_yscale("log")
    if failed.any():
        ax.plot(
            x[failed], np.zeros(failed.sum()), "x", color=BAD, markersize=7, markeredgewidth=1.8,
            transform=ax.get_xaxis_transform(), clip_on=False, label="failed", zorder=4,
        )
    ax.set_xlim(0.0, float(x[-1]) * 1.02 if len(x) and x[-1] > 0 else 1.0)
    ax.set_xlabel(f"spent ({unit})", fontsize=FONT)
    ax.set_ylabel("value (higher is better)" if history.maximize else "value (lower is better)", fontsize=FONT)
    found = history.best
    counted = plural(len(history), "trial")
    title = f"{counted}, best {rounded(found.value)}" if found else f"{counted}, nothing has succeeded yet"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return _finished(ax, path, legend="lower right" if history.maximize else "upper right")


def pareto(study: Result | Study, path: str | PathLike[str] | None = None, ax: Any = None) -> Any:
    """The EI-cost front at the present step, and where each method would land on it."""
    owner: Any = getattr(study, "study", study)
    front = owner.pareto_front()
    ax = _axes(path, ax)
    cost, ei = np.array([(point.cost, point.ei) for point in front.points]).T
    ax.step(cost, ei, where="post", color=DOTS, linewidth=1.6, zorder=1)
    ax.plot(cost, ei, "o", color=DOTS, markersize=4, label="front", zorder=2)
    for number, (name, point) in enumerate(front.landings.items()):
        marker = "sDv^<>PX*"[number % 9]
        label = f"{name}, alpha {rounded(front.alphas[name], 2)}"
        ax.plot([point.cost], [point.ei], marker, color=f"C{number % 10}", markersize=8, label=label, zorder=3)
    if cost.max() > WIDE / 5 * cost.min():
        ax.set_xscale("log")
    ax.set_xlabel(f"expected cost ({front.unit})", fontsize=FONT)
    ax.set_ylabel("expected improvement", fontsize=FONT)
    ax.set_title(f"EI-cost front after {plural(len(owner.log), 'trial')}", fontsize=FONT + 1, loc="left")
    return _finished(ax, path, legend="upper left", size=FONT - 4)


def costs(study: Result | Study, path: str | PathLike[str] | None = None, ax: Any = None) -> Any:
    """How well costs were foretold: expected against actual cost of every trial whose cost was predicted when it was asked."""
    pairs = [
        (float(trial.suggestion["cost"]), trial.cost)
        for trial in study.history
        if trial.cost and trial.suggestion.get("cost") and trial.state is not State.ABANDONED
    ]
    ax = _axes(path, ax)
    if pairs:
        expected, actual = np.array(pairs).T
        ends = np.array([min(expected.min(), actual.min()), max(expected.max(), actual.max())])
        ax.plot(ends, ends, color="#777777", linestyle="--", linewidth=1.2, label="as expected", zorder=1)
        ax.plot(expected, actual, "o", color=INK, alpha=0.7, markersize=5, label="trial", zorder=2)
        ax.set_xscale("log")
        ax.set_yscale("log")
        error = float(np.sqrt(np.mean(np.log(actual / expected) ** 2)))
        ax.set_title(f"typically off by a factor of {np.exp(error):.2f}", fontsize=FONT + 1, loc="left")
    else:
        ax.set_title("no cost was predicted yet", fontsize=FONT + 1, loc="left")
    ax.set_xlabel(f"expected cost ({study.unit})", fontsize=FONT)
    ax.set_ylabel(f"actual cost ({study.unit})", fontsize=FONT)
    return _finished(ax, path, legend="upper left")


def stopping(
    study: Result | Study,
    path: str | PathLike[str] | None = None,
    ax: Any = None,
    *,
    rule: RegretBound | None = None,
    optimum: float | None = None,
    against: Literal["trials", "cost"] = "trials",
) -> Any:
    """The bound on the regret and the threshold that it is held against, after every trial from the first check on.

    ``rule`` is the study's own RegretBound unless another is given; with ``optimum``, the best value there is, the true
    regret is drawn too.
    """
    history = study.history
    if rule is None:
        owner: Any = getattr(study, "study", study)
        rule = find_bound(owner.rule) or SureBound()
    found = np.cumsum([trial.state is State.DONE and history.at_target(trial) for trial in history])
    steps = [n for n in range(1, len(history) + 1) if found[n - 1] >= rule.after]
    spent = np.cumsum([trial.cost or 0.0 for trial in history])
    scale, unit = _time_unit(float(spent[-1]) if len(spent) else 0.0) if study.unit == "s" else (1.0, study.unit)
    x = [n if against == "trials" else spent[n - 1] / scale for n in steps]
    ax = _axes(path, ax)
    past = [history.first(n) for n in steps]
    ax.plot(x, [rule.bound(earlier, history.space).regret for earlier in past], color=INK, linewidth=2.0, label="bound", zorder=3)
    limits = [rule.threshold(earlier)[0] for earlier in past]
    if any(limit is not None for limit in limits):
        ax.plot(x, [math.nan if limit is None else limit for limit in limits], "--", color=BAD, label="threshold", zorder=2)
    if optimum is not None:
        best = [float(earlier.best.value or 0.0) if earlier.best else math.nan for earlier in past]
        ax.plot(x, np.abs(np.array(best) - optimum), color="#555555", linewidth=1.4, label="true regret", zorder=2)
    if steps:
        ax.set_yscale("log")
    ax.set_xlabel("trials" if against == "trials" else f"spent ({unit})", fontsize=FONT)
    ax.set_ylabel("regret", fontsize=FONT)
    title = f"regret bound, {plural(len(history), 'trial')}" if steps else f"no bound before {plural(rule.after, 'evaluation')}"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return _finished(ax, path, legend="upper right")


# -- shared by all plots -------------------------------------------------------------------------------------------------


def new_axes() -> Any:
    """Axes on a figure that pyplot does not know of: for saving, on machines with and without a display."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib, which is not installed: pip install "shoestring[plots]"') from None
    return Figure(figsize=SIZE, dpi=DPI, layout="constrained").add_subplot()


def _axes(path: str | PathLike[str] | None, ax: Any) -> Any:
    """The given Axes; new ones for a file; else pyplot's, so that notebooks and plt.show() find them."""
    if ax is not None:
        return ax
    if path is not None:
        return new_axes()
    try:
        from matplotlib import pyplot
    except ImportError:
        return new_axes()  # says what is missing
    return pyplot.subplots(figsize=SIZE, layout="constrained")[1]


def _finished(ax: Any, path: str | PathLike[str] | None, legend: str, size: int = FONT - 1) -> Any:
    """The looks that all plots share; saved if there is a path."""
    ax.tick_params(labelsize=FONT - 1)
    ax.grid(True, color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc=legend, frameon=True, framealpha=0.85, edgecolor="none", fontsize=size)
    if path is not None:
        ax.figure.savefig(path)
    return ax


def _values(trials: Sequence[Trial]) -> Array:
    return np.array([trial.value for trial in trials], dtype=float)


def _window(values: Array, maximize: bool) -> tuple[float, float]:
    """The range worth drawing: all good values, and bad ones up to a few spreads from the median (1e300 is drawn there)."""
    if not len(values):
        return -math.inf, math.inf
    signed = np.clip(-values if maximize else values, -1e300, 1e300)
    middle, spread = middle_and_spread(signed)
    limit = float(min(middle + 4.0 * spread, signed.max()))
    return (-limit, math.inf) if maximize else (-math.inf, limit)


def _time_unit(seconds: float) -> tuple[float, str]:
    """Seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return 1.0, "s"
    return (60.0, "min") if seconds < 7200 else (3600.0, "h")
