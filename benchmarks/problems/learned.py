"""Two real tuning problems from scikit-learn, stored as small grids of cross-validated errors.

The grids are made once by ``python -m benchmarks.make_data``. Between grid nodes the error is interpolated
linearly along every real or integer axis, so the search space stays continuous while the minimum is exactly
the best node: a multilinear patch never goes below its lowest corner.
"""

import math
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem, Real

DATA = Path(__file__).parent.parent / "data"
SPACES: dict[str, tuple[Dimension, ...]] = {
    "svc_digits": (Real("C", 1e-2, 1e4, log=True), Real("gamma", 1e-6, 1e1, log=True)),
    "boosting_diabetes": (
        Real("learning_rate", 5e-3, 1.0, log=True),
        Real("subsample", 0.2, 1.0),
        Integer("max_depth", 1, 5),
        Category("loss", ("squared_error", "huber")),
    ),
}


def _coordinate(dimension: Dimension, value: object, nodes: int) -> float:
    """Where a value lies on its axis, counted in grid nodes."""
    if isinstance(dimension, Category):
        return float(dimension.options.index(str(value)))
    low, high, point = float(dimension.low), float(dimension.high), float(value)  # type: ignore[arg-type]
    if dimension.log:
        low, high, point = math.log(low), math.log(high), math.log(point)
    return min(max((point - low) / (high - low), 0.0), 1.0) * (nodes - 1)


def axis(dimension: Dimension, nodes: int) -> list[float | int | str]:
    """The values at the nodes of one axis: the inverse of what evaluation does."""
    if isinstance(dimension, Category):
        return list(dimension.options)
    if isinstance(dimension, Integer):
        return list(range(dimension.low, dimension.high + 1))
    if dimension.log:
        return [float(x) for x in np.geomspace(dimension.low, dimension.high, nodes)]
    return [float(x) for x in np.linspace(dimension.low, dimension.high, nodes)]


def load(name: str) -> Problem:
    """Read one grid and wrap it as a problem."""
    with np.load(DATA / f"{name}.npz") as stored:
        grid = stored["error"]
    dimensions = SPACES[name]

    def evaluate(config: Config) -> float:
        sides: list[tuple[tuple[int, float], ...]] = []
        for dimension, nodes in zip(dimensions, grid.shape, strict=True):
            at = _coordinate(dimension, config[dimension.name], nodes)
            below = min(int(at), nodes - 1)
            above = min(below + 1, nodes - 1)
            sides.append(((below, 1 - (at - below)), (above, at - below)))
        total = 0.0
        for corner in product(*sides):
            weight = math.prod(part for _, part in corner)
            if weight > 0:
                total += weight * float(grid[tuple(node for node, _ in corner)])
        return total

    return Problem(name, dimensions, evaluate, float(grid.min()))
