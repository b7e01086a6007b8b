"""From stored runs to the numbers that are quoted, each kind of budget for itself.

Every row of a table rests on the same runs: the (problem, seed) pairs that all compared methods have. Means are those over
problems of the means over seeds; their 95 % intervals resample problems, then seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.decisions.measures import Array, Course, course, ended_by_cap, proportion, quantile, signed_rank
from benchmarks.decisions.problems import Yardstick
from benchmarks.decisions.runs import BOTH, TRIALS, Run
from benchmarks.ranks import bootstrap

CHECKPOINTS = (20, 40, 80)
QUARTERS = (0.25, 0.5, 0.75, 1.0)
QUALITIES = (0.1, 0.03)
BASELINE = "ei"
COST_OF = 60  # evaluations, of which the cost is set against random search's
ALL = "all"
Pair = tuple[str, int]  # problem, seed
Runs = dict[str, dict[Pair, Run]]


def select(stored: Sequence[Run], methods: Sequence[str], kind: str) -> Runs:
    """The runs of a kind, by method, of the pairs that all methods have."""
    found: Runs = {method: {} for method in methods}
    for run in stored:
        if run.method in found and run.kind in (kind, BOTH):
            found[run.method][run.problem, run.seed] = run
    common = set.intersection(*(set(runs) for runs in found.values())) if found else set()
    return {method: {pair: runs[pair] for pair in sorted(common)} for method, runs in found.items()}


class Table:
    """The courses of the selected runs, and how they are averaged."""

    def __init__(self, runs: Runs, yardsticks: Mapping[str, Yardstick], lowest: Mapping[str, float]) -> None:
        self.methods = list(runs)
        self.pairs: list[Pair] = list(next(iter(runs.values()))) if runs else []
        self.courses: dict[str, dict[Pair, Course]] = {
            method: {pair: course(run, yardsticks[run.problem], lowest[run.problem]) for pair, run in found.items()}
            for method, found in runs.items()
        }
        self.families = {run.problem: run.family for found in runs.values() for run in found.values()}
        self.costs_differ = {name: yardsticks[name].costs_differ for name in self.families}

    def problems(self, family: str = ALL) -> list[str]:
        return sorted(name for name, of in self.families.items() if family in (ALL, of))

    def by_problem(self, measure: Callable[[Course], float], names: Sequence[str]) -> list[Array]:
        """For each problem an array (seeds, methods)."""
        return [
            np.array([[measure(self.courses[m][pair]) for m in self.methods] for pair in self.pairs if pair[0] == name])
            for name in names
        ]

    def flat(self, method: str, measure: Callable[[Course], float], names: Sequence[str]) -> Array:
        """One number a run."""
        chosen = set(names)
        return np.array([measure(found) for pair, found in self.courses[method].items() if pair[0] in chosen], dtype=float)

    def means(self, measure: Callable[[Course], float], names: Sequence[str]) -> dict[str, dict[str, float]]:
        """By method; runs for which the measure is undefined for any method are left out for all."""
        samples = [sample[np.isfinite(sample).all(axis=1)] for sample in self.by_problem(measure, names)]
        samples = [sample for sample in samples if len(sample)]
        if not samples:
            return {}
        middle, low, high = bootstrap(samples)
        return {
            method: {"mean": round(float(middle[i]), 4), "low": round(float(low[i]), 4), "high": round(float(high[i]), 4)}
            for i, method in enumerate(self.methods)
        }

    def by_family(self, measure: Callable[[Course], float]) -> dict[str, dict[str, float]]:
        """Means by family and method."""
        return {
            family: {method: entry["mean"] for method, entry in self.means(measure, self.problems(family)).items()}
            for family in sorted(set(self.families.values()))
        }

    def tests(self, measure: Callable[[Course], float]) -> dict[str, Any]:
        """Each method against the baseline, paired: behind is the p-value of "its regret is higher", ahead of "it is lower"."""
        if BASELINE not in self.methods:
            return {}
        base, found = self.methods.index(BASELINE), {}
        samples = self.by_problem(measure, self.problems())
        for i, method in enumerate(self.methods):
            if i == base or not samples:
                continue
            differences = [sample[:, i] - sample[:, base] for sample in samples]
            runs, means = signed_rank(np.concatenate(differences)), signed_rank(np.array([d.mean() for d in differences]))
            found[method] = {
                "behind": {"by_run": runs["above"], "by_problem": means["above"]},
                "ahead": {"by_run": runs["below"], "by_problem": means["below"]},
                "mean_difference": round(float(np.mean([d.mean() for d in differences])), 4),
            }
        return found


def _counts(table: Table) -> dict[str, Any]:
    seeds = [sum(pair[0] == name for pair in table.pairs) for name in table.problems()]
    families = {family: len(table.problems(family)) for family in sorted(set(table.families.values()))}
    return {
        "runs": len(table.pairs),
        "problems": len(seeds),
        "seeds": [min(seeds), max(seeds)] if seeds else [],
        "families": families,
    }


def by_trials(runs: Runs, table: Table) -> dict[str, Any]:
    """Regret by count, what the evaluations cost, and the paired tests."""
    marks: dict[str, Callable[[Course], float]] = {str(n): lambda c, n=n: c.after(n) for n in CHECKPOINTS}  # type: ignore[misc]
    differing = [name for name in table.problems() if table.costs_differ[name]]
    return {
        **_counts(table),
        "regret": {mark: table.means(measure, table.problems()) for mark, measure in marks.items()},
        "regret_by_family": {mark: table.by_family(measure) for mark, measure in marks.items()},
        "against_ei": {mark: table.tests(measure) for mark, measure in marks.items()},
        "cost_of_60_over_random": {
            "all problems": table.means(lambda c: c.cost_of(COST_OF), table.problems()),
            "costs differ": table.means(lambda c: c.cost_of(COST_OF), differing),
        },
        "cost_over_ei": _cost_ratios(table, differing),
        "ended_early": {
            method: proportion(*_shares(found, lambda run: len(run.values) < TRIALS)) for method, found in runs.items()
        },
        "optimizer_seconds": _seconds(runs),
    }


def _cost_ratios(table: Table, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """The cost of 80 evaluations over that of the baseline on the same problem and seed, where costs differ."""
    if BASELINE not in table.methods:
        return {}
    base, found = table.methods.index(BASELINE), {}
    samples = [sample[np.isfinite(sample).all(axis=1)] for sample in table.by_problem(lambda c: c.cost_of(TRIALS), names)]
    samples = [sample / sample[:, [base]] for sample in samples if len(sample)]
    for i, method in enumerate(table.methods):
        if samples:
            of_problems = [float(sample[:, i].mean()) for sample in samples]
            spread = float(np.median(np.concatenate([sample[:, i] for sample in samples])))
            found[method] = {"mean": round(float(np.mean(of_problems)), 4), "median": round(spread, 4)}
    return found


def _shares(runs: Mapping[Pair, Run], holds: Callable[[Run], bool]) -> tuple[int, int]:
    return sum(holds(run) for run in runs.values()), len(runs)


def _seconds(runs: Runs) -> dict[str, float]:
    return {method: round(float(np.mean([run.seconds for run in found.values()])), 2) for method, found in runs.items() if found}


def by_cost(runs: Runs, table: Table) -> dict[str, Any]:
    """Regret at each quarter of the budget, the cost to a given quality, and how runs ended."""
    marks: dict[str, Callable[[Course], float]] = {f"{q:g}": lambda c, q=q: c.at(q) for q in QUARTERS}  # type: ignore[misc]
    families = [ALL, *sorted(set(table.families.values()))]
    reach = {family: {f"{q:g}": _cost_to(table, q, table.problems(family)) for q in QUALITIES} for family in families}
    return {
        **_counts(table),
        "regret": {mark: table.means(measure, table.problems()) for mark, measure in marks.items()},
        "regret_by_family": {mark: table.by_family(measure) for mark, measure in marks.items()},
        "against_ei": {mark: table.tests(measure) for mark, measure in marks.items()},
        "cost_to": reach,
        "cost_to_over_best_other": {quality: _over_best(entry) for quality, entry in reach[ALL].items()},
        "ended_by_cap": {method: proportion(*_shares(found, ended_by_cap)) for method, found in runs.items()},
        "optimizer_seconds": _seconds(runs),
    }


def _cost_to(table: Table, quality: float, names: Sequence[str]) -> dict[str, Any]:
    """By method: median and lower quartile over runs of the cost to a regret, and the share of runs that never get there.

    Costs are shares of the budget. The quartile tells methods apart where half of the runs of all of them never get there.
    """
    found = {}
    for method in table.methods:
        costs = table.flat(method, lambda c: c.cost_to(quality), names)
        found[method] = {
            "median": quantile(costs, 0.5),
            "quartile": quantile(costs, 0.25),
            "never": proportion(int(np.isinf(costs).sum()), len(costs)),
        }
    return found


def _over_best(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The median cost of each method over the lowest median of all the others."""
    found: dict[str, Any] = {}
    for method, own in entry.items():
        others = {other: e["median"] for other, e in entry.items() if other != method and e["median"] is not None}
        if others and own["median"] is not None:
            best = min(others, key=lambda other: float(others[other]))
            found[method] = {"ratio": round(own["median"] / others[best], 3) if others[best] else None, "best_other": best}
    return found


def summarise(
    stored: Sequence[Run],
    methods: Sequence[str],
    kinds: Sequence[str],
    yardsticks: Mapping[str, Yardstick],
    lowest: Mapping[str, float],
) -> dict[str, Any]:
    """The report of each kind; methods without a run of a kind are left out of it, and named."""
    report: dict[str, Any] = {}
    for kind in kinds:
        present = {run.method for run in stored if run.kind in (kind, BOTH)}
        there = [method for method in methods if method in present]
        runs = select(stored, there, kind)
        table = Table(runs, yardsticks, lowest)
        report[kind] = (by_trials if kind == "trials" else by_cost)(runs, table) if table.pairs else {"runs": 0}
        report[kind]["without_runs"] = [method for method in methods if method not in present]
    return report
