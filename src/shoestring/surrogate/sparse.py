"""Sparse Gaussian processes for thousands of trials (VFE, FITC): specifications, and their fit.

The fit has three steps. (1) Hyperparameters come from the exact GP of a sample of the trials, which starts from ``start``.
(2) Inducing points are placed at data points: the best ones, and others far from each other. (3) The likelihood of all data is
maximised, first with the length scales fixed, then over everything that can move: the hyperparameters and the numeric features
of the inducing points. Without step (1) at each fit, or with free length scales from the beginning, VFE soon loses parameters
that matter.

Only the hyperparameters are passed from one fit to the next, so a resumed study computes the same.

Notation: Z (n x p) features, y (n) standardised targets, U (m x p) inducing points, theta the hyperparameters
(see ``sparse_likelihood``).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..errors import MethodError
from ..numerics import Array, single_threaded
from .base import Fit, Surrogate
from .gp import GP, OUTPUTS, SAMPLE_ROWS, check_choices
from .gradient_data import GradientData
from .kernels import PROFILES, Kernel
from .marginal_likelihood import Layout
from .output_transform import read_kind
from .posterior import Posterior
from .sparse_likelihood import Approximation, SparseMarginalLikelihood, sparse_posterior
from .subset import sample_by_rank, spread

log = logging.getLogger("shoestring")

INDUCING_POINTS = 5  # for each parameter
EXACT_TRIALS = 30  # for each parameter: up to these the exact GP is as fast
BEST_SHARE = 0.2  # of the inducing points: those that start at the best trials
MAX_STEPS = 15  # of each search: three times as many gain a little more, but take too long for a suggestion
FAILED_OBJECTIVE = 1e15  # minus the likelihood where it cannot be computed: above VFE's, which falls as 1 / noise
MAX_DISCRETE_VALUES = 3  # a feature with at most so many different values keeps to them: the data have them all
WARP_MARGIN = 1e-3  # distance of an inducing point from the ends of a warped axis: the derivative is unbounded there


@dataclass(frozen=True)
class SparseGP(Surrogate):
    """What VFE and FITC have in common.

    m            inducing points; 5 for each parameter by default
    kernel, warp, output  as for ``GP``;  inference  "map" only: the most probable hyperparameters
    exact_until  trials for each parameter up to which the exact GP is fitted, which is as fast then
    """

    m: int | None = None
    kernel: Literal["matern52", "se"] = "matern52"
    inference: Literal["map"] = "map"
    warp: bool = False
    output: Literal["auto", "standard", "log", "yeo-johnson"] = "auto"
    exact_until: int = EXACT_TRIALS

    approximation: ClassVar[Approximation]
    learns_gradients: ClassVar[bool] = True  # while the exact GP is fitted
    gaussian_process: ClassVar[bool] = True

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "output", read_kind(self.output))
        check_choices(name, kernel=(self.kernel, PROFILES), output=(self.output, OUTPUTS))
        if self.inference != "map":
            raise MethodError(
                f'{name}: inference must be "map", not {self.inference!r}; for "mcmc" write st.GP(inference="mcmc"), on a '
                "subset of the trials where they are many"
            )
        if self.m is not None:
            object.__setattr__(self, "m", whole_number(self.m, f"{name}: m (None for {INDUCING_POINTS} per parameter)", 1))
        object.__setattr__(self, "exact_until", whole_number(self.exact_until, f"{name}: exact_until", 0))

    @single_threaded
    def fit(
        self, Z: Array, y: Array, groups: NDArray[np.intp] | None = None, *, start: Array | None = None,
        cold: bool | None = None, fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
    ) -> Fit:
        """The most probable hyperparameters and inducing points for features Z and standardised targets y, and the posterior.

        The arguments are those of ``GP.fit``; gradients are used only while the exact GP is fitted. Never raises on numerical
        trouble: then the hyperparameters are those of the sample, and the fit's ``note`` says so.
        """
        layout = Layout(np.arange(Z.shape[1]) if groups is None else groups, self.warp, fidelities)
        count = INDUCING_POINTS * layout.count if self.m is None else self.m
        exact = GP(kernel=self.kernel, warp=self.warp, output=self.output)
        if len(y) <= count or len(y) < self.exact_until * layout.count:
            return exact.fit(Z, y, layout.groups, start=start, cold=cold, fidelities=fidelities, gradients=gradients)
        rows = sample_by_rank(y, SAMPLE_ROWS)
        sampled = exact.fit(Z[rows], y[rows], layout.groups, start=start, cold=cold, fidelities=fidelities)
        U = inducing_points(layout.kernel(sampled.theta, self.kernel).scale(Z), Z, y, count)
        likelihood = SparseMarginalLikelihood(Z, y, layout, self.kernel, self.approximation)
        theta, note = sampled.theta.copy(), ""
        if self.approximation == "vfe":  # what the inducing points do not explain is noise to VFE, so it starts with as much
            low, high = layout.bounds[layout.count + 1]
            theta[layout.count + 1] = np.clip(np.log(max(layout.noise(theta), likelihood.unexplained(theta, U))), low, high)
        value = -np.inf
        for fixed_lengths in (True, False):
            value, theta, U = maximize_sparse_likelihood(likelihood, theta, U, fixed_lengths)
        if not np.isfinite(value):
            note = "the fit failed; the hyperparameters of a sample were used"
            log.warning("%s: %s (n = %d)", type(self).__name__, note, len(y))
        kernel, noise = layout.kernel(theta, self.kernel), layout.noise(theta)
        posterior = sparse_posterior(kernel, noise, Z, y, U, self.approximation)
        restrict = partial(_posterior_of_rows, kernel, noise, Z, y, U, self.approximation)
        return Fit(posterior, theta, value, sampled.evaluations + likelihood.evaluations, note, restrict)


@dataclass(frozen=True)
class VFE(SparseGP):
    """A sparse Gaussian process by variational free energy (Titsias 2009), for thousands of trials.

    The best approximation of the exact posterior on ``m`` inducing points: hyperparameters and points maximise a lower bound of
    the log marginal likelihood, and what the points do not explain counts as noise. ``FITC`` keeps the prior variances exact
    instead. Leave ``model=`` alone unless you compare them: ``subset="auto"`` is faster.

    m                     inducing points; 5 for each parameter by default
    kernel, warp, output  as for ``GP``
    exact_until           trials for each parameter up to which the exact GP is fitted

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), model=st.VFE(m=20))
    >>> study.model.m
    20
    """

    approximation: ClassVar[Approximation] = "vfe"


@dataclass(frozen=True)
class FITC(SparseGP):
    """A sparse Gaussian process by fully independent training conditionals, for thousands of trials.

    Snelson and Ghahramani (2005): values are independent given those at ``m`` inducing points. What these do not explain is extra
    noise of each value, so that prior variances stay exact; ``VFE`` approximates the whole posterior better. The arguments are
    those of ``VFE``.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), model=st.FITC(m=20))
    >>> study.model.m
    20
    """

    approximation: ClassVar[Approximation] = "fitc"


def inducing_points(A: Array, Z: Array, y: Array, count: int) -> Array:
    """Up to ``count`` different rows of Z: the best, and others spread over the scaled features A. Deterministic."""
    best = np.argsort(y, kind="stable")[: max(1, round(BEST_SHARE * count))].astype(np.intp)
    return Z[spread(A, count, np.random.default_rng(0), best)]


def maximize_sparse_likelihood(
    likelihood: SparseMarginalLikelihood, theta: Array, U: Array, fixed_lengths: bool
) -> tuple[float, Array, Array]:
    """The end of a short L-BFGS-B search over theta and the numeric features of U, and its value first.

    ``fixed_lengths``: length scales and warping stay. (-inf, theta, U) where the likelihood can nowhere be computed.
    """

    from scipy.optimize import minimize  # here, since it is slow to import

    layout, Z = likelihood.layout, likelihood.Z
    moving = movable_columns(Z, layout.groups)
    bounds = [(float(value), float(value)) for value in theta] if fixed_lengths else list(layout.bounds)
    bounds[layout.count : layout.count + 2] = layout.bounds[layout.count : layout.count + 2]
    lows, highs = np.minimum(Z.min(axis=0), 0.0), np.maximum(Z.max(axis=0), 1.0)
    if layout.warped:
        lows, highs = np.full(Z.shape[1], WARP_MARGIN), np.full(Z.shape[1], 1.0 - WARP_MARGIN)
    bounds += list(zip(lows[moving], highs[moving], strict=True)) * len(U)

    def split(x: Array) -> tuple[Array, Array]:
        points = U.copy()
        points[:, moving] = x[layout.size :].reshape(len(U), -1)
        return x[: layout.size], points

    def negative(x: Array) -> tuple[float, Array]:
        value, d_theta, d_U = likelihood(*split(x))
        if not np.isfinite(value):
            return FAILED_OBJECTIVE, np.zeros_like(x)
        return -value, -np.concatenate([d_theta, d_U[:, moving].ravel()])

    start = np.clip(np.concatenate([theta, U[:, moving].ravel()]), *np.array(bounds).T)
    end = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": 1e-6, "gtol": 0.02},
    )
    if not end.fun < FAILED_OBJECTIVE:
        return -np.inf, theta, U
    theta, U = split(np.asarray(end.x))
    return -float(end.fun), theta, U


def movable_columns(Z: Array, groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which features are numbers that an inducing point may change; those of choices keep the values of the data.

    Decided from the data: a choice is a block of columns, or one column with two values and a third where it is inactive.
    """
    single = np.bincount(groups)[groups] == 1
    distinct = (len(np.unique(column)) > MAX_DISCRETE_VALUES for column in Z.T)
    return np.array([one and many for one, many in zip(single, distinct, strict=True)], dtype=bool)


def _posterior_of_rows(
    kernel: Kernel, noise: float, Z: Array, y: Array, U: Array, approximation: Approximation, rows: NDArray[np.intp]
) -> Posterior:
    """The posterior given some rows of the data; hyperparameters and inducing points stay."""
    return sparse_posterior(kernel, noise, Z[rows], y[rows], U, approximation)
