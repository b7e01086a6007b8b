"""Batched projected BFGS: gradient ascent from many starts at once, inside the unit cube.

Each start keeps its own estimate of the curvature, but all are evaluated together. One posterior query of B points costs little
more than one of a single point; a library optimizer run B times would pay the overhead of a call B times (n = 100, d = 10, 8
starts: 5.4 ms here, 13 ms with eight runs of SciPy's L-BFGS-B, with ends within 0.001 in log EI).

Notation
    B, D        starts and coordinates
    x, g        B x D       points and gradients
    H           B x D x D   estimates of minus the inverse Hessian, positive definite
    s, y        the step taken, and minus the change of the gradient along it (minus, since this is an ascent)

A coordinate is held while it is fixed, or while it lies on a bound and the gradient points outwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...numerics import Array

Objective = Callable[[Array], tuple[Array, Array]]  # points -> values, gradients

MAX_FIRST_STEP = 0.2  # of the cube's side, for the first step and wherever the curvature is not yet known
GAIN_TOLERANCE = 1e-3  # a gain that no longer matters in the logarithm of an acquisition
ARMIJO_SHARE = 1e-4  # share of the gain predicted by the gradient that a step must achieve (Armijo)
MAX_BACKTRACKS = 8  # lengths that a line search tries
BACKTRACK_FACTOR = 0.25  # of each length to the one before it


def ascend(
    objective: Objective, x: Array, free: NDArray[np.bool_], *, steps: int = 40, tolerance: float = GAIN_TOLERANCE
) -> tuple[Array, Array]:
    """Local maxima (B x D) and their values, from the starts x; ``free`` (B x D or D) marks the coordinates that may move.

    A start stops when a step gains no more than ``tolerance``.
    """
    x, free = x.copy(), np.broadcast_to(free, x.shape)
    f, g = objective(x)
    H = np.tile(np.eye(x.shape[1]), (len(x), 1, 1))
    fresh = np.ones(len(x), dtype=bool)  # no curvature known yet
    running = np.flatnonzero(np.isfinite(f))
    for _ in range(steps):
        if not len(running):
            break
        moving = free[running] & ~((x[running] <= 0.0) & (g[running] < 0.0)) & ~((x[running] >= 1.0) & (g[running] > 0.0))
        projected = np.where(moving, g[running], 0.0)
        step = np.where(moving, np.einsum("bij,bj->bi", H[running], projected), 0.0)
        uphill = np.einsum("bi,bi->b", step, projected) > 0.0
        step = np.where(uphill[:, None], step, projected)
        longest = np.abs(step).max(axis=1)
        limit = np.where(fresh[running] | ~uphill, MAX_FIRST_STEP, 1.0)
        step *= np.minimum(1.0, limit / np.maximum(longest, 1e-300))[:, None]
        moved, new_x, new_f, new_g = _line_search(objective, x[running], f[running], projected, step)
        s, y = new_x - x[running], g[running] - new_g
        gained = new_f - f[running]
        _update_curvature(H, fresh, running[moved], np.where(moving, s, 0.0)[moved], np.where(moving, y, 0.0)[moved])
        x[running], f[running], g[running] = new_x, new_f, new_g
        running = running[moved & (gained > tolerance)]
    return x, f


def _line_search(
    objective: Objective, x: Array, f: Array, projected: Array, step: Array
) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Backtracking line search: each step is shortened until it satisfies Armijo's condition. Which moved, and all points now."""
    moved = np.zeros(len(x), dtype=bool)
    new_x, new_f, new_g = x.copy(), f.copy(), np.zeros_like(x)
    searching, length = np.arange(len(x)), 1.0
    for _ in range(MAX_BACKTRACKS):
        trial = np.clip(x[searching] + length * step[searching], 0.0, 1.0)
        value, gradient = objective(trial)
        predicted = np.einsum("bi,bi->b", projected[searching], trial - x[searching])
        good = np.isfinite(value) & (value >= f[searching] + ARMIJO_SHARE * predicted) & (predicted > 0.0)
        taken = searching[good]
        moved[taken], new_x[taken], new_f[taken], new_g[taken] = True, trial[good], value[good], gradient[good]
        searching = searching[~good]
        if not len(searching):
            break
        length *= BACKTRACK_FACTOR
    return moved, new_x, new_f, new_g


def _update_curvature(H: Array, fresh: NDArray[np.bool_], rows: NDArray[np.intp], s: Array, y: Array) -> None:
    """The BFGS update of H, in place, for the rows whose step showed positive curvature."""
    curvature = np.einsum("bi,bi->b", s, y)
    keep = curvature > 1e-12 * np.einsum("bi,bi->b", y, y)
    rows, s, y, curvature = rows[keep], s[keep], y[keep], curvature[keep]
    if not len(rows):
        return
    first = fresh[rows]
    scale = curvature / np.maximum(np.einsum("bi,bi->b", y, y), 1e-300)
    H[rows[first]] *= scale[first][:, None, None]
    fresh[rows] = False
    Hy = np.einsum("bij,bj->bi", H[rows], y)
    spread = (curvature + np.einsum("bi,bi->b", y, Hy)) / curvature**2
    cross = np.einsum("bi,bj->bij", Hy, s)
    cross = (cross + cross.transpose(0, 2, 1)) / curvature[:, None, None]
    H[rows] += spread[:, None, None] * np.einsum("bi,bj->bij", s, s) - cross
