"""From stored runs to what is reported.

    T       the simulated time of the sequential run (``auto@1``: 100 evaluations) of the same problem and seed
    share   the time at which a run's best value is first as good as the sequential run's last, over T; infinite if the run ends
            before (it is censored: all that is known is that it takes longer)
    rank    among the parallel methods, of the regret at T/8 and T/4; runs that have ended by then count with what they have, and
            their share is given

Medians are over all problems and seeds; their 95 % intervals resample problems, then seeds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.parallel.run import Row
from benchmarks.ranks import RESAMPLES, Array, bootstrap, rank

MARKS = (0.125, 0.25)
NUMBERS = ("median", "low", "high", "reached", "runs")
DECIMALS = 12  # values that differ by rounding only are ties
Runs = Mapping[str, Mapping[tuple[str, int], Row]]


def best_at(row: Row, moment: float) -> float:
    """The lowest value among what was done by then; infinite while nothing was."""
    done = np.array(row.ends) <= moment * (1 + 1e-12)
    return float(np.round(np.array(row.values)[done], DECIMALS).min()) if done.any() else np.inf


def time_to(row: Row, goal: float) -> float:
    """When the best value was first as good as the goal; infinite if never."""
    there = np.round(np.array(row.values), DECIMALS) <= round(goal, DECIMALS)
    return float(np.array(row.ends)[there].min()) if there.any() else np.inf


def share(row: Row, sequential: Row) -> float:
    return time_to(row, min(sequential.values)) / max(sequential.ends)


def median(samples: Mapping[str, Array]) -> dict[str, Any]:
    """Of all, with an interval; infinite ones take part, and None stands for an infinite median."""
    groups = list(samples.values())
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = [groups[i] for i in rng.integers(len(groups), size=len(groups))]
        drawn.append(middle(np.concatenate([group[rng.integers(len(group), size=len(group))] for group in chosen])))
    ends = np.quantile(np.array(drawn), [0.025, 0.975], method="nearest")
    every = np.concatenate(groups)
    numbers = {"median": middle(every), "low": float(ends[0]), "high": float(ends[1])}
    found: dict[str, Any] = {name: round(each, 4) if np.isfinite(each) else None for name, each in numbers.items()}
    return found | {"runs": len(every), "reached": int(np.isfinite(every).sum())}


def middle(sample: Array) -> float:
    """The median; between two values of which one is infinite, the infinite one."""
    ordered = np.sort(sample)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(low) if low == high else float((low + high) / 2)


def shares(runs: Runs, reference: str, labels: Sequence[str]) -> dict[str, Any]:
    """By method: the median share, over all problems and for each of them."""
    found: dict[str, Any] = {}
    for label in labels:
        samples: dict[str, list[float]] = {}
        for key, row in runs[label].items():
            if key in runs[reference]:
                samples.setdefault(key[0], []).append(share(row, runs[reference][key]))
        if samples:
            arrays = {name: np.array(values) for name, values in samples.items()}
            each = {name: median({name: values}) for name, values in arrays.items()}
            found[label] = median(arrays) | {"problems": each}
    return found


def ranks(runs: Runs, reference: str, labels: Sequence[str]) -> dict[str, Any]:
    """At each mark: the average rank of each method, and the share of its runs that had ended before."""
    keys = sorted(set(runs[reference]).intersection(*(runs[label] for label in labels))) if labels else []
    found: dict[str, Any] = {}
    for mark in MARKS if keys else ():
        regrets: dict[str, list[list[float]]] = {}
        ended = np.zeros(len(labels))
        for key in keys:
            moment = mark * max(runs[reference][key].ends)
            regrets.setdefault(key[0], []).append([best_at(runs[label][key], moment) for label in labels])
            ended += [max(runs[label][key].ends) < moment for label in labels]
        means, low, high = bootstrap([rank(np.array(values)) for values in regrets.values()])
        found[f"T/{round(1 / mark)}"] = {
            label: {
                "mean": round(float(means[i]), 3), "low": round(float(low[i]), 3), "high": round(float(high[i]), 3),
                "ended": round(float(ended[i]) / len(keys), 3),
            }
            for i, label in enumerate(labels)
        }  # fmt: skip
    return found


def summarise(rows: Sequence[Row], reference: str, labels: Sequence[str]) -> dict[str, Any]:
    """The whole report."""
    runs: dict[str, dict[tuple[str, int], Row]] = {label: {} for label in (reference, *labels)}
    for row in rows:
        runs[row.method][row.problem, row.seed] = row
    there = [label for label in labels if runs[label]]
    return {
        "reference": reference,
        "share_of_sequential_time": shares(runs, reference, there),
        "average_rank": ranks(runs, reference, there),
        "seconds_of_thinking": {label: round(float(np.mean([r.seconds for r in runs[label].values()])), 2) for label in there},
    }


def text(report: Mapping[str, Any]) -> str:
    """As a table, the quickest first."""
    found, ranked = report["share_of_sequential_time"], report["average_rank"]
    lines = [f"share of the time of {report['reference']} until its final regret is reached: median [95 %], runs that reached it"]

    def number(value: float | None) -> str:
        return "never" if value is None else f"{value:.3f}"

    order = sorted(found, key=lambda label: np.inf if found[label]["median"] is None else found[label]["median"])
    for label in order:
        entry = found[label]
        cells = f"{number(entry['median'])} [{number(entry['low'])}, {number(entry['high'])}]"
        lines.append(f"  {label:<16}{cells:>26}{entry['reached']:>6} of {entry['runs']}")
    for mark, entries in ranked.items():
        lines.append(f"average rank at {mark}: " + ", ".join(
            f"{label} {entry['mean']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]"
            for label, entry in sorted(entries.items(), key=lambda item: item[1]["mean"])
        ))  # fmt: skip
    return "\n".join(lines)


def key(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that the targets speak of."""
    found = report["share_of_sequential_time"]
    ranked = report["average_rank"]
    return {
        "share": {label: {name: entry[name] for name in NUMBERS} for label, entry in found.items()},
        "rank": {mark: {label: entry["mean"] for label, entry in entries.items()} for mark, entries in ranked.items()},
    }
