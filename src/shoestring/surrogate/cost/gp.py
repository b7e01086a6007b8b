"""A Gaussian process on log cost, with or without a choice of features.

Notation
    y = (gamma - centre) / scale        standardised log costs
    K, L, alpha, Q = K^-1               of ``posterior``: K = s2 rho + noise I = L L'
    R = (K + tau^2 1 1')^-1             with the constant mean integrated out; R y = alpha
    without row i:  mean y_i - alpha_i / R_ii,  variance 1 / Q_ii (Rasmussen and Williams, section 5.4.2)

R rather than Q in the mean, since the constant mean is found anew without row i; R = Q - Q1 (Q1)' / (1'Q1 + 1 / tau^2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoding import Encoding
from ...errors import MethodError
from ...numerics import Array, single_threaded
from ..evidence import TAU2
from ..gp import GP, SAMPLE, sample_by_rank
from ..hyperparameters import Layout
from ..posterior import Posterior
from .base import CostObservations, start_from
from .features import CostFeatures
from .linear import check_features, select
from .ridge import NOTHING, PRIOR_NOISE, PRIOR_WEIGHT

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
            return fit_process(costs.U, costs.gamma, encoding, range(len(encoding.space)), "GP", start)
        F = CostFeatures(encoding)(costs.U)
        chosen, _ = select(F, encoding.groups, costs.gamma, self.features, all_of_them=True)
        chosen = chosen or [0]  # every evaluation at one point: any parameter says as little as another
        names = ", ".join(encoding.space.names[j] for j in chosen)
        return fit_process(costs.U, costs.gamma, encoding, chosen, f"GP over {names}")


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

    def left_out(self) -> tuple[Array, Array]:
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
    rows = sample_by_rank(y, SAMPLE)
    fit = ENGINE.fit(Z[rows], y[rows], groups, start=start)
    process = fit.posterior
    if len(rows) < n:
        layout = Layout(groups, ENGINE.warp)
        process = Posterior.given(layout.kernel(fit.theta, ENGINE.kernel), layout.noise(fit.theta), Z, y)
    return GPCostPosterior(name, encoding, columns, process, centre, scale, tuple(fit.theta.tolist()))
