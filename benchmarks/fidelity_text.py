"""Fidelities in tables, for docs/benchmarks.md: from benchmarks/results/fidelity/report.json."""

import json
from pathlib import Path
from typing import Any

from benchmarks.fidelity.summary import KEYS

RESULTS = Path(__file__).parent / "results" / "fidelity" / "report.json"
TITLES = {
    "functions": "The augmented functions with the paper's constants",
    "biased": "The same with a bias of 0.1 at fidelity 0",
    "real": "Training scikit-learn's MLP and XGBoost, in measured seconds",
    "kernel": "Hyperparameters of a GP on 100,000 points, batches of eight",
}


def medians(name: str, entry: dict[str, Any]) -> list[str]:
    """Median regret at shares of the budget."""
    shares = list(next(iter(entry["median_regret"].values())))
    head = " | ".join(f"{float(share):.0%}" for share in shares)
    lines = ["", f"{name}, budget {entry['budget']:g}:", "", f"| | {head} | runs | evaluations | s per suggestion |"]
    lines.append("|---|" + "---|" * (len(shares) + 3))
    for label, values in entry["median_regret"].items():
        cells = " | ".join("" if values[share] is None else f"{values[share]:.2g}" for share in shares)
        asked = entry["asked"][label]
        lines.append(f"| {label} | {cells} | {asked['runs']} | {asked['evaluations']:.0f} | {asked['ask_seconds']:.2g} |")
    return lines


def reached(found: dict[str, Any]) -> list[str]:
    """The share of EI's cost at which its final regret was reached, and the ratios of regrets."""
    lines = [
        "",
        "Log10 of the ratio of regrets (below 0: that of cfKG is lower), p of a paired one-sided test. *Paid*: at the highest",
        "cost that both runs have reached. *End*: at the end of the budget. Runs of cfKG end after 300 evaluations, which may be",
        "far before the end of the budget.",
        "",
        "| | share of EI's cost to reach its final regret | paid | end |",
        "|---|---|---|---|",
    ]
    for name, entry in found.items():
        cost = entry["cost_to_reach_ei"]
        share = "not reached" if cost["share"] is None else f"{cost['share']:.3f}"
        lines.append(f"| {name} | {share} | {ratios(entry['ahead_of'])} | {ratios(entry['at_the_end'])} |")
    return lines


def ratios(against: dict[str, Any]) -> str:
    known = {rival: end for rival, end in against.items() if end.get("p") is not None}
    return ", ".join(f"{rival} {end['mean_log10_ratio']:+.2f} ({end['p']:.3f})" for rival, end in known.items())


def text() -> str:
    if not RESULTS.exists():
        return "(not measured yet)"
    report = json.loads(RESULTS.read_text())
    lines: list[str] = []
    for part, title in TITLES.items():
        if not report.get(part):
            continue
        lines += ["", f"**{title}.** Median regret of the recommended config, at shares of the budget."]
        for name, entry in report[part].items():
            lines += medians(name, entry)
        if part in ("functions", "biased"):
            lines += reached(KEYS[part](report[part]))
    if report.get("timing"):
        times = ", ".join(f"{label} {entry['median']:.2f} s" for label, entry in report["timing"].items())
        case = "cfKG: 200 trials, six parameters and two fidelities; cf-d-KG: 60 trials with gradients"
        lines += ["", f"Time of a suggestion ({case}): {times}."]
    return "\n".join(lines).strip()
