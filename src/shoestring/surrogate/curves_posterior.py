"""The posterior of a model of learning curves: values at any epoch of started and of new configurations, and how it is fitted.

See ``curves`` for the model and its notation. A value is linear in (g, h) of its configuration, and everything else about it
concerns its own run. For a run with points at times t_i, and c(t) the covariance of r + o at time t with these points:

    f_i(t) = psi'(g, h)(x_i) + c(t)'C_i^-1 y_i + e,    psi = P(t) - P_i'C_i^-1 c(t),    var e = v(t, t) - c(t)'C_i^-1 c(t)   (3)

A new configuration has no points: psi = P(t). (g, h) have the posterior of a Gaussian process that has observed u, with noise 1:

    q(x) = L_M^-1 S'k(x) psi,     mean = q'L_M^-1 u,     cov(x, x') = psi'k(x, x')psi - q(x)'q(x')                           (4)

f is what a run shows without its independent noise: the deviation that stays with a run (o) is a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..numerics import LOG_2PI, Array, cholesky, lapack, single_threaded
from .curves import (
    MEAN_VARIANCE,
    CurveLayout,
    CurveLikelihood,
    Curves,
    CurveShape,
    ReducedCurves,
    reduce_curves,
    whitened_covariance,
)
from .kernels import Kernel
from .marginal_likelihood import maximize_likelihood

MAX_CURVES_FOR_HYPERPARAMETERS = 60  # of more curves, so many are taken, spread over the ranks of their last values
DEGREES_OF_FREEDOM = 4.0  # of the t distribution that a curve's deviations have: the smaller, the less one odd curve matters
MIN_KAPPA, MAX_KAPPA = 0.25, 1e4
ROBUST_STEPS = 2  # how often kappa and the posterior are computed in turn


@dataclass(frozen=True)
class Query:
    """Values f at configurations X (m x p) and times t (m), each as in equation (3).

    rows   the curve that a value belongs to; below 0 a run that is not started, a number for each
    psi    m x 2;   shift  c(t)'C_i^-1 y_i;   own  var e, in units of the values
    """

    X: Array
    t: Array
    rows: NDArray[np.intp]
    psi: Array
    shift: Array
    own: Array


@dataclass(frozen=True, kw_only=True)
class CurvePosterior:
    """The posterior given curves and hyperparameters: see the module's docstring."""

    curves: Curves
    layout: CurveLayout
    theta: Array
    kappa: Array
    reduced: ReducedCurves
    R: Array  # L_M^-1
    half: Array  # L_M^-1 u

    @classmethod
    def given(cls, curves: Curves, layout: CurveLayout, theta: Array, kappa: Array | None = None) -> CurvePosterior:
        """The posterior under theta; kappa is 1 where it is not given."""
        kappa = np.ones(len(curves)) if kappa is None else kappa
        reduced = reduce_curves(curves, layout.shape(theta), kappa)
        if reduced is None:
            raise FloatingPointError("the covariance of a learning curve cannot be factored; use a larger noise in theta")
        K = [prior_covariance(k, v, curves.Z) for k, v in zip(layout.kernels(theta), MEAN_VARIANCE, strict=True)]
        L, _ = cholesky(whitened_covariance(reduced.S, K[0], K[1]))
        R, _ = lapack.dtrtri(L, lower=1)
        return cls(curves=curves, layout=layout, theta=theta, kappa=kappa, reduced=reduced, R=R, half=R @ reduced.u.ravel())

    @cached_property
    def shape(self) -> CurveShape:
        return self.layout.shape(self.theta)

    @cached_property
    def kernels(self) -> tuple[Kernel, Kernel]:
        return self.layout.kernels(self.theta)

    @cached_property
    def _runs(self) -> dict[tuple[int, float], tuple[Array, float, Array]]:
        return {}

    # -- values ----------------------------------------------------------------------------------------------------------

    def new(self, X: Array, t: Array | float = 1.0) -> Query:
        """Values of configurations that are not started; each is a run of its own."""
        times = np.broadcast_to(np.asarray(t, dtype=float), len(X))
        own = self.shape.variance(times)
        return Query(X, times, -1 - np.arange(len(X)), self.shape.basis(times), np.zeros(len(X)), own)

    def started(self, rows: NDArray[np.intp], t: Array | float = 1.0) -> Query:
        """Values of started runs."""
        times = np.broadcast_to(np.asarray(t, dtype=float), len(rows))
        psi, shift, own = np.empty((len(rows), 2)), np.empty(len(rows)), np.empty(len(rows))
        for k, (row, time) in enumerate(zip(rows, times, strict=True)):
            psi[k], shift[k], weights = self._run(int(row), float(time))
            own[k] = self._own_covariance(int(row), weights, float(time), weights, float(time))
        return Query(self.curves.Z[rows], times, np.asarray(rows), psi, shift, np.maximum(own, 0.0))

    def _run(self, row: int, t: float) -> tuple[Array, float, Array]:
        """psi, the shift and L^-1 c(t) of a started run at one time (3); kappa cancels in the first two."""
        found = self._runs.get((row, t))
        if found is None:
            times, values = self.curves.times[row], self.curves.values[row]
            inverse, V = self._factor(row)
            weights = inverse @ self.shape.covariance(times, np.array([t]))[:, 0]
            psi = self.shape.basis(np.array([t]))[0] - V.T @ weights
            found = self._runs[row, t] = psi, float(weights @ (inverse @ values)), weights
        return found

    def _factor(self, row: int) -> tuple[Array, Array]:
        """L^-1 and L^-1 P of a curve."""
        size = len(self.curves.times[row])
        inverse, _, V = self.reduced.factors[self._chain_of[row]]
        return inverse[:size, :size], V[:size]

    @cached_property
    def _chain_of(self) -> dict[int, int]:
        return {int(row): place for place, chain in enumerate(self.curves.chains) for row in chain.rows}

    def _own_covariance(self, row: int, one: Array, t: float, other: Array, s: float) -> float:
        """Covariance of e of one started run at two times."""
        prior = self.shape.covariance(np.array([t]), np.array([s]))[0, 0]
        return float(self.kappa[row] * (prior - one @ other))

    def whitened(self, query: Query) -> Array:
        """q of equation (4), 2n x m."""
        S_gg, S_hg, S_hh = self.reduced.S
        k_g, k_h = (
            (prior_covariance(kernel, constant, self.curves.Z, query.X) * query.psi[:, column])
            for column, (kernel, constant) in enumerate(zip(self.kernels, MEAN_VARIANCE, strict=True))
        )
        return self.R @ np.vstack([S_gg[:, None] * k_g + S_hg[:, None] * k_h, S_hh[:, None] * k_h])

    def mean_and_variance(self, query: Query) -> tuple[Array, Array]:
        """Of f (m each)."""
        q = self.whitened(query)
        prior = query.psi**2 @ (np.array([kernel.variance for kernel in self.kernels]) + MEAN_VARIANCE)
        return q.T @ self.half + query.shift, np.maximum(prior - np.einsum("ij,ij->j", q, q), 0.0) + query.own

    def covariance(self, one: Query, other: Query) -> Array:
        """Of f at two queries (m x l)."""
        found = -self.whitened(one).T @ self.whitened(other)
        for column, (kernel, constant) in enumerate(zip(self.kernels, MEAN_VARIANCE, strict=True)):
            prior = prior_covariance(kernel, constant, one.X, other.X)
            found += one.psi[:, column, None] * prior * other.psi[:, column]
        for i, k in zip(*np.nonzero(one.rows[:, None] == other.rows), strict=True):
            row, t, s = int(one.rows[i]), float(one.t[i]), float(other.t[k])
            if row >= 0:
                found[i, k] += self._own_covariance(row, self._run(row, t)[2], t, self._run(row, s)[2], s)
            else:
                found[i, k] += self.shape.covariance(one.t[i : i + 1], other.t[k : k + 1])[0, 0]
        return found

    def parts_at(self, X: Array) -> tuple[Array, Array]:
        """Mean (m x 2) and covariance (m x 2 x 2) of (g, h) at configurations."""
        mean, q = [], []
        for column in range(2):
            psi = np.zeros((len(X), 2))
            psi[:, column] = 1.0
            nothing = np.zeros(len(X))
            q.append(self.whitened(Query(X, nothing, nothing.astype(np.intp), psi, nothing, nothing)))
            mean.append(q[-1].T @ self.half)
        covariance = -np.einsum("ajm,bjm->mab", np.array(q), np.array(q))
        covariance[:, [0, 1], [0, 1]] += np.array([kernel.variance for kernel in self.kernels]) + MEAN_VARIANCE
        return np.stack(mean, axis=1), covariance

    # -- evidence --------------------------------------------------------------------------------------------------------

    def without_own(self) -> tuple[Array, Array]:
        """Mean (n x 2) and covariance (n x 2 x 2) of (g, h) of each curve's configuration, given the other curves alone."""
        n, S_i = len(self.curves), np.zeros((len(self.curves), 2, 2))
        S_i[:, 0, 0], S_i[:, 1, 0], S_i[:, 1, 1] = self.reduced.S
        inverse = self.R.T @ self.R
        own = np.empty((n, 2, 2))  # (M^-1)_ii
        own[:, 0, 0], own[:, 1, 1] = inverse[:n, :n].diagonal(), inverse[n:, n:].diagonal()
        own[:, 0, 1] = own[:, 1, 0] = inverse[n:, :n].diagonal()
        mean, covariance = self.parts_at(self.curves.Z)
        # (M^-1)_ii = I - S'(covariance)S. The residual of u_i, given the others, is (M^-1)_ii^-1 (M^-1 u)_i
        alpha = (self.R.T @ self.half).reshape(2, n).T
        residual = np.linalg.solve(own, alpha[:, :, None])[:, :, 0]
        half = covariance @ S_i
        mean = mean - np.einsum("nab,nb->na", half, residual)
        return mean, covariance + half @ np.linalg.inv(own) @ half.transpose(0, 2, 1)

    def leave_curve_out(self) -> Array:
        """The log density of each curve's last value, given the other curves alone (n), hyperparameters unchanged."""
        mean, covariance = self.without_own()
        t = np.array([each[-1] for each in self.curves.times])
        P = self.shape.basis(t)
        variance = np.einsum("na,nab,nb->n", P, covariance, P) + self.kappa * (self.shape.variance(t) + self.shape.noise)
        off = self.curves.last - np.einsum("na,na->n", P, mean)
        return np.asarray(-0.5 * (off**2 / variance + np.log(variance) + LOG_2PI))


