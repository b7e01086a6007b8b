"""Stored runs against each other: regret at equal cost, and the cost of getting to another's regret.

Regrets are compared by their logarithms, cut off below FLOOR, where differences are those of rounding. Tests are Wilcoxon's for
pairs, of the same problem and seed, one-sided: is the first method's regret lower? The cost to reach a level is the first mark
at which the median over seeds is no higher; its interval resamples seeds, the same for both methods.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fidelity import curves

Array = NDArray[np.float64]
Runs = dict[int, dict[str, Any]]  # by seed
FLOOR = 1e-6
RESAMPLES = 1000


def load(folder: Path, label: str, problem: str, budget: float, charged: bool = False) -> Runs:
    """By seed; ``charged``, whether the runs paid for their suggestions. Runs of the two kinds are never compared."""
    rows = curves.read(folder, label)
    return {row["seed"]: row for row in rows if curves.run_key(row) == (problem, row["seed"], budget, charged)}


def regrets(runs: Runs, seeds: list[int] | None = None) -> Array:
    """Seeds down, marks across; infinite before the first evaluation."""
    chosen = sorted(runs) if seeds is None else seeds
    return np.array([[np.inf if r is None else r for r in runs[seed]["regrets"]] for seed in chosen], dtype=float)


def marks(runs: Runs) -> Array:
    return np.array(next(iter(runs.values()))["marks"], dtype=float)


def at_cost(grid: Array, cost: float) -> int:
    """The last mark that this cost pays for."""
    return max(int(np.searchsorted(grid, cost * (1 + 1e-9), side="right")) - 1, 0)


def reached(grid: Array, table: Array, level: float) -> float:
    """The first mark with a median no higher than the level; infinite if there is none."""
    good = np.flatnonzero(np.median(table, axis=0) <= level)
    return float(grid[good[0]]) if len(good) else float("inf")


def tidy(number: float) -> float | None:
    return float(f"{number:.4g}") if np.isfinite(number) else None


def reach(ours: Runs, rival: Runs) -> dict[str, Any]:
    """What it costs to get to the rival's final median: as a share of its whole cost, and of what it paid to get there itself."""
    seeds = sorted(set(ours) & set(rival))
    if not seeds:
        return {}
    grid, first, second = marks(ours), regrets(ours, seeds), regrets(rival, seeds)

    def ratio(index: Any) -> tuple[float, float]:
        level = max(float(np.median(second[index, -1])), FLOOR)
        cost = reached(grid, first[index], level)
        return cost / grid[-1], cost / reached(grid, second[index], level)

    whole, itself = ratio(np.arange(len(seeds)))
    rng = np.random.default_rng(0)
    again = [ratio(rng.integers(len(seeds), size=len(seeds)))[0] for _ in range(RESAMPLES)]
    low, high = np.quantile(again, [0.025, 0.975], method="nearest")  # some may be infinite
    level = float(np.median(second[:, -1]))
    return {
        "level": tidy(level), "of_whole_cost": tidy(whole), "low": tidy(low), "high": tidy(high),
        "of_its_own_cost": tidy(itself), "runs": len(seeds),
    }  # fmt: skip


def logs(values: Array) -> Array:
    return np.log10(np.maximum(values, FLOOR))


def paired(ours: Array, theirs: Array) -> dict[str, Any]:
    """The mean difference of log10 regrets (negative: ours is lower), how often ours is lower, and the test."""
    from scipy.stats import wilcoxon

    known = np.isfinite(ours) & np.isfinite(theirs)
    difference = logs(ours[known]) - logs(theirs[known])
    if not len(difference):
        return {}
    p = float(wilcoxon(difference, alternative="less").pvalue) if np.any(difference) else 1.0
    return {
        "mean_log10_ratio": tidy(float(difference.mean())), "lower": int(np.sum(difference < 0)),
        "higher": int(np.sum(difference > 0)), "runs": len(difference), "p": tidy(p),
    }  # fmt: skip


def at_equal_cost(ours: Runs, rival: Runs) -> dict[str, Any]:
    """At half of the budget, at its end, and at the last cost that both had paid for.

    The last is not the end where a run was cut off by the cap on evaluations: one that takes cheap fidelities has then spent a
    fraction of the budget, and its regret stays while the other's falls for ten times the cost.
    """
    seeds = sorted(set(ours) & set(rival))
    if not seeds:
        return {}
    grid, first, second = marks(ours), regrets(ours, seeds), regrets(rival, seeds)
    points = {"half": at_cost(grid, grid[-1] / 2), "end": len(grid) - 1}
    found = {name: paired(first[:, k], second[:, k]) for name, k in points.items()}
    rows, last = np.arange(len(seeds)), [at_cost(grid, min(ours[seed]["spent"], rival[seed]["spent"])) for seed in seeds]
    paid = {"median_cost": tidy(float(np.median(grid[last])))}
    return found | {"paid": paired(first[rows, last], second[rows, last]) | paid}


def where_it_ended(ours: Runs, rival: Runs) -> dict[str, Any]:
    """At the cost that each run of a slow rival had reached when it was ended, and how much longer its suggestions take."""
    seeds = sorted(set(ours) & set(rival))
    if not seeds:
        return {}
    grid = marks(ours)
    points = [at_cost(grid, rival[seed]["spent"]) for seed in seeds]
    first = np.array([table[k] for table, k in zip(regrets(ours, seeds), points, strict=True)])
    second = np.array([table[k] for table, k in zip(regrets(rival, seeds), points, strict=True)])
    asks = max(len(row["ask_seconds"]) for row in rival.values())
    own, its = ask_seconds(ours, asks), ask_seconds(rival, asks)  # with as many evaluations to look at
    return paired(first, second) | {
        "costs": [tidy(float(grid[k])) for k in points],
        "regret": [tidy(float(r)) for r in first],
        "its_regret": [tidy(float(r)) for r in second],
        "time_ratio": tidy(its / own), "ask_seconds": tidy(own), "its_ask_seconds": tidy(its),
    }  # fmt: skip


def ask_seconds(runs: Runs, first: int | None = None) -> float:
    """The median of the later half of the (first) asks, which are past every initial design."""
    times = [row["ask_seconds"][:first] for row in runs.values()]
    return float(np.median(np.concatenate([each[len(each) // 2 :] for each in times])))


def habits(runs: Runs, targets: dict[str, float]) -> dict[str, Any]:
    """What a method asked for: the share of evaluations near the bottom and near the target of each fidelity, and how many."""
    rows = list(runs.values())
    shares: dict[str, Any] = {}
    for name, target in targets.items():
        asked = np.concatenate([row["fidelities"][name] for row in rows]) / target
        low, high = float(np.mean(asked <= 0.1)), float(np.mean(asked >= 0.9))
        shares[name] = {"below_a_tenth": tidy(low), "above_nine_tenths": tidy(high)}
    return {
        "fidelities": shares,
        "evaluations": float(np.median([row["evaluations"] for row in rows])),
        "spent": tidy(float(np.median([row["spent"] for row in rows]))),
        "capped": tidy(float(np.mean([row["capped"] for row in rows]))),
        "ask_seconds": tidy(ask_seconds(runs)),
        "ask_seconds_a_run": tidy(float(np.median([sum(row["ask_seconds"]) for row in rows]))),
        "runs": len(rows),
    }
