"""Cost models (figure 2): the error of predicted log cost against the number of evaluations seen.

For each seed a third of a problem's configs is held out and the others are put into random order; a model is fitted to the
first n of them and predicts the log costs of those held out. XGBoost costs are the recorded measurements themselves. With no
evaluation the level of costs is unknown, so the error at 0 is that after the best shift: what a model knows of the shape.
``named3`` has the three features that are most significant on the other data sets of the family.
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

SIZES = (0, 3, 5, 8, 10, 20, 50, 100, 150)
SHARE, DEVIATIONS = 0.8, 1.2816  # an interval of the mean +- 1.2816 standard deviations holds 80 % of a normal distribution
AT = 10  # evaluations: where the models' parts are compared with auto
SEEDS, SEEDS_QUICK = 10, 3


@dataclass(frozen=True)
class Errors:
    """One model on one problem and seed; ``rmse`` belongs to ``sizes``, as does ``within``, the share within 80 % intervals."""

    problem: str
    method: str
    seed: int
    sizes: list[int]
    rmse: list[float]
    within: list[float | None]
    seconds: float
    configs: int
    commit: str


def measure(label: str, name: str, seed: int) -> Errors:
    """Fit to ever more evaluations, predict the same held-out ones."""
    from shoestring.cost.base import CostObservations
    from shoestring.space.encoding import Encoding

    space, configs, gamma = models.data(name)
    U = models.points(space, configs)
    if label == "auto_shuffled":
        space = models.with_shuffled_names(space, seed)
    encoding = Encoding(space)
    order = np.random.default_rng(seed).permutation(len(U))
    held, seen = order[: len(U) // 3], order[len(U) // 3 :]
    sizes = [size for size in SIZES if size <= len(seen)]
    rmse: list[float] = []
    within: list[float | None] = []
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in sizes:
            if size == 0:
                rmse.append(float(np.std(gamma[held] - expected_shape(label, encoding, U[held]))))
                within.append(None)
                continue
            first = seen[:size]
            observed = CostObservations(U[first], gamma[first], np.zeros(size, dtype=bool))
            mean, variance = models.build(label, name).fit(observed, encoding).log_cost(U[held])
            rmse.append(float(np.sqrt(np.mean((mean - gamma[held]) ** 2))))
            within.append(float(np.mean(np.abs(mean - gamma[held]) < DEVIATIONS * np.sqrt(variance))))
    seconds = round(time.perf_counter() - began, 3)
    return Errors(models.real(name), label, seed, sizes, rmse, within, seconds, len(U), models.commit())


def expected_shape(label: str, encoding: Any, U: Any) -> Any:
    """Log cost before any evaluation, up to a shift: by names for auto, constant for the others."""
    from shoestring.cost.features import CostFeatures
    from shoestring.cost.name_priors import named_prior

    if not label.startswith("auto"):
        return np.zeros(len(U))
    features = CostFeatures(encoding)
    return features(U) @ named_prior(features).mean[1:]


def run_missing(folder: Path, names: Sequence[str], seeds: int) -> None:
    """Measure what the folder does not hold yet."""
    stored = {label: {(e["problem"], e["seed"]) for e in lines.read(folder / f"{label}.jsonl")} for label in models.ONLINE}
    for seed in range(seeds):
        for name in names:
            for label in models.ONLINE:
                if (models.real(name), seed) not in stored[label]:
                    lines.append(folder / f"{label}.jsonl", asdict(measure(label, name, seed)))
        print(f"{time.strftime('%H:%M:%S')} cost models, seed {seed}", file=sys.stderr, flush=True)


def errors(folder: Path, label: str, names: Sequence[str], size: int, what: str = "rmse") -> dict[str, Any]:
    """RMSE at one size, by problem, over seeds; or the share within intervals. Rows from before that was stored have none."""
    found: dict[str, list[float]] = {}
    wanted = {models.real(name) for name in names}
    for entry in lines.read(folder / f"{label}.jsonl"):
        if entry["problem"] in wanted and size in entry["sizes"]:
            value = entry[what][entry["sizes"].index(size)] if what in entry else None
            if value is not None:
                found.setdefault(entry["problem"], []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def summarise(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Mean and median RMSE of every model at every size, and auto against its parts at ten evaluations."""
    table: dict[str, Any] = {}
    for label in models.ONLINE:
        by_size = {str(size): statistics.interval(errors(folder, label, names, size), 4) for size in SIZES}
        if any(by_size.values()):
            table[label] = {size: entry for size, entry in by_size.items() if entry}
    by_family: dict[str, Any] = {}
    within: dict[str, Any] = {}
    for label in table:
        for group in sorted({family(name) for name in names}):
            chosen = [name for name in names if family(name) == group]
            for size in SIZES:
                for what, kept in (("rmse", by_family), ("within", within)):
                    if samples := errors(folder, label, chosen, size, what):
                        mean = float(np.mean([np.mean(values) for values in samples.values()]))
                        kept.setdefault(group, {}).setdefault(label, {})[str(size)] = round(mean, 4)
    problems = len({models.real(name) for name in names})
    return {
        "rmse_of_log_cost": table, "rmse_by_family": by_family, "within_80_per_cent_intervals": within, "problems": problems,
        "verdict": verdict(table),
    }  # fmt: skip


def family(name: str) -> str:
    """What a problem's name begins with, a surrogate's being that of its recording."""
    return models.real(name).split("_")[0]


def verdict(table: dict[str, Any]) -> dict[str, Any]:
    """What the issue asks for: auto no worse than the best of its parts, and below the GP, at ten evaluations."""
    at_ten = {label: entry[str(AT)]["mean"]["value"] for label, entry in table.items() if str(AT) in entry}
    parts = {label: value for label, value in at_ten.items() if not label.startswith(("auto", "named"))}
    if "auto" not in at_ten or not parts:
        return {}
    best = min(parts, key=lambda label: parts[label])
    return {"auto": at_ten["auto"], "gp": at_ten.get("gp"), "best_part": best, "best_part_rmse": parts[best], "all": at_ten}
