"""Surrogates of recorded fits of scikit-learn's learners, over spaces some of which are conditional.

Log value and log cost of a problem's recording (``benchmarks.record_tables``) are each modelled by a Gaussian process or by a
forest, whichever predicts left-out fifths better. Everything follows from the recorded file. ``results/recorded/surrogates.json``
holds the R squared of each model and the lowest value, which is that of the model, found by a dense search with refinement.

    python -m benchmarks.problems.recorded      # fit all that can be fitted, and say how good they are
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from benchmarks.cost_aware import emulator, recordings
from benchmarks.cost_aware.core import CostProblem, Measured, at
from benchmarks.cost_aware.emulator import Array
from benchmarks.problems import learners
from benchmarks.problems.core import Category, Config, Dimension, is_active

FOLDER = Path(__file__).parent.parent / "results" / "recorded"
NAMES = learners.NAMES
# The first evaluations of a recording make the surrogate, always the same number: more would make another problem of it. Later
# ones show how good it is on configs that it has not seen.
EVALUATIONS = 128
HIGHEST_VALUE = 2.0  # learners that diverge have errors of up to 1e5, and how bad they are must not bend the model elsewhere
INACTIVE = 0.5  # the position of a dimension without effect: one place for all such configs
DENSE, REFINED, ROUNDS = 8192, 32, 24  # points of the dense search; of those, how many are refined, and how often


def features(dimensions: Sequence[Dimension], config: Config) -> list[float]:
    """A column for each number and for each option of a category."""
    found: list[float] = []
    for dimension in dimensions:
        if isinstance(dimension, Category):
            found += [float(config[dimension.name] == option) for option in dimension.options]
        else:
            found.append(emulator.position(dimension, config[dimension.name]) if is_active(dimension, config) else INACTIVE)
    return found


def _at(dimensions: Sequence[Dimension], points: Array) -> Array:
    """The features at points of the unit cube."""
    inside = np.clip(points, 0.0, 1.0 - 1e-9)
    return np.array(
        [features(dimensions, {d.name: at(d, float(u)) for d, u in zip(dimensions, point, strict=True)}) for point in inside]
    )


def lowest(dimensions: Sequence[Dimension], recorded: Array, model: Any) -> float:
    """The lowest mean of a model of log values: on a dense set, at the recorded configs, then by ever smaller steps."""
    rng = np.random.default_rng(0)
    points = qmc.Sobol(len(dimensions), rng=0).random(DENSE)
    values = model.predict(_at(dimensions, points))
    for number in range(ROUNDS):
        best = np.argsort(values)[:REFINED]
        points, values = points[best], values[best]
        width = 0.3 * 0.8**number
        moved = np.repeat(points, 8, axis=0) + rng.normal(0.0, width, (8 * len(points), len(dimensions)))
        fresh = rng.random(moved.shape) < 1 / len(dimensions)  # one coordinate in each at random, so that categories change
        moved = np.clip(np.where(fresh, rng.random(moved.shape), moved), 0.0, 1.0)
        points, values = np.vstack([points, moved]), np.concatenate([values, model.predict(_at(dimensions, moved))])
    return float(min(values.min(), model.predict(recorded).min()))


def _targets(found: Sequence[recordings.Recording]) -> dict[str, Array]:
    """Log values and log costs; no error at all, which has no logarithm, counts as half of the smallest error that was seen."""
    values = np.array([entry.value for entry in found])
    values = np.clip(values, values[values > 0].min() / 2, HIGHEST_VALUE)
    return {"value": np.log(values), "cost": np.log([entry.cost for entry in found])}


def load(name: str) -> CostProblem:
    """``FAMILY_DATA``, for instance ``svm_wind``; a call takes about a millisecond."""
    family, dimensions = learners.parts(name)[0], learners.space_of(name)
    found = recordings.read(name, "sobol", FOLDER)[:EVALUATIONS]
    if len(found) < EVALUATIONS:
        raise ValueError(
            f"{name} has {len(found)} recorded evaluations of {EVALUATIONS}: run python -m benchmarks.record_tables first"
        )
    x = np.array([features(dimensions, entry.config) for entry in found])
    models = emulator.models(FOLDER, name, x, _targets(found))
    entry = emulator.stored(FOLDER)[name]
    if "lowest" not in entry:  # kept, since the search for it takes seconds
        entry["lowest"] = float(np.exp(lowest(dimensions, x, models["value"])))
        emulator.store(FOLDER, name, entry)

    def evaluate(config: Config) -> Measured:
        here = np.array([features(dimensions, config)])
        return float(np.exp(models["value"].predict(here)[0])), float(np.exp(models["cost"].predict(here)[0]))

    return CostProblem(name, dimensions, evaluate, entry["lowest"], family.label)


def unseen(name: str) -> dict[str, float]:
    """R squared of log value and log cost on the evaluations that the surrogate was not made from."""
    problem, later = load(name), recordings.read(name, "sobol", FOLDER)[EVALUATIONS:]
    predicted = np.log([problem.evaluate(entry.config) for entry in later])
    real = np.column_stack(list(_targets(later).values()))
    scores = 1 - np.mean((predicted - real) ** 2, axis=0) / np.var(real, axis=0)
    return {"value": round(float(scores[0]), 4), "cost": round(float(scores[1]), 4)}


def main() -> None:
    for name in NAMES:
        load(name)
        later = len(recordings.read(name, "sobol", FOLDER)) - EVALUATIONS
        entry = emulator.stored(FOLDER)[name]
        if later > 1 and entry.get("unseen", {}).get("evaluations") != later:
            entry["unseen"] = {"evaluations": later, **unseen(name)}
            emulator.store(FOLDER, name, entry)
        print(emulator.quality(FOLDER, name), "unseen:", entry.get("unseen"), flush=True)


if __name__ == "__main__":
    main()
