"""Tuning XGBoost for real: the seven hyper-parameters of the cost-aware paper's appendix A, with measured costs.

The value is the validation error (the share of wrong classes, or the root mean squared error in deviations of the target),
the cost is the processor time of one fit and one prediction on one thread. Processor time and not wall-clock time, because
machines are shared.
"""

import time

import numpy as np

from benchmarks.cost_aware import datasets, recordings
from benchmarks.cost_aware.core import CostProblem, Measured
from benchmarks.problems.core import Config, Dimension, Integer, Real

SPACE: tuple[Dimension, ...] = (
    Integer("rounds", 1, 256, log=True),
    Real("learning_rate", 0.01, 1.0, log=True),
    Real("gamma", 0.0, 0.1),
    Real("reg_alpha", 1e-3, 1e3, log=True),
    Real("reg_lambda", 1e-3, 1e3, log=True),
    Real("subsample", 0.01, 1.0),
    Integer("max_depth", 1, 16),
)
PREFIX = "xgboost_"
NAMES = tuple(f"{PREFIX}{data}_{pipeline}" for data in datasets.NAMES for pipeline in datasets.PIPELINES)


def split_of(name: str) -> datasets.Split:
    """The data behind ``xgboost_DATA_PIPELINE``."""
    data, pipeline = name.removeprefix(PREFIX).rsplit("_", 1)
    return datasets.load(data, pipeline)


def measure(split: datasets.Split, config: Config) -> Measured:
    """Fit and predict once; the booster's seed is fixed, so the value is a function of the config."""
    from xgboost import XGBClassifier, XGBRegressor

    settings = {**config, "n_jobs": 1, "random_state": 0, "tree_method": "hist", "verbosity": 0}
    settings["n_estimators"] = settings.pop("rounds")
    booster = XGBClassifier(**settings) if split.classes else XGBRegressor(**settings)
    began = time.process_time()
    booster.fit(split.train_x, split.train_y)
    predicted = booster.predict(split.valid_x)
    cost = time.process_time() - began
    if split.classes:
        return float(np.mean(predicted != split.valid_y)), cost
    return float(np.sqrt(np.mean((predicted - split.valid_y) ** 2))), cost


def load(name: str) -> CostProblem:
    """The problem in earnest: an evaluation is a fit, unless that config was evaluated and stored before."""
    if name not in NAMES:
        raise ValueError(f"no problem is called {name!r}; there are {', '.join(NAMES)}")
    known = {recordings.key(entry.config): (entry.value, entry.cost) for entry in recordings.read(name)}

    def evaluate(config: Config) -> Measured:
        at = recordings.key(config)
        if at not in known:
            known[at] = measure(split_of(name), config)
            recordings.append(recordings.Recording(name, dict(config), *known[at], "run"))
        return known[at]

    return CostProblem(name, SPACE, evaluate, min((value for value, _ in known.values()), default=0.0))
