"""Candidate points for the acquisition optimizer: quasi-random, near good points, one exchange away, not yet visited.

Points are rows of the unit cube (m x D), one column for each parameter of the space.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...data.trial_table import SAME_POINT
from ...data.visited import VisitedSet, is_among
from ...errors import SpaceExhausted
from ...numerics import Array
from ...space.parameters import Choice
from ...space.space import MAX_TABULATED_LEVELS, Parameter, Space

MAX_GRID_POINTS = 4096  # finite spaces up to this size are searched whole
MAX_ENUMERATED_POINTS = 1_000_000  # up to this size a space is enumerated before it is called exhausted
MAX_EXCHANGED_OPTIONS = MAX_TABULATED_LEVELS  # of a choice with more options than this, a random part is tried
MAX_EXCHANGED_LEVELS = 12  # a number with at most this many values is exchanged over all of them
RANDOM_DRAWS = (16, 256, 4096, 65536)  # sizes of the random samples in which an unvisited point is looked for, in turn
MIN_SEPARATION = 0.02  # of the cube's side: points nearer than this count as one local minimum


def quasi_random(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """A randomly shifted additive lattice (Roberts' R sequence): even at any count, and without a library to import."""
    root = 2.0
    for _ in range(40):  # the root of x^(D+1) = x + 1, by fixed-point iteration
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = (1.0 / root) ** np.arange(1, dimensions + 1)
    return (rng.random(dimensions) + np.arange(1, count + 1)[:, None] * steps) % 1.0


def neighbours(best: Array, count: int, space: Space, rng: np.random.Generator) -> Array:
    """Random points around good ones, near and far: some coordinates take a normal step; choices are drawn anew."""
    if not len(best):
        return rng.random((count, len(space)))
    U = best[rng.integers(len(best), size=count)]
    width = 10.0 ** rng.uniform(-2.5, -0.5, size=(count, 1))
    moved = rng.random(U.shape) < np.maximum(rng.random((count, 1)), 1.5 / len(space))
    anew = np.array([isinstance(parameter, Choice) for parameter in space.parameters])
    step = np.where(anew, rng.random(U.shape) - U, width * rng.standard_normal(U.shape))
    move = np.where(anew, moved & (rng.random(U.shape) < 0.3), moved)
    return np.clip(np.where(move, U + step, U), 0.0, 1.0)


def moves_from(u: Array, space: Space, rng: np.random.Generator, fidelities: bool = False) -> Array:
    """Exchange moves: points that differ from u in one discrete parameter. All its other values if they are few, else some."""
    moves = []
    for j, parameter in enumerate(space.parameters):
        if parameter.levels is None or (parameter.fidelity and not fidelities):
            continue
        known = space.level_units.get(j)
        if known is not None and (isinstance(parameter, Choice) or parameter.levels <= MAX_EXCHANGED_LEVELS):
            units = known[np.abs(known - u[j]) > SAME_POINT]
        else:
            units = parameter.units(other_levels(parameter, u[j : j + 1], rng))
        block = np.tile(u, (len(units), 1))
        block[:, j] = units
        moves.append(block)
    return np.vstack(moves)


def other_levels(parameter: Parameter, u: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Levels to exchange for a parameter with many values: of a choice random options, of a number some near and some far."""
    count, at = parameter.levels or 0, int(parameter.index(u)[0])
    levels = rng.choice(count, MAX_EXCHANGED_OPTIONS, replace=False) if isinstance(parameter, Choice) else at + _steps(count)
    return np.asarray(levels[(levels >= 0) & (levels < count) & (levels != at)])


@cache
def _steps(count: int) -> NDArray[np.intp]:
    """Steps down and up over ``count`` ordered values: one, and then longer ones up to a quarter of them."""
    reach = np.unique(np.geomspace(1, count / 4, 5).astype(np.intp))
    return np.concatenate([-reach, reach])


def is_visited(U: Array, visited: Array | VisitedSet) -> NDArray[np.bool_]:
    """Which rows of U are among the visited points."""
    return visited.contains(U) if isinstance(visited, VisitedSet) else is_among(U, visited)


def random_unvisited(space: Space, visited: Array | VisitedSet, rng: np.random.Generator) -> Array:
    """A random point that was not visited; SpaceExhausted if a finite space has none."""
    for draws in RANDOM_DRAWS:
        U = space.snap(space.at_target(rng.random((draws, len(space)))))
        fresh: Array = U[~is_visited(U, visited)]
        if len(fresh):
            return np.asarray(fresh[0])
    size = space.cardinality()
    if size <= MAX_ENUMERATED_POINTS:
        left = space.grid()[~is_visited(space.grid(), visited)]
        if len(left):
            return np.asarray(left[rng.integers(len(left))])
    raise SpaceExhausted(f"all {size:.0f} configurations of this space have been tried")


def fidelity_corners(space: Space) -> Array:
    """The bounds of the fidelities in the unit cube (c x fidelities): all of one or two, of more the ends and each low one."""
    count = len(space.fidelities)
    if count <= 2:
        return np.array(list(product((0.0, 1.0), repeat=count)))
    return np.vstack([np.zeros(count), np.ones(count), 1.0 - np.eye(count)])


def at_fidelity_corners(U: Array, space: Space) -> list[Array]:
    """Copies of the points at each corner of the fidelities, apart: a surface per unit of cost is often highest there."""
    columns = [space.names.index(name) for name in space.fidelities]
    copies = []
    for corner in fidelity_corners(space):
        moved = U.copy()
        moved[:, columns] = corner
        copies.append(moved)
    return copies


def small_grid(space: Space) -> Array | None:
    """All points of a finite space that is small enough to be searched whole, else None."""
    size = 1
    for parameter in space.parameters:
        if parameter.fidelity:
            continue
        if parameter.levels is None:
            return None
        size *= parameter.levels
        if size > MAX_GRID_POINTS:
            return None
    return space.grid()


def unique_points(points: Array) -> Array:
    """The points without repetitions, in order."""
    _, first = np.unique(np.rint(points / (1e3 * SAME_POINT)), axis=0, return_index=True)
    return points[np.sort(first)]


def separated_points(points: Array, limit: int = 64) -> Array:
    """Of the first ``limit`` points those that are not too near an earlier one: many ascents end at the same few optima."""
    kept: list[Array] = []
    for point in points[:limit]:
        if not kept or float(np.abs(np.array(kept) - point).max(axis=1).min()) > MIN_SEPARATION:
            kept.append(point)
    return np.array(kept)
