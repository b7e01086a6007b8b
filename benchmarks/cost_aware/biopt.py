"""Bi-optimization (figures 3, 5 and 9): after 100 evaluations, what was saved and what was lost against plain EI?

Each run is compared with EI's run on the same problem and seed:

- cost saved, in per cent: 100 (1 - C / C_EI), C the summed cost of the 100 evaluations, initial design included;
- accuracy lost, in per cent: 100 (A_EI - A) / A_EI, A the best accuracy found: one minus the classification error
  (HPOBench, XGBoost), or R squared for regression (one minus the mean squared error of standardised targets: FCNet, XGBoost);
- loss increase, in per cent: 100 (best / best_EI - 1), the stricter measure: where the error is 0.001, a doubled error is
  100 % here and 0.1 % of accuracy there (runs in which EI found an error of zero are left out of it).

The paper takes percentages "with respect to the performance of EI on the same problem" without saying of what; accuracy lost
is our reading of it. Negative losses are gains. Means are over problems of means over seeds, medians over all runs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import catalog, methods, runs, statistics

EVALUATIONS = 100
MEASURES = ("cost_saved", "accuracy_lost", "loss_increase")
Runs = dict[str, dict[tuple[str, int], runs.CostRow]]


def tasks(names: Sequence[str], labels: Sequence[str], seeds: int | None, quick: bool) -> Iterator[runs.Task]:
    """Seeds outermost, then problems, then methods: an interrupted benchmark is still balanced."""
    wanted = {name: catalog.seeds(name, seeds, quick) for name in names}
    for seed in range(max(len(found) for found in wanted.values())):
        for name in names:
            if seed in wanted[name]:
                for label in labels:
                    yield runs.Task(label, name, seed, EVALUATIONS)


def against_ei(row: runs.CostRow, ei: runs.CostRow) -> dict[str, float]:
    """The three measures of one run."""
    best, reference = min(row.values), min(ei.values)
    ours, theirs = catalog.accuracy(row.problem, best), catalog.accuracy(row.problem, reference)
    return {
        "cost_saved": 100 * (1 - sum(row.costs) / sum(ei.costs)),
        "accuracy_lost": 100 * (theirs - ours) / theirs,
        "loss_increase": 100 * (best / reference - 1) if reference > 0 else float("nan"),
    }


def stored(folder: Path, labels: Sequence[str], names: Sequence[str]) -> Runs:
    """Complete rows by method, and by problem and seed."""
    return {
        label: {
            (row.problem, row.seed): row
            for row in runs.read(folder, label)
            if row.problem in names and len(row.values) >= EVALUATIONS
        }
        for label in labels
    }


def compare(found: Runs, label: str, names: Sequence[str]) -> dict[str, Any]:
    """One method against EI on the runs that both have."""
    pairs = [key for key in found[label] if key in found[methods.BASELINE] and key[0] in names]
    if not pairs:
        return {}
    measured = {key: against_ei(found[label][key], found[methods.BASELINE][key]) for key in pairs}
    outcome: dict[str, Any] = {"runs": len(pairs), "problems": len({name for name, _ in pairs})}
    for measure in MEASURES:
        by_problem: dict[str, list[float]] = {}
        for (name, _), values in measured.items():
            by_problem.setdefault(name, []).append(values[measure])
        outcome[measure] = statistics.interval({name: np.array(values) for name, values in by_problem.items()})
    outcome["seconds_per_run"] = round(float(np.mean([found[label][key].seconds for key in pairs])), 2)
    return outcome


def alphas(found: Runs, labels: Sequence[str]) -> dict[str, list[float]]:
    """Figure 5 right: the mean exponent that each method's choices amount to, by evaluation."""
    curves: dict[str, list[float]] = {}
    for label in labels:
        noted = [row.alphas[:EVALUATIONS] for row in found[label].values() if row.alphas is not None]
        if noted:
            table = np.array([[np.nan if a is None else a for a in row] for row in noted], dtype=float)
            columns = [column[np.isfinite(column)] for column in table.T]
            curves[label] = [round(float(column.mean()), 4) if len(column) else float("nan") for column in columns]
    return curves


def summarise(folder: Path, labels: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Every method against EI, over all problems and by kind of problem."""
    found = stored(folder, list(dict.fromkeys((methods.BASELINE, *labels))), names)
    kinds = sorted({catalog.family(name) for name in names})
    groups = (
        {"all": list(names)}
        if len(kinds) < 2
        else {"all": list(names)} | {kind: [name for name in names if catalog.family(name) == kind] for kind in kinds}
    )
    against = {
        group: {label: entry for label in labels if (entry := compare(found, label, members))}
        for group, members in groups.items()
    }
    return {"evaluations": EVALUATIONS, "against_ei": against, "alphas": alphas(found, labels)}
