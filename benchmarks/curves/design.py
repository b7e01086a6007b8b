"""Which configs are recorded: first a Sobol set, then configs near the best of it, drawn from a fixed pool.

The second part makes the region that a search ends in better known than the rest. The pool is the later part of the same Sobol
sequence, so a config is a number, and the design can be repeated without anything but the recorded errors. A third part has
points of its own, numbered after the pool: where an emulator of the first two parts has its lowest errors
(``quality.promising``). It shows whether they are real.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

POOL = 16_384
BEST_SHARE = 0.1  # of the first part: new configs are drawn near these
Array = NDArray[np.float64]


def pool(dimensions: int) -> Array:
    """The points of the unit cube that configs are drawn from, the first ones first."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, rng=0).random(POOL), dtype=np.float64)


def points_of(dimensions: int, numbers: Any, extra: Array | None) -> Array:
    """The points of these numbers; ``extra`` are the points after the pool."""
    known = pool(dimensions)
    return np.asarray((known if extra is None else np.vstack([known, extra]))[numbers])


def near_best(points: Array, tried: Sequence[int], errors: Sequence[float], count: int) -> list[int]:
    """The numbers of ``count`` points of the pool that were not tried and lie nearest to the best of those that were.

    The best configs take turns, so that each gets the same number of neighbours.
    """
    order = [tried[place] for place in np.argsort(np.asarray(errors), kind="stable")]
    best = order[: max(1, round(BEST_SHARE * len(order)))]
    taken, found = set(tried), list[int]()
    distances = {number: np.argsort(((points - points[number]) ** 2).sum(axis=1), kind="stable") for number in best}
    while len(found) < count:
        number = best[len(found) % len(best)]
        nearest = next(int(other) for other in distances[number] if int(other) not in taken)
        taken.add(nearest)
        found.append(nearest)
    return found


def configs(dimensions: Sequence[Any], points: Array) -> list[dict[str, Any]]:
    """The configs at points of the unit cube."""
    from benchmarks.cost_aware.core import at

    inside = np.clip(points, 0.0, 1.0 - 1e-9)
    return [{each.name: at(each, float(u)) for each, u in zip(dimensions, point, strict=True)} for point in inside]
