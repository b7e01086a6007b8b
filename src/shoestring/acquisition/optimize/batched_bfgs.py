"""Gradient ascent from many starts at once, inside the unit cube.

A projected BFGS in which each start keeps its own curvature but all are evaluated together: one posterior query of B
points costs little more than one of a single point, and a library optimizer run B times would pay the call overhead B
times (n = 100, d = 10, 8 starts: 5.4 ms here, 13 ms with eight runs of SciPy's L-BFGS-B, ends within 0.001 in log EI).

Notation: B starts, D coordinates; x, g (B x D) points and gradients; H (B x D x D) minus the inverse Hessian's estimate,
positive definite; a coordinate is held while it is fixed or lies on a bound with the gradient pointing outwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...numerics import Array

Objective = Callable[[Array], tuple[Array, Array]]  # points -> values, gradients

MAX_FIRST_STEP = 0.2  # of the cube's side, for the first step and wherever the curvature is not yet known
GAIN_TOLERANCE = 1e-3  # a gain that no longer matters in the logarithm of an acquisition
ARMIJO_SHARE = 1e-4  # share of the gain promised by the gradient that a step must deliver (Armijo)


def ascend(
    objective: Objective, x: Array, free: NDArray[np.bool_], *, steps: int = 40, tolerance: float = GAIN_TOLERANCE
) -> tuple[Array, Array]:
    """The ends (B x D) and their values; ``free`` (B x D or D) marks the coordinates that may move.

    A start rests when a step gains no more than ``tolerance``.
    """
    x, free = x.copy(), np.broadcast_to(free, x.shape)
    f, g = objective(x)
    H = np.tile(np.eye(x.shape[1]), (len(x), 1, 1))
    fresh = np.ones(len(x), dtype=bool)  # no curvature known yet
    live = np.flatnonzero(np.isfinite(f))
    for _ in range(steps):
        if not len(live):
            break
        moving = free[live] & ~((x[live] <= 0.0) & (g[live] < 0.0)) & ~((x[live] >= 1.0) & (g[live] > 0.0))
        pull = np.where(moving, g[live], 0.0)
        step = np.where(moving, np.einsum("bij,bj->bi", H[live], pull), 0.0)
        uphill = np.einsum("bi,bi->b", step, pull) > 0.0
        step = np.where(uphill[:, None], step, pull)
        longest = np.abs(step).max(axis=1)
        limit = np.where(fresh[live] | ~uphill, MAX_FIRST_STEP, 1.0)
        step *= np.minimum(1.0, limit / np.maximum(longest, 1e-300))[:, None]
        moved, new_x, new_f, new_g = _search(objective, x[live], f[live], pull, step)
        s, y = new_x - x[live], g[live] - new_g  # y: minus the change of gradient, since this is an ascent
        gained = new_f - f[live]
        _learn(H, fresh, live[moved], np.where(moving, s, 0.0)[moved], np.where(moving, y, 0.0)[moved])
        x[live], f[live], g[live] = new_x, new_f, new_g
        live = live[moved & (gained > tolerance)]
    return x, f


def _search(
    objective: Objective, x: Array, f: Array, pull: Array, step: Array
) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Shorten each step until it gains enough: who moved, and where everybody stands now."""
    moved = np.zeros(len(x), dtype=bool)
    new_x, new_f, new_g = x.copy(), f.copy(), np.zeros_like(x)
    waiting, share = np.arange(len(x)), 1.0
    for _ in range(8):
        trial = np.clip(x[waiting] + share * step[waiting], 0.0, 1.0)
        value, gradient = objective(trial)
        promised = np.einsum("bi,bi->b", pull[waiting], trial - x[waiting])
        good = np.isfinite(value) & (value >= f[waiting] + ARMIJO_SHARE * promised) & (promised > 0.0)
        taken = waiting[good]
        moved[taken], new_x[taken], new_f[taken], new_g[taken] = True, trial[good], value[good], gradient[good]
        waiting = waiting[~good]
        if not len(waiting):
            break
        share *= 0.25
    return moved, new_x, new_f, new_g


def _learn(H: Array, fresh: NDArray[np.bool_], who: NDArray[np.intp], s: Array, y: Array) -> None:
    """The BFGS update of H for those whose step showed positive curvature."""
    curvature = np.einsum("bi,bi->b", s, y)
    keep = curvature > 1e-12 * np.einsum("bi,bi->b", y, y)
    who, s, y, curvature = who[keep], s[keep], y[keep], curvature[keep]
    if not len(who):
        return
    first = fresh[who]
    scale = curvature / np.maximum(np.einsum("bi,bi->b", y, y), 1e-300)
    H[who[first]] *= scale[first][:, None, None]
    fresh[who] = False
    Hy = np.einsum("bij,bj->bi", H[who], y)
    spread = (curvature + np.einsum("bi,bi->b", y, Hy)) / curvature**2
    cross = np.einsum("bi,bj->bij", Hy, s)
    cross = (cross + cross.transpose(0, 2, 1)) / curvature[:, None, None]
    H[who] += spread[:, None, None] * np.einsum("bi,bj->bij", s, s) - cross
