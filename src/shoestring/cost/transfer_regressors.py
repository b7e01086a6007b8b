"""Log cost learned offline, over many tasks: the regressors behind ``TransferCost`` (figure 8 of the paper).

Notation
    G = [F, M]      cost features of the config, and log meta-features of the task (rows, columns, classes, ...)
    q(G)            the regressor's prediction of log cost
    tau^2, sigma^2  variance of q's error between tasks (a whole task dearer than foreseen) and within them

The two variances come from tasks that were held out, since a new task is what the prediction is for: with d_tj the error of
row j of held-out task t and d_t its mean over the task, tau^2 = mean d_t^2 and sigma^2 = mean (d_tj - d_t)^2.
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
MACHINES = ("knn", "tree", "mlp", "boosting")
REGRESSORS = LINEAR + MACHINES
STRENGTHS = (10.0, 1.0, 0.1, 0.01)
FOLDS = 5
LEAST = 1e-4  # variance: no timing repeats itself to better than 1 %


@dataclass(frozen=True)
class Offline:
    """A regressor, fitted; ``weights`` (with the intercept first) when it is linear."""

    predict: Callable[[Array], Array]
    weights: Array | None
    tau2: float
    sigma2: float


@single_threaded
def learn(kind: str, G: Array, gamma: Array, tasks: NDArray[np.intp]) -> Offline:
    """Fit to all rows; judge by predicting tasks (or, with one task, fifths of its rows) from the others."""
    several = len(np.unique(tasks)) > 1
    folds = np.unique(tasks, return_inverse=True)[1] % FOLDS if several else np.arange(len(gamma)) % FOLDS
    error = np.full(len(gamma), np.nan)
    for fold in np.unique(folds):
        held = folds == fold
        if not held.all():
            error[held] = gamma[held] - _fit(kind, G[~held], gamma[~held])[0](G[held])
    predict, weights = _fit(kind, G, gamma)
    if not np.isfinite(error).all():
        return Offline(predict, weights, PRIOR_NOISE, PRIOR_NOISE)
    means = np.array([error[tasks == task].mean() for task in np.unique(tasks)])
    within = error - means[np.searchsorted(np.unique(tasks), tasks)]
    # Rows of one task say nothing about how far another one may be off.
    tau2 = float(np.mean(means**2)) if several else PRIOR_NOISE
    # A few tasks tell little of tau^2: the prior counts as one task more.
    tau2 = (tau2 * len(means) + PRIOR_NOISE) / (len(means) + 1.0)
    return Offline(predict, weights, max(tau2, LEAST), max(float(np.mean(within**2)), LEAST))


def _fit(kind: str, G: Array, gamma: Array) -> tuple[Callable[[Array], Array], Array | None]:
    centre, scale = G.mean(axis=0), G.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    S = (G - centre) / scale
    if kind in LINEAR:
        X = with_intercept(S)
        solved = min((Ridge.solve(X, gamma, penalties(ridge, S.shape[1])) for ridge in STRENGTHS), key=lambda fit: fit.press)
        slopes = solved.weights[1:] / scale
        weights = np.concatenate([[solved.weights[0] - slopes @ centre], slopes])
        return (lambda rows: weights[0] + rows @ weights[1:]), weights
    machine = _machine(kind, len(gamma))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "not converged" is no news here: the held-out error says how good it is
        machine.fit(S, gamma)
    return (lambda rows: np.asarray(machine.predict((rows - centre) / scale), dtype=float)), None


def _machine(kind: str, n: int) -> Any:
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
