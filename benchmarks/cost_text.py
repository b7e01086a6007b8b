"""Cost models in a table, for docs/benchmarks.md: from benchmarks/results/cost_aware."""

import json
from typing import Any

from benchmarks.cost_aware.models import LABELS
from benchmarks.cost_aware.runs import RESULTS

SIZES = ("3", "5", "10", "20", "50")


def report(chosen: str) -> dict[str, Any]:
    """The stored report of a set, empty if there is none."""
    path = RESULTS / chosen / "report.json"
    return json.loads(path.read_text()) if path.exists() else {}


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
    if "costmodels" in found:
        lines += [f"Cost models, {found['costmodels']['problems']} problems, 10 seeds:", "", *models(found), ""]
    return "\n".join(lines).rstrip() or "(not measured yet)"
