"""The low-variance cost model: log cost linear in log-scaled features of a few hyperparameters, by Bayesian ridge regression.

Training times are close to products of powers of a few hyperparameters (rounds x depth x share of rows), so log cost is close to
linear in their logarithms (Lee et al. 2020). With few evaluations this predicts better than a Gaussian process (Guinet, Perrone
and Archambeau 2020, figure 2).

    (1)  log c = w_0 + sum_k w_k f_k + noise,    f_k the features of at most ``features`` hyperparameters

The hyperparameters are found by greedy forward selection: each step adds the one, with a ridge strength, that lowers the
leave-one-out error (PRESS) most. It ends when the gain is no more than chance. ``features=None`` keeps every hyperparameter, at a
fixed ridge strength. With few evaluations that predicts better where more than a few hyperparameters matter (HPOBench tables, 10
evaluations: RMSE 1.17 against 1.62).

Named features are all kept: which hyperparameters drive cost is often known, and finding it out takes evaluations.

Ridge regression in closed form (the features F are those of ``features``)
    X (n x p)       design; column 0 is ones; P the diagonal matrix of penalties; mu the expected weights, 0 unless given
    A = X'X + P,  w = mu + A^-1 X'(y - X mu),  h_i = x_i' A^-1 x_i (leverage),  e = y - X w
    (2)  w ~ N(mu, sigma^2 P^-1) before the data; the intercept has penalty 0, any value is as likely, unless one is given
    (3)  Q = e'e + (w - mu)'P (w - mu)                      what the data say about the noise, penalty included
    (4)  sigma^2 = (a Q0 + Q) / (a + n - k)                 noise; the prior counts as ``a`` observations of variance Q0;
                                                            k = 1 if the intercept has penalty 0, else 0
    (5)  without row i:  prediction y_i - e_i / (1 - h_i),  Q_-i = Q - e_i^2 / (1 - h_i),  variance sigma_-i^2 / (1 - h_i)
    (6)  PRESS = sum_i (e_i / (1 - h_i))^2
    (7)  log p(y) = log Gamma(b) - log Gamma(a / 2) + a/2 log(a Q0) - b log(a Q0 + Q) + (sum_j log P_j - log |A|) / 2 + constant
         with b = (a + n - k) / 2, the sum over positive penalties: the evidence, by which priors of one design are compared
Equation (5) is exact at fixed penalties: it is the rank-one update of A by Sherman and Morrison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, lapack, single_threaded
from ..space.encoding import Encoding
from ..space.space import Space
from .base import CostModel, CostObservations, CostPosterior, WarmStart
from .features import CostFeatures, checked_features, named_parameters

PRIOR_NOISE = 1.0  # Q0, a variance of log cost: before any data a cost is off by a factor of about e
PRIOR_OBSERVATIONS = 1.0  # a: what that prior counts as
UNKNOWN_MEAN, UNKNOWN_VARIANCE = 0.0, 100.0  # of log cost, predicted from no observation at all
MIN_FREE_LEVERAGE = 1e-10  # 1 - h_i below this is rounding: nothing is left to predict the row from

RIDGE_STRENGTHS = (1.0, 0.1, 0.01, 0.001)  # that the selection tries; the strongest first, so that it wins ties
ALL_FEATURES_STRENGTH = 0.1  # without selection: weights of three standard deviations of the noise are no surprise
NAMED_FEATURES_STRENGTH = 0.1  # the same for named ones
SELECTION_MARGIN = 1.0  # a further hyperparameter must lower PRESS by this / n of itself
NEGLIGIBLE_ERROR = 0.01  # of log cost (1 %): not worth a further hyperparameter


@dataclass(frozen=True)
class LinearCost(CostModel):
    """Log cost that is linear in the logs of a few hyperparameters: cost = a n^b m^c.

    Use it where costs grow like powers, as most training times do. It needs the fewest trials.

    features  which hyperparameters, by name; or how many at most, found by leave-one-out; None: all of them

    >>> space = st.Space(depth=st.Int(1, 16), lr=st.Float(0, 1))
    >>> study = st.Study(space, method=st.EIpu(), cost_model=st.LinearCost(features=1))
    >>> for depth in (1, 2, 4, 8, 16):
    ...     _ = study.add({"depth": depth, "lr": 0.5}, value=0.1, cost=3.0 * depth)
    >>> study.context.cost.name
    'linear in depth'
    >>> st.LinearCost(features=("depth",))
    LinearCost(features=('depth',))
    """

    features: int | Sequence[str] | None = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_features("LinearCost", self.features))

    def check_space(self, space: Space) -> None:
        if isinstance(self.features, tuple):
            named_parameters("LinearCost", self.features, space)

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> LinearPosterior:
        features = CostFeatures(encoding)
        F = features(costs.U)
        if isinstance(self.features, tuple):
            chosen, strength = named_parameters("LinearCost", self.features, encoding.space), NAMED_FEATURES_STRENGTH
        elif self.features is None:
            chosen, strength = list(range(len(encoding.space))), ALL_FEATURES_STRENGTH
        else:
            assert isinstance(self.features, int)
            chosen, strength = select(F, features.groups, costs.log_cost, self.features)
        return LinearPosterior.given(features, chosen, strength, F, costs.log_cost)


@dataclass(frozen=True)
class WeightPrior:
    """What weights are expected to be before the data, equation (2); the intercept comes first.

    noise  Q0 and a: the variance of the noise, and the number of observations that this counts as
    """

    mean: Array
    penalty: Array
    noise: tuple[float, float]

    @classmethod
    def of_strength(cls, strength: float, columns: int) -> WeightPrior:
        """Weights around 0, all alike."""
        return cls(np.zeros(columns + 1), penalties(strength, columns), (PRIOR_NOISE, PRIOR_OBSERVATIONS))

    @property
    def proper(self) -> bool:
        """Whether it says something about the intercept too, so that a cost can be predicted from no observation."""
        return bool(self.penalty[0] > 0.0)


@dataclass(frozen=True)
class LinearPosterior(CostPosterior):
    """A fitted linear cost model; ``parameters`` are the numbers of its hyperparameters in the space."""

    name: str
    features: CostFeatures
    parameters: tuple[int, ...]
    columns: NDArray[np.intp]
    prior: WeightPrior
    ridge: Ridge
    gamma: Array

    @classmethod
    def given(
        cls, features: CostFeatures, parameters: list[int], prior: WeightPrior | float, F: Array, gamma: Array, name: str = ""
    ) -> LinearPosterior:
        """The posterior for a known selection, and a prior of the weights or a ridge strength."""
        columns = features.columns(parameters)
        if isinstance(prior, float):
            prior = WeightPrior.of_strength(prior, len(columns))
        if len(gamma) == 0 and not prior.proper:
            raise MethodError("a cost model needs at least one observed cost")
        ridge = Ridge.solve(with_intercept(F[:, columns]), gamma, prior.penalty, prior.noise, prior.mean)
        names = [features.encoding.space.names[j] for j in parameters]
        everything = len(names) == len(features.encoding.space)
        name = name or ("linear" if everything else f"linear in {', '.join(names)}" if names else "constant")
        return cls(name, features, tuple(parameters), columns, prior, ridge, gamma)

    def design(self, U: Array) -> Array:
        """X at points."""
        return with_intercept(self.features(U)[:, self.columns])

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, weight_variance, _ = self.ridge.predict(self.design(U))
        return mean, self.ridge.noise + weight_variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        mean, weight_variance, d_mean, d_variance = self.without_noise_with_gradient(U)
        return mean, self.ridge.noise + weight_variance, d_mean, d_variance

    def without_noise_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        """Mean, the variance due to uncertain weights alone, and their gradients."""
        mean, weight_variance, solved = self.ridge.predict(self.design(U))
        d_mean, d_variance = np.zeros((2, len(U), len(self.features.groups)))
        d_mean[:, self.columns] = self.ridge.weights[1:]
        d_variance[:, self.columns] = 2.0 * self.ridge.noise * solved[:, 1:]
        return mean, weight_variance, self.features.pull_back(U, d_mean), self.features.pull_back(U, d_variance)

    def leave_one_out(self) -> tuple[Array, Array]:
        return self.ridge.leave_one_out(self.gamma)


# -- selection ----------------------------------------------------------------------------------------------------------


def select(
    F: Array, groups: NDArray[np.intp], gamma: Array, most: int, *, all_of_them: bool = False
) -> tuple[list[int], float]:
    """Greedy forward selection: the parameters that matter, the most informative first, and the ridge strength.

    At most one parameter for every three observations beyond the first: with fewer, PRESS itself is mostly chance.
    ``all_of_them``: without stopping early.
    """
    n = len(gamma)
    chosen: list[int] = []
    strength = RIDGE_STRENGTHS[0]
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
            for ridge in RIDGE_STRENGTHS
        ]  # fmt: skip
        press, winner, ridge = min(tried, key=lambda entry: entry[0])
        if not all_of_them and press >= best * (1.0 - SELECTION_MARGIN / n):
            break
        chosen.append(winner)
        best, strength = press, ridge
        design = np.column_stack([design, blocks[winner]])
    return chosen, strength


def _press(X: Array, gamma: Array, strength: float) -> float:
    """PRESS, plus the errors that are too small to matter."""
    return Ridge.solve(X, gamma, penalties(strength, X.shape[1] - 1)).press + len(gamma) * NEGLIGIBLE_ERROR**2


# -- ridge regression ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ridge:
    """A solved ridge regression."""

    weights: Array
    inverse: Array  # A^-1
    error: Array  # e
    leverage: Array  # h
    quadratic: float  # Q
    noise: float  # sigma^2
    log_penalty: float  # the sum of log P_j over positive penalties
    prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_OBSERVATIONS)  # Q0, a
    free: float = 1.0  # k

    @classmethod
    def solve(
        cls,
        X: Array,
        y: Array,
        penalty: Array,
        prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_OBSERVATIONS),
        mean: Array | None = None,
    ) -> Ridge:
        """Weights around ``mean`` (0 unless given), equations (2) to (4)."""
        inverse = _inverse(X.T @ X + np.diag(penalty))
        off = y if mean is None else y - X @ mean
        change = inverse @ (X.T @ off)
        error = off - X @ change
        leverage = np.minimum(np.einsum("ij,jk,ik->i", X, inverse, X), 1.0)
        quadratic = float(error @ error + change @ (penalty * change))  # (3)
        (Q0, a), free = prior, 0.0 if penalty[0] > 0.0 else 1.0
        noise = (a * Q0 + quadratic) / (a + len(y) - free)  # (4)
        log_penalty = float(np.log(penalty[penalty > 0.0]).sum())
        weights = change if mean is None else mean + change
        return cls(weights, inverse, error, leverage, quadratic, noise, log_penalty, prior, free)

    @property
    def log_evidence(self) -> float:
        """Equation (7), without the constant that every prior of the same data and free intercept has."""
        (Q0, a), b = self.prior, (self.prior[1] + len(self.error) - self.free) / 2.0
        log_inverse = float(np.linalg.slogdet(self.inverse)[1])
        gammas = math.lgamma(b) - math.lgamma(a / 2.0) + a / 2.0 * math.log(a * Q0)
        return gammas - b * math.log(a * Q0 + self.quadratic) + 0.5 * (self.log_penalty + log_inverse)

    @property
    def free_leverage(self) -> Array:
        """1 - h_i, kept above zero."""
        return np.maximum(1.0 - self.leverage, MIN_FREE_LEVERAGE)

    @property
    def leave_one_out_error(self) -> Array:
        """The error of each row when it is predicted from the others, equation (5)."""
        return self.error / self.free_leverage

    @property
    def press(self) -> float:
        """Equation (6)."""
        errors = self.leave_one_out_error
        return float(errors @ errors)

    @property
    def leave_one_out_noise(self) -> Array:
        """sigma^2 without each row, equation (5)."""
        Q0, a = self.prior
        rest = np.maximum(self.quadratic - self.error**2 / self.free_leverage, 0.0)
        return np.asarray((a * Q0 + rest) / np.maximum(a + len(self.error) - 1.0 - self.free, a))

    def leave_one_out(self, y: Array) -> tuple[Array, Array]:
        """Mean and variance of each row predicted from the others; the only row is unknown without itself, unless by prior."""
        if len(y) < 1.0 + self.free:
            return np.full(len(y), UNKNOWN_MEAN), np.full(len(y), UNKNOWN_VARIANCE)
        return y - self.leave_one_out_error, self.leave_one_out_noise / self.free_leverage

    def predict(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean, the variance due to uncertain weights (x'A^-1 x sigma^2), and A^-1 x for its gradient."""
        solved = X @ self.inverse
        return X @ self.weights, self.noise * np.einsum("ij,ij->i", solved, X), solved


def _inverse(A: Array) -> Array:
    """The inverse of a symmetric matrix that penalties keep positive definite."""
    L, info = lapack.dpotrf(A, lower=1, clean=1)
    if info != 0:  # only by rounding, with columns of very different size
        return np.asarray(np.linalg.pinv(A, hermitian=True))
    inverse, _ = lapack.dpotri(L, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


def with_intercept(F: Array) -> Array:
    """A column of ones, then F."""
    return np.column_stack([np.ones(len(F)), F])


def penalties(strength: float, columns: int) -> Array:
    """0 for the intercept, ``strength`` for the others."""
    return np.concatenate([[0.0], np.full(columns, strength)])
