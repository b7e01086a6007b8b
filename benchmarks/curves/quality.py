"""How good the emulators of learning curves are: what is chosen, the accuracy on left-out configs, and the lowest error."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import design, emulator
from benchmarks.curves.tables import CurveTable, features

# Of the search for the lowest error: first points, rounds, points kept in a round, moves of each.
SPREAD, ROUNDS, KEPT, MOVED = 4096, 20, 32, 16
APART = 0.15  # least distance of a new config from the others, in the unit cube
Array = NDArray[np.float64]


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's."""
    from scipy.stats import rankdata

    return round(float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]), 3)


def held_out(table: CurveTable, logs: Array, choice: dict[str, Any]) -> dict[str, float]:
    """Rank correlation of predicted and recorded errors at the target: all left-out configs, and the best quarter of them."""
    shape = (len(logs), 2, len(table.levels), -1)
    predicted = emulator.left_out(table.x, logs, choice).reshape(shape)[:, 0, -1]
    real = logs.reshape(shape)[:, 0, -1]
    best = np.argsort(real[:, -1])[: len(real) // 4]
    change = (predicted[:, -1] - predicted[:, len(table.units) // 5], real[:, -1] - real[:, len(table.units) // 5])
    return {
        "all": rank_correlation(predicted[:, -1], real[:, -1]),
        "best_quarter": rank_correlation(predicted[best, -1], real[best, -1]),
        "change_after_a_fifth": rank_correlation(*change),
    }


def descend(table: CurveTable, model: emulator.Emulator) -> tuple[Array, Array]:
    """Points and logarithms of the emulator's errors at the target: the pool, then ever smaller steps from the best."""
    rng, count = np.random.default_rng(0), len(table.dimensions)

    def last(points: Array) -> Array:
        x = features(table.dimensions, design.configs(table.dimensions, points))
        shape = (len(x), 2, len(table.levels), -1)
        return np.asarray(model.predict(x).reshape(shape)[:, 0, -1, -1])

    points = np.vstack([design.pool(count)[:SPREAD], table.points])
    values = np.concatenate([last(part) for part in np.array_split(points, 8)])
    for number in range(ROUNDS):
        best = np.argsort(values)[:KEPT]
        moved = np.repeat(points[best], MOVED, axis=0) + rng.normal(0.0, 0.3 * 0.75**number, (MOVED * KEPT, count))
        fresh = rng.random(moved.shape) < 1 / count  # one coordinate in each at random, so that categories change
        moved = np.clip(np.where(fresh, rng.random(moved.shape), moved), 0.0, 1.0)
        points, values = np.vstack([points, moved]), np.concatenate([values, last(moved)])
    return points, values


def promising(table: CurveTable, count: int) -> Array:
    """Points where the emulator has its lowest errors, none within ``APART`` of another or of a recorded one.

    Their recording shows whether the emulator is right there, and corrects it where it is not.
    """
    logs = table._recorded.mean(axis=1)
    points, values = descend(table, emulator.Emulator(table.x, logs, emulator.choose(table.x, logs)))
    taken, found = [*table.points], []
    for place in np.argsort(values):
        if np.sqrt(((np.array(taken) - points[place]) ** 2).sum(axis=1).min()) > APART:
            taken.append(points[place])
            found.append(points[place])
            if len(found) == count:
                break
    return np.array(found)


def choose(name: str) -> dict[str, Any]:
    """A table's entry of ``emulators.json``."""
    table = CurveTable(name, "pool")
    logs = table._recorded.mean(axis=1)
    errors = emulator.choose(table.x, logs)
    found = {
        "digest": table.digest,
        "errors": errors,
        "held_out": held_out(table, logs, errors),
        "lowest": float(np.exp(descend(table, emulator.Emulator(table.x, logs, errors))[1].min())),
    }
    if table.unit == "rounds":
        found["seconds"] = emulator.choose(table.x, table.logs_of_seconds)
    return found
