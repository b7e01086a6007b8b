"""A Gaussian process on log cost, with or without a choice of features.

Notation
    y = (gamma - centre) / scale        standardised log costs
    K, L, alpha, Q = K^-1               of ``posterior``: K = s2 rho + noise I = L L'
    R = (K + tau^2 1 1')^-1             with the constant mean integrated out; R y = alpha
    without row i:  mean y_i - alpha_i / R_ii,  variance 1 / Q_ii (Rasmussen and Williams, section 5.4.2)

R rather than Q in the mean, since the constant mean is found anew without row i; R = Q - Q1 (Q1)' / (1'Q1 + 1 / tau^2).

GP-LV: a Gaussian process on what the low-variance model leaves over (Lee et al. 2020; section 3.2 of the paper).

Notation (see ``ridge`` and ``gp``)
    r = gamma - X w                     residuals of the linear model; z = (r - centre) / scale is what the GP sees
    mean(x) = x'w + GP mean(x),  variance(x) = sigma^2 x'A^-1 x + GP variance(x)

The linear model's own noise sigma^2 is not added: it is the spread of r, which the GP explains, noise included. The
uncertainty of its weights is added as if it were independent, which errs on the side of more variance far from the data.

Without row i the weights move by -A^-1 x_i e_i / (1 - h_i), so the residuals become r + H_.i e_i / (1 - h_i), H = X A^-1 X'.
Put into the GP's left-out formula:  mean_i = gamma_i - (R r)_i / R_ii - (R H)_ii e_i / (1 - h_i) / R_ii.  Exact at fixed
selection, ridge strength and hyperparameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.encoding import Encoding
from ..surrogate.gp import GP, SAMPLE_ROWS
from ..surrogate.marginal_likelihood import TAU2, Layout
from ..surrogate.posterior import Posterior
from ..surrogate.subset import sample_by_rank
from .base import CostObservations, start_from
from .linear import NOTHING, PRIOR_NOISE, PRIOR_WEIGHT, CostFeatures, LinearCost, LinearPosterior, check_features, select

ENGINE = GP(output="standard")
ENOUGH_TO_CHOOSE = 4  # observations below which no feature can be said to matter more than another


@dataclass(frozen=True)
class LogGPCost:
    """``LogGPCost(features=None)``: a GP on log cost; ``features=k``: over the k hyperparameters that tell most."""

    features: int | None = None

    def __post_init__(self) -> None:
        check_features("LogGPCost", self.features)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> GPCostPosterior:
        if len(costs) == 0:
            raise MethodError("a cost model needs at least one observed cost")
        if self.features is None or len(costs) < ENOUGH_TO_CHOOSE:
            start = start_from(known, "GPCostPosterior")
            return fit_process(costs.U, costs.log_cost, encoding, range(len(encoding.space)), "GP", start)
        F = CostFeatures(encoding)(costs.U)
        chosen, _ = select(F, encoding.groups, costs.log_cost, self.features, all_of_them=True)
        chosen = chosen or [0]  # every evaluation at one point: any parameter says as little as another
        names = ", ".join(encoding.space.names[j] for j in chosen)
        return fit_process(costs.U, costs.log_cost, encoding, chosen, f"GP over {names}")


@dataclass(frozen=True)
class GPCostPosterior:
    """A GP's belief about log cost (or about a part of it), in the units of log cost."""

    name: str
    encoding: Encoding
    columns: NDArray[np.intp]
    process: Posterior
    centre: float
    scale: float
    theta: tuple[float, ...] = ()

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, variance = self.process.mean_and_variance(self.encoding.features(U)[:, self.columns])
        return self.centre + self.scale * mean, self.scale**2 * (variance + self.process.noise)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        mean, variance, *slopes = self.process.with_gradients(self.encoding.features(U)[:, self.columns])
        pulled = []
        for slope, unit in zip(slopes, (self.scale, self.scale**2), strict=True):
            dZ = np.zeros((len(U), self.encoding.width))
            dZ[:, self.columns] = unit * slope
            pulled.append(self.encoding.pull_back(U, dZ))
        return self.centre + self.scale * mean, self.scale**2 * (variance + self.process.noise), pulled[0], pulled[1]

    @cached_property
    def inverses(self) -> tuple[Array, Array]:
        """Q and R."""
        Q = self.process.R.T @ self.process.R
        row = Q.sum(axis=0)
        return Q, Q - np.outer(row, row) / (row.sum() + 1.0 / TAU2)

    def leave_one_out(self) -> tuple[Array, Array]:
        n = len(self.process)
        if n < 2:
            return np.full(n, NOTHING[0]), np.full(n, NOTHING[1])
        Q, R = self.inverses
        mean = self.process.y - self.process.alpha / np.diag(R)
        return self.centre + self.scale * mean, self.scale**2 / np.diag(Q)


