"""From stored runs to the numbers that are quoted.

Simple regret is the best value found so far minus the optimum. Methods are compared by average rank and by
normalised regret: 0 is the optimum, 1 is what random search typically has after ten evaluations. Both are
taken on the seeds that every method has, problem by problem, and once more without BoTorch, which is slow and
may have fewer seeds than the others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks.ranks import Array, bootstrap, rank
from benchmarks.rows import Row

CHECKPOINTS = (20, 40, 80)
SCALE_AT = 10
# Of normalised regret, before taking logs. Tables can be solved exactly by luck, and with a tiny floor one
# such run would decide a mean; whether a method is worse than random is not settled below a thousandth.
FLOOR = 1e-3
DECIMALS = 12  # of regret: equal accuracies differ by rounding error in the table, and ties have to stay ties
Regrets = dict[str, dict[str, dict[int, Array]]]


def regrets_of(stored: Sequence[Row], optima: dict[str, float]) -> Regrets:
    """Simple regret after 10, 20, 40 and 80 evaluations by problem, method and seed."""
    found: Regrets = {}
    at = np.array((SCALE_AT, *CHECKPOINTS)) - 1
    for row in stored:
        if len(row.values) >= CHECKPOINTS[-1]:
            # A value that is not a number has to count as a bad one, not poison the running minimum.
            values = np.nan_to_num(np.array(row.values, dtype=float), nan=np.inf)
            best = np.minimum.accumulate(values)[at] - optima[row.problem]
            tidy = np.round(np.maximum(best, 0.0), DECIMALS)
            found.setdefault(row.problem, {}).setdefault(row.method, {})[row.seed] = tidy
    return found


def scales_of(regrets: Regrets) -> dict[str, float]:
    """What counts as 1 on each problem: the median of random search's regret after ten evaluations."""
    scales = {
        name: float(np.median([regret[0] for regret in methods["random"].values()]))
        for name, methods in regrets.items()
        if "random" in methods
    }
    return {name: scale for name, scale in scales.items() if scale > 0}


def balanced(regrets: Regrets, methods: Sequence[str]) -> dict[str, Array]:
    """By problem, an array (seeds, methods, checkpoints) of the seeds that all methods have."""
    arrays: dict[str, Array] = {}
    for name, runs in regrets.items():
        common = sorted(set.intersection(*(set(runs.get(method, {})) for method in methods)))
        if common:
            arrays[name] = np.array([[runs[method][seed][1:] for method in methods] for seed in common])
    return arrays


def compare(regrets: Regrets, methods: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], int, int]:
    """Average ranks and normalised regrets at every checkpoint, and the problems and seeds behind them."""
    arrays = balanced(regrets, methods) if methods else {}
    scales = scales_of(regrets)
    ranks: dict[str, Any] = {}
    normalised: dict[str, Any] = {}
    for index, checkpoint in enumerate(CHECKPOINTS):
        if not arrays:
            continue
        middle, low, high = bootstrap([rank(array[:, :, index]) for array in arrays.values()])
        ranks[str(checkpoint)] = {
            method: {
                "mean": round(float(middle[i]), 4),
                "low": round(float(low[i]), 4),
                "high": round(float(high[i]), 4),
            }
            for i, method in enumerate(methods)
        }
        shares = [
            array[:, :, index].mean(axis=0) / scales[name] for name, array in arrays.items() if name in scales
        ]
        if shares:
            means = np.mean(shares, axis=0)
            normalised[str(checkpoint)] = {method: float(means[i]) for i, method in enumerate(methods)}
    fewest = min((len(array) for array in arrays.values()), default=0)
    return ranks, normalised, len(arrays), fewest


def log_regrets(runs: dict[int, Array], index: int, scale: float) -> Array:
    """Logarithms of the normalised regrets of one method on one problem, over its seeds."""
    return np.log(np.maximum([regret[index] / scale for regret in runs.values()], FLOOR))


def worse_than_random(regrets: Regrets, methods: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """Where a method's mean log-regret is above random search's, and how many cases were looked at.

    Each comes with a one-sided Mann-Whitney test, not corrected for their number: among methods no better
    than random search, one case in twenty would be called significant.
    """
    scales = scales_of(regrets)
    found = []
    looked_at = 0
    for name, scale in scales.items():
        for method in methods:
            if method == "random" or method not in regrets[name]:
                continue
            for index, checkpoint in enumerate(CHECKPOINTS, start=1):
                ours = log_regrets(regrets[name][method], index, scale)
                theirs = log_regrets(regrets[name]["random"], index, scale)
                looked_at += 1
                excess = float(ours.mean() - theirs.mean())
                if excess > 0:
                    p = float(mannwhitneyu(ours, theirs, alternative="greater").pvalue)
                    found.append(
                        {
                            "problem": name,
                            "method": method,
                            "evaluations": checkpoint,
                            "log_regret_excess": round(excess, 4),
                            "p": round(p, 5),
                            "significant": p < 0.05,
                        }
                    )
    return found, looked_at


def summarise(stored: Sequence[Row], optima: dict[str, float], methods: Sequence[str]) -> dict[str, Any]:
    """The whole report, ready for JSON; random search's rows serve as the scale even if it is not ranked."""
    methods = [method for method in methods if any(row.method == method for row in stored)]
    regrets = regrets_of(stored, optima)
    ranks, normalised, problems, seeds = compare(regrets, methods)
    worse, looked_at = worse_than_random(regrets, methods)
    rest = [method for method in methods if not method.startswith("botorch")]
    rest_ranks, rest_normalised, rest_problems, rest_seeds = compare(regrets, rest)
    return {
        "average_rank": ranks,
        "average_rank_without_botorch": rest_ranks,
        "normalised_regret": normalised,
        "normalised_regret_without_botorch": rest_normalised,
        "worse_than_random": worse,
        "compared_with_random": looked_at,
        "problems": {"all": problems, "without_botorch": rest_problems},
        "common_seeds": {"all": seeds, "without_botorch": rest_seeds},
        "seeds": {
            method: min((len(runs.get(method, {})) for runs in regrets.values()), default=0)
            for method in methods
        },
        "seconds_per_run": {
            method: round(float(np.mean([row.seconds for row in stored if row.method == method])), 3)
            for method in methods
        },
    }