def prior_covariance(kernel: Kernel, constant: float, X: Array, Y: Array | None = None) -> Array:
    """Of g or h at X and Y, the constant mean included."""
    return kernel.covariance(kernel.scale(X), None if Y is None else kernel.scale(Y)) + constant


# -- the fit ------------------------------------------------------------------------------------------------------------


def curve_weights(posterior: CurvePosterior) -> Array:
    """kappa: how much more each curve deviates from the model than the others, as under a t distribution for each curve.

    (nu + |L^-1 (y - P w)|^2) / (nu + length) at the posterior mean w of (g, h): the usual step of the EM algorithm.
    """
    curves, kappa = posterior.curves, np.empty(len(posterior.curves))
    mean, _ = posterior.parts_at(curves.Z)
    for chain, (inverse, P, _) in zip(curves.chains, posterior.reduced.factors, strict=True):
        off = chain.mask * (inverse @ (chain.mask * (chain.Y - P @ mean[chain.rows].T)))
        kappa[chain.rows] = (DEGREES_OF_FREEDOM + np.einsum("ti,ti->i", off, off)) / (DEGREES_OF_FREEDOM + chain.lengths)
    return np.clip(kappa, MIN_KAPPA, MAX_KAPPA)


def robust_posterior(curves: Curves, layout: CurveLayout, theta: Array) -> CurvePosterior:
    """The posterior under theta, with a kappa for each curve."""
    posterior = CurvePosterior.given(curves, layout, theta)
    for _ in range(ROBUST_STEPS):
        posterior = CurvePosterior.given(curves, layout, theta, curve_weights(posterior))
    return posterior


