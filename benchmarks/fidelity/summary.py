"""The stored runs as a report, as text, and as the few figures that the targets speak of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fidelity import versus
from benchmarks.fidelity.core import FidelityProblem, high

OURS = ("cfKG", "auto")
SURE = 0.05
COST_SHARE, REAL_SHARE = 0.2, 0.5  # of EI's cost on functions, of the best peer's seconds on real tasks
TIMES_FASTER = 100
SECONDS = {"cfKG": 1.0, "cf-d-KG": 3.0}


def all_runs(folder: Path, labels: Sequence[str], name: str, budget: float, charged: bool) -> dict[str, versus.Runs]:
    """The runs of each method that has any."""
    return {label: found for label in labels if (found := versus.load(folder, label, name, budget, charged))}


def problem(folder: Path, given: FidelityProblem, labels: Sequence[str], subjects: Sequence[str]) -> dict[str, Any]:
    """Medians of all methods; each of ``subjects`` against every other method."""
    wanted = (folder, labels, given.name, given.budget)
    runs = all_runs(*wanted, given.charges_thinking) or all_runs(*wanted, False)  # the latter are of before it was charged
    targets = {fidelity.name: float(high(fidelity)) for fidelity in given.fidelities}
    report: dict[str, Any] = {"budget": given.budget, "median_regret": {}, "asked": {}, "against": {}}
    for label, found in runs.items():
        grid, table = versus.marks(found), versus.regrets(found)
        quarters = {f"{share:g}": versus.at_cost(grid, share * given.budget) for share in (0.05, 0.1, 0.2, 0.5, 1.0)}
        report["median_regret"][label] = {share: versus.tidy(float(np.median(table[:, k]))) for share, k in quarters.items()}
        report["asked"][label] = versus.habits(found, targets)
    for subject in subjects:
        for rival in runs if subject in runs else ():
            if rival == subject:
                continue
            entry = report["against"].setdefault(subject, {}).setdefault(rival, {})
            entry["reach"] = versus.reach(runs[subject], runs[rival])
            entry["equal_cost"] = versus.at_equal_cost(runs[subject], runs[rival])
            if rival.startswith("botorch"):
                entry["where_it_ended"] = versus.where_it_ended(runs[subject], runs[rival])
    return report


def function_key(report: dict[str, Any]) -> dict[str, Any]:
    """By function: EI's regret at what share of its cost, ahead of whom, and BoTorch."""
    found: dict[str, Any] = {}
    for name, entry in report.items():
        against = entry["against"].get("cfKG", {})
        reach = against.get("EI", {}).get("reach", {})
        share = reach.get("of_whole_cost")
        rivals = [rival for rival in ("KG", "BOCA", "Hyperband") if rival in against]
        ends = {rival: against[rival]["equal_cost"].get("paid", {}) for rival in rivals}
        at_end = {rival: against[rival]["equal_cost"].get("end", {}) for rival in rivals}
        found[name] = {
            "cost_to_reach_ei": {"share": share, "low": reach.get("low"), "high": reach.get("high")},
            "cost_met": share is not None and share <= COST_SHARE,
            "ahead_of": {rival: {key: end.get(key) for key in ("mean_log10_ratio", "p")} for rival, end in ends.items()},
            "at_the_end": {rival: {key: end.get(key) for key in ("mean_log10_ratio", "p")} for rival, end in at_end.items()},
            "ahead_met": bool(ends) and all(end.get("p", 1.0) < SURE and end["mean_log10_ratio"] < 0 for end in ends.values()),
        }
        if ended := against.get("botorch_qMFKG", {}).get("where_it_ended"):
            wanted = ("mean_log10_ratio", "lower", "higher", "time_ratio", "its_ask_seconds", "costs")
            found[name]["botorch"] = {key: ended.get(key) for key in wanted}
            found[name]["botorch_met"] = ended["mean_log10_ratio"] <= 0 and ended["time_ratio"] >= TIMES_FASTER
    return found


def real_key(report: dict[str, Any]) -> dict[str, Any]:
    """By task: the peer with the lowest final error, and the share of its seconds in which ours gets there."""
    found: dict[str, Any] = {}
    for name, entry in report.items():
        finals = {label: medians["1"] for label, medians in entry["median_regret"].items() if label not in OURS}
        finals = {label: value for label, value in finals.items() if value is not None}
        if not finals:
            continue
        best = min(finals, key=lambda label: finals[label])
        found[name] = {"best_peer": best, "its_error": finals[best]}
        for ours in OURS:
            if reach := entry["against"].get(ours, {}).get(best, {}).get("reach"):
                share, itself = reach["of_whole_cost"], reach["of_its_own_cost"]
                met = share is not None and share <= REAL_SHARE
                found[name][ours] = {"error": entry["median_regret"][ours]["1"], "share": share, "of_its_own": itself, "met": met}
    return found


def kernel_key(report: dict[str, Any]) -> dict[str, Any]:
    """cf-d-KG against the two others: their final regret at what share of their cost, and the test at the end."""
    found: dict[str, Any] = {}
    for name, entry in report.items():
        for rival, each in entry["against"].get("cf-d-KG_q8", {}).items():
            found.setdefault(name, {})[rival] = {"reach": each["reach"], "end": each["equal_cost"].get("end", {})}
    return found


def timing_key(report: dict[str, Any]) -> dict[str, Any]:
    return {
        label: {"median_s": entry["median"], "limit_s": SECONDS[label], "met": entry["median"] < SECONDS[label]}
        for label, entry in report.items()
        if label in SECONDS
    }


KEYS = {"functions": function_key, "biased": function_key, "real": real_key, "kernel": kernel_key, "timing": timing_key}


def _cell(value: float | None, width: int = 11) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.3g}"


def text(part: str, report: dict[str, Any]) -> str:
    """Medians at shares of the budget, and what was asked for."""
    lines = [f"== {part}"]
    if part == "timing":
        return "\n".join([*lines, *(f"  {label}: {entry}" for label, entry in report.items())])
    for name, entry in report.items():
        shares = list(next(iter(entry["median_regret"].values()), {}))
        lines.append(f"{name}: median regret at shares of the budget of {entry['budget']:g}")
        titles = "".join(f"{share:>11}" for share in shares)
        titles += f"{'runs':>6}{'evals':>7}{'capped':>8}{'s an ask':>10}  asked at <= 0.1, >= 0.9 of the target"
        lines.append(f"  {'':<26}{titles}")
        for label, medians in entry["median_regret"].items():
            asked = entry["asked"][label]
            habits = ", ".join(f"{f} {s['below_a_tenth']}, {s['above_nine_tenths']}" for f, s in asked["fidelities"].items())
            lines.append(
                f"  {label:<26}{''.join(_cell(medians[share]) for share in shares)}{asked['runs']:>6}{asked['evaluations']:>7.0f}"
                f"{asked['capped']:>8.2f}{asked['ask_seconds']:>10.3g}  {habits}"
            )
        for subject, rivals in entry["against"].items():
            for rival, each in rivals.items():
                reach, end = each["reach"], each["equal_cost"].get("end", {})
                if reach:
                    lines.append(
                        f"  {subject} against {rival}: its final regret at {_cell(reach['of_whole_cost'], 0)} "
                        f"[{_cell(reach['low'], 0)}, {_cell(reach['high'], 0)}] of its cost; at equal cost log10 ratio "
                        f"{_cell(end.get('mean_log10_ratio'), 0)}, p {_cell(end.get('p'), 0)}"
                    )
    return "\n".join(lines)
