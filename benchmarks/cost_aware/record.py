"""Evaluate a quasi-random set of XGBoost configs for real, and store values and processor seconds.

    python -m benchmarks.cost_aware.record [--problem xgboost_abalone_raw,...] [--evaluations 300]

All problems take turns, a block of configs at a time, so that an interrupted recording is still balanced. What is stored is
never repeated. Each problem has its own scrambled Sobol set, fixed by its name.
"""

import argparse
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from scipy.stats import qmc

from benchmarks.cost_aware import boosters, recordings
from benchmarks.cost_aware.core import at
from benchmarks.problems.core import Dimension

BLOCK = 25


def configs(name: str, count: int, space: tuple[Dimension, ...] = boosters.SPACE) -> list[dict[str, Any]]:
    """The first configs of a problem's set; a longer set begins with the shorter one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a set need not be a power of two here
        sobol = qmc.Sobol(len(space), scramble=True, rng=zlib.crc32(name.encode()))
        points = sobol.random(count)
    return [{d.name: at(d, float(u)) for d, u in zip(space, point, strict=True)} for point in points]


def record(name: str, count: int) -> float:
    """Bring a problem's recording to that many evaluations; the processor seconds that it took."""
    done, spent = len(recordings.read(name, "sobol")), 0.0
    for config in configs(name, count)[done:]:
        value, cost = boosters.measure(boosters.split_of(name), config)
        recordings.append(recordings.Recording(name, config, value, cost, "sobol"))
        spent += cost
    return spent


def take_turns(names: Sequence[str], evaluations: int, block: int, record: Callable[[str, int], float]) -> None:
    """Bring all recordings to that many evaluations, a block of each at a time, saying so on stderr."""
    for count in [*range(block, evaluations, block), evaluations]:
        for name in names:
            spent = record(name, count)
            print(f"{time.strftime('%H:%M:%S')} {name} {count}: {spent:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_aware.record", description=__doc__.split("\n")[0])
    parser.add_argument("--problem", help="comma-separated; all by default")
    parser.add_argument("--evaluations", type=int, default=300)
    options = parser.parse_args()
    names = options.problem.split(",") if options.problem else list(boosters.NAMES)
    for name in names:
        boosters.measure(boosters.split_of(name), configs(name, 1)[0])  # imports and first-use costs belong to no config
    take_turns(names, options.evaluations, BLOCK, record)


if __name__ == "__main__":
    main()
