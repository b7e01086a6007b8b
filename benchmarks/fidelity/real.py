"""Real tuning at two fidelities: a share of the training set, and epochs (scikit-learn's MLP) or trees (XGBoost).

Data are tables of the cost-aware benchmark (see its ``datasets``): pendigits and optdigits, and coil2000 with more cells
than both together. The value is the validation error: the share of wrong classes, or for coil2000, where one of two classes
has 94 % of the rows, one minus the area under the ROC curve. The cost is the processor time of building, growing and judging
one model on one thread; not wall-clock time, because machines are shared. The searcher's own processor time
is charged too. Nothing is recorded: an evaluation is a fit. The
"regret" of a config is its error at both targets, which is deterministic, and is known without another fit where a trial has
been there.

A model grows unit by unit (an epoch, a round of trees), so that searchers that stop and go on can do so (``stepwise``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost_aware import datasets
from benchmarks.fidelity.core import FidelityProblem, Measured, high
from benchmarks.problems.core import Config, Dimension, Integer, Real

TABLES = ("pendigits", "optdigits", "coil2000")
SHARE = Real("share", 0.05, 1.0, log=True)
GROWTH = {"mlp": Integer("epochs", 1, 54, log=True), "xgboost": Integer("trees", 2, 162, log=True)}
SPACES: dict[str, tuple[Dimension, ...]] = {
    "mlp": (
        Real("learning_rate", 1e-4, 1e-1, log=True),
        Real("alpha", 1e-6, 1.0, log=True),
        Integer("hidden", 8, 256, log=True),
        Integer("batch", 16, 512, log=True),
        Real("beta_1", 0.5, 0.99),
    ),
    "xgboost": (
        Real("eta", 0.01, 1.0, log=True),
        Integer("max_depth", 2, 12),
        Real("min_child_weight", 0.1, 100.0, log=True),
        Real("subsample", 0.2, 1.0),
        Real("colsample_bytree", 0.2, 1.0),
        Real("reg_lambda", 1e-3, 1e3, log=True),
    ),
}
NAMES = tuple(f"{learner}_{table}" for table in TABLES for learner in SPACES)
BUDGETS = {"mlp": 100.0, "xgboost": 40.0}  # seconds: some fifty fits at both targets
CHEAPER = {"xgboost_coil2000": 12.0}  # two classes, so a tenth of the trees
CAP = 300


class Growing(Protocol):
    """A model in the making."""

    def grow(self, units: int) -> None: ...

    def error(self) -> float: ...


@cache
def table(name: str) -> datasets.Split:
    """Standardised, which trees do not mind."""
    split = datasets.load(name, "raw")
    middle, spread = split.train_x.mean(axis=0), split.train_x.std(axis=0)
    spread[spread == 0] = 1.0
    train, valid = (split.train_x - middle) / spread, (split.valid_x - middle) / spread
    return datasets.Split(train, split.train_y, valid, split.valid_y, split.classes)


def judge(split: datasets.Split, probabilities: NDArray[Any]) -> float:
    from sklearn.metrics import roc_auc_score

    if split.classes == 2:
        return 1.0 - float(roc_auc_score(split.valid_y, probabilities[:, 1]))
    return float(np.mean(np.argmax(probabilities, axis=1) != split.valid_y))


def first(split: datasets.Split, share: float) -> int:
    """Rows are in a random order, so the first of them are a sample."""
    return max(round(share * len(split.train_x)), 20)


class Perceptron:
    """One hidden layer, Adam."""

    def __init__(self, split: datasets.Split, config: Config) -> None:
        from sklearn.neural_network import MLPClassifier

        rows = first(split, config["share"])
        self._split, self._x, self._y = split, split.train_x[:rows], split.train_y[:rows]
        self._model = MLPClassifier(
            (config["hidden"],), solver="adam", learning_rate_init=config["learning_rate"], alpha=config["alpha"],
            batch_size=min(config["batch"], rows), beta_1=config["beta_1"], random_state=0,
        )  # fmt: skip

    def grow(self, units: int) -> None:
        for _ in range(units):
            self._model.partial_fit(self._x, self._y, classes=np.arange(self._split.classes))

    def error(self) -> float:
        try:
            return judge(self._split, self._model.predict_proba(self._split.valid_x))
        except ValueError:  # weights that are not numbers any more: the learning rate was too high
            return 1.0


class Trees:
    """Gradient boosting, a round at a time; a round of several classes is a tree for each."""

    def __init__(self, split: datasets.Split, config: Config) -> None:
        import xgboost

        rows = first(split, config["share"])
        settings = {dimension.name: config[dimension.name] for dimension in SPACES["xgboost"]}
        settings |= {"nthread": 1, "seed": 0, "tree_method": "hist", "verbosity": 0}
        two = split.classes == 2
        settings |= {"objective": "binary:logistic"} if two else {"objective": "multi:softprob", "num_class": split.classes}
        self._split = split
        self._train = xgboost.DMatrix(split.train_x[:rows], split.train_y[:rows], nthread=1)
        self._valid = xgboost.DMatrix(split.valid_x, nthread=1)
        self._booster = xgboost.Booster(settings, [self._train, self._valid])
        self._rounds = 0

    def grow(self, units: int) -> None:
        for _ in range(units):
            self._booster.update(self._train, self._rounds)
            self._rounds += 1

    def error(self) -> float:
        found = self._booster.predict(self._valid)
        return judge(self._split, np.column_stack([1 - found, found]) if self._split.classes == 2 else found)


LEARNERS: dict[str, Callable[[datasets.Split, Config], Growing]] = {"mlp": Perceptron, "xgboost": Trees}


@dataclass(frozen=True)
class Task(FidelityProblem):
    """With what it takes to grow a model in pieces; growth is the fidelity that can."""

    start: Callable[[Config], Growing] = NotImplemented
    growth: Integer = NotImplemented


def exists(name: str) -> bool:
    """Whether the table is there."""
    return (datasets.FOLDER / f"{name.split('_', 1)[1]}.csv.gz").exists()


def load(name: str, budget: float | None = None) -> Task:
    learner, source = name.split("_", 1)
    growth, seconds_allowed = GROWTH[learner], budget or CHEAPER.get(name, BUDGETS[learner])
    known: dict[tuple[Any, ...], float] = {}  # errors at both targets

    def start(config: Config) -> Growing:
        return LEARNERS[learner](table(source), config)

    def key(config: Config) -> tuple[Any, ...]:
        return tuple(config[dimension.name] for dimension in SPACES[learner])

    def evaluate(config: Config) -> Measured:
        table(source)  # read before the clock starts
        began = time.process_time()
        model = start(config)
        model.grow(int(config[growth.name]))
        error = model.error()
        seconds = max(time.process_time() - began, 1e-4)
        if config[SHARE.name] == SHARE.high and config[growth.name] == growth.high:
            known[key(config)] = error
        return Measured(error, seconds)

    def regret(config: Config) -> float:
        if key(config) not in known:
            evaluate({**config, SHARE.name: SHARE.high, growth.name: high(growth)})
        return known[key(config)]

    return Task(name, SPACES[learner], (SHARE, growth), evaluate, regret, seconds_allowed, CAP, None, True, start, growth)
