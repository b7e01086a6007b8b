"""Offline regressors of log cost over many tasks, for ``TransferCost`` (Guinet et al. 2020, figure 8).

Notation
    G = [F, M]      cost features of the config, and log meta-features of the task (rows, columns, classes, ...)
    q(G)            the regressor's prediction of log cost
    d_tj            its error for row j of task t, predicted without task t
    X_t = [1, F]    design of the error
    (1)  d_t = X_t b_t + noise,  b_t ~ N(0, diag(V)),  noise of variance sigma^2
         V_0         the whole task costs more or less than predicted
         V_k         a hyperparameter matters more or less there than in other tasks
    (2)  b_t given d_t:  S_t = (X_t'X_t / sigma^2 + diag(1 / V))^-1,  m_t = S_t X_t'd_t / sigma^2
    (3)  V_k = (V0_k + sum_t m_tk^2 + S_tkk) / (1 + tasks)
         sigma^2 = (sum_t |d_t - X_t m_t|^2 + trace X_t S_t X_t') / rows
(2) and (3) by turns are expectation-maximisation for (1). The prior V0 counts as one task more, since a few tasks say little.
The columns of one choice share their V_k. All of it comes from held-out tasks, since the prediction is for a new task.

Regressors
    linear        ridge regression on F alone; its strength is chosen by leave-one-out
    task_linear   the same on F and M: the default, and the safest guess for a task unlike the earlier ones
    knn           the five nearest rows, weighted by 1 / distance
    tree          a decision tree with at least three rows in a leaf
    mlp           a neural network with two layers of 32 units
    boosting      200 gradient-boosted trees of depth three
The last four need scikit-learn. Every feature is standardised first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, single_threaded
from .linear import PRIOR_NOISE, Ridge, penalties, with_intercept

LINEAR = ("linear", "task_linear")
FROM_SKLEARN = ("knn", "tree", "mlp", "boosting")
REGRESSORS = LINEAR + FROM_SKLEARN
RIDGE_STRENGTHS = (10.0, 1.0, 0.1, 0.01)
FOLDS = 5
MIN_VARIANCE = 1e-4  # of log cost: no timing can be repeated to better than 1 %
MIN_SCALE = 1e-9  # a feature with a smaller standard deviation is constant
PRIOR_SLOPE_VARIANCE = 0.25  # V0_k: over its range a hyperparameter changes log cost by 0.5 more or less than elsewhere
EM_ROUNDS = 40


@dataclass(frozen=True)
class FittedRegressor:
    """A fitted regressor; ``weights`` (the intercept first) when it is linear, else None.

    between  V: variances of its error between tasks, of the intercept and of the slopes of F
    within   sigma^2: variance of its error within a task
    """

    predict: Callable[[Array], Array]
    weights: Array | None
    between: Array
    within: float


@single_threaded
def fit_regressor(kind: str, G: Array, gamma: Array, tasks: NDArray[np.intp], groups: NDArray[np.intp]) -> FittedRegressor:
    """Fit to all rows; its error by cross-validation over tasks, or with one task over fifths of its rows.

    ``groups``: the hyperparameter that each of the first columns of G, which are F, belongs to.
    """
    several = len(np.unique(tasks)) > 1
    folds = np.unique(tasks, return_inverse=True)[1] % FOLDS if several else np.arange(len(gamma)) % FOLDS
    error = np.full(len(gamma), np.nan)
    for fold in np.unique(folds):
        held = folds == fold
        if not held.all():
            error[held] = gamma[held] - _fit(kind, G[~held], gamma[~held])[0](G[held])
    predict, weights = _fit(kind, G, gamma)
    prior = np.concatenate([[PRIOR_NOISE], np.full(len(groups), PRIOR_SLOPE_VARIANCE)])
    if not np.isfinite(error).all():
        return FittedRegressor(predict, weights, prior, PRIOR_NOISE)
    X = with_intercept(G[:, : len(groups)])
    designs = [(X[tasks == task], error[tasks == task]) for task in np.unique(tasks)]
    between, within = error_variances(designs, np.concatenate([[-1], groups]), prior)
    # Rows of one task say nothing about the error in another one.
    return FittedRegressor(predict, weights, between if several else prior, within)


def error_variances(tasks: list[tuple[Array, Array]], groups: NDArray[np.intp], prior: Array) -> tuple[Array, float]:
    """V and sigma^2 from the designs and errors of held-out tasks, by equations (2) and (3)."""
    rows = sum(len(d) for _, d in tasks)
    V, sigma2 = prior.copy(), max(sum(float(((d - d.mean()) ** 2).sum()) for _, d in tasks) / rows, MIN_VARIANCE)
    crossed = [(X.T @ X, X.T @ d, float(d @ d)) for X, d in tasks]
    for _ in range(EM_ROUNDS):
        squares, left = np.zeros(len(V)), 0.0
        for XX, Xd, dd in crossed:
            S = np.linalg.inv(XX / sigma2 + np.diag(1.0 / V))
            m = S @ Xd / sigma2  # (2)
            squares += m**2 + np.diag(S)
            left += dd - 2.0 * float(m @ Xd) + float(m @ XX @ m) + float(np.sum(XX * S))
        V = (prior + squares) / (1.0 + len(tasks))  # (3)
        for group in np.unique(groups):
            V[groups == group] = V[groups == group].mean()
        sigma2 = max(left / rows, MIN_VARIANCE)
    return V, sigma2


def _fit(kind: str, G: Array, gamma: Array) -> tuple[Callable[[Array], Array], Array | None]:
    """The prediction, and the weights of a linear regressor."""
    centre, scale = G.mean(axis=0), G.std(axis=0)
    scale = np.where(scale > MIN_SCALE, scale, 1.0)
    S = (G - centre) / scale
    if kind in LINEAR:
        X = with_intercept(S)
        fits = (Ridge.solve(X, gamma, penalties(strength, S.shape[1])) for strength in RIDGE_STRENGTHS)
        best = min(fits, key=lambda fit: fit.press)
        per_feature = best.weights[1:] / scale
        weights = np.concatenate([[best.weights[0] - per_feature @ centre], per_feature])
        return (lambda rows: weights[0] + rows @ weights[1:]), weights
    regressor = _sklearn_regressor(kind, len(gamma))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "not converged" does not matter: the held-out error says how good it is
        regressor.fit(S, gamma)
    return (lambda rows: np.asarray(regressor.predict((rows - centre) / scale), dtype=float)), None


def _sklearn_regressor(kind: str, n: int) -> Any:
    """A scikit-learn regressor, seeded."""
    try:
        if kind == "knn":
            from sklearn.neighbors import KNeighborsRegressor

            return KNeighborsRegressor(n_neighbors=min(5, n), weights="distance")
        if kind == "tree":
            from sklearn.tree import DecisionTreeRegressor

            return DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
        if kind == "mlp":
            from sklearn.neural_network import MLPRegressor

            return MLPRegressor(hidden_layer_sizes=(32, 32), solver="lbfgs", alpha=1.0, max_iter=300, random_state=0)
        from sklearn.ensemble import GradientBoostingRegressor

        return GradientBoostingRegressor(n_estimators=200, learning_rate=0.1, max_depth=3, subsample=0.8, random_state=0)
    except ImportError:
        raise MethodError(
            f'TransferCost(regressor="{kind}") needs scikit-learn, which is not installed; install it with\n'
            '  pip install "shoestring[sklearn]"\nor use regressor="task_linear", which needs nothing'
        ) from None
