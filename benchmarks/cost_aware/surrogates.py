"""Surrogates of recorded XGBoost runs: they stand in for the fits where a figure needs tens of thousands of them.

Log value and log cost of a problem's quasi-random recording are each modelled by a Gaussian process or by a forest (see
``emulator``). Everything follows from the recorded file, so anyone who has it has the same problem. The scores go to
``surrogates.json``: a surrogate is as good as its R squared there.

    python -m benchmarks.cost_aware.surrogates      # fit all that can be fitted, and say how good they are
"""

import numpy as np
from scipy.stats import qmc

from benchmarks.cost_aware import boosters, emulator, recordings
from benchmarks.cost_aware.core import CostProblem, Measured, at
from benchmarks.problems.core import Config

PREFIX = "recorded_"
LABEL = "surrogate of recorded XGBoost runs"
NAMES = tuple(PREFIX + name.removeprefix(boosters.PREFIX) for name in boosters.NAMES)
FEWEST = 60  # evaluations; below that a surrogate would say little about XGBoost
# Of values: boosters that diverge have errors of up to 1e5, and how bad they are must not bend the model elsewhere.
RANGE = (1e-4, 2.0)


def features(config: Config) -> list[float]:
    return [emulator.position(dimension, config[dimension.name]) for dimension in boosters.SPACE]


def load(name: str) -> CostProblem:
    """``recorded_DATA_PIPELINE``; the optimum is the lowest value on a dense set, so a search may go slightly below it."""
    recorded = recordings.read(boosters.PREFIX + name.removeprefix(PREFIX), "sobol")
    if len(recorded) < FEWEST:
        raise ValueError(f"{name} has {len(recorded)} recorded evaluations: run python -m benchmarks.cost_aware.record first")
    x = np.array([features(entry.config) for entry in recorded])
    targets = {
        "value": np.log(np.clip([entry.value for entry in recorded], *RANGE)),
        "cost": np.log([entry.cost for entry in recorded]),
    }
    models = emulator.models(recordings.FOLDER, name, x, targets)
    points = qmc.Sobol(len(boosters.SPACE), rng=0).random(4096)
    dense = [features({d.name: at(d, float(u)) for d, u in zip(boosters.SPACE, point, strict=True)}) for point in points]
    lowest = float(np.exp(models["value"].predict(np.vstack([dense, x])).min()))

    def evaluate(config: Config) -> Measured:
        here = np.array([features(config)])
        return float(np.exp(models["value"].predict(here)[0])), float(np.exp(models["cost"].predict(here)[0]))

    return CostProblem(name, boosters.SPACE, evaluate, lowest)


def main() -> None:
    for name in NAMES:
        load(name)
        print(emulator.quality(recordings.FOLDER, name), flush=True)


if __name__ == "__main__":
    main()
