"""Trace-aware knowledge gradient: the value of the whole learning curve up to a fidelity, per unit of what it still costs.

Source: Wu, Toscano-Palmerin, Frazier and Wilson, "Practical multi-fidelity Bayesian optimization for hyperparameter tuning"
(2019): a training run to s shows its values at all lower fidelities too. The model is that of ``surrogate.curves``, in which the
expectation needs three numbers, however long the trace is.

Notation (see also ``surrogate.curves``)
    x, k, s         a configuration, the points of its run so far (none for a new one), and the time to which it would go on
    w = (g, h)(x)   with posterior covariance Q;   f'  values at the target of a discretization
    V, a            L^-1 P and L^-1 c(1): the whitened basis, and the whitened covariances with the run's own deviation at the
                    target. Rows k + 1 to s belong to the points that the trace adds, given the first k
    A = V'V = S S',  d = V'a = S alpha,  e = |a|^2 - |alpha|^2                over these rows
    R R' = I + S'Q S

    The trace moves f' by cov(f', w) S R^-T z, and the run's own value at the target, psi'w + deviation, by
    (psi'Q S + alpha') R^-T z + sqrt(e) z_3, with z and z_3 standard normal: three directions in all                       (1)

    KG(x, s) = min mu - E[ min (mu + B z) ] over the discretization and the run's own value                               (2)
    divided by the cost of going on from k to s. As a further member of a batch, see ``log_worth``

Of the three directions, the expectation over the one that moves the values most is exact (``kg_envelope``); over the other two it
is a Gauss-Hermite sum. The value of that one direction alone is a lower bound (Jensen), by which candidates are ranked first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, lapack
from ..surrogate.curves import MEAN_VARIANCE, CurveShape
from ..surrogate.curves_posterior import CurvePosterior, Query, prior_covariance
from .kg_envelope import LOG_NO_DROP, log_expected_drop

NODES = (7, 3)  # of the Gauss-Hermite sums over the second and the third direction
MAX_REFINED = 48  # candidates whose value is computed over all three directions
TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class TraceCandidates:
    """m runs, each with the same k possible ends.

    X      m x p, features of the configurations
    rows   the curve of a run that goes on; below 0 for a new one
    stops  k, times to which the runs may go on;   grid  all times at which values are reported
    """

    X: Array
    rows: NDArray[np.intp]
    stops: Array
    grid: Array


@dataclass(frozen=True, kw_only=True)
class TraceMoves:
    """How a trace moves the values at the target: equation (1).

    means   m x (d + 1): of the discretization, and of the run itself
    moves   m x k x (d + 1) x 3: B;   NaN where a stop is not ahead of the run
    """

    means: Array
    moves: Array


# -- the innovations of a trace -----------------------------------------------------------------------------------------


def innovations(shape: CurveShape, times: Array) -> tuple[Array, Array]:
    """V (T x 2) and a (T) of the points of one run."""
    C = shape.covariance(times, times)
    C[np.diag_indices(len(C))] += shape.noise
    L, _ = lapack.dpotrf(C, lower=1, clean=1)
    both, _ = lapack.dtrtrs(L, np.column_stack([shape.basis(times), shape.covariance(times, np.ones(1))]), lower=1)
    return both[:, :2], both[:, 2]


def cumulated(V: Array, a: Array) -> Array:
    """Sums over the first rows (T + 1 x 6): A_gg, A_hg, A_hh, d_g, d_h, |a|^2."""
    terms = np.column_stack([V[:, 0] ** 2, V[:, 0] * V[:, 1], V[:, 1] ** 2, V[:, 0] * a, V[:, 1] * a, a**2])
    return np.vstack([np.zeros(6), np.cumsum(terms, axis=0)])


def trace_information(posterior: CurvePosterior, candidates: TraceCandidates) -> tuple[Array, NDArray[np.bool_]]:
    """The sums of ``cumulated`` over the points that each trace adds (m x k x 6), and which traces add any (m x k)."""
    shape, grid, stops = posterior.shape, candidates.grid, candidates.stops
    shared = cumulated(*innovations(shape, grid))
    ends = np.searchsorted(grid, stops + TINY, side="right")  # points up to each stop
    found = np.empty((len(candidates.rows), len(stops), 6))
    ahead = np.ones((len(candidates.rows), len(stops)), dtype=bool)
    for place, row in enumerate(candidates.rows.tolist()):
        if row < 0:
            found[place] = shared[ends]
            continue
        times = posterior.curves.times[row]
        size, kappa = len(times), posterior.kappa[row]
        if size <= len(grid) and np.array_equal(times, grid[:size]):
            sums, upto, begun = shared, ends, size
        else:  # epochs of its own
            later = grid[grid > times[-1] + TINY]
            sums, begun = cumulated(*innovations(shape, np.concatenate([times, later]))), size
            upto = size + np.searchsorted(later, stops + TINY, side="right")
        ahead[place] = upto > begun
        found[place] = (sums[np.maximum(upto, begun)] - sums[begun]) * np.array([1 / kappa] * 3 + [1.0] * 2 + [kappa])
    return found, ahead


# -- equation (1) -------------------------------------------------------------------------------------------------------


def trace_moves(posterior: CurvePosterior, fixed: Query, candidates: TraceCandidates) -> TraceMoves:
    """Equation (1) for all candidates; ``fixed`` are values at the target: the discretization."""
    X, rows, m = candidates.X, candidates.rows, len(candidates.X)
    own = own_values(posterior, candidates)
    q_fixed, q_own = posterior.whitened(fixed), posterior.whitened(own)
    parts = [posterior.whitened(unit_query(X, column)) for column in range(2)]
    Q = -np.einsum("ajm,bjm->mab", np.array(parts), np.array(parts))
    cross = np.empty((m, len(fixed.X), 2))  # cov(f', w)
    for column, (kernel, constant) in enumerate(zip(posterior.kernels, MEAN_VARIANCE, strict=True)):
        Q[:, column, column] += kernel.variance + constant
        prior = prior_covariance(kernel, constant, X, fixed.X) * fixed.psi[:, column]
        cross[:, :, column] = prior - parts[column].T @ q_fixed
    information, ahead = trace_information(posterior, candidates)
    A_gg, A_hg, A_hh, d_g, d_h, square = np.moveaxis(information, -1, 0)
    S = np.zeros((*A_gg.shape, 2, 2))
    S[..., 0, 0] = np.sqrt(np.maximum(A_gg, TINY))
    S[..., 1, 0] = A_hg / S[..., 0, 0]
    pivot = A_hh - S[..., 1, 0] ** 2
    S[..., 1, 1] = np.sqrt(np.where(pivot > TINY * A_hh, np.maximum(pivot, 0.0), 0.0))
    alpha_g = d_g / S[..., 0, 0]
    alpha_h = np.divide(d_h - S[..., 1, 0] * alpha_g, S[..., 1, 1], out=np.zeros_like(d_h), where=S[..., 1, 1] > 0.0)
    rest = np.sqrt(np.maximum(square - alpha_g**2 - alpha_h**2, 0.0))
    QS = Q[:, None] @ S
    root = np.linalg.cholesky(np.eye(2) + np.swapaxes(S, -1, -2) @ QS)
    inverse = np.linalg.inv(root)  # R^-1;  R^-T is its transpose
    turned = S @ np.swapaxes(inverse, -1, -2)
    moves = np.zeros((m, len(candidates.stops), len(fixed.X) + 1, 3))
    moves[:, :, :-1, :2] = cross[:, None] @ turned
    lead = np.einsum("ma,mkab->mkb", own.psi, QS) + np.stack([alpha_g, alpha_h], axis=-1)
    moves[:, :, -1, :2] = np.einsum("mka,mkba->mkb", lead, inverse)
    moves[:, :, -1, 2] = rest
    same = (fixed.rows == rows[:, None]) & (rows >= 0)[:, None]  # a run that is in the discretization moves as itself
    for place, entry in zip(*np.nonzero(same), strict=True):
        moves[place, :, entry] = moves[place, :, -1]
    moves[~ahead] = np.nan
    mean = q_fixed.T @ posterior.half + fixed.shift
    return TraceMoves(means=np.column_stack([np.tile(mean, (m, 1)), q_own.T @ posterior.half + own.shift]), moves=moves)


def own_values(posterior: CurvePosterior, candidates: TraceCandidates) -> Query:
    """The values at the target of the runs themselves."""
    fresh, begun = np.flatnonzero(candidates.rows < 0), np.flatnonzero(candidates.rows >= 0)
    new, old = posterior.new(candidates.X[fresh]), posterior.started(candidates.rows[begun])
    order = np.argsort(np.concatenate([fresh, begun]))

    def joined(one: Array, other: Array) -> Array:
        return np.concatenate([one, other])[order]

    return Query(
        joined(new.X, old.X), joined(new.t, old.t), candidates.rows, joined(new.psi, old.psi), joined(new.shift, old.shift),
        joined(new.own, old.own),
    )  # fmt: skip


def unit_query(X: Array, column: int) -> Query:
    """g or h itself."""
    nothing, psi = np.zeros(len(X)), np.zeros((len(X), 2))
    psi[:, column] = 1.0
    return Query(X, nothing, np.full(len(X), -1, dtype=np.intp), psi, nothing, nothing)


# -- equation (2) -------------------------------------------------------------------------------------------------------


def log_trace_kg(moves: TraceMoves, worth: Callable[[Array], Array] | None = None, refined: int = MAX_REFINED) -> Array:
    """log KG of each candidate and stop (m x k), -inf where a stop is not ahead.

    All are valued by a lower bound; then the ``refined`` best are valued over all three directions. ``worth`` says what they are
    compared by, given log KG: log KG itself, or ``log_worth``.
    """
    m, k, size, _ = moves.moves.shape
    log_kg = np.full(m * k, -np.inf)
    B = moves.moves.reshape(m * k, size, 3)
    valid = np.flatnonzero(np.isfinite(B[:, 0, 0]))
    if not len(valid):
        return log_kg.reshape(m, k)
    a = moves.means[valid // k]
    turned = principal(a, B[valid])
    log_kg[valid] = log_expected_drop(a, turned[:, :, 0])
    compared = log_kg if worth is None else worth(log_kg.reshape(m, k)).reshape(-1)
    best = np.argsort(-compared[valid], kind="stable")[:refined]
    log_kg[valid[best]] = np.maximum(log_drop_over_three(a[best], turned[best]), log_kg[valid[best]])
    return log_kg.reshape(m, k)


def log_worth(log_kg: Array, log_cost: Array, others: tuple[float, float] | None = None) -> Array:
    """log KG - log cost (m x k), -inf where log KG is, or where the cost is NaN: a stop that is not ahead or not allowed.

    ``others`` are the KG g and the cost c of the other members of a batch that runs at the same time. Then it is
    log (g + KG) - log max(c, cost), equation (3.4) of ``kg_fidelity``: what takes no longer than the others costs nothing more.
    """
    allowed = np.isfinite(log_kg) & np.isfinite(log_cost)
    if others is None:
        return np.where(allowed, log_kg - log_cost, -np.inf)
    gain, cost = others
    joint = np.logaddexp(np.log(max(gain, 1e-300)), log_kg)
    return np.where(allowed, joint - np.maximum(log_cost, np.log(cost)), -np.inf)


def principal(a: Array, B: Array) -> Array:
    """B in rotated coordinates: first the direction in which the candidates for the minimum differ most.

    Each value counts by how near its mean is to the lowest one, in its own deviations: what cannot become the minimum does not.
    """
    relative = B - np.take_along_axis(B, np.argmin(a, axis=1)[:, None, None], axis=1)
    spread = np.einsum("nij,nij->ni", relative, relative)
    gap = (a - a.min(axis=1, keepdims=True)) ** 2
    weight = np.exp(-0.5 * np.minimum(gap / np.maximum(spread, 1e-300), 700.0))
    _, vectors = np.linalg.eigh(np.swapaxes(weight[:, :, None] * relative, 1, 2) @ relative)
    return np.asarray(B @ vectors[:, :, ::-1])


def log_drop_over_three(a: Array, B: Array) -> Array:
    """log (min a - E min(a + B z)): exact over the first direction, by sums over the others."""
    nodes, weights = quadrature()
    count, size = a.shape
    moved = a[:, None, :] + nodes @ np.swapaxes(B[:, :, 1:], 1, 2)
    inner = np.repeat(B[:, None, :, 0], len(nodes), axis=1)
    drop = log_expected_drop(moved.reshape(-1, size), inner.reshape(-1, size)).reshape(count, -1)
    total = (np.exp(drop) + (a.min(axis=1)[:, None] - moved.min(axis=2))) @ weights
    return np.where(total > 0.0, np.log(np.maximum(total, 1e-300)), LOG_NO_DROP)


@cache
def quadrature() -> tuple[Array, Array]:
    """Nodes (q x 2) and weights of a product of Gauss-Hermite rules."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in NODES]
    nodes = np.array([(x, y) for x in rules[0][0] for y in rules[1][0]])
    weights = np.array([u * v for u in rules[0][1] for v in rules[1][1]])
    return nodes, weights / weights.sum()
