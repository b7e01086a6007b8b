"""Transferred cost models (figure 8): how well do other data sets' recordings predict this one's costs?

A model learns from the recordings of all other data sets (neither pipeline of this one), with rows, columns and classes as
meta-features, and predicts the log costs of this problem's recording. "task_linear (10)" and the like are the transferred model
after it has seen ten evaluations of the problem itself; "gp (10)" and "auto (10)" are models that have seen nothing else, from
the runs of ``costmodels``.
"""

import sys
import time
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import boosters, catalog, costmodels, lines, models, recordings, statistics

SIZES = (3, 5, 10, 20, 50)
ONLINE = ("gp", "linear3", "auto")
HANDED_OVER = "task_linear"
SEEDS = 3  # orders in which a model sees evaluations; what is held out differs too


def eligible(names: Sequence[str]) -> list[str]:
    """Only XGBoost problems have meta-features."""
    return [name for name in names if models.real(name).startswith(boosters.PREFIX)]


def regressors() -> tuple[str, ...]:
    """Those that the library has."""
    from shoestring.cost.transfer_regressors import REGRESSORS as known

    return tuple(known)


@cache
def model(regressor: str, problem: str) -> Any:
    """A transferred model for a problem, which has seen nothing of its data set; kept, as learning takes seconds."""
    from shoestring import TransferCost

    earlier = []
    for name in boosters.NAMES:
        if models.data_set(name) != models.data_set(problem):
            earlier += [(entry.config, models.meta(name), entry.cost) for entry in recordings.read(name, "sobol")]
    return TransferCost.from_rows(earlier, models.meta(problem), regressor)


def measure(regressor: str, name: str, seed: int, size: int) -> float:
    """RMSE of log cost on a held-out third, after some evaluations of the problem itself."""
    from shoestring.cost.base import CostObservations
    from shoestring.space.encoding import Encoding

    space, configs, gamma = models.data(name)
    U = models.points(space, configs)
    order = np.random.default_rng(seed).permutation(len(U))
    held, first = order[: len(U) // 3], order[len(U) // 3 :][:size]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observed = CostObservations(U[first], gamma[first], np.zeros(len(first), dtype=bool))
        mean, _ = model(regressor, models.real(name)).fit(observed, Encoding(space)).log_cost(U[held])
    return float(np.sqrt(np.mean((mean - gamma[held]) ** 2)))


def run_missing(folder: Path, names: Sequence[str]) -> None:
    """Measure what the folder does not hold yet; a regressor that fails is passed over, saying so."""
    for regressor in regressors():
        try:
            for name in names:
                _measure_missing(folder / f"{regressor}.jsonl", regressor, name)
                model.cache_clear()  # thousands of rows each
        except (ImportError, ValueError) as error:
            print(f"{regressor} is left out: {error}", file=sys.stderr, flush=True)
        print(f"{time.strftime('%H:%M:%S')} transferred by {regressor}", file=sys.stderr, flush=True)


def _measure_missing(path: Path, regressor: str, name: str) -> None:
    problem = models.real(name)
    stored = {(entry["problem"], entry["seed"], entry["size"]) for entry in lines.read(path)}
    for seed in range(SEEDS):
        for size in (0, *SIZES) if regressor == HANDED_OVER else (0,):
            if (problem, seed, size) not in stored:
                entry = {"problem": problem, "seed": seed, "size": size, "rmse": measure(regressor, name, seed, size)}
                entry |= {"regressor": regressor, "commit": models.commit()}
                lines.append(path, entry)


def errors(folder: Path, regressor: str, names: Sequence[str], size: int) -> dict[str, Any]:
    """RMSE by problem, over seeds."""
    found: dict[str, list[float]] = {}
    wanted = {models.real(name) for name in names}
    for entry in lines.read(folder / f"{regressor}.jsonl"):
        if entry["problem"] in wanted and entry["size"] == size:
            found.setdefault(entry["problem"], []).append(entry["rmse"])
    return {name: np.array(values) for name, values in found.items()}


def summarise(folder: Path, online: Path, names: Sequence[str]) -> dict[str, Any]:
    """Regression and classification apart, as in the paper."""
    table: dict[str, Any] = {}
    for kind, wanted in (("regression", True), ("classification", False)):
        chosen = [name for name in names if catalog.is_regression(name) is wanted]
        entries = {f"{label} ({size})": costmodels.errors(online, label, chosen, size) for label in ONLINE for size in SIZES}
        entries |= {path.stem: errors(folder, path.stem, chosen, 0) for path in sorted(folder.glob("*.jsonl"))}
        entries |= {f"{HANDED_OVER} ({size})": errors(folder, HANDED_OVER, chosen, size) for size in SIZES}
        found = {label: statistics.interval(samples, 4) for label, samples in entries.items() if samples}
        if found:
            table[kind] = found
    return {"rmse_of_log_cost": table}