def fit_process(
    U: Array, target: Array, encoding: Encoding, parameters: range | list[int], name: str, start: Array | None = None
) -> GPCostPosterior:
    """A GP for ``target`` over some parameters. Hyperparameters come from a sample of large data, the posterior from all."""
    n = len(target)
    columns = np.flatnonzero(np.isin(encoding.groups, list(parameters)))
    _, groups = np.unique(encoding.groups[columns], return_inverse=True)
    centre = float(target.mean())
    off = target - centre
    # With few data, or equal costs, the spread seen so far says little of the spread there is: see ``ridge``.
    scale = float(np.sqrt((PRIOR_WEIGHT * PRIOR_NOISE + off @ off) / (PRIOR_WEIGHT + n - 1.0)))
    Z, y = encoding.features(U)[:, columns], off / scale
    rows = sample_by_rank(y, SAMPLE_ROWS)
    fit = ENGINE.fit(Z[rows], y[rows], groups, start=start)
    process = fit.posterior
    if len(rows) < n:
        layout = Layout(groups, ENGINE.warp)
        process = Posterior.given(layout.kernel(fit.theta, ENGINE.kernel), layout.noise(fit.theta), Z, y)
    return GPCostPosterior(name, encoding, columns, process, centre, scale, tuple(fit.theta.tolist()))


@dataclass(frozen=True)
class ResidualGPCost:
    """``ResidualGPCost(features=3)``: a linear model of at most that many hyperparameters (None: of all), and a GP on its
    residuals."""

    features: int | None = 3

    def __post_init__(self) -> None:
        check_features("ResidualGPCost", self.features)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> ResidualPosterior:
        linear = LinearCost(self.features).fit(costs, encoding)
        start, everything = start_from(known, "ResidualPosterior"), range(len(encoding.space))
        rest = fit_process(costs.U, linear.ridge.error, encoding, everything, "GP", start)
        return ResidualPosterior(f"{linear.name} + GP", linear, rest, linear.design(costs.U))


@dataclass(frozen=True)
class ResidualPosterior:
    """A linear model and a GP, added."""

    name: str
    linear: LinearPosterior
    rest: GPCostPosterior
    X: Array  # the linear model's design

    @property
    def theta(self) -> tuple[float, ...]:
        return self.rest.theta

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, spread, _ = self.linear.ridge.predict(self.linear.design(U))
        more, variance = self.rest.log_cost(U)
        return mean + more, spread + variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        linear = self.linear.weights_with_gradient(U)
        rest = self.rest.log_cost_with_gradient(U)
        mean, variance, d_mean, d_variance = (one + other for one, other in zip(linear, rest, strict=True))
        return mean, variance, d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        ridge, n = self.linear.ridge, len(self.X)
        if n < 2:
            return self.rest.leave_one_out()
        Q, R = self.rest.inverses
        moved = ridge.left_out_error
        H_R = np.einsum("ij,ji->i", R, self.X @ ridge.inverse @ self.X.T)  # diag(R H), both symmetric
        own = self.rest.process.alpha * self.rest.scale  # R (r - centre)
        mean = self.linear.gamma - (own + H_R * moved) / np.diag(R)
        variance = self.rest.scale**2 / np.diag(Q) + ridge.left_out_noise * ridge.leverage / ridge.room
        return mean, variance
