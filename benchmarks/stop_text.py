"""Stopping rules in tables, for docs/benchmarks.md: from benchmarks/results/termination."""

import json
from pathlib import Path
from typing import Any

from benchmarks.termination.catalog import TITLES

RESULTS = Path(__file__).parent / "results" / "termination"
REPORTS = ("reporting", "reporting_60")  # cross-validation was run for 60 evaluations (--evaluations 60)
NAMES = {
    "default": "`SureBound`", "paper": "`RegretBound`", "probable": "`RegretBelow`", "optuna": "Optuna's terminator",
    "Conv": "patience", "EI": "EI", "PI": "PI",
}  # fmt: skip
SHOWN = ("default", "paper", "probable", "optuna", "Conv", "EI", "PI")


def name_of(label: str) -> str:
    kind, _, level = label.rpartition("_")
    sign = {"Conv": "", "EI": "< ", "PI": "< "}.get(kind, "")
    return f"{NAMES.get(kind, kind)} {sign}{level}"


def cell(entry: dict[str, Any] | None, digits: int = 3) -> str:
    return f"{entry['value']:.{digits}f} ({entry['low']:.{digits}f} to {entry['high']:.{digits}f})" if entry else ""


def table(title: str, found: dict[str, Any]) -> list[str]:
    """One suite: the cost that each rule saved and the change of the test error. A rule that lacks some runs is left out."""
    runs = ", ".join(f"{count} of {method}" for method, count in found["runs"].items())
    most = max(entry["runs"] for entry in found["rules"]["all"].values())
    lines = [f"{title}; runs: {runs}.", "", "| rule | stopped | within tolerance | RTC | RYC |", "|---|---|---|---|---|"]
    for label, entry in found["rules"]["all"].items():
        if label.rpartition("_")[0] in SHOWN and entry["runs"] == most:
            stopped = f"{entry['stopped_runs']} of {entry['runs']}"
            kept = cell(entry.get("success_exact"), 2)
            lines.append(f"| {name_of(label)} | {stopped} | {kept} | {cell(entry['rtc'])} | {cell(entry['ryc'])} |")
    shares = {name: entry["below"]["value"] for name, entry in found["calibration"]["all"].items() if name in NAMES}
    if shares:
        below = ", ".join(f"{NAMES[name]} {share:.1%}" for name, share in shares.items())
        lines += ["", f"Share of steps at which the bound is below the true regret: {below}."]
    return [*lines, ""]


def text() -> str:
    report: dict[str, Any] = {}
    for folder in REPORTS:
        path = RESULTS / folder / "report.json"
        report |= json.loads(path.read_text()) if path.exists() else {}
    lines = [line for suite, title in TITLES.items() if suite in report for line in table(title, report[suite])]
    return "\n".join(lines).rstrip() or "(not measured yet)"
