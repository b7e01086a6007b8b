"""The highest point of one surface where another is high enough.

maximize f(x) subject to g(x) >= bound, by an interior path: f + t log(g - bound) is maximised for a falling t, from points
that satisfy the constraint, so that every step satisfies it too. With one constraint the end for t is within t of the
best value (the duality gap of a log barrier). Finite spaces are simply looked through.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...data.visited import VisitedSet
from ...numerics import Array, single_threaded
from ...space.encoding import Encoding
from .candidates import is_visited, small_grid
from .optimizer import Surface, local_search

STARTS = 6
BARRIER_WEIGHTS = (0.1, 0.003)  # t, in units of f (a logarithm here, so 0.003 is 0.3 %)


@single_threaded
def maximize_constrained(
    f: Surface, g: Surface, bound: float, pool: Array, encoding: Encoding, rng: np.random.Generator, seen: Array | VisitedSet
) -> Array | None:
    """The best point; None if no point of ``pool`` satisfies the constraint."""
    holds = g(pool, False)[0] >= bound
    if not holds.any():
        return None
    pool = pool[holds]
    values = f(pool, False)[0]
    if small_grid(encoding.space) is not None:
        return np.asarray(pool[int(np.argmax(values))])
    top = diverse_starts(pool, values, encoding)
    U = pool[top]
    found = [pool[top]]
    for t in BARRIER_WEIGHTS:
        inside = barrier(f, g, bound, t)
        U, _ = local_search(inside, encoding, U, inside(U, False)[0], 2, rng)
        found.append(U)
    ends = np.vstack(found)
    ends = ends[(g(ends, False)[0] >= bound) & ~is_visited(ends, seen)]
    if not len(ends):
        return None
    return np.asarray(ends[int(np.argmax(f(ends, False)[0]))])


def diverse_starts(pool: Array, values: Array, encoding: Encoding) -> NDArray[np.intp]:
    """Starts: the best points, those with options of their own first, since an ascent cannot change options together."""
    order = np.argsort(-values, kind="stable")
    if encoding.numeric.all():
        return order[:STARTS]
    _, first = np.unique(pool[order][:, ~encoding.numeric], axis=0, return_index=True)
    own = np.sort(first)[:STARTS]
    rest = np.setdiff1d(np.arange(len(order)), own)[: STARTS // 2]
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
