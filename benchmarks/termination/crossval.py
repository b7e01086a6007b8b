"""Cross-validated tuning for real: XGBoost and random forests over the spaces of the paper's table 1.

The run's seed draws 20 % of a data set for the test; of the rest at most 800 rows are kept, so that an evaluation takes seconds
at most, and split into ten folds (stratified for classification). All evaluations of a run see the same split. The value is
the mean of the folds' errors (the share of wrong classes, or the root mean squared error in deviations of the training
target), the cost is the processor time of the ten folds on one thread, and the test error is that of a model refitted to all
of the training rows, which costs nothing.
"""

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost_aware import datasets
from benchmarks.problems.core import Config, Dimension, Integer, Real
from benchmarks.termination.core import Measured, TestedProblem

FOLDS, TEST_SHARE, TRAIN_ROWS = 10, 0.2, 800
REPORTING = ("phoneme", "pendigits", "satimage", "abalone", "wine_quality", "kin8nm")
TUNING = ("coil2000", "parkinsons")
SPACES: dict[str, tuple[Dimension, ...]] = {
    "xgb": (
        Integer("n_estimators", 2, 2**9, log=True),
        Real("learning_rate", 1e-6, 1.0, log=True),
        Real("gamma", 1e-6, 2.0**6, log=True),
        Real("min_child_weight", 1e-6, 2.0**5, log=True),
        Integer("max_depth", 2, 2**5, log=True),
        Real("subsample", 0.5, 1.0),
        Real("colsample_bytree", 0.3, 1.0),
        Real("reg_lambda", 1e-6, 2.0, log=True),
        Real("reg_alpha", 1e-6, 2.0, log=True),
    ),
    "rf": (
        Integer("n_estimators", 1, 2**8, log=True),
        Real("min_samples_split", 0.01, 0.5, log=True),
        Integer("max_depth", 1, 5, log=True),
    ),
}


@dataclass(frozen=True)
class Split:
    """One data set as a run sees it; targets of regression are standardised by the training rows, classes are 0, 1, ..."""

    train_x: NDArray[np.float32]
    train_y: NDArray[Any]
    test_x: NDArray[np.float32]
    test_y: NDArray[Any]
    folds: tuple[NDArray[np.intp], ...]  # the validation rows of each
    classification: bool


@cache
def split(data: str, seed: int) -> Split:
    from sklearn.model_selection import KFold, StratifiedKFold

    x, y = datasets._read(data)
    order = np.random.default_rng(seed).permutation(len(x))
    cut = round(TEST_SHARE * len(x))
    test, train = order[:cut], order[cut : cut + TRAIN_ROWS]
    classification = datasets.index()[data]["task"] == "classification"
    if classification:
        y = np.unique(y, return_inverse=True)[1]
    else:
        y = y.astype(float)
        y = (y - y[train].mean()) / y[train].std()
    x = x.astype(np.float32)
    cutter = (StratifiedKFold if classification else KFold)(FOLDS, shuffle=True, random_state=seed)
    folds = tuple(rows for _, rows in cutter.split(x[train], y[train]))
    return Split(x[train], y[train], x[test], y[test], folds, classification)


def model(algorithm: str, config: Config, classification: bool) -> Any:
    """An unfitted model; its own seed is fixed, so that a value is a function of the config and the split."""
    if algorithm == "xgb":
        from xgboost import XGBClassifier, XGBRegressor

        kind = XGBClassifier if classification else XGBRegressor
        return kind(**config, n_jobs=1, random_state=0, tree_method="hist", verbosity=0)
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if classification else RandomForestRegressor
    return forest(**config, n_jobs=1, random_state=0)


def error(truth: NDArray[Any], predicted: NDArray[Any], classification: bool) -> float:
    return float(np.mean(predicted != truth)) if classification else float(np.sqrt(np.mean((predicted - truth) ** 2)))


def measure(algorithm: str, cut: Split, config: Config) -> Measured:
    """Ten fits that are charged for and one, for the test error, that is not."""
    began, found = time.process_time(), []
    for valid in cut.folds:
        train = np.setdiff1d(np.arange(len(cut.train_y)), valid)
        fitted = model(algorithm, config, cut.classification).fit(cut.train_x[train], cut.train_y[train])
        found.append(error(cut.train_y[valid], fitted.predict(cut.train_x[valid]), cut.classification))
    cost = time.process_time() - began
    fitted = model(algorithm, config, cut.classification).fit(cut.train_x, cut.train_y)
    test = error(cut.test_y, fitted.predict(cut.test_x), cut.classification)
    return Measured(float(np.mean(found)), cost, test, tuple(found))


def load(name: str, seed: int) -> TestedProblem:
    """``xgb_DATA`` or ``rf_DATA`` on the split of a seed."""
    algorithm, data = name.split("_", 1)
    cut = split(data, seed)
    sizes = tuple(len(rows) for rows in cut.folds)
    return TestedProblem(name, SPACES[algorithm], lambda config: measure(algorithm, cut, config), None, sizes)