@single_threaded
def fit_hyperparameters(
    curves: Curves, groups: NDArray[np.intp], *, fidelities: tuple[int, ...] = (), start: Array | None = None
) -> tuple[float, Array]:
    """The most probable theta, and log p(y | theta) + log p(theta) of the curves it was fitted to.

    Twice: a curve that is unlike the others has a kappa above 1 in the second search, so that it does not decide about theta.
    """
    layout = CurveLayout(groups, fidelities)
    if len(curves) > MAX_CURVES_FOR_HYPERPARAMETERS:
        ranked = np.argsort(curves.last, kind="stable")
        spread = np.linspace(0, len(curves) - 1, MAX_CURVES_FOR_HYPERPARAMETERS).round().astype(np.intp)
        curves = curves.select(np.sort(ranked[spread]))
    first = layout.centre if start is None or len(start) != len(layout.centre) else layout.clip(start)
    value, theta = maximize_likelihood(cast(Any, CurveLikelihood(curves, layout)), first)
    if not np.isfinite(value):
        return value, layout.centre
    kappa = curve_weights(CurvePosterior.given(curves, layout, theta))
    again, better = maximize_likelihood(cast(Any, CurveLikelihood(curves, layout, kappa)), theta)
    return (again, better) if np.isfinite(again) else (value, theta)


