"""The low-variance cost model: log cost linear in log-scaled features of a few hyperparameters, by Bayesian ridge regression.

Training times are close to products of powers of a few hyperparameters (rounds x depth x share of rows), so log cost is close to
linear in their logarithms (Lee et al. 2020). With few evaluations this predicts better than a Gaussian process (Guinet, Perrone
and Archambeau 2020, figure 2).

    (1)  log c = w_0 + sum_k w_k f_k + noise,    f_k the features of at most ``features`` hyperparameters

The hyperparameters are found by greedy forward selection: each step adds the one, with a ridge strength, that lowers the
leave-one-out error (PRESS) most. It ends when the gain is no more than chance. ``features=None`` keeps every hyperparameter, at a
fixed ridge strength. With few evaluations that predicts better where more than a few hyperparameters matter (HPOBench tables, 10
evaluations: RMSE 1.17 against 1.62).

Features
    F (m x q)   features; column k belongs to parameter groups[k], in the order of ``Encoding``
    g(v)        log v when all values of a numeric parameter are positive, else v
    (2)  f = (g(v) - g(low)) / (g(high) - g(low)) - 1/2, from -1/2 to 1/2 over the range of the parameter
A choice of k options is k indicators less 1/k (one column, -1/2 or 1/2, for two options). An inactive parameter is 0, the middle
of every range. So a weight is the change of log cost over the whole range.

Ridge regression in closed form
    X (n x p)       design; column 0 is ones; P the diagonal matrix of penalties (0 for the intercept)
    A = X'X + P,  w = A^-1 X'y,  h_i = x_i' A^-1 x_i (leverage),  e = y - X w
    (3)  Q = e'e + w'P w                                    what the data say about the noise, penalty included
    (4)  sigma^2 = (a Q0 + Q) / (a + n - 1)                 noise; the prior counts as ``a`` observations of variance Q0
    (5)  without row i:  prediction y_i - e_i / (1 - h_i),  Q_-i = Q - e_i^2 / (1 - h_i),  variance sigma_-i^2 / (1 - h_i)
    (6)  PRESS = sum_i (e_i / (1 - h_i))^2
Equation (5) is exact at fixed penalties: it is the rank-one update of A by Sherman and Morrison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..errors import MethodError
from ..numerics import Array, lapack, single_threaded
from ..space.encoding import Encoding
from ..space.parameters import Choice, Numeric
from .base import CostModel, CostObservations, CostPosterior, WarmStart

PRIOR_NOISE = 1.0  # Q0, a variance of log cost: before any data a cost is off by a factor of about e
PRIOR_OBSERVATIONS = 1.0  # a: what that prior counts as
UNKNOWN_MEAN, UNKNOWN_VARIANCE = 0.0, 100.0  # of log cost, predicted from no observation at all
MIN_FREE_LEVERAGE = 1e-10  # 1 - h_i below this is rounding: nothing is left to predict the row from

RIDGE_STRENGTHS = (1.0, 0.1, 0.01, 0.001)  # that the selection tries; the strongest first, so that it wins ties
ALL_FEATURES_STRENGTH = 0.1  # without selection: weights of three standard deviations of the noise are no surprise
SELECTION_MARGIN = 1.0  # a further hyperparameter must lower PRESS by this / n of itself
NEGLIGIBLE_ERROR = 0.01  # of log cost (1 %): not worth a further hyperparameter


@dataclass(frozen=True)
class LinearCost(CostModel):
    """Log cost that is linear in the logs of a few hyperparameters: cost = a n^b m^c.

    Use it where costs grow like powers, as most training times do. It needs the fewest trials.

    features  how many hyperparameters at most, found by leave-one-out; None: all of them

    >>> space = st.Space(depth=st.Int(1, 16), lr=st.Float(0, 1))
    >>> study = st.Study(space, method=st.EIpu(), cost_model=st.LinearCost(features=1))
    >>> for depth in (1, 2, 4, 8, 16):
    ...     _ = study.add({"depth": depth, "lr": 0.5}, value=0.1, cost=3.0 * depth)
    >>> study.context.cost.name
    'linear in depth'
    """

    features: int | None = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_features("LinearCost", self.features))

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> LinearPosterior:
        features = CostFeatures(encoding)
        F = features(costs.U)
        if self.features is None:
            chosen, strength = list(range(len(encoding.space))), ALL_FEATURES_STRENGTH
        else:
            chosen, strength = select(F, features.groups, costs.log_cost, self.features)
        return LinearPosterior.given(features, chosen, strength, F, costs.log_cost)


def checked_features(model: str, features: object) -> int | None:
    """A number of features, or None for all; a MethodError for anything else."""
    return None if features is None else whole_number(features, f"{model}: features (None for all)", 1)


@dataclass(frozen=True)
class LinearPosterior(CostPosterior):
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
    prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_OBSERVATIONS)  # Q0, a

    @classmethod
    def solve(
        cls, X: Array, y: Array, penalty: Array, prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_OBSERVATIONS)
    ) -> Ridge:
        inverse = _inverse(X.T @ X + np.diag(penalty))
        weights = inverse @ (X.T @ y)
        error = y - X @ weights
        leverage = np.minimum(np.einsum("ij,jk,ik->i", X, inverse, X), 1.0)
        quadratic = float(error @ error + weights @ (penalty * weights))  # (3)
        Q0, a = prior
        return cls(weights, inverse, error, leverage, quadratic, (a * Q0 + quadratic) / (a + len(y) - 1.0), prior)  # (4)

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
        return np.asarray((a * Q0 + rest) / np.maximum(a + len(self.error) - 2.0, a))

    def leave_one_out(self, y: Array) -> tuple[Array, Array]:
        """Mean and variance of each row predicted from the others; the only row is unknown without itself."""
        if len(y) < 2:
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


# -- features -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CostFeatures:
    """The map from points U (m x D) to cost features F, and the pull-back of gradients."""

    encoding: Encoding

    @property
    def groups(self) -> NDArray[np.intp]:
        """The parameter that each column belongs to."""
        return self.encoding.groups

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The first column of each parameter."""
        return np.searchsorted(self.groups, np.arange(len(self.encoding.space)))

    @cached_property
    def axes(self) -> list[_Axis | None]:
        """The feature of each numeric parameter; None for a choice."""
        return [None if isinstance(parameter, Choice) else _Axis.of(parameter) for parameter in self.encoding.space.values()]

    def columns(self, parameters: list[int]) -> NDArray[np.intp]:
        """The columns of some parameters (numbered as in the space)."""
        return np.flatnonzero(np.isin(self.groups, parameters))

    def __call__(self, U: Array) -> Array:
        """F at points that may be relaxed: a whole number between two values is taken as lying between them."""
        F = np.empty((len(U), len(self.groups)))
        for j, (parameter, axis, start) in enumerate(zip(self.encoding.space.values(), self.axes, self.first, strict=True)):
            if axis is not None:
                F[:, start] = axis.value(U[:, j])
                continue
            levels = parameter.levels or 1
            level = parameter.index(U[:, j])
            if levels == 2:
                F[:, start] = level - 0.5
            else:
                F[:, start : start + levels] = (level[:, None] == np.arange(levels)) - 1.0 / levels
        if self.encoding.conditional:
            F[~self.encoding.space.active(U)[:, self.groups]] = 0.0
        return F

    def pull_back(self, U: Array, dF: Array) -> Array:
        """The gradient with respect to U, given that with respect to F; zero for choices and inactive parameters."""
        dU = np.zeros(U.shape)
        for j, (axis, start) in enumerate(zip(self.axes, self.first, strict=True)):
            if axis is not None:
                dU[:, j] = dF[:, start] * axis.derivative(U[:, j])
        if self.encoding.conditional:
            dU[~self.encoding.space.active(U)] = 0.0
        return dU


