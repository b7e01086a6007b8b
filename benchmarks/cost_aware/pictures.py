"""The figures, drawn from the same numbers as the JSON beside them."""

from pathlib import Path
from typing import Any

from benchmarks.cost_aware import methods, models


def _axes(width: float = 6.4, columns: int = 1) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=(width, 4.2), squeeze=False)
    return figure, axes[0]


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def costmodels(report: dict[str, Any], path: Path) -> None:
    """Figure 2: RMSE of log cost against evaluations, with intervals."""
    figure, (axis,) = _axes()
    for label, entries in report["rmse_of_log_cost"].items():
        sizes = [int(size) for size in entries]
        means = [entry["mean"] for entry in entries.values()]
        width = 3.0 if label == "auto" else 1.5
        axis.plot(sizes, [mean["value"] for mean in means], marker="o", label=models.LABELS[label], lw=width)
        axis.fill_between(sizes, [mean["low"] for mean in means], [mean["high"] for mean in means], alpha=0.08)
    axis.set(xlabel="evaluations seen", ylabel="RMSE of log cost", xscale="log", title=f"{report['problems']} problems")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)
    _save(figure, path)


def transfer(report: dict[str, Any], path: Path) -> None:
    """Figure 8: transferred models against models that have seen some evaluations, by kind of task."""
    kinds = list(report["rmse_of_log_cost"])
    figure, axes = _axes(6.0 * len(kinds), len(kinds))
    for axis, kind in zip(axes, kinds, strict=True):
        entries = report["rmse_of_log_cost"][kind]
        means = [entry["mean"] for entry in entries.values()]
        sides = ([m["value"] - m["low"] for m in means], [m["high"] - m["value"] for m in means])
        online = {"gp": "tab:blue", "linear3": "tab:orange", "auto": "tab:red"}
        colours = [online.get(label.split(" (")[0], "tab:green") for label in entries]
        axis.barh(range(len(means)), [m["value"] for m in means], xerr=sides, color=colours)
        axis.set_yticks(range(len(means)), list(entries), fontsize=8)
        axis.invert_yaxis()
        axis.set(xlabel="RMSE of log cost", title=kind)
    _save(figure, path)


def biopt(report: dict[str, Any], path: Path) -> None:
    """Figures 3 and 5 left: cost saved against accuracy lost; filled for means, crosses for medians."""
    figure, axes = _axes(12, 2)
    against = report["against_ei"]["all"]
    for axis, statistic in zip(axes, ("mean", "median"), strict=True):
        for prefix, colour, name in (("ei", "tab:blue", "EI_alpha"), ("cei_", "tab:red", "CEI"), ("", "black", None)):
            chosen = [
                label for label in against if (label.startswith(prefix) if prefix else not label.startswith(("ei", "cei_")))
            ]
            x = [against[label]["cost_saved"][statistic]["value"] for label in chosen]
            y = [against[label]["accuracy_lost"][statistic]["value"] for label in chosen]
            axis.plot(x, y, marker="o", color=colour, lw=1 if prefix else 0, label=name)
            for label, a, b in zip(chosen, x, y, strict=True):
                axis.annotate(label.removeprefix("ei_alpha_").removeprefix("cei_"), (a, b), fontsize=7, color=colour)
        axis.axhline(0.0, color="grey", lw=0.5)
        axis.set(xlabel="cost saved against EI, %", ylabel="accuracy lost against EI, %", title=statistic)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    _save(figure, path)


def alphas(report: dict[str, Any], path: Path) -> None:
    """Figure 5 right: the exponent that CEI's choices amount to."""
    if not report["alphas"]:
        return
    figure, (axis,) = _axes()
    for label, curve in report["alphas"].items():
        if label in methods.CEI_FAMILY or label == methods.DEFAULT:
            axis.plot(range(1, len(curve) + 1), curve, label=label)
    axis.set(xlabel="evaluation", ylabel="alpha that the choice amounts to")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)
    _save(figure, path)


def plugged(report: dict[str, Any], path: Path) -> None:
    """Figure 9: EI_alpha with different cost models."""
    figure, (axis,) = _axes()
    against = report["against_ei"]["all"]
    for model in ("", *methods.PLUGGED_MODELS):
        chosen = [label for label in against if methods.split(label)[1] == model and label.startswith("ei_alpha_")]
        x = [against[label]["cost_saved"]["mean"]["value"] for label in chosen]
        y = [against[label]["accuracy_lost"]["mean"]["value"] for label in chosen]
        axis.plot(x, y, marker="o", label=model or "auto")
        for label, a, b in zip(chosen, x, y, strict=True):
            axis.annotate(methods.split(label)[0].removeprefix("ei_alpha_"), (a, b), fontsize=7)
    axis.set(xlabel="cost saved against EI, %", ylabel="accuracy lost against EI, %")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)
    _save(figure, path)


def allocation(curves: dict[str, Any], path: Path) -> None:
    """Figures 4 and 6: average rank along each budget."""
    if not curves:
        return
    figure, axes = _axes(5.0 * len(curves), len(curves))
    for axis, (multiple, entry) in zip(axes, curves.items(), strict=True):
        for label, ranks in entry["ranks"].items():
            bold = label in (methods.DEFAULT, "auto_budget")
            axis.plot([100 * int(multiple) * share for share in entry["share"]], ranks, label=label, lw=2.5 if bold else 1.2)
        axis.set(xlabel="budget, % of the least", ylabel="average rank (lower is better)", title=f"{multiple} times the least")
    axes[-1].legend(fontsize=7)
    _save(figure, path)