# -- one running curve --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunForecaster:
    """Forecasts of one run from what the other curves say about its configuration: no fit, one small solve.

    mean, covariance   of (g, h) of the configuration, given the other curves
    """

    shape: CurveShape
    mean: Array
    covariance: Array

    def at(self, times: Sequence[float] | Array, values: Sequence[float] | Array, time: float = 1.0) -> tuple[float, float]:
        """Mean and variance of this run's value at the target, or at another time, given its points so far."""
        shape, t, y = self.shape, np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        one = np.array([time])
        P_end, own = shape.basis(one)[0], float(shape.covariance(one, one)[0, 0])
        if not len(t):
            return float(P_end @ self.mean), float(P_end @ self.covariance @ P_end) + own
        C = shape.covariance(t, t)
        C.reshape(-1)[:: len(t) + 1] += shape.noise
        L, info = lapack.dpotrf(C, lower=1, clean=1)
        if info != 0:
            L, _ = cholesky(C)
        P = shape.basis(t)
        columns = np.column_stack([P, y - P @ self.mean, shape.covariance(t, one)])
        whitened, _ = lapack.dtrtrs(L, columns, lower=1)
        V, v, c = whitened[:, :2], whitened[:, 2], whitened[:, 3]
        inner = np.linalg.inv(np.eye(2) + self.covariance @ (V.T @ V)) @ self.covariance  # covariance of (g, h) with this run
        step = inner @ (V.T @ v)
        fit = v - V @ step
        kappa = max((DEGREES_OF_FREEDOM + float(fit @ fit)) / (DEGREES_OF_FREEDOM + len(t)), 1.0)
        if kappa > 1.0:  # a curve that is unlike the others says less, and is less sure itself
            inner = np.linalg.inv(np.eye(2) + self.covariance @ (V.T @ V) / kappa) @ self.covariance
            step = inner @ (V.T @ v) / kappa
        psi = P_end - V.T @ c
        mean = P_end @ self.mean + P_end @ step + c @ (v - V @ step)
        return float(mean), float(psi @ inner @ psi + max(kappa * (own - float(c @ c)), 0.0))
