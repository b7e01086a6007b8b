"""What look-ahead finds under noise: the true regret of the recommended config after 25 and 50 evaluations, over seeds.

Problems: Branin, Hartmann-6 and Rosenbrock-4 with noise of a tenth of the values' spread, and samples of a GP with known
hyperparameters, with the model's kernel family (in model) and a rougher sum of ridges (out of model).
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.cost_aware import lines
from benchmarks.peers import shoestring_space
from benchmarks.problems.core import Problem, Real
from benchmarks.ranks import bootstrap, rank

METHODS = ("EI", "KG", "ES", "PES", "MES", "EI+mcmc", "KG+mcmc")
POINTS = (25, 50)
NOISE = 0.1  # of the spread of values over the space
FLOOR = 1e-6  # regrets below this are alike
PLANE = (Real("x0", 0.0, 1.0), Real("x1", 0.0, 1.0))


@dataclass(frozen=True)
class Noisy:
    """A problem, its lowest value, and the deviation of its noise."""

    problem: Problem
    lowest: float
    deviation: float


def drawn(seed: int, rough: bool) -> Problem:
    """A sample of a GP on the unit square by random Fourier features (squared exponential), or a sum of bent ridges."""
    rng = np.random.default_rng([seed, int(rough)])
    W, phase, weight = rng.normal(size=(300, 2)) / 0.2, rng.uniform(0, 2 * np.pi, 300), rng.normal(size=300)

    def value(config: dict[str, Any]) -> float:
        x = np.array([config["x0"], config["x1"]])
        if rough:
            return float(np.sum(weight[:20] * np.abs(((W[:20] * 0.15) @ x + phase[:20]) % 2.0 - 1.0)))
        return float(np.sqrt(2 / 300) * weight @ np.cos(W @ x + phase))

    return Problem("gp_rough" if rough else "gp_sample", PLANE, value, float("nan"))


def load(name: str, seed: int) -> Noisy:
    problem = drawn(seed, name == "gp_rough") if name.startswith("gp_") else problems.load(name)
    space = shoestring_space(problem)
    U = np.random.default_rng(0).random((4000, len(space)))
    values = np.array([problem.evaluate(space.decode(u)) for u in U])
    lowest = problem.optimum
    if not np.isfinite(lowest):
        lowest = lowest_on_the_square(problem)
    return Noisy(problem, lowest, NOISE * float(np.quantile(values, 0.75) - np.quantile(values, 0.25)))


def lowest_on_the_square(problem: Problem) -> float:
    """A sample's minimum is not known: from the best few points of a fine grid, downhill."""
    from scipy.optimize import minimize

    axis = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    value: Callable[[Any], float] = lambda x: problem.evaluate({"x0": float(x[0]), "x1": float(x[1])})  # noqa: E731
    values = np.array([value(x) for x in grid])
    starts = grid[np.argsort(values)[:8]]
    options = {"xatol": 1e-7, "fatol": 1e-10}
    ends = [minimize(value, x, method="Nelder-Mead", bounds=[(0, 1)] * 2, options=options).fun for x in starts]
    return float(min(ends))


NAMES = ("branin", "hartmann6", "rosenbrock4", "gp_sample", "gp_rough")


def run(name: str, label: str, seed: int) -> dict[str, Any]:
    """True regret of the recommendation at each of POINTS."""
    import shoestring as st

    noisy = load(name, seed)
    method, _, inference = label.partition("+")
    model = st.GP(inference="mcmc") if inference else st.GP()
    study = st.Study(shoestring_space(noisy.problem), method=getattr(st, method)(), model=model, seed=seed, stop=None)
    rng = np.random.default_rng([seed, 99])
    regrets, began = [], time.perf_counter()
    for count in range(1, POINTS[-1] + 1):
        trial = study.ask()
        study.tell(trial, noisy.problem.evaluate(trial.config) + noisy.deviation * rng.normal(), cost=1.0)
        if count in POINTS:
            found = study.recommend()
            assert found is not None
            regrets.append(noisy.problem.evaluate(found.config) - noisy.lowest)
    seconds = round(time.perf_counter() - began, 2)
    return {"problem": name, "method": label, "seed": seed, "regret": regrets, "seconds": seconds}


def run_missing(folder: Path, labels: list[str], seeds: int) -> None:
    stored = {label: {(e["problem"], e["seed"]) for e in lines.read(folder / f"{label}.jsonl")} for label in labels}
    for seed in range(seeds):
        for name in NAMES:
            for label in labels:
                if (name, seed) not in stored[label]:
                    lines.append(folder / f"{label}.jsonl", run(name, label, seed))
        print(f"{time.strftime('%H:%M:%S')} quality, seed {seed}", file=sys.stderr, flush=True)


PAIRS = (("KG", "EI"), ("ES", "EI"), ("PES", "EI"), ("MES", "EI"), ("EI+mcmc", "EI"), ("KG+mcmc", "KG"))


def summarise(folder: Path, labels: list[str]) -> dict[str, Any]:
    """Average ranks of the methods at each of POINTS on shared runs, and pairs by a one-sided paired test of log regrets.

    Hyperparameters integrated out are compared with their own method alone, on the seeds that they have.
    """
    found = {label: {(e["problem"], e["seed"]): e["regret"] for e in lines.read(folder / f"{label}.jsonl")} for label in METHODS}
    found = {label: entries for label, entries in found.items() if entries}
    plain = [label for label in found if "+" not in label]
    shared = sorted(set.intersection(*(set(found[label]) for label in plain))) if plain else []
    report: dict[str, Any] = {"runs": len(shared), "average_rank": {}, "paired": {}}
    for k, point in enumerate(POINTS if shared else ()):
        table = rank(np.array([[found[label][key][k] for key in shared] for label in plain]).T)
        groups = [table[[i for i, key in enumerate(shared) if key[0] == name]] for name in NAMES]
        middle, low, high = bootstrap([group for group in groups if len(group)])
        report["average_rank"][str(point)] = {
            label: {"mean": round(float(middle[i]), 3), "low": round(float(low[i]), 3), "high": round(float(high[i]), 3)}
            for i, label in enumerate(plain)
        }
        for one, other in PAIRS:
            if one in found and other in found:
                report["paired"].setdefault(f"{one} against {other}", {})[str(point)] = paired(found[one], found[other], k)
    return report


def paired(one: dict[Any, list[float]], other: dict[Any, list[float]], k: int) -> dict[str, float]:
    """Mean log ratio of regrets (below 0: ``one`` is ahead), with a bootstrap interval, and Wilcoxon's p for "ahead"."""
    from scipy.stats import wilcoxon

    keys = sorted(set(one) & set(other))
    logs = [np.log(np.maximum([entries[key][k] for key in keys], FLOOR)) for entries in (one, other)]
    difference = logs[0] - logs[1]
    p = float(wilcoxon(difference, alternative="less").pvalue) if np.any(difference) else 1.0
    draws = np.random.default_rng(0).choice(difference, (2000, len(difference))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return {
        "runs": len(keys), "mean_log_ratio": round(float(difference.mean()), 3), "low": round(float(low), 3),
        "high": round(float(high), 3), "p": round(p, 5),
    }  # fmt: skip
