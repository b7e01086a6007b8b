"""Cost-aware search in tables, for docs/benchmarks.md and the README: from benchmarks/results/cost_aware."""

import json
from typing import Any

from benchmarks.cost_aware.models import LABELS
from benchmarks.cost_aware.runs import RESULTS

NAMES = {
    "auto": "**default** (`auto`)", "auto_budget": "**default** (`auto`)", "ei": "EI", "eipu": "EIpu", "ei_cool": "EI-cool",
    "gittins": "Gittins", "random": "random search",
}  # fmt: skip
SIZES = ("3", "5", "10", "20", "50")


def report(chosen: str) -> dict[str, Any]:
    """The stored report of a set, empty if there is none."""
    path = RESULTS / chosen / "report.json"
    return json.loads(path.read_text()) if path.exists() else {}


def name_of(label: str) -> str:
    if label.startswith("ei_alpha_"):
        return f"EI_alpha, alpha = {label.removeprefix('ei_alpha_')}"
    return NAMES.get(label, f"CEI, lam = {label.removeprefix('cei_')}" if label.startswith("cei_") else label)


def cell(entry: dict[str, float], digits: int) -> str:
    return f"{entry['value']:.{digits}f} ({entry['low']:.{digits}f} to {entry['high']:.{digits}f})"


def savings(found: dict[str, Any]) -> list[str]:
    """Bi-optimization: a table for each kind of problem."""
    lines = []
    for group, methods in found["biopt"]["against_ei"].items():
        if group == "all" and len(found["biopt"]["against_ei"]) > 1:
            continue
        most, problems = (max(entry[key] for entry in methods.values()) for key in ("runs", "problems"))
        kind = group if group != "all" else found["biopt"]["families"][0]
        lines += [
            f"{kind}, {problems} problems, {most} runs:", "",
            "| | cost saved, % | accuracy lost, % | runs |", "|---|---|---|---|",
        ]  # fmt: skip
        for label, entry in methods.items():
            if label != "ei":
                saved, lost = cell(entry["cost_saved"]["mean"], 0), cell(entry["accuracy_lost"]["mean"], 2)
                lines.append(f"| {name_of(label)} | {saved} | {lost} | {entry['runs']} |")
        lines.append("")
    return lines


def ranks(found: dict[str, Any]) -> list[str]:
    """Optimal time allocation."""
    table = found["allocation"]["average_rank"]
    head = " | ".join(f"{multiple} x the smallest budget" for multiple in table)
    lines = [f"| average rank at | {head} |", "|---|" + "---|" * len(table)]
    first = next(iter(table.values()))
    for label in sorted(first, key=lambda name: first[name]["mean"]):
        cells = [f"{table[m][label]['mean']:.2f} ({table[m][label]['low']:.2f} to {table[m][label]['high']:.2f})" for m in table]
        lines.append(f"| {name_of(label)} | " + " | ".join(cells) + " |")
    counts = ", ".join(str(count) for count in found["allocation"]["runs"].values())
    return [*lines, "", f"({counts} runs of each method; at most {found['allocation']['cap']} evaluations per run.)"]


def models(found: dict[str, Any]) -> list[str]:
    """Figure 2."""
    table = found["costmodels"]["rmse_of_log_cost"]
    lines = ["| RMSE of log cost after | " + " | ".join(SIZES) + " |", "|---|" + "---|" * len(SIZES)]
    for label, entry in table.items():
        cells = [f"{entry[size]['mean']['value']:.2f}" if size in entry else "" for size in SIZES]
        lines.append(f"| {LABELS[label]} | " + " | ".join(cells) + " |")
    return lines


def text() -> str:
    """All stored results, for docs/benchmarks.md."""
    found, lines = report("reporting"), []
    if "biopt" in found:
        lines += ["Cost and accuracy of 100 evaluations, compared with EI on the same problem and seed:", "", *savings(found)]
    if "allocation" in found:
        lines += ["The best value found within a budget:", "", *ranks(found), ""]
    if "costmodels" in found:
        lines += [f"Cost models, {found['costmodels']['problems']} problems, 10 seeds:", "", *models(found), ""]
    return "\n".join(lines).rstrip() or "(not measured yet)"


def short_text() -> str:
    """One sentence for the README; empty while there are no results."""
    entry = report("reporting").get("biopt", {}).get("against_ei", {})
    parts = []
    for group, methods in entry.items():
        if "auto" in methods and (group != "all" or len(entry) == 1):
            saved, lost = methods["auto"]["cost_saved"]["mean"], methods["auto"]["accuracy_lost"]["mean"]
            share = f"{saved['value']:.0f} % of the cost ({saved['low']:.0f} to {saved['high']:.0f})"
            where = "FCNet tables" if group == "FCNet" else "surrogates of recorded XGBoost runs"
            parts.append(f"{share} for {lost['value']:.2f} % of the accuracy on {where}")
    return f"Compared with plain EI over 100 evaluations, the default saves {' and '.join(parts)}." if parts else ""
