"""Sparse Gaussian processes: specifications for thousands of trials, and how they are fitted.

The fit goes in three steps. Hyperparameters first come from the exact GP of a sample (which starts from ``start``); inducing
points are data points, the best and others far from each other; then the evidence of all data is climbed, first with the
length scales held and then with all that moves: the numbers of the inducing points and the hyperparameters together. Climbed
without the first step from fit to fit, or at once with free length scales, VFE soon gives up parameters that matter.

Nothing but the hyperparameters goes from one fit to the next: a study that is resumed elsewhere computes the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, single_threaded
from .gp import GP, OUTPUTS, SAMPLE_ROWS, Fit, sample_by_rank
from .gradient_data import GradientData
from .hyperparameters import Layout
from .kernels import PROFILES
from .sparse_likelihood import Approximation, SparseMarginalLikelihood, sparse_posterior
from .subset import Subset, spread

log = logging.getLogger("shoestring")

INDUCING = 5  # points a parameter
EXACT_UNTIL = 30  # trials a parameter
BEST = 0.2  # the share of inducing points that start at the best data
STEPS = 15  # of each climb: three times as many gain a little more, at a time that a suggestion should not take
IMPOSSIBLE = 1e15  # minus the evidence where it cannot be computed: above VFE's, which falls as 1 / noise
FEW = 3  # a column with at most so many values keeps to them: the data have them all
EDGE = 1e-3  # how near the ends of a warped axis an inducing point may come: the slope is unbounded there


@dataclass(frozen=True)
class SparseGP:
    """What VFE and FITC have in common.

    m            inducing points; 5 a parameter by default
    kernel, warp, output  as for ``GP``;  inference  "map" alone: hyperparameters at their most probable values
    exact_until  trials a parameter up to which the exact GP is fitted, which is as fast then
    """

    m: int | None = None
    kernel: Literal["matern52", "se"] = "matern52"
    inference: Literal["map"] = "map"
    warp: bool = False
    output: Literal["auto", "standard", "log", "bent"] = "auto"
    exact_until: int = EXACT_UNTIL

    how: ClassVar[Approximation]
    subset: ClassVar[Subset | None] = None  # it learns from all trials

    def __post_init__(self) -> None:
        name = type(self).__name__
        for field, value, known in (("kernel", self.kernel, tuple(PROFILES)), ("output", self.output, OUTPUTS)):
            if value not in known:
                raise MethodError(f"{name}: {field} must be one of {', '.join(map(repr, known))}, not {value!r}")
        if self.inference != "map":
            raise MethodError(
                f'{name}: inference must be "map", not {self.inference!r}; for "mcmc" write st.GP(inference="mcmc"), on a '
                "subset of the trials where they are many"
            )
        if not whole(self.m, 1) and self.m is not None:
            raise MethodError(f"{name}: m must be a whole number >= 1, or None for {INDUCING} a parameter, not {self.m!r}")
        if not whole(self.exact_until, 0):
            given = f"not {self.exact_until!r}"
            raise MethodError(f"{name}: exact_until must be a whole number >= 0 ({EXACT_UNTIL} by default), {given}")

    @single_threaded
    def fit(
        self, Z: Array, y: Array, groups: NDArray[np.intp] | None = None, *, start: Array | None = None,
        cold: bool | None = None, fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
    ) -> Fit:
        """The most probable hyperparameters and inducing points for features Z and standardised targets y, and the posterior.

        ``groups``, ``start``, ``cold`` and ``far`` as for ``GP``; slopes are made use of while the exact GP is fitted. Never
        raises on numerical trouble: keeps the hyperparameters of the sample, and says so.
        """
        layout = Layout(np.arange(Z.shape[1]) if groups is None else groups, self.warp, fidelities)
        count = INDUCING * layout.count if self.m is None else self.m
        exact = GP(kernel=self.kernel, warp=self.warp, output=self.output)
        if len(y) <= count or len(y) < self.exact_until * layout.count:
            return exact.fit(Z, y, layout.groups, start=start, cold=cold, fidelities=fidelities, gradients=gradients)
        rows = sample_by_rank(y, SAMPLE_ROWS)
        sampled = exact.fit(Z[rows], y[rows], layout.groups, start=start, cold=cold, fidelities=fidelities)
        U = inducing_points(layout.kernel(sampled.theta, self.kernel).scale(Z), Z, y, count)
        evidence = SparseMarginalLikelihood(Z, y, layout, self.kernel, self.how)
        theta, note = sampled.theta.copy(), ""
        if self.how == "vfe":  # what the inducing points leave over is noise to it: without this it starts far below
            low, high = layout.bounds[layout.count + 1]
            theta[layout.count + 1] = np.clip(np.log(max(layout.noise(theta), evidence.unexplained(theta, U))), low, high)
        value = -np.inf
        for held in (True, False):
            value, theta, U = climb_with_inducing(evidence, theta, U, held)
        if not np.isfinite(value):
            note = "the fit failed; the hyperparameters of a sample were used"
            log.warning("%s: %s (n = %d)", type(self).__name__, note, len(y))
        posterior = sparse_posterior(layout.kernel(theta, self.kernel), layout.noise(theta), Z, y, U, self.how)
        return Fit(posterior, theta, value, sampled.evaluations + evidence.evaluations, note)


@dataclass(frozen=True)
class VFE(SparseGP):
    """``VFE(m=None, kernel="matern52", warp=False, output="auto", exact_until=30)``: a sparse GP by variational free energy.

    Titsias (2009): the posterior of the exact GP as nearly as ``m`` inducing points (5 a parameter by default) can tell it,
    hyperparameters and points by a bound from below on the evidence. What the points cannot tell counts as noise.
    The exact GP up to ``exact_until`` trials a parameter; ``kernel``, ``warp``, ``output`` as for ``GP``.
    """

    how: ClassVar[Approximation] = "vfe"


@dataclass(frozen=True)
class FITC(SparseGP):
    """``FITC(m=None, kernel="matern52", warp=False, output="auto", exact_until=30)``: a sparse GP whose values are independent
    given the inducing ones.

    Snelson, Ghahramani (2005): what ``m`` inducing points (5 a parameter by default) cannot tell is noise of its own for each
    value, so that prior variances stay exact. Otherwise as ``VFE``.
    """

    how: ClassVar[Approximation] = "fitc"


Model = GP | VFE | FITC


def inducing_points(A: Array, Z: Array, y: Array, count: int) -> Array:
    """Up to ``count`` different rows of Z: the best, and others spread over the scaled features A; the same each time."""
    best = np.argsort(y, kind="stable")[: max(1, round(BEST * count))].astype(np.intp)
    return Z[spread(A, count, np.random.default_rng(0), best)]


def climb_with_inducing(evidence: SparseMarginalLikelihood, theta: Array, U: Array, held: bool) -> tuple[float, Array, Array]:
    """The end of a short gradient ascent over theta and the numbers of U; ``held``: length scales and warping stay."""

    from scipy.optimize import minimize  # here, since it is slow to import

    layout, Z = evidence.layout, evidence.Z
    moving = movable(Z, layout.groups)
    bounds = [(float(value), float(value)) for value in theta] if held else list(layout.bounds)
    bounds[layout.count : layout.count + 2] = layout.bounds[layout.count : layout.count + 2]
    lows, highs = np.minimum(Z.min(axis=0), 0.0), np.maximum(Z.max(axis=0), 1.0)
    if layout.warped:
        lows, highs = np.full(Z.shape[1], EDGE), np.full(Z.shape[1], 1.0 - EDGE)
    bounds += list(zip(lows[moving], highs[moving], strict=True)) * len(U)

    def parts(x: Array) -> tuple[Array, Array]:
        points = U.copy()
        points[:, moving] = x[layout.size :].reshape(len(U), -1)
        return x[: layout.size], points

    def negative(x: Array) -> tuple[float, Array]:
        value, d_theta, d_U = evidence(*parts(x))
        if not np.isfinite(value):
            return IMPOSSIBLE, np.zeros_like(x)
        return -value, -np.concatenate([d_theta, d_U[:, moving].ravel()])

    start = np.clip(np.concatenate([theta, U[:, moving].ravel()]), *np.array(bounds).T)
    end = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": STEPS, "maxfun": 2 * STEPS, "ftol": 1e-6, "gtol": 0.02},
    )
    if not end.fun < IMPOSSIBLE:
        return -np.inf, theta, U
    theta, U = parts(np.asarray(end.x))
    return -float(end.fun), theta, U


def movable(Z: Array, groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns are numbers that an inducing point may change; those of choices keep the values of data.

    Known by what the data show: a choice is a block of columns, or one column with two values and a third where it is inactive.
    """
    alone = np.bincount(groups)[groups] == 1
    return np.array([one and len(np.unique(column)) > FEW for one, column in zip(alone, Z.T, strict=True)], dtype=bool)


def whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
