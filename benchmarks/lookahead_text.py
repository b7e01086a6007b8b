"""Look-ahead in tables, for docs/benchmarks.md: from benchmarks/results/lookahead/report.json."""

import json
from pathlib import Path
from typing import Any

from benchmarks.lookahead.__main__ import key

RESULTS = Path(__file__).parent / "results" / "lookahead" / "report.json"


def speed_lines(report: dict[str, Any]) -> list[str]:
    """Milliseconds per suggestion, and the key figures."""
    ms, found = report["speed"]["ms"], key(report)
    sizes = list(ms["EI"])
    lines = ["| milliseconds per suggestion | " + " | ".join(f"n = {n}" for n in sizes) + f" | multiple of EI, n = {sizes[-1]} |"]
    lines.append("|---|" + "---|" * (len(sizes) + 1))
    for name, times in ms.items():
        cells = " | ".join(f"{times[n]:,.0f}" if n in times else "" for n in sizes)
        ratio = f"{times[sizes[-1]] / ms['EI'][sizes[-1]]:,.1f}" if sizes[-1] in times else ""
        lines.append(f"| {name} | {cells} | {ratio} |")
    worth = ", ".join(f"{value:.2f} at n = {n}" for n, value in found["kg_value_ratio"].items())
    lines += [""]
    lines += ["The knowledge gradient of the point that KG chooses, divided by that of the point that BoTorch chooses, with one"]
    return [*lines, f"model and one estimator for both: {worth}."]


def quality_lines(report: dict[str, Any]) -> list[str]:
    """Ranks, and pairs by the paired test."""
    quality = report["quality"]
    points = list(quality["average_rank"])
    lines = ["", f"True regret of the recommended config with noise, {quality['runs']} runs: average rank (95 % interval).", ""]
    lines += ["| | " + " | ".join(f"after {point}" for point in points) + " |", "|---|" + "---|" * len(points)]
    for label in quality["average_rank"][points[-1]]:
        entries = [quality["average_rank"][point][label] for point in points]
        lines.append(f"| {label} | " + " | ".join(f"{e['mean']:.2f} ({e['low']:.2f} to {e['high']:.2f})" for e in entries) + " |")
    head = "Regret of the first method as a multiple of the second (geometric mean over paired runs, 95 % interval; p one-sided):"
    lines += ["", head, ""]
    lines += ["| | runs | " + " | ".join(f"after {point} | p" for point in points) + " |", "|---|---|" + "---|---|" * len(points)]
    for pair, entries in quality["paired"].items():
        cells = []
        for point in points:
            e = entries[point]
            low, middle, high = (2.718281828**e[name] for name in ("low", "mean_log_ratio", "high"))
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f}) | {e['p']:.3f}")
        lines.append(f"| {pair} | {entries[points[0]]['runs']} | " + " | ".join(cells) + " |")
    return lines


def text() -> str:
    if not RESULTS.exists():
        return "(not measured yet)"
    report = json.loads(RESULTS.read_text())
    lines = speed_lines(report) if "speed" in report else []
    return "\n".join([*lines, *(quality_lines(report) if "quality" in report else [])])
