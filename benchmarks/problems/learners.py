"""Tuning scikit-learn's learners for real: support vector machines, forests of trees and boosting by histograms.

The value is the validation error (the share of wrong classes, or the root mean squared error in deviations of the target), the
cost is the processor time of one fit and one prediction on one thread. Processor time and not wall-clock time, because machines
are shared. No data set here serves the XGBoost problems, on which claims are made. Training rows are limited, so that a fit
takes 0.01 to 2 seconds; the validation rows are those of ``datasets``.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cost_aware import datasets
from benchmarks.cost_aware.core import Measured
from benchmarks.problems.core import Category, Config, Dimension, Integer, Real, active

# Solver steps of a support vector machine: without a limit a polynomial of degree 5 with a large C runs for minutes.
MAX_SOLVER_STEPS = 20_000
WITH_GAMMA, WITH_OFFSET = ("rbf", "poly", "sigmoid"), ("poly", "sigmoid")

_MACHINE: tuple[Dimension, ...] = (
    Category("kernel", ("rbf", "poly", "sigmoid", "linear")),
    Real("C", 1e-2, 1e3, log=True),
    Real("gamma", 1e-4, 1.0, log=True, when=("kernel", WITH_GAMMA)),
    Integer("degree", 2, 5, when=("kernel", ("poly",))),
    Real("coef0", 0.0, 2.0, when=("kernel", WITH_OFFSET)),
    Real("tol", 1e-4, 1e-1, log=True),
)
_FOREST: tuple[Dimension, ...] = (
    Category("kind", ("random_forest", "extra_trees")),
    Integer("trees", 4, 256, log=True),
    Integer("max_depth", 1, 20),
    Real("max_features", 0.05, 1.0, log=True),
    Integer("min_samples_leaf", 1, 50, log=True),
    Category("bootstrap", ("yes", "no")),
    Real("max_samples", 0.1, 1.0, when=("bootstrap", ("yes",))),
)
_BOOSTING: tuple[Dimension, ...] = (
    Real("learning_rate", 0.01, 1.0, log=True),
    Integer("max_iter", 4, 256, log=True),
    Integer("max_leaf_nodes", 2, 64, log=True),
    Integer("min_samples_leaf", 1, 100, log=True),
    Real("l2_regularization", 1e-6, 1e2, log=True),
    Real("max_features", 0.1, 1.0),
)
# What exists for one task only, put last.
_EPSILON = Real("epsilon", 1e-3, 1.0, log=True)
_CRITERION = Category("criterion", ("gini", "entropy"))


def _machine(config: dict[str, Any], classes: int) -> Any:
    from sklearn.svm import SVC, SVR

    return (SVC if classes else SVR)(**config, max_iter=MAX_SOLVER_STEPS)


def _forest(config: dict[str, Any], classes: int) -> Any:
    from sklearn import ensemble

    maker = {
        ("random_forest", True): ensemble.RandomForestClassifier,
        ("random_forest", False): ensemble.RandomForestRegressor,
        ("extra_trees", True): ensemble.ExtraTreesClassifier,
        ("extra_trees", False): ensemble.ExtraTreesRegressor,
    }[config.pop("kind"), bool(classes)]
    config["bootstrap"] = config["bootstrap"] == "yes"
    return maker(config.pop("trees"), **config, n_jobs=1, random_state=0)


def _boosting(config: dict[str, Any], classes: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    maker = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return maker(**config, early_stopping=False, random_state=0)


@dataclass(frozen=True)
class Family:
    """A learner with the data sets that it is tuned on and the number of training rows that keeps it fast."""

    label: str
    dimensions: tuple[Dimension, ...]
    make: Callable[[dict[str, Any], int], Any]
    rows: dict[str, int]


FAMILIES = {
    "svm": Family(
        "support vector machine", _MACHINE, _machine, {"optdigits": 3000, "texture": 3000, "splice": 2000, "wind": 2500}
    ),
    "forest": Family(
        "random forest", _FOREST, _forest, {"mfeat_fourier": 800, "texture": 2000, "bank32nh": 2500, "kr_vs_kp": 2000}
    ),
    "boosting": Family(
        "gradient boosting", _BOOSTING, _boosting, {"puma32h": 3000, "wind": 3000, "kr_vs_kp": 2000, "splice": 2000}
    ),
}
NAMES = tuple(f"{family}_{data}" for family, settings in FAMILIES.items() for data in settings.rows)


def parts(name: str) -> tuple[Family, str]:
    """The family and the data set behind ``FAMILY_DATA``."""
    if name not in NAMES:
        raise ValueError(f"no recorded learner is called {name!r}; there are {', '.join(NAMES)}")
    family, data = name.split("_", 1)
    return FAMILIES[family], data


def space_of(name: str) -> tuple[Dimension, ...]:
    """The search space; it depends on the family and on whether the target has classes."""
    family, data = parts(name)
    classes = datasets.index()[data]["task"] == "classification"
    if family.make is _machine and not classes:
        return (*family.dimensions, _EPSILON)
    return (*family.dimensions, _CRITERION) if family.make is _forest and classes else family.dimensions


def split_of(name: str) -> datasets.Split:
    """The data, standardised, with the family's number of training rows (rows are in random order)."""
    family, data = parts(name)
    split, rows = datasets.load(data, "scaled"), family.rows[data]
    return datasets.Split(split.train_x[:rows], split.train_y[:rows], split.valid_x, split.valid_y, split.classes)


def measure(name: str, split: datasets.Split, config: Config) -> Measured:
    """Fit and predict once; the learner's seed is fixed, so the value is a function of the config."""
    learner = parts(name)[0].make(active(space_of(name), config), split.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that ends at its limit is a poor config, not an error
        began = time.process_time()
        learner.fit(split.train_x, split.train_y)
        predicted = learner.predict(split.valid_x)
        cost = time.process_time() - began
    if split.classes:
        return float(np.mean(predicted != split.valid_y)), cost
    return float(np.sqrt(np.mean((predicted - split.valid_y) ** 2))), cost
