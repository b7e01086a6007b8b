"""Which model predicts how runs end: the model of curves, and those that it was compared with.

    python -m benchmarks.curves.models [--models a,b] [--tables a,b] [--seeds 20] [--results DIR] [--summary-only]

No search: recorded curves of the tuning tables (``how="pool"``, all training data). A history has 15 or 45 runs at random
configs, of which the best go on, as successive halving does it: a half to 1/9 of the target, a quarter to 1/3, an eighth to the
end, and two of the others. Predicted are the ends of configs that were not tried (``new``), and of runs that were stopped
(``stopped``). Values are logarithms of errors, in deviations of the table's ends.

curves       this library's model (``surrogate.curves``): values at the target and drops, a decay that all share, noise of a run
sites        what the search makes of it (``surrogate.curves_target``): a Gaussian process of what each curve says of its end
plain        a Gaussian process over configs and time, of the points where runs were judged; a run has no noise of its own
log          the same over the logarithm of time
warped       the same over time, with every axis warped (Kumaraswamy)
ends         a Gaussian process of complete runs alone
parameters   value at the target and drop of each curve by least squares, shrunk to those of all; a Gaussian process of the values
mean         a decay that all share is the mean; ``log`` models what it leaves

``rank`` is Spearman's correlation, ``error`` the root mean square. ``density`` is the mean logarithm of the predictive density:
higher is better. A search decides among good configs, so it is also given censored at the median: of an end above it counts how
likely the model takes such an end to be. Each end is that of one run, with its noise.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.cost_aware import lines
from benchmarks.curves import compare, spaces, tables
from benchmarks.decisions.runs import commit
from benchmarks.problems.core import Category
from shoestring.surrogate.base import Fit
from shoestring.surrogate.curves import CurveLayout, Curves
from shoestring.surrogate.curves_posterior import CurvePosterior, fit_hyperparameters, robust_posterior
from shoestring.surrogate.curves_target import fit_sites, sites
from shoestring.surrogate.gp import GP
from shoestring.surrogate.marginal_likelihood import Layout

Array = NDArray[np.float64]
Moments = tuple[Array, Array]  # means and variances of values at the target, noise included

RESULTS = compare.RESULTS / "models"
COUNTS = (15, 45)
NEW = 60
RUNGS = (1 / 27, 1 / 9, 1 / 3, 1.0)
SHARES = (1.0, 0.5, 0.25, 0.125)  # of the runs, that reach each rung
EVIDENCE = 2  # runs that go to the end though others were better
POWERS = (0.25, 0.5, 1.0, 2.0)  # of the decay
LONG = 0.3  # of the target: the last recorded point before a third
LEAST_VARIANCE = 1e-4
ROUNDING = 1e-9
SCORES = {
    "rank": "rank", "error": "error", "within_90": "within 90 %", "density": "density", "censored": "censored",
}  # fmt: skip
NEAR_90 = float(stats.norm.ppf(0.95))


@dataclass(frozen=True)
class History:
    """Runs, and what is to be predicted; ``groups`` has the parameter of each feature."""

    Z: Array
    times: list[Array]
    values: list[Array]
    groups: NDArray[np.intp]
    new: Array

    @property
    def stopped(self) -> NDArray[np.intp]:
        return np.array([row for row, t in enumerate(self.times) if t[-1] < 1.0], dtype=np.intp)

    def judged(self) -> tuple[Array, Array, Array]:
        """Features, times and values where runs were judged: their last points until each rung."""
        rows, places = [], []
        for row, t in enumerate(self.times):
            for rung in RUNGS:
                place = place_of(t, rung)
                if (row, place) not in zip(rows[-1:], places[-1:], strict=True):
                    rows.append(row)
                    places.append(place)
        at = list(zip(rows, places, strict=True))
        return self.Z[rows], np.array([self.times[r][p] for r, p in at]), np.array([self.values[r][p] for r, p in at])


def groups_of(dimensions: Any) -> NDArray[np.intp]:
    widths = [len(each.options) if isinstance(each, Category) else 1 for each in dimensions]
    return np.repeat(np.arange(len(widths)), widths).astype(np.intp)


def draw(name: str, count: int, seed: int) -> tuple[History, Array, Array]:
    """A history, and the true ends: of one run of each new config, and of the stopped runs."""
    table = tables.load(name, "pool")
    rng = np.random.default_rng([seed, count])
    order = rng.permutation(len(table.configs))
    rows, new = order[:count], order[count : count + NEW]
    t = table.units / table.units[-1]
    logs = np.array([np.log(table.curve(table.configs[row], int(rng.integers(table.seeds))).valid) for row in rows])
    ends = np.array([np.log(table.curve(table.configs[row], int(rng.integers(table.seeds))).valid[-1]) for row in order])
    middle, spread = float(ends.mean()), float(ends.std())
    logs = (logs - middle) / spread
    lengths = successive_halving(logs, t)
    others = np.flatnonzero(lengths < len(t))
    lengths[rng.choice(others, EVIDENCE, replace=False)] = len(t)
    history = History(
        table.x[rows], [t[:n] for n in lengths], [y[:n] for y, n in zip(logs, lengths, strict=True)],
        groups_of(table.dimensions), table.x[new],
    )  # fmt: skip
    return history, (ends[count : count + NEW] - middle) / spread, logs[history.stopped, -1]


def successive_halving(values: Array, t: Array) -> NDArray[np.intp]:
    """How many points of each curve are seen (n): the best at one rung go on to the next."""
    lengths, left, before = np.zeros(len(values), dtype=np.intp), np.arange(len(values)), 0
    for rung, share in zip(RUNGS, SHARES, strict=True):
        left = left[np.argsort(values[left, before], kind="stable")][: max(round(share * len(values)), 1)]
        before = place_of(t, rung)
        lengths[left] = before + 1
    return lengths


def place_of(t: Array, rung: float) -> int:
    """The last point of a curve until a rung, or its first point."""
    return max(int(np.searchsorted(t, rung + ROUNDING)) - 1, 0)


# -- models -------------------------------------------------------------------------------------------------------------------


def curve_posterior(history: History) -> CurvePosterior:
    data = Curves.of(history.Z, history.times, history.values)
    _, theta = fit_hyperparameters(data, history.groups)
    return robust_posterior(data, CurveLayout(history.groups), theta)


def curves(history: History) -> tuple[Moments, Moments]:
    posterior = curve_posterior(history)
    own = float(posterior.shape.variance(np.ones(1))[0]) + posterior.shape.noise
    mean, covariance = posterior.parts_at(history.new)
    return (mean[:, 0], covariance[:, 0, 0] + own), of_started(posterior, history.stopped)


def of_started(posterior: CurvePosterior, rows: NDArray[np.intp]) -> Moments:
    """Of runs that go on: pruning judges them so."""
    mean, variance = posterior.mean_and_variance(posterior.started(rows))
    return mean, variance + posterior.kappa[rows] * posterior.shape.noise


def of_sites(history: History) -> tuple[Moments, Moments]:
    """New configs by the sites; runs that were stopped as in ``curves``."""
    posterior = curve_posterior(history)
    fit = fit_sites(history.Z, *sites(posterior), Layout(history.groups))
    return predicted(fit, history.new), of_started(posterior, history.stopped)


def predicted(fit: Fit, X: Array) -> Moments:
    """By a Gaussian process, noise included."""
    mean, variance = fit.posterior.mean_and_variance(X)
    return mean, variance + fit.posterior.noise


def over_time(
    history: History, scale: Callable[[Array], Array], model: GP, mean: Callable[[Array], Array] | None = None
) -> tuple[Moments, Moments]:
    """A Gaussian process over configs and time; ``mean`` is known, and 0 at the target."""
    Z, t, y = history.judged()
    off = y if mean is None else y - mean(t)
    count = int(history.groups.max()) + 1

    def at_target(X: Array) -> Array:
        return np.column_stack([X, scale(np.ones(len(X)))])

    fit = model.fit(np.column_stack([Z, scale(t)]), off, np.append(history.groups, count), fidelities=(count,))
    return predicted(fit, at_target(history.new)), predicted(fit, at_target(history.Z[history.stopped]))


def log_time(t: Array) -> Array:
    """0 at a fiftieth of the target, 1 at the target."""
    return np.asarray(1.0 + np.log(t) / math.log(50.0))


def ends(history: History) -> tuple[Moments, Moments]:
    complete = np.setdiff1d(np.arange(len(history.Z)), history.stopped)
    fit = GP().fit(history.Z[complete], np.array([history.values[row][-1] for row in complete]), history.groups)
    return predicted(fit, history.new), predicted(fit, history.Z[history.stopped])


def parameters_of(history: History) -> tuple[float, float, Array, Array]:
    """The power c and the mean drop b of the decay b (t^-c - 1), and each curve's value at the target with its variance.

    Drops have a normal prior, from the curves that reach a third of the target. Residuals of a curve are correlated: those of a
    curve of any length count as three.
    """
    long = [row for row, t in enumerate(history.times) if t[-1] >= LONG]
    best: tuple[float, float, list[Array]] = (math.inf, 1.0, [])
    for power in POWERS:
        found, left = [], 0.0
        for row in long:
            t, y = history.times[row], history.values[row]
            columns = np.column_stack([np.ones(len(t)), t**-power - 1.0])
            solved = np.linalg.lstsq(columns, y, rcond=None)[0]
            found.append(solved)
            left += float(np.mean((y - columns @ solved) ** 2))
        best = min(best, (left / len(long), power, found), key=lambda each: each[0])
    residual, power, found = max(best[0], LEAST_VARIANCE), best[1], np.array(best[2])
    drop, variance = float(found[:, 1].mean()), float(found[:, 1].var()) + LEAST_VARIANCE
    values, variances = [], []
    for t, y in zip(history.times, history.values, strict=True):
        columns = np.column_stack([np.ones(len(t)), t**-power - 1.0])
        weight = min(3.0, len(t)) / len(t) / residual
        precision = weight * columns.T @ columns + np.diag([1e-6, 1.0 / variance])
        covariance = np.linalg.inv(precision)
        values.append(float((covariance @ (weight * columns.T @ y + np.array([0.0, drop / variance])))[0]))
        variances.append(float(covariance[0, 0]))
    return power, drop, np.array(values), np.array(variances)


def parameters(history: History) -> tuple[Moments, Moments]:
    _, _, values, variances = parameters_of(history)
    fit = fit_sites(history.Z, values, variances, Layout(history.groups))
    return predicted(fit, history.new), predicted(fit, history.Z[history.stopped])


def common_mean(history: History) -> tuple[Moments, Moments]:
    power, drop, _, _ = parameters_of(history)
    return over_time(history, log_time, GP(), lambda t: drop * (t**-power - 1.0))


MODELS: dict[str, Callable[[History], tuple[Moments, Moments]]] = {
    "curves": curves,
    "sites": of_sites,
    "plain": lambda history: over_time(history, np.asarray, GP()),
    "log": lambda history: over_time(history, log_time, GP()),
    "warped": lambda history: over_time(history, np.asarray, GP(warp=True)),
    "ends": ends,
    "parameters": parameters,
    "mean": common_mean,
}


# -- scores -------------------------------------------------------------------------------------------------------------------


def scores(truth: Array, moments: Moments) -> dict[str, float]:
    """Rank correlation, root mean square error, share within the central 90 %, and log density, also censored at the median."""
    mean, variance = moments[0], np.maximum(moments[1], LEAST_VARIANCE)
    z = (truth - mean) / np.sqrt(variance)
    rank = float(stats.spearmanr(truth, mean).statistic) if np.ptp(mean) > 0 else 0.0
    densities = -0.5 * (z**2 + np.log(2 * np.pi * variance))
    median = float(np.median(truth))
    above = stats.norm.logsf((median - mean) / np.sqrt(variance))
    found = {
        "rank": rank, "error": float(np.sqrt(np.mean((truth - mean) ** 2))), "within_90": float(np.mean(np.abs(z) < NEAR_90)),
        "density": float(np.mean(densities)), "censored": float(np.mean(np.where(truth <= median, densities, above))),
    }  # fmt: skip
    return {key: round(value, 5) for key, value in found.items()}


def run(results: Path, models: list[str], names: list[str], seeds: int) -> None:
    """Write the rows that are not stored yet."""
    path = results / "tuning.jsonl"
    known = {(row["model"], row["table"], row["count"], row["seed"]) for row in lines.read(path)}
    for seed in range(seeds):
        for name in names:
            for count in COUNTS:
                history, truth, truth_stopped = draw(name, count, seed)
                for model in models:
                    if (model, name, count, seed) in known:
                        continue
                    began = time.process_time()
                    new, stopped = MODELS[model](history)
                    row = {
                        "model": model, "table": name, "count": count, "seed": seed, "new": scores(truth, new),
                        "stopped": scores(truth_stopped, stopped), "seconds": round(time.process_time() - began, 4),
                        "commit": commit(),
                    }  # fmt: skip
                    lines.append(path, row)
        print(f"{time.strftime('%H:%M:%S')} seed {seed} done", flush=True)


def table_text(results: Path) -> list[str]:
    """Means over tables and seeds, of the cases that all models have."""
    rows = {(r["model"], r["table"], r["count"], r["seed"]): r for r in lines.read(results / "tuning.jsonl")}
    models = [model for model in MODELS if any(key[0] == model for key in rows)]
    cases = sorted(set.intersection(*({key[1:] for key in rows if key[0] == model} for model in models))) if models else []
    found = []
    for count in COUNTS:
        chosen = [case for case in cases if case[1] == count]
        if not chosen:
            continue
        found += [f"{count} runs, {len(chosen)} histories:", ""]
        head = " | ".join(SCORES.values())
        found += [f"| | new: {head} | stopped: {head} | s |", "|---|" + "---|" * (2 * len(SCORES) + 1)]
        for model in models:
            mine = [rows[(model, *case)] for case in chosen]
            cells = [
                f"{np.mean([row[part][score] for row in mine]):.2f}"
                for part in ("new", "stopped")
                for score in SCORES
            ]
            found.append(f"| {model} | {' | '.join(cells)} | {np.mean([row['seconds'] for row in mine]):.2g} |")
        found.append("")
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves.models", description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tables", default=",".join(spaces.TUNING))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--summary-only", action="store_true")
    options = parser.parse_args(arguments)
    models, names = options.models.split(","), options.tables.split(",")
    for given, known in ((models, tuple(MODELS)), (names, spaces.NAMES)):
        if wrong := [each for each in given if each not in known]:
            parser.error(f"{', '.join(wrong)}: not known; there are {', '.join(known)}")
    if not options.summary_only:
        run(options.results, models, names, options.seeds)
    print("\n".join(table_text(options.results)))


if __name__ == "__main__":
    main()
