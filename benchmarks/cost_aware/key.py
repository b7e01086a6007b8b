"""The few numbers that decide whether cost-aware search does what it is meant to do."""

from typing import Any

from benchmarks.cost_aware import methods

RIVALS = ("ei", "eipu", "ei_cool")
SAVED, LOST = 50.0, 0.5  # per cent


def biopt(report: dict[str, Any]) -> dict[str, Any]:
    """The default method against EI: at least half of the cost saved at no more than half a per cent of accuracy."""
    entry = report["against_ei"]["all"].get(methods.DEFAULT)
    if not entry:
        return {}
    saved, lost = entry["cost_saved"]["mean"], entry["accuracy_lost"]["mean"]
    return {
        "cost_saved": saved,
        "accuracy_lost": lost,
        "median_cost_saved": entry["cost_saved"]["median"],
        "median_accuracy_lost": entry["accuracy_lost"]["median"],
        "loss_increase": entry["loss_increase"],
        "met": saved["value"] >= SAVED and lost["value"] <= LOST,
    }


def allocation(report: dict[str, Any]) -> dict[str, Any]:
    """Whether the default ranks first at every budget, its interval clear of those of EI, EIpu and EI-cool."""
    outcome: dict[str, Any] = {}
    for multiple, ranks in report["average_rank"].items():
        for label in (methods.DEFAULT, "auto_budget"):
            if label not in ranks:
                continue
            others = {name: entry for name, entry in ranks.items() if name not in (methods.DEFAULT, "auto_budget")}
            rivals = [others[name]["low"] for name in RIVALS if name in others]
            outcome.setdefault(label, {})[multiple] = {
                "rank": ranks[label],
                "best_other": min(others, key=lambda name: others[name]["mean"], default=None),
                "first": all(ranks[label]["mean"] <= entry["mean"] for entry in others.values()),
                "clear_of_rivals": bool(rivals) and ranks[label]["high"] < min(rivals),
            }
    return outcome


def costmodels(report: dict[str, Any]) -> dict[str, Any]:
    """Auto's error at ten evaluations against the best of its parts and against the GP."""
    verdict: dict[str, Any] = report["verdict"]
    if not verdict:
        return {}
    return verdict | {
        "no_worse_than_best_part": verdict["auto"] <= verdict["best_part_rmse"],
        "below_gp": verdict["gp"] is not None and verdict["auto"] < verdict["gp"],
    }
