"""Many trials and many workers in tables, for docs/benchmarks.md: from the reports of subset, parallel and reliability."""

import json
from pathlib import Path
from typing import Any

from benchmarks.subset import growth, tables

RESULTS = Path(__file__).parent / "results"
SHOWN = ("exact", "default", "KCS", "SCS", "RS", "VFE", "FITC")
NAMES = {"default": "default", "exact": "exact", "KCS": "k-means", "SCS": "seeds", "RS": "random", "VFE": "VFE", "FITC": "FITC"}


def report(part: str) -> dict[str, Any]:
    path = RESULTS / part / "report.json"
    return json.loads(path.read_text()) if path.exists() else {}


def quality(found: dict[str, Any]) -> list[str]:
    """Mean regret and processor seconds by problem and method."""
    head = " | ".join(NAMES[label] for label in SHOWN)
    lines = [f"| mean best value (runs) | {head} |", "|---|" + "---|" * len(SHOWN)]
    for name, entry in found.items():
        methods = entry["quality"]["methods"]
        cells = [f"{methods[label]['mean']:.3g} ({methods[label]['runs']})" if label in methods else "" for label in SHOWN]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| processor seconds per run | {head} |", "|---|" + "---|" * len(SHOWN)]
    for name, entry in found.items():
        cells = [f"{entry['time'][label]['seconds']:.3g}" if label in entry["time"] else "" for label in SHOWN]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def verdicts(found: dict[str, Any]) -> list[str]:
    lines = [""]
    for rival, each in tables.key(found).items():
        if rival.startswith("against_"):
            better, worse = ", ".join(each["significantly_better"]) or "none", ", ".join(each["significantly_worse"]) or "none"
            head = f"- The default compared with {rival.removeprefix('against_')}, {each['cases']} cases"
            lines.append(f"{head}: significantly better on {better}; worse on {worse}; median not higher on {each['no_worse']}.")
    return lines


def growing(found: dict[str, Any]) -> list[str]:
    figures = growth.key(found)
    asks = ", ".join(f"{float(ms):.0f} ms at {int(n):,}" for n, ms in figures["ask_ms"].items())
    memory = ", ".join(f"{float(mb):.0f} MB at {int(n):,}" for n, mb in figures["rss_mb"].items())
    line = f"Time of a suggestion by number of trials, d = 10: {asks}. Memory beyond that of the import: {memory}."
    exact = figures.get("vs_exact_1000")
    return ["", line + (f" At 1,000 trials an exact fit takes {exact:g} times as long." if exact else "")]


def short_text() -> str:
    """For the README."""
    found = report("subset").get("growth")
    asks = growth.key(found)["ask_ms"] if found else {}
    return f"After 1,000 results it takes {asks['1000']:.0f} ms, after 10,000 {asks['10000']:.0f} ms." if asks else ""


def many_text() -> str:
    """Thousands of trials."""
    found = report("subset")
    lines: list[str] = []
    if found.get("table1"):
        lines += quality(found["table1"]) + verdicts(found["table1"])
    if found.get("growth"):
        lines += growing(found["growth"])
    return "\n".join(lines).strip() or "(not measured yet)"


def share(entry: dict[str, Any]) -> str:
    def number(value: float | None) -> str:
        return "never" if value is None else f"{value:.2f}"

    return f"{number(entry['median'])} ({number(entry['low'])} to {number(entry['high'])})"


def parallel_text() -> str:
    """Eight workers in simulated time."""
    found = report("parallel")
    if not found:
        return "(not measured yet)"
    head = "| | time to reach the final regret of the sequential run, as a share of its time | runs that reached it |"
    lines = [head, "|---|---|---|"]
    for label, entry in found["share_of_sequential_time"].items():
        lines.append(f"| {label} | {share(entry)} | {entry['reached']} of {entry['runs']} |")
    for mark, entries in found["average_rank"].items():
        ranked = ", ".join(f"{label} {entry['mean']:.2f}" for label, entry in sorted(entries.items(), key=lambda e: e[1]["mean"]))
        lines += ["", f"Average rank at {mark} of that time: {ranked}."]
    return "\n".join(lines)


def reliability_text() -> str:
    """Kills, known ways to fail, and the speed of the storage."""
    found = report("reliability")
    lines: list[str] = []
    for storage, row in found.get("kills", {}).items():
        wrong = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in row["wrong"].items())
        killed = ", ".join(f"{count} of a {who}" for who, count in row["killed"].items())
        head = f"- {row['tried']} times kill -9 during a run with 8 workers on {storage} ({killed})"
        lines.append(f"{head}. Errors found: {wrong}.")
    rows = [row for row in found.get("items", {}).values() if row is not None]
    if rows:
        tried, survived = (sum(row[name] for row in rows) for name in ("tried", "survived"))
        ways = len({row["item"] for row in rows})
        lines.append(f"- {ways} ways to fail, on both storages: {survived} of {tried} tests passed.")
    measured = found.get("throughput", {})
    if "tells" in measured:
        tells = measured["tells"]
        size = f"a study of {tells['trials_before']:,} trials"
        lines.append(f"- 8 processes together report {tells['per_second']:,.0f} results per second to {size}.")
    for case, rates in measured.get("ask_and_tell", {}).items():
        if case != "seconds" and rates["ratios"]:
            ours, ratios = rates["shoestring"]["per_second"], rates["ratios"]
            ratio = f"{ratios['optuna']:g} times Optuna's storage, {ratios['optuna_wal']:g} times Optuna's with WAL"
            lines.append(f"- Ask and tell by random search, {case}: {ours:.0f} per second, {ratio}.")
    for count, each in measured.get("large", {}).items():
        first = f"the first one, which reads all trials, {each['first_ask_seconds']:.2f} s"
        asks = f"ask {1000 * each['ask_seconds']:.1f} ms ({first})"
        lines.append(f"- {int(count):,} trials: {asks}, best {1000 * each['best_seconds']:.1f} ms, {each['peak_mb']:.0f} MB.")
    return "\n".join(lines) or "(not measured yet)"
