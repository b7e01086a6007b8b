"""Gaussian processes on log cost: alone (``LogGPCost``), or on the residuals of the linear model (``ResidualGPCost``, GP-LV).

Notation for a GP alone
    y = (gamma - centre) / scale        standardised log costs
    K, L, alpha, Q = K^-1               as in ``posterior``: K = s2 rho + noise I = L L'
    (1)  R = (K + tau^2 1 1')^-1 = Q - Q1 (Q1)' / (1'Q1 + 1 / tau^2)      the constant mean integrated out; R y = alpha
    (2)  without row i:  mean y_i - alpha_i / R_ii,  variance 1 / Q_ii    (Rasmussen and Williams 2006, equation 5.12)
R rather than Q in the mean, since the constant mean is estimated again without row i.

Notation for residuals (see also ``linear``)
    r = gamma - X w                     residuals of the linear model; z = (r - centre) / scale are the targets of the GP
    (3)  mean(x) = x'w + GP mean(x),  variance(x) = sigma^2 x'A^-1 x + GP variance(x)
    (4)  without row i:  mean_i = gamma_i - (R r)_i / R_ii - (R H)_ii e_i / (1 - h_i) / R_ii,  H = X A^-1 X'

The noise sigma^2 of the linear model is not added in (3): it is the spread of r, which the GP explains, noise included. The
uncertainty of the weights is added as if it were independent, which errs on the side of more variance far from the data.
In (4) the weights move by -A^-1 x_i e_i / (1 - h_i) without row i, so the residuals become r + H_.i e_i / (1 - h_i), and these
are put into (2). It is exact at fixed selection, ridge strength and hyperparameters.

Sources of GP-LV: Lee et al., "Cost-aware Bayesian optimization" (2020); Guinet, Perrone, Archambeau, "Pareto-efficient
acquisition functions for cost-aware Bayesian optimization" (2020), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.gp import GP, SAMPLE_ROWS
from ..surrogate.marginal_likelihood import TAU2, Layout
from ..surrogate.posterior import Posterior
from ..surrogate.subset import sample_by_rank
from .base import CostModel, CostObservations, CostPosterior, WarmStart, theta_of
from .features import CostFeatures, checked_features, named_parameters
from .linear import PRIOR_NOISE, PRIOR_OBSERVATIONS, UNKNOWN_MEAN, UNKNOWN_VARIANCE, LinearCost, LinearPosterior, select

SPECIFICATION = GP(output="standard")
MIN_COSTS_FOR_SELECTION = 4  # observations: with fewer no feature can be said to matter more than another


@dataclass(frozen=True)
class LogGPCost(CostModel):
    """A Gaussian process on log cost.

    Use it where costs have no simple form and trials are many; ``ResidualGPCost`` combines it with the linear model.

    features  over which hyperparameters, by name; or over the k most informative ones; None: all of them

    >>> study = st.Study(st.Space(depth=st.Int(1, 16)), method=st.EIpu(), cost_model=st.LogGPCost())
    >>> for depth in (1, 2, 4, 8, 16):
    ...     _ = study.add({"depth": depth}, value=0.1, cost=3.0 * depth)
    >>> study.context.cost.name
    'GP'
    """

    features: int | Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_features("LogGPCost", self.features))

    def check_space(self, space: Space) -> None:
        if isinstance(self.features, tuple):
            named_parameters("LogGPCost", self.features, space)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> GPCostPosterior:
        if len(costs) == 0:
            raise MethodError("a cost model needs at least one observed cost")
        if isinstance(self.features, tuple):
            chosen = named_parameters("LogGPCost", self.features, encoding.space)
        elif self.features is None or len(costs) < MIN_COSTS_FOR_SELECTION:
            start = theta_of(warm_start, "GPCostPosterior")
            return fit_process(costs.U, costs.log_cost, encoding, range(len(encoding.space)), "GP", start)
        else:
            assert isinstance(self.features, int)
            F = CostFeatures(encoding)(costs.U)
            chosen, _ = select(F, encoding.groups, costs.log_cost, self.features, all_of_them=True)
            chosen = chosen or [0]  # all evaluations at one point: every parameter is as uninformative as any other
        names = ", ".join(encoding.space.names[j] for j in chosen)
        return fit_process(costs.U, costs.log_cost, encoding, chosen, f"GP over {names}")


@dataclass(frozen=True)
class GPCostPosterior(CostPosterior):
    """The posterior of a GP for log cost, or for a part of it, in units of log cost."""

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
        mean, variance, *gradients = self.process.with_gradients(self.encoding.features(U)[:, self.columns])
        pulled = []
        for gradient, unit in zip(gradients, (self.scale, self.scale**2), strict=True):
            dZ = np.zeros((len(U), self.encoding.width))
            dZ[:, self.columns] = unit * gradient
            pulled.append(self.encoding.pull_back(U, dZ))
        return self.centre + self.scale * mean, self.scale**2 * (variance + self.process.noise), pulled[0], pulled[1]

    @cached_property
    def inverses(self) -> tuple[Array, Array]:
        """Q and R, equation (1)."""
        Q = self.process.R.T @ self.process.R
        row = Q.sum(axis=0)
        return Q, Q - np.outer(row, row) / (row.sum() + 1.0 / TAU2)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Equation (2)."""
        n = len(self.process)
        if n < 2:
            return np.full(n, UNKNOWN_MEAN), np.full(n, UNKNOWN_VARIANCE)
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
    # With few data, or equal costs, the observed spread says little about the true one: a prior as in ``linear``, equation (4).
    scale = float(np.sqrt((PRIOR_OBSERVATIONS * PRIOR_NOISE + off @ off) / (PRIOR_OBSERVATIONS + n - 1.0)))
    Z, y = encoding.features(U)[:, columns], off / scale
    rows = sample_by_rank(y, SAMPLE_ROWS)
    fit = SPECIFICATION.fit(Z[rows], y[rows], groups, start=start)
    process = fit.posterior
    if len(rows) < n:
        layout = Layout(groups, SPECIFICATION.warp)
        process = Posterior.given(layout.kernel(fit.theta, SPECIFICATION.kernel), layout.noise(fit.theta), Z, y)
    return GPCostPosterior(name, encoding, columns, process, centre, scale, tuple(fit.theta.tolist()))


