"""What one call decides, in tables for docs/benchmarks.md and the README: from benchmarks/results/decisions."""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.decisions.runs import RESULTS

NAMES = {
    "auto": "**Shoestring's default**", "ei": "`st.EI()`", "eipu": "`st.EIpu()`", "optuna_gp": "Optuna GPSampler",
    "optuna_tpe": "Optuna TPE", "cfo": "FLAML CFO", "blendsearch": "FLAML BlendSearch", "random": "random search",
}  # fmt: skip
BUDGET = "what 60 random evaluations cost"


def report() -> dict[str, Any]:
    """The stored report of the reporting problems, empty if there is none."""
    path = RESULTS / "reporting" / "report.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _runs(found: Mapping[str, Any]) -> str:
    families = ", ".join(f"{count} {name}" for name, count in found["families"].items())
    low, high = found["seeds"]
    seeds = f"{low} seeds" if low == high else f"{low} to {high} seeds"
    return f"{found['problems']} problems ({families}), {seeds}, {found['runs']} runs of each method"


def _cell(entry: Mapping[str, float]) -> str:
    return f"{entry['mean']:.3f} ({entry['low']:.3f} to {entry['high']:.3f})"


def trials_table(found: Mapping[str, Any]) -> list[str]:
    """Regret after so many evaluations, and what they cost."""
    regret, ratio = found["regret"], found["cost_over_ei"]
    differing = found["cost_of_60_over_random"]["costs differ"]
    lines = [
        "| | " + " | ".join(f"after {mark}" for mark in regret) + " | cost of 60, random search = 1 | cost of 80, EI = 1 |",
        "|---|" + "---|" * (len(regret) + 2),
    ]
    for method, name in NAMES.items():
        if method in differing:
            cells = [*(_cell(entry[method]) for entry in regret.values()), f"{differing[method]['mean']:.2f}"]
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio[method]['mean']:.2f} |")
    behind = {mark: tests["auto"]["behind"] for mark, tests in found["against_ei"].items() if "auto" in tests}
    by = {mark: f"{each['by_run']:.2g} by run and {each['by_problem']:.2g} by problem" for mark, each in behind.items()}
    tests = ", ".join(f"{shown} after {mark}" for mark, shown in by.items())
    return [*lines, "", f"The p-value of the default being behind EI (one-sided signed-rank test): {tests}."]


def _share(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f}"


def _never(entry: Mapping[str, float]) -> str:
    return f"{entry['share']:.0%} ({entry['low']:.0%} to {entry['high']:.0%})"


def cost_to_table(entries: Mapping[str, Any]) -> list[str]:
    """The median cost to a quality, and the share of runs that never reach it."""
    lines = [
        "| | " + " | ".join(f"cost to regret {quality.lstrip('0')} | never" for quality in entries) + " |",
        "|---|" + "---|---|" * len(entries),
    ]
    for method, name in NAMES.items():
        if all(method in methods for methods in entries.values()):
            cells = (f"{_share(methods[method]['median'])} | {_never(methods[method]['never'])}" for methods in entries.values())
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def quarters_table(found: Mapping[str, Any]) -> list[str]:
    """Regret at a share of the budget."""
    regret = found["regret"]
    lines = [
        "| | " + " | ".join(f"at {float(mark):g} of the budget" for mark in regret) + " | runs ended by the cap |",
        "|---|" + "---|" * (len(regret) + 1),
    ]
    for method, name in NAMES.items():
        if method in found["ended_by_cap"]:
            cells = " | ".join(_cell(entry[method]) for entry in regret.values())
            lines.append(f"| {name} | {cells} | {found['ended_by_cap'][method]['share']:.0%} |")
    return lines


def text() -> str:
    """For docs/benchmarks.md."""
    found = report()
    lines: list[str] = []
    if found.get("cost", {}).get("runs"):
        cost = found["cost"]
        lines += [f"**Budget in cost**, {BUDGET}. {_runs(cost)}. Normalised regret:", "", *quarters_table(cost), ""]
        for family, entries in cost["cost_to"].items():
            which = "all problems" if family == "all" else family
            lines += [f"Median cost to a normalised regret, as a share of the budget; runs that never reach it ({which}):", ""]
            lines += [*cost_to_table(entries), ""]
    if found.get("trials", {}).get("runs"):
        trials = found["trials"]
        lines += [f"**Budget in trials.** {_runs(trials)}. Normalised regret, and cost where costs differ:", ""]
        lines += [*trials_table(trials), ""]
        lines += ["By family, after " + ", ".join(trials["regret_by_family"]) + ":", ""]
        lines += by_family(trials["regret_by_family"])
    return "\n".join(lines).rstrip() or "(not measured yet)"


def by_family(entries: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    families = list(next(iter(entries.values())))
    lines = ["| | " + " | ".join(families) + " |", "|---|" + "---|" * len(families)]
    for method, name in NAMES.items():
        if all(method in entry[family] for entry in entries.values() for family in families):
            cells = (", ".join(f"{entry[family][method]:.3f}" for entry in entries.values()) for family in families)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def short_text() -> list[str]:
    """The headline of the README: what a user pays to reach a given quality."""
    found = report()
    if not found.get("cost", {}).get("runs"):
        return []
    cost = found["cost"]
    return [
        "What it costs to reach a given quality: the median cost to a normalised regret of .1 and .03 (0 is the best value",
        f"known, 1 is the best of ten random evaluations), as a share of {BUDGET}; and the share of runs that do not",
        f"reach it for that money, with exact 95 % intervals. {_runs(cost)}.",
        "No default was chosen on these problems:",
        "",
        *cost_to_table(cost["cost_to"]["all"]),
    ]
