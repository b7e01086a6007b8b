"""The low-variance cost model: log cost linear in the features of a few hyperparameters.

    log c = w0 + sum_k w_k f_k + noise,    f_k the log-scaled features of at most ``features`` hyperparameters

(Lee et al. 2020; figure 2 of the cost-aware paper: with few evaluations it predicts better than a Gaussian process.) The
hyperparameters are found by greedy forward selection: each step adds the one, with the ridge strength, that lowers the
closed-form leave-one-out error (PRESS, see ``ridge``) most, and the search ends when the gain is no more than chance.

``features=None`` keeps every hyperparameter, at a ridge of fixed strength. With few evaluations that predicts better than a
selection where more than a few hyperparameters matter (HPOBench tables, 10 evaluations: RMSE 1.17 against 1.62).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoding import Encoding
from ...errors import MethodError
from ...numerics import Array, single_threaded
from .base import CostObservations
from .features import CostFeatures
from .ridge import Ridge, penalties, with_intercept

STRENGTHS = (1.0, 0.1, 0.01, 0.001)  # of the ridge; the strongest first, so that it wins ties
MARGIN = 1.0  # a further hyperparameter must lower PRESS by MARGIN / n of itself
EVERYTHING = 0.1  # the ridge's strength where nothing is left out: slopes of three deviations of the noise are no surprise
FINE = 0.01  # an error of log cost (1 %) that is not worth a further hyperparameter


@dataclass(frozen=True)
class LinearCost:
    """``LinearCost(features=3)``: linear in the log features of at most that many hyperparameters; None: of all of them."""

    features: int | None = 3

    def __post_init__(self) -> None:
        check_features("LinearCost", self.features)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> LinearPosterior:
        features = CostFeatures(encoding)
        F = features(costs.U)
        if self.features is None:
            chosen, strength = list(range(len(encoding.space))), EVERYTHING
        else:
            chosen, strength = select(F, features.groups, costs.gamma, self.features)
        return LinearPosterior.given(features, chosen, strength, F, costs.gamma)


def check_features(model: str, features: object) -> None:
    if features is None:
        return
    if isinstance(features, bool) or not isinstance(features, int | np.integer) or features < 1:
        raise MethodError(f"{model}: features must be a whole number of at least 1, or None for all, not {features!r}")


@dataclass(frozen=True)
class LinearPosterior:
    """A fitted linear cost model; ``parameters`` are the numbers of its hyperparameters in the space."""

    name: str
    features: CostFeatures
    parameters: tuple[int, ...]
    columns: NDArray[np.intp]
    strength: float
    ridge: Ridge
    gamma: Array

    @classmethod
    def given(cls, features: CostFeatures, parameters: list[int], strength: float, F: Array, gamma: Array) -> LinearPosterior:
        """The posterior for a known selection and ridge strength."""
        if len(gamma) == 0:
            raise MethodError("a cost model needs at least one observed cost")
        columns = features.columns(parameters)
        ridge = Ridge.solve(with_intercept(F[:, columns]), gamma, penalties(strength, len(columns)))
        names = [features.encoding.space.names[j] for j in parameters]
        everything = len(names) == len(features.encoding.space)
        name = "linear" if everything else f"linear in {', '.join(names)}" if names else "constant"
        return cls(name, features, tuple(parameters), columns, strength, ridge, gamma)

    def design(self, U: Array) -> Array:
        return with_intercept(self.features(U)[:, self.columns])

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, spread, _ = self.ridge.predict(self.design(U))
        return mean, self.ridge.noise + spread

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        mean, spread, d_mean, d_spread = self.weights_with_gradient(U)
        return mean, self.ridge.noise + spread, d_mean, d_spread

    def weights_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and the variance due to uncertain weights alone, with gradients."""
        mean, spread, solved = self.ridge.predict(self.design(U))
        d_mean, d_spread = np.zeros((2, len(U), len(self.features.groups)))
        d_mean[:, self.columns] = self.ridge.weights[1:]
        d_spread[:, self.columns] = 2.0 * self.ridge.noise * solved[:, 1:]
        return mean, spread, self.features.pull_back(U, d_mean), self.features.pull_back(U, d_spread)

    def left_out(self) -> tuple[Array, Array]:
        return self.ridge.left_out(self.gamma)


def select(
    F: Array, groups: NDArray[np.intp], gamma: Array, most: int, *, all_of_them: bool = False
) -> tuple[list[int], float]:
    """The parameters that matter, the most telling first, and the ridge strength; ``all_of_them``: without stopping early.

    One parameter for every three observations beyond the first at most: with fewer, PRESS itself is a matter of luck.
    """
    n = len(gamma)
    chosen: list[int] = []
    strength = STRENGTHS[0]
    if n < 2:
        return chosen, strength
    allowed = most if all_of_them else min(most, (n - 1) // 3)
    blocks = {int(j): F[:, groups == j] for j in np.unique(groups) if np.ptp(F[:, groups == j], axis=0).max() > 0}
    design = np.ones((n, 1))
    best = _press(design, gamma, strength)
    while len(chosen) < min(allowed, len(blocks)):
        tried = [
            (_press(np.column_stack([design, block]), gamma, ridge), j, ridge)
            for j, block in blocks.items() if j not in chosen
            for ridge in STRENGTHS
        ]
        press, winner, ridge = min(tried, key=lambda entry: entry[0])
        if not all_of_them and press >= best * (1.0 - MARGIN / n):
            break
        chosen.append(winner)
        best, strength = press, ridge
        design = np.column_stack([design, blocks[winner]])
    return chosen, strength


def _press(X: Array, gamma: Array, strength: float) -> float:
    """PRESS, plus what is too small to matter."""
    return Ridge.solve(X, gamma, penalties(strength, X.shape[1] - 1)).press + len(gamma) * FINE**2
