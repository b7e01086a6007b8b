"""The figures, drawn from the same numbers as the JSON beside them."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware.pictures import _axes, _save
from benchmarks.termination import searchers


def gaps(found: dict[str, Any], titles: dict[str, str], title: str, path: Path, changes: dict[str, list[float]] | None) -> None:
    """Figures 2 and 9: bound less true regret, median and 20 and 80 % quantiles; beside it RYC by rule where given."""
    if not found:
        return
    figure, axes = _axes(12 if changes else 6.4, 2 if changes else 1)
    scale = max(min(float(np.abs(entry["median"]).min()) for entry in found.values()), 1e-8)
    for (name, entry), colour in zip(found.items(), ("tab:blue", "tab:orange", "tab:green"), strict=False):
        label = f"{titles[name]} ({entry['negative']} of {entry['of']} negative)"
        axes[0].plot(entry["steps"], entry["median"], color=colour, label=label)
        axes[0].plot(entry["steps"], entry["low"], color=colour, ls="--", lw=0.8)
        axes[0].plot(entry["steps"], entry["high"], color=colour, ls=":", lw=0.8)
    axes[0].axhline(0.0, color="grey", lw=0.5)
    axes[0].set_yscale("symlog", linthresh=scale)
    axes[0].set(xlabel="evaluations", ylabel="bound less true regret", title=title)
    axes[0].legend(fontsize=8)
    if changes:
        axes[1].boxplot(list(changes.values()), tick_labels=list(changes), showfliers=True)
        axes[1].tick_params(axis="x", rotation=60, labelsize=7)
        axes[1].set(ylabel="RYC")
    _save(figure, path)


def left(found: dict[str, list[float]], counts: dict[str, Any], path: Path) -> None:
    """Figure 5d: the distribution of true regrets at the stop, by tolerance."""
    if not found:
        return
    figure, (axis,) = _axes(7.5)
    floor = 1e-7  # a regret of zero has to stand somewhere on a logarithmic axis
    bins = np.logspace(np.log10(floor), 0, 43)
    for label, regrets in found.items():
        legend = f"{label}: {counts[label]['stopped_runs']} stopped, {counts[label].get('wrong', 0)} wrong"
        axis.hist(np.clip(regrets, floor, 1.0), bins=bins, histtype="step", lw=1.6, label=legend)
        axis.axvline(float(label.rsplit("_", 1)[1]), color="grey", lw=0.5, ls="--")
    axis.set(xscale="log", xlabel=f"true regret at the stop ({floor:g} stands for none)", ylabel="runs")
    axis.legend(fontsize=8)
    _save(figure, path)


COLOURS = {
    "Conv": "tab:grey", "EI": "tab:green", "PI": "tab:olive", "paper": "tab:blue", "default": "tab:red", "optuna": "tab:purple",
}  # fmt: skip


def scatter(report: dict[str, Any], title: str, path: Path) -> None:
    """Figures 3, 6 and 7: mean and deviation of RTC and RYC, a panel for each searcher."""
    groups = {method: rules for method, rules in report["rules"].items() if method in searchers.TITLES}
    if not groups:
        return
    figure, axes = _axes(6.0 * len(groups), len(groups))
    for axis, (method, rules) in zip(axes, groups.items(), strict=True):
        for label, found in rules.items():
            if (kind := label.split("_")[0]) in COLOURS:
                x, y = found["rtc"], found["ryc"]
                axis.errorbar(
                    x["value"], y["value"], xerr=x["std"], yerr=y["std"], fmt="o", color=COLOURS[kind], lw=0.4, alpha=0.85
                )
                axis.annotate(label, (x["value"], y["value"]), fontsize=6)
        axis.axhline(0.0, color="grey", lw=0.5)
        axis.set(xlabel="RTC", ylabel="RYC", title=f"{title}, {searchers.TITLES[method]}", xlim=(-0.05, 1.05))
    _save(figure, path)


NAMES = {"fcnet": "figure6_fcnet.png", "nas201": "figure7_nas201.png", "rf": "figure3_rf.png", "xgb": "figure3_xgb.png"}


def name_of(suite: str) -> str:
    return NAMES.get(suite, f"figure6_{suite}.png")

