"""Points to look at: spread over the space, near good ones, one exchange away; and which of them were seen before."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...data.visited import SAME_POINT, VisitedSet, is_among
from ...errors import SpaceExhausted
from ...numerics import Array
from ...space.parameters import Choice
from ...space.space import FEW_ENOUGH, Parameter, Space

MAX_GRID_POINTS = 4096  # finite spaces up to this size are searched whole
MAX_ENUMERATED_POINTS = 1_000_000  # up to this size a space is enumerated before it is called exhausted
MAX_EXCHANGED_OPTIONS = FEW_ENOUGH  # of a choice with more options than this, a random part is tried
MAX_EXCHANGED_LEVELS = 12  # a number with at most this many values is exchanged over all of them


def quasi_random(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """A randomly shifted additive lattice (Roberts' R sequence): spreads evenly at any count, and needs no library at import."""
    root = 2.0
    for _ in range(40):  # the root of x^(D+1) = x + 1, by fixed-point iteration
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = (1.0 / root) ** np.arange(1, dimensions + 1)
    return (rng.random(dimensions) + np.arange(1, count + 1)[:, None] * steps) % 1.0


def neighbours(best: Array, count: int, space: Space, rng: np.random.Generator) -> Array:
    """Points around good ones, near and far: some coordinates moved by a normal step, or drawn anew where discrete."""
    if not len(best):
        return rng.random((count, len(space)))
    U = best[rng.integers(len(best), size=count)]
    width = 10.0 ** rng.uniform(-2.5, -0.5, size=(count, 1))
    moved = rng.random(U.shape) < np.maximum(rng.random((count, 1)), 1.5 / len(space))
    anew = np.array([isinstance(parameter, Choice) for parameter in space.values()])
    step = np.where(anew, rng.random(U.shape) - U, width * rng.standard_normal(U.shape))
    move = np.where(anew, moved & (rng.random(U.shape) < 0.3), moved)
    return np.clip(np.where(move, U + step, U), 0.0, 1.0)


def moves_from(u: Array, space: Space, rng: np.random.Generator, fidelities: bool = False) -> Array:
    """Points that differ from u in one discrete parameter: every other value if they are few, else near or random ones."""
    moves = []
    for j, parameter in enumerate(space.values()):
        if parameter.levels is None or (parameter.fidelity and not fidelities):
            continue
        ladder = space.ladders.get(j)
        if ladder is not None and (isinstance(parameter, Choice) or parameter.levels <= MAX_EXCHANGED_LEVELS):
            units = ladder[np.abs(ladder - u[j]) > SAME_POINT]
        else:
            units = parameter.units(other_levels(parameter, u[j : j + 1], rng))
        block = np.tile(u, (len(units), 1))
        block[:, j] = units
        moves.append(block)
    return np.vstack(moves)


def other_levels(parameter: Parameter, u: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Of a parameter with many values: some options drawn at random, or whole numbers near and far."""
    count, at = parameter.levels or 0, int(parameter.index(u)[0])
    levels = rng.choice(count, MAX_EXCHANGED_OPTIONS, replace=False) if isinstance(parameter, Choice) else at + _steps(count)
    return np.asarray(levels[(levels >= 0) & (levels < count) & (levels != at)])


@cache
def _steps(count: int) -> NDArray[np.intp]:
    """Steps down and up a ladder of ``count`` values: one, and then longer ones up to a quarter of it."""
    reach = np.unique(np.geomspace(1, count / 4, 5).astype(np.intp))
    return np.concatenate([-reach, reach])


def is_visited(U: Array, seen: Array | VisitedSet) -> NDArray[np.bool_]:
    """Which rows of U stand in ``seen``."""
    return seen.holds(U) if isinstance(seen, VisitedSet) else is_among(U, seen)


def random_unvisited(space: Space, seen: Array | VisitedSet, rng: np.random.Generator) -> Array:
    """A random point that is not in ``seen``; SpaceExhausted if a finite space has none."""
    for draws in (16, 256, 4096, 65536):
        U = space.snap(space.at_target(rng.random((draws, len(space)))))
        fresh: Array = U[~is_visited(U, seen)]
        if len(fresh):
            return np.asarray(fresh[0])
    size = space.cardinality()
    if size <= MAX_ENUMERATED_POINTS:
        left = space.grid()[~is_visited(space.grid(), seen)]
        if len(left):
            return np.asarray(left[rng.integers(len(left))])
    raise SpaceExhausted(f"all {size:.0f} configurations of this space have been tried")


def small_grid(space: Space) -> Array | None:
    """Every point of a finite space that is small enough to be searched whole."""
    size = 1
    for parameter in space.values():
        if parameter.fidelity:
            continue
        if parameter.levels is None:
            return None
        size *= parameter.levels
        if size > MAX_GRID_POINTS:
            return None
    return space.grid()
