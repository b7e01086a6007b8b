"""Constrained maximization by a log barrier: maximize f(x) subject to g(x) >= bound.

An interior-point path: f + t log(g - bound) is maximised for a decreasing barrier weight t. It starts from points that satisfy
the constraint, so that every step satisfies it too. With one constraint, the end for t is within t of the best value (the duality
gap of a log barrier). Small finite spaces are enumerated instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...data.visited import VisitedSet
from ...numerics import Array, single_threaded
from ...space.encoding import Encoding
from .candidates import is_visited, small_grid
from .optimizer import Surface, local_search

RESTARTS = 6  # points from which a path starts
BARRIER_WEIGHTS = (0.1, 0.003)  # t, in units of f (a logarithm here, so 0.003 is 0.3 %)
EXCHANGE_ROUNDS = 2  # rounds of exchange moves and ascent, for each t


@single_threaded
def maximize_constrained(
    f: Surface, g: Surface, bound: float, pool: Array, encoding: Encoding, rng: np.random.Generator, visited: Array | VisitedSet
) -> Array | None:
    """The best unvisited point that satisfies the constraint; None if no point of ``pool`` does."""
    allowed = g(pool, False)[0]
    if small_grid(encoding.space) is None:
        pool, allowed = with_other_options(g, bound, pool, allowed, encoding, rng)
    if not (allowed >= bound).any():
        return None
    pool = pool[allowed >= bound]
    values = f(pool, False)[0]
    if small_grid(encoding.space) is not None:
        return np.asarray(pool[int(np.argmax(values))])
    starts = diverse_starts(pool, values, encoding)
    U = pool[starts]
    found = [pool[starts]]
    for t in BARRIER_WEIGHTS:
        inside = barrier(f, g, bound, t)
        U, _ = local_search(inside, encoding, U, inside(U, False)[0], EXCHANGE_ROUNDS, rng)
        found.append(U)
    ends = np.vstack(found)
    ends = ends[(g(ends, False)[0] >= bound) & ~is_visited(ends, visited)]
    if not len(ends):
        return None
    return np.asarray(ends[int(np.argmax(f(ends, False)[0]))])


def with_other_options(
    g: Surface, bound: float, pool: Array, allowed: Array, encoding: Encoding, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The pool and, for combinations of options none of which satisfies the constraint, points of theirs that are nearer to it.

    A pool from a search for the highest g may hold no point of an option that could satisfy the constraint, but is not best.
    """
    if encoding.numeric.all():
        return pool, allowed
    order = np.argsort(-allowed, kind="stable")
    _, first = np.unique(pool[order][:, ~encoding.numeric], axis=0, return_index=True)
    best = order[np.sort(first)]
    best = best[allowed[best] < bound][:RESTARTS]
    if not len(best):
        return pool, allowed
    U, value = local_search(g, encoding, pool[best], allowed[best], 0, rng)
    return np.vstack([U, pool]), np.concatenate([value, allowed])


def diverse_starts(pool: Array, values: Array, encoding: Encoding) -> NDArray[np.intp]:
    """Rows to start from: the best of each combination of options first, since the ascent changes no two options at once."""
    order = np.argsort(-values, kind="stable")
    if encoding.numeric.all():
        return order[:RESTARTS]
    _, first = np.unique(pool[order][:, ~encoding.numeric], axis=0, return_index=True)
    own = np.sort(first)[:RESTARTS]
    rest = np.setdiff1d(np.arange(len(order)), own)[: RESTARTS // 2]
    return np.asarray(order[np.concatenate([own, rest])])


def barrier(f: Surface, g: Surface, bound: float, t: float) -> Surface:
    """f + t log(g - bound), minus infinity where the constraint does not hold."""

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        f_value, f_slope = f(U, gradient)
        g_value, g_slope = g(U, gradient)
        room = np.maximum(g_value - bound, 1e-300)
        total = np.where(g_value > bound, f_value + t * np.log(room), -np.inf)
        if f_slope is None or g_slope is None:
            return total, None
        return total, np.where((g_value > bound)[:, None], f_slope + (t / room)[:, None] * g_slope, 0.0)

    return value
