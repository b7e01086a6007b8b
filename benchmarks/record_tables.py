"""Evaluate a quasi-random set of configs of scikit-learn's learners for real, and store values and processor seconds.

    python -m benchmarks.record_tables [--problem svm_wind,forest_texture,...] [--evaluations 160]

All problems take turns, a block of configs at a time, so that an interrupted recording is still balanced. What is stored is
never repeated. Each problem has its own scrambled Sobol set, fixed by its name. The first 128 evaluations make the surrogates,
the others check them (``benchmarks.problems.recorded``).
"""

import argparse

from benchmarks.cost_aware import recordings
from benchmarks.cost_aware.record import configs, take_turns
from benchmarks.effort import commit
from benchmarks.problems import learners
from benchmarks.problems.recorded import FOLDER

BLOCK = 32


def record(name: str, count: int) -> float:
    """Bring a problem's recording to that many evaluations; the processor seconds that it took."""
    done, spent, split = len(recordings.read(name, "sobol", FOLDER)), 0.0, learners.split_of(name)
    for config in configs(name, count, learners.space_of(name))[done:]:
        value, cost = learners.measure(name, split, config)
        recordings.append(recordings.Recording(name, config, value, cost, "sobol", commit()), FOLDER)
        spent += cost
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_tables", description=__doc__.split("\n")[0])
    parser.add_argument("--problem", help="comma-separated; all by default")
    parser.add_argument("--evaluations", type=int, default=160)
    options = parser.parse_args()
    names = options.problem.split(",") if options.problem else list(learners.NAMES)
    for name in names:  # imports and first-use costs belong to no config
        learners.measure(name, learners.split_of(name), configs(name, 1, learners.space_of(name))[0])
    take_turns(names, options.evaluations, BLOCK, record)


if __name__ == "__main__":
    main()
