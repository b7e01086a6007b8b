"""Cost models (figure 2): the error of predicted log cost against the number of evaluations seen.

For each seed a third of a problem's configs is held out and the others are put into random order; a model is fitted to the
first n of them and predicts the log costs of those held out. XGBoost costs are the recorded measurements themselves.
"""

import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import lines, models, statistics

SIZES = (3, 5, 10, 20, 50, 100, 150)
AT = 10  # evaluations: where the models' parts are compared with auto
SEEDS, SEEDS_QUICK = 10, 3


@dataclass(frozen=True)
class Errors:
    """One model on one problem and seed; ``rmse`` belongs to ``sizes``."""

    problem: str
    method: str
    seed: int
    sizes: list[int]
    rmse: list[float]
    seconds: float


def measure(label: str, name: str, seed: int) -> Errors:
    """Fit to ever more evaluations, predict the same held-out ones."""
    from shoestring.cost.base import CostObservations
    from shoestring.space.encoding import Encoding

    space, configs, gamma = models.data(name)
    U, encoding = models.points(space, configs), Encoding(space)
    order = np.random.default_rng(seed).permutation(len(U))
    held, seen = order[: len(U) // 3], order[len(U) // 3 :]
    sizes = [size for size in SIZES if size <= len(seen)]
    rmse = []
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in sizes:
            first = seen[:size]
            observed = CostObservations(U[first], gamma[first], np.zeros(size, dtype=bool))
            mean, _ = models.build(label, name).fit(observed, encoding).log_cost(U[held])
            rmse.append(float(np.sqrt(np.mean((mean - gamma[held]) ** 2))))
    return Errors(models.real(name), label, seed, sizes, rmse, round(time.perf_counter() - began, 3))


def run_missing(folder: Path, names: Sequence[str], seeds: int) -> None:
    """Measure what the folder does not hold yet."""
    stored = {label: {(e["problem"], e["seed"]) for e in lines.read(folder / f"{label}.jsonl")} for label in models.ONLINE}
    for seed in range(seeds):
        for name in names:
            for label in models.ONLINE:
                if (models.real(name), seed) not in stored[label]:
                    lines.append(folder / f"{label}.jsonl", asdict(measure(label, name, seed)))
        print(f"{time.strftime('%H:%M:%S')} cost models, seed {seed}", file=sys.stderr, flush=True)


def errors(folder: Path, label: str, names: Sequence[str], size: int) -> dict[str, Any]:
    """RMSE at one size, by problem, over seeds."""
    found: dict[str, list[float]] = {}
    wanted = {models.real(name) for name in names}
    for entry in lines.read(folder / f"{label}.jsonl"):
        if entry["problem"] in wanted and size in entry["sizes"]:
            found.setdefault(entry["problem"], []).append(entry["rmse"][entry["sizes"].index(size)])
    return {name: np.array(values) for name, values in found.items()}


def summarise(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Mean and median RMSE of every model at every size, and auto against its parts at ten evaluations."""
    table: dict[str, Any] = {}
    for label in models.ONLINE:
        by_size = {str(size): statistics.interval(errors(folder, label, names, size), 4) for size in SIZES}
        if any(by_size.values()):
            table[label] = {size: entry for size, entry in by_size.items() if entry}
    return {"rmse_of_log_cost": table, "problems": len({models.real(name) for name in names}), "verdict": verdict(table)}


def verdict(table: dict[str, Any]) -> dict[str, Any]:
    """What the issue asks for: auto no worse than the best of its parts, and below the GP, at ten evaluations."""
    at_ten = {label: entry[str(AT)]["mean"]["value"] for label, entry in table.items() if str(AT) in entry}
    parts = {label: value for label, value in at_ten.items() if label != "auto"}
    if "auto" not in at_ten or not parts:
        return {}
    best = min(parts, key=lambda label: parts[label])
    return {"auto": at_ten["auto"], "gp": at_ten.get("gp"), "best_part": best, "best_part_rmse": parts[best], "all": at_ten}
