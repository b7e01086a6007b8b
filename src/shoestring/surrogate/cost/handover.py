"""From a transferred cost model to this study's own, as evidence comes in.

Notation
    q(x)                        transferred prediction of log cost; tau^2, sigma^2 its variances (see ``regressors``)
    d_i = gamma_i - q(x_i)      what it missed by

Three candidates, by leave-one-out log predictive density:
    shifted     q + b, b ~ N(0, tau^2): this task as a whole is dearer or cheaper than foreseen
    corrected   q + the online model fitted to d
    online      the online model fitted to gamma: the transfer is overruled
Shifted is all there is up to two observations. With weight A = n + sigma^2 / tau^2 on the mean shift, it is a ridge regression
on a constant, so its left-out predictions are in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...choice import Choice
from ...encoding import Encoding
from ...numerics import Array
from .auto import score
from .base import CostModel, CostObservations, CostPosterior
from .features import CostFeatures
from .regressors import Offline
from .ridge import Ridge

PRIOR_ROWS = 4.0  # observations that the offline estimate of sigma^2 counts as
ENOUGH = 3  # observations from which on the transfer may be corrected by more than a shift, or overruled
STEP = 0.01  # of differences: wide, since trees and neighbours are flat in the small


@dataclass(frozen=True)
class Transferred:
    """q and its gradient at points."""

    name: str
    features: CostFeatures
    offline: Offline
    about: Array  # this task's meta-features

    def __call__(self, U: Array) -> Array:
        if len(U) == 0:
            return np.empty(0)  # scikit-learn refuses to predict nothing
        F = self.features(U)
        return np.asarray(self.offline.predict(np.column_stack([F, np.tile(self.about, (len(U), 1))])))

    def with_gradient(self, U: Array) -> tuple[Array, Array]:
        value = self(U)
        if self.offline.weights is not None:
            slopes = self.offline.weights[1 : 1 + len(self.features.groups)]
            return value, self.features.pull_back(U, np.tile(slopes, (len(U), 1)))
        space, gradient = self.features.encoding.space, np.zeros(U.shape)
        active = space.active(U)
        for j, parameter in enumerate(space.values()):
            if isinstance(parameter, Choice):
                continue
            ahead, behind = U.copy(), U.copy()
            ahead[:, j], behind[:, j] = np.minimum(U[:, j] + STEP, 1.0), np.maximum(U[:, j] - STEP, 0.0)
            # A parent that moves may switch others on: then the difference is not a slope, and 0 is the safer answer.
            same = (space.active(ahead) == active).all(axis=1) & (space.active(behind) == active).all(axis=1)
            slope = (self(ahead) - self(behind)) / (ahead[:, j] - behind[:, j])
            gradient[:, j] = np.where(active[:, j] & same, slope, 0.0)
        return value, gradient


def hand_over(start: Transferred, costs: CostObservations, encoding: Encoding, online: CostModel) -> CostPosterior:
    """The candidate that predicts this study's costs best; ties and few data to the transferred one."""
    base = start(costs.U)
    missed = costs.with_gamma(costs.gamma - base)
    best: CostPosterior = _shifted(start, base, missed.gamma)
    if len(costs) < ENOUGH:
        return best
    correction = online.fit(missed, encoding)
    corrected = Corrected(f"{start.name} + {correction.name}", start, base, correction)
    for candidate in (corrected, Overruling(online.fit(costs, encoding))):
        if score(candidate, costs) > score(best, costs):
            best = candidate
    return best


def _shifted(start: Transferred, base: Array, missed: Array) -> Corrected:
    tau2, sigma2 = start.offline.tau2, start.offline.sigma2
    shift = Shift.learned(missed, tau2, sigma2)
    return Corrected(start.name if len(missed) == 0 else f"{start.name} + shift", start, base, shift)


@dataclass(frozen=True)
class Shift:
    """b, the same everywhere."""

    name: str
    mean: float
    variance: float
    missed: Array
    ridge: Ridge | None

    @classmethod
    def learned(cls, missed: Array, tau2: float, sigma2: float) -> Shift:
        if len(missed) == 0:
            return cls("shift", 0.0, tau2 + sigma2, missed, None)
        ridge = Ridge.solve(np.ones((len(missed), 1)), missed, np.array([sigma2 / tau2]), (sigma2, PRIOR_ROWS))
        return cls("shift", float(ridge.weights[0]), ridge.noise * (1.0 + float(ridge.inverse[0, 0])), missed, ridge)

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return np.full(len(U), self.mean), np.full(len(U), self.variance)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        return *self.log_cost(U), np.zeros(U.shape), np.zeros(U.shape)

    def left_out(self) -> tuple[Array, Array]:
        if self.ridge is None:
            return self.missed, self.missed  # no observation, no row
        return self.missed - self.ridge.left_out_error, self.ridge.left_out_noise / self.ridge.room


@dataclass(frozen=True)
class Corrected:
    """The transferred prediction plus what this study adds to it."""

    name: str
    start: Transferred
    base: Array  # q at the observations
    correction: CostPosterior

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, variance = self.correction.log_cost(U)
        return self.start(U) + mean, variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        value, slope = self.start.with_gradient(U)
        mean, variance, d_mean, d_variance = self.correction.log_cost_with_gradient(U)
        return value + mean, variance, slope + d_mean, d_variance

    def left_out(self) -> tuple[Array, Array]:
        mean, variance = self.correction.left_out()
        return self.base + mean, variance


@dataclass(frozen=True)
class Overruling:
    """This study's own model."""

    own: CostPosterior

    @property
    def name(self) -> str:
        return f"{self.own.name} (transfer overruled)"

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self.own.log_cost(U)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        return self.own.log_cost_with_gradient(U)

    def left_out(self) -> tuple[Array, Array]:
        return self.own.left_out()