@dataclass(frozen=True)
class _Axis:
    """A numeric parameter as a feature: f(t) with t = (u - offset) scale, 0 at the lowest value and 1 at the highest.

    rise    (high - low) / low when the feature is the logarithm of a value that is linear in u; else None: f = t - 1/2

    Beyond the ends (half a bin for whole numbers) the logarithm continues along its tangent, so that it is smooth and finite even
    where the value itself would be zero.
    """

    offset: float
    scale: float
    rise: float | None

    @classmethod
    def of(cls, parameter: Numeric) -> _Axis:
        low, high = map(float, parameter.to_unit(np.array([parameter.low, parameter.high])))
        top = parameter.high
        if parameter.levels is not None and parameter.step is not None:  # the highest value may lie below ``high``
            top = parameter.low + (parameter.levels - 1) * parameter.step
        rise = (top - parameter.low) / parameter.low if parameter.low > 0 and not parameter.log else 0.0
        curved = 1e-6 < rise < 1e150  # over a narrow range the logarithm is linear; above 1e150 it cannot be computed
        return cls(low, 1.0 / (high - low) if high > low else 0.0, rise if curved else None)

    def value(self, u: Array) -> Array:
        """f(u), equation (2)."""
        t = (u - self.offset) * self.scale
        if self.rise is None:
            return t - 0.5
        inside = np.clip(t, 0.0, 1.0)
        log_value = np.log1p(self.rise * inside) + self.rise * (t - inside) / (1.0 + self.rise * inside)
        return np.asarray(log_value / np.log1p(self.rise) - 0.5)

    def derivative(self, u: Array) -> Array:
        """df/du."""
        if self.rise is None:
            return np.full(u.shape, self.scale)
        inside = np.clip((u - self.offset) * self.scale, 0.0, 1.0)
        return np.asarray(self.scale * self.rise / (1.0 + self.rise * inside) / np.log1p(self.rise))