@dataclass(frozen=True)
class ResidualGPCost(CostModel):
    """A linear model of log cost, and a Gaussian process on its residuals.

    Use it where costs grow like powers on the whole, with exceptions; plain ``LinearCost`` is enough where there are none.

    features  of the linear model: which hyperparameters, by name; or how many at most; None: all of them

    >>> study = st.Study(st.Space(depth=st.Int(1, 16)), method=st.EIpu(), cost_model=st.ResidualGPCost())
    >>> for depth in (1, 2, 4, 8, 16):
    ...     _ = study.add({"depth": depth}, value=0.1, cost=3.0 * depth)
    >>> study.context.cost.name
    'linear + GP'
    """

    features: int | Sequence[str] | None = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_features("ResidualGPCost", self.features))

    def check_space(self, space: Space) -> None:
        if isinstance(self.features, tuple):
            named_parameters("ResidualGPCost", self.features, space)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> ResidualPosterior:
        linear = LinearCost(self.features).fit(costs, encoding)
        return with_residuals(linear, costs, encoding, theta_of(warm_start, "ResidualPosterior"))


def with_residuals(
    linear: LinearPosterior, costs: CostObservations, encoding: Encoding, start: Array | None = None
) -> ResidualPosterior:
    """A fitted linear model, and a GP over every hyperparameter on its residuals; ``start``: hyperparameters of the last fit."""
    rest = fit_process(costs.U, linear.ridge.error, encoding, range(len(encoding.space)), "GP", start)
    return ResidualPosterior(f"{linear.name} + GP", linear, rest, linear.design(costs.U), rest.theta)


@dataclass(frozen=True)
class ResidualPosterior(CostPosterior):
    """The sum of a linear model and a GP, equation (3)."""

    name: str
    linear: LinearPosterior
    rest: GPCostPosterior
    X: Array  # the design of the linear model
    theta: tuple[float, ...] = ()  # of the GP

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, weight_variance, _ = self.linear.ridge.predict(self.linear.design(U))
        more, variance = self.rest.log_cost(U)
        return mean + more, weight_variance + variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        linear = self.linear.without_noise_with_gradient(U)
        rest = self.rest.log_cost_with_gradient(U)
        mean, variance, d_mean, d_variance = (one + other for one, other in zip(linear, rest, strict=True))
        return mean, variance, d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        """Equation (4)."""
        ridge, n = self.linear.ridge, len(self.X)
        if n < 2:
            return self.rest.leave_one_out()
        Q, R = self.rest.inverses
        H_R = np.einsum("ij,ji->i", R, self.X @ ridge.inverse @ self.X.T)  # diag(R H), both symmetric
        own = self.rest.process.alpha * self.rest.scale  # R (r - centre)
        mean = self.linear.gamma - (own + H_R * ridge.leave_one_out_error) / np.diag(R)
        variance = self.rest.scale**2 / np.diag(Q) + ridge.leave_one_out_noise * ridge.leverage / ridge.free_leverage
        return mean, variance
