"""Optimal time allocation (figures 4 and 6): whose best value is lowest once a budget is spent?

The least budget of a problem is, as in the paper, the least that one of the EI_alpha family (alpha = 0 is EI, 1 is EIpu)
needs for 100 evaluations: the lowest, over alpha in {0, .01, .1, .2, .5, 1}, of the mean over seeds of the summed cost, from
the stored bi-optimization runs. It is computed once and kept in ``least_budgets.json``, since runs are made with it.

Budgets are 1, 5 and 20 times that. An evaluation counts if the summed cost, its own included, is within the budget. Methods
that know nothing of budgets make one run and are looked at three times; EI-cool, and "auto" when it is told its budget, make a
run for each. Runs end after 300 evaluations (CAP) even if budget is left (a method of cheap evaluations would need thousands for
the largest); the share of runs that this ended is reported.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import biopt, catalog, methods, runs
from benchmarks.ranks import Array, bootstrap, rank

MULTIPLES = (1, 5, 20)
CAP, CAP_QUICK = 300, 150
DECIMALS = 12  # values that differ by rounding only are ties


def least_budgets(biopt_folder: Path, path: Path, names: Sequence[str]) -> dict[str, float]:
    """The stored least budgets, with those of further problems added where the runs for them are there."""
    known: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    missing = [name for name in names if name not in known]
    if missing:
        found = biopt.stored(biopt_folder, methods.ALPHA_FAMILY, missing)
        for name in missing:
            shared = set.intersection(*(set(entries) for entries in found.values()))
            keys = [key for key in shared if key[0] == name]  # every alpha on the same seeds
            if keys:
                known[name] = min(float(np.mean([sum(entries[key].costs) for key in keys])) for entries in found.values())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=1) + "\n")
    return {name: known[name] for name in names if name in known}


def tasks(least: dict[str, float], labels: Sequence[str], cap: int, seeds: int | None, quick: bool) -> Iterator[runs.Task]:
    """Seeds outermost, then problems, then methods; a budgeted method has a label for each multiple."""
    wanted = {name: catalog.seeds(name, seeds, quick) for name in least}
    for seed in range(max((len(found) for found in wanted.values()), default=0)):
        for name in least:
            for label in labels if seed in wanted[name] else ():
                for multiple in MULTIPLES if label in methods.BUDGETED else (None,):
                    marked = label if multiple is None else f"{label}@{multiple}"
                    yield runs.Task(marked, name, seed, cap, (multiple or MULTIPLES[-1]) * least[name])


def best_within(row: runs.CostRow, budget: float) -> float:
    """The lowest value among the evaluations that fitted into the budget; infinite if none did."""
    fitted = np.cumsum(row.costs) <= budget * (1 + 1e-9)
    values = np.round(np.array(row.values)[fitted], DECIMALS)
    return float(values.min()) if len(values) else float("inf")


def ended_by_cap(row: runs.CostRow, cap: int, budget: float) -> bool:
    """Whether there was budget left when the run had to end; not so if the study itself found that nothing fitted."""
    return row.evaluations >= cap and sum(row.costs) < budget


def curve(row: runs.CostRow, budgets: Array) -> list[float]:
    """Best value within each of several budgets."""
    return [best_within(row, budget) for budget in budgets]


def by_run(folder: Path, label: str, multiple: int) -> dict[tuple[str, int], runs.CostRow]:
    """The runs that stand for a method at a multiple."""
    marked = f"{label}@{multiple}" if label in methods.BUDGETED else label
    return {(row.problem, row.seed): row for row in runs.read(folder, marked)}


def summarise(folder: Path, least: dict[str, float], labels: Sequence[str], cap: int) -> dict[str, Any]:
    """Average ranks at each multiple on the runs that all methods have, and how often the cap ended a run."""
    outcome: dict[str, Any] = {"average_rank": {}, "capped": {}, "runs": {}, "least_budgets": least}
    for multiple in MULTIPLES:
        found = {label: by_run(folder, label, multiple) for label in labels}
        found = {label: entries for label, entries in found.items() if entries}
        shared = set.intersection(*(set(entries) for entries in found.values())) if found else set()
        shared = {key for key in shared if key[0] in least}
        if not shared:
            continue
        ranks: dict[str, list[Any]] = {}
        for name, seed in sorted(shared):
            budget = multiple * least[name]
            best = np.array([best_within(entries[name, seed], budget) for entries in found.values()])
            ranks.setdefault(name, []).append(rank(best))
        middle, low, high = bootstrap([np.array(sample) for sample in ranks.values()])
        outcome["average_rank"][str(multiple)] = {
            label: {"mean": round(float(middle[i]), 3), "low": round(float(low[i]), 3), "high": round(float(high[i]), 3)}
            for i, label in enumerate(found)
        }
        outcome["capped"][str(multiple)] = {
            label: round(float(np.mean([ended_by_cap(entries[key], cap, multiple * least[key[0]]) for key in shared])), 3)
            for label, entries in found.items()
        }
        outcome["runs"][str(multiple)] = len(shared)
    return outcome


def rank_curves(folder: Path, least: dict[str, float], labels: Sequence[str], multiple: int, points: int = 40) -> dict[str, Any]:
    """Average rank along the budget, for the pictures."""
    shares = np.linspace(1 / points, 1, points)
    found = {label: entries for label in labels if (entries := by_run(folder, label, multiple))}
    shared = sorted(set.intersection(*(set(entries) for entries in found.values()))) if found else []
    shared = [key for key in shared if key[0] in least]
    if not shared:
        return {}
    table = [
        rank(np.array([curve(entries[key], shares * multiple * least[key[0]]) for entries in found.values()]).T) for key in shared
    ]
    means = np.mean(table, axis=0)
    return {"share": shares.tolist(), "ranks": {label: means[:, i].tolist() for i, label in enumerate(found)}}
