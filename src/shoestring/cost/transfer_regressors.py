"""Offline regressors of log cost over many tasks, for ``TransferCost`` (Guinet et al. 2020, figure 8).

Notation
    G = [F, M]      cost features of the config, and log meta-features of the task (rows, columns, classes, ...)
    q(G)            the regressor's prediction of log cost
    d_tj            its error for row j of task t, predicted without task t; d_t the mean over the task
    (1)  tau^2 = mean d_t^2             variance of the error between tasks (a whole task costs more than predicted)
    (2)  sigma^2 = mean (d_tj - d_t)^2  variance of the error within tasks

Both come from held-out tasks, since the prediction is for a new task.
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


@dataclass(frozen=True)
class FittedRegressor:
    """A fitted regressor; ``weights`` (the intercept first) when it is linear, else None."""

    predict: Callable[[Array], Array]
    weights: Array | None
    tau2: float
    sigma2: float


@single_threaded
def fit_regressor(kind: str, G: Array, gamma: Array, tasks: NDArray[np.intp]) -> FittedRegressor:
    """Fit to all rows; tau^2 and sigma^2 by cross-validation over tasks, or with one task over fifths of its rows."""
    several = len(np.unique(tasks)) > 1
    folds = np.unique(tasks, return_inverse=True)[1] % FOLDS if several else np.arange(len(gamma)) % FOLDS
    error = np.full(len(gamma), np.nan)
    for fold in np.unique(folds):
        held = folds == fold
        if not held.all():
            error[held] = gamma[held] - _fit(kind, G[~held], gamma[~held])[0](G[held])
    predict, weights = _fit(kind, G, gamma)
    if not np.isfinite(error).all():
        return FittedRegressor(predict, weights, PRIOR_NOISE, PRIOR_NOISE)
    means = np.array([error[tasks == task].mean() for task in np.unique(tasks)])
    within = error - means[np.searchsorted(np.unique(tasks), tasks)]
    # (1). Rows of one task say nothing about the error of another one. A few tasks say little: the prior counts as one task more.
    tau2 = float(np.mean(means**2)) if several else PRIOR_NOISE
    tau2 = (tau2 * len(means) + PRIOR_NOISE) / (len(means) + 1.0)
    sigma2 = float(np.mean(within**2))  # (2)
    return FittedRegressor(predict, weights, max(tau2, MIN_VARIANCE), max(sigma2, MIN_VARIANCE))


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
