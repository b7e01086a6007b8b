"""The paper's tables from stored runs, and the few figures that the targets speak of.

Table 1 is the best value of every method, with what the best method is significantly better than, and our default against each;
table 2 the seconds of the optimizer and what they save against the exact one; table 3 the effect of alpha, as Cliff's delta
against alpha = 20; table 4 tables 1 and 2 of the tuning tasks.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subset import measures, methods, run
from benchmarks.subset.measures import Array, Runs, tidy

Stored = dict[str, dict[str, Runs]]  # by problem, then label
OURS, EXACT = "default", "exact"
SAVED = 0.97  # of the exact one's seconds, in ten dimensions
SAVERS, SAVED_IN = ("SCS", "KCS"), 10
BETTER = 5 / 15  # of the cases, significantly, than the exact one
NO_WORSE = 12 / 15  # than VFE and FITC
# The processor's account comes first: on a machine that others use too, the clock on the wall may run many times as fast.
CLOCKS = {"processor_seconds": "saved", "optimizer_seconds": "saved_wall"}


def collect(folder: Path, names: Iterable[str], labels: Iterable[str], factor: int) -> Stored:
    """The runs of that length, of all seeds stored."""
    found: Stored = {name: {} for name in names}
    for label in labels:
        for row in run.read(folder, label):
            if row["problem"] in found and row["evaluations"] == factor * row["dimensions"]:
                found[row["problem"]].setdefault(label, {})[row["seed"]] = row
    return {name: by for name, by in found.items() if by}


def spread(values: Array) -> dict[str, Any]:
    numbers = {"mean": values.mean(), "deviation": values.std(), "median": np.median(values)}
    return {name: tidy(float(number)) for name, number in numbers.items()} | {"runs": len(values)}


def quality(by: dict[str, Runs]) -> dict[str, Any]:
    """One row of table 1."""
    values = {label: measures.column(runs, "best") for label, runs in by.items()}
    best = min(values, key=lambda label: float(values[label].mean()))
    beaten = [label for label in by if label != best and measures.compare(by[best], by[label]).get("verdict") == "better"]
    entry: dict[str, Any] = {
        "methods": {label: spread(found) for label, found in values.items()},
        "best": best,
        "significantly_worse_than_best": beaten,
    }
    entry["against_exact"] = {label: measures.compare(by[label], by[EXACT]) for label in by if EXACT in by and label != EXACT}
    entry["default_against"] = {label: measures.compare(by[OURS], by[label]) for label in by if OURS in by and label != OURS}
    return entry


def seconds(by: dict[str, Runs]) -> dict[str, Any]:
    """One row of table 2."""
    entry: dict[str, Any] = {}
    for label, runs in by.items():
        spent, wall = (measures.column(runs, clock) for clock in CLOCKS)
        entry[label] = {"seconds": tidy(spent.mean()), "deviation": tidy(spent.std()), "wall": tidy(wall.mean())}
        for clock, name in CLOCKS.items():
            if EXACT in by and label != EXACT:
                entry[label][name] = measures.saved(runs, by[EXACT], clock)
    return entry


def tables(stored: Stored) -> dict[str, Any]:
    """Tables 1 and 2, or 4, by problem."""
    return {
        name: {"dimensions": next(iter(next(iter(by.values())).values()))["dimensions"]}
        | {"quality": quality(by), "time": seconds(by)}
        for name, by in stored.items()
    }


def alphas(stored: Stored, values: Sequence[int] = methods.ALPHAS) -> dict[str, Any]:
    """Table 3: by problem and method; the mean best value, and delta and test of each alpha against 20."""
    report: dict[str, Any] = {}
    for name, by in stored.items():
        for method in methods.SUBSETS:
            for alpha in values:
                label = methods.of_alpha(method, alpha)
                if label in by:
                    entry = report.setdefault(name, {}).setdefault(method, {}).setdefault(str(alpha), {})
                    entry["mean"] = tidy(measures.column(by[label], "best").mean())
                    if alpha != methods.ALPHA and method in by:
                        entry |= measures.compare(by[label], by[method])
    return report


def key(report: dict[str, Any]) -> dict[str, Any]:
    """Against the targets. ``no_worse`` counts medians no higher, which is harder than ``not_significantly_worse``."""
    found: dict[str, Any] = {"cases": len(report), "time_saved": {}}
    for label in (*SAVERS, OURS):
        rows = [entry["time"].get(label, {}) for entry in report.values() if entry["dimensions"] == SAVED_IN]
        known = [row for row in rows if row.get("saved") is not None]
        if known:
            lowest = {name: min(row[name] for row in known) for name in CLOCKS.values()}
            found["time_saved"][label] = {"cases": len(known), "lowest": lowest, "met": lowest["saved"] >= SAVED}
    for rival in (EXACT, *methods.SPARSE):
        against = {name: entry["quality"]["default_against"].get(rival) for name, entry in report.items()}
        judged = {name: verdict for name, verdict in against.items() if verdict}
        if not judged:
            continue
        named = {word: [name for name, each in judged.items() if each["verdict"] == word] for word in ("better", "worse")}
        no_worse = sum(each["median_no_higher"] for each in judged.values())
        met = not named["worse"] and len(named["better"]) >= BETTER * len(judged)
        if rival != EXACT:
            met = no_worse >= NO_WORSE * len(judged)
        found[f"against_{rival}"] = {
            "cases": len(judged), "significantly_better": named["better"], "significantly_worse": named["worse"],
            "not_significantly_worse": len(judged) - len(named["worse"]), "no_worse": no_worse, "met": met,
        }  # fmt: skip
    return found


def alphas_key(report: dict[str, Any]) -> dict[str, Any]:
    """The largest effect of any alpha, by method; the paper finds none that is obvious for KCS and SCS."""
    found: dict[str, Any] = {}
    for by in report.values():
        for method, entries in by.items():
            deltas = [abs(entry["delta"]) for entry in entries.values() if "delta" in entry]
            found[method] = max([found.get(method, 0.0), *deltas])
    return {method: {"largest_delta": delta, "size": measures.size(delta)} for method, delta in found.items()}


def text(report: dict[str, Any]) -> str:
    """A line a problem and method. After the values: * the best, - significantly worse than the best."""
    titles = f"{'mean':>11}{'deviation':>11}{'runs':>6}{'seconds':>10}{'saved':>9}  against exact: verdict, p, delta"
    lines = [f"{'':<32}{titles}"]
    for name, entry in report.items():
        row = entry["quality"]
        for label, values in row["methods"].items():
            mark = "*" if label == row["best"] else "-" if label in row["significantly_worse_than_best"] else " "
            spent, against = entry["time"][label], row["against_exact"].get(label)
            saved = f"{spent['saved']:>9.2%}" if spent.get("saved") is not None else f"{'':>9}"
            test = f"  {against['verdict']}, {against['p']:.3g}, {against['delta']:.3g}" if against else ""
            lines.append(
                f"{name:<20}{label:<12}{values['mean']:>10.4g}{mark}{values['deviation']:>11.3g}{values['runs']:>6}"
                f"{spent['seconds']:>10.3g}{saved}{test}"
            )
    return "\n".join(lines)
