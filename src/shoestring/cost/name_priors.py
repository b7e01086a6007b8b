"""What names say about costs: prior mean and variance of the weights of the linear model, by the kind of each hyperparameter.

People name hyperparameters alike, and costs depend on them alike: twice the trees take about twice the time, whatever the forest.
So a linear model can start from what such names cost elsewhere. A name may mislead, so it is only a prior; ``auto`` weighs it
against the same model without names by what the costs say.

Notation
    (1)  weight = slope * R,   R = log(high / low)      slope: change of log cost for each factor e of the value
    (2)  weight ~ N(slope R, (deviation R)^2)           by kind; over the range for kinds that have no slope

R of a numeric parameter that may be zero or negative, such as a position on a grid, is the log of its number of values, or that
of a factor of ten for a real number. A fidelity that begins at zero is assumed to cost a hundredth of the target there.

The slopes are those in 12 recorded tables (support vector machines, random forests, gradient boosting), rounded: iterations had
slopes of .58 to .95, depth, leaves and degree .14 to .65, shares of rows and columns 0 to .59, lower limits -.10 to 0; other
names changed log cost by .7 over their range, in the mean square. That of batch size is an assumption: fewer steps, each of which
takes longer. The noise and the deviations, which are wider than those of the slopes, were chosen by predictions on the same
tables and on those of HPOBench.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..numerics import Array
from ..space.encoding import Encoding
from ..space.parameters import Choice, Numeric
from ..space.space import Parameter
from .features import FIDELITY_OVERHEAD, CostFeatures
from .linear import WeightPrior

NOISE = 0.2  # Q0, a variance of log cost: a linear model left .03 to .3 over in the recorded tables
NOISE_OBSERVATIONS = 1.0  # what it counts as
MIN_DEVIATION = 0.05  # of a weight, so that a narrow range does not make it certain
RANGE_OF_UNKNOWN_SCALE = math.log(10.0)  # R of a real number that may be zero


@dataclass(frozen=True)
class Kind:
    """A kind of hyperparameter: its slope and the deviation of that, or, without a slope, the deviation over the range."""

    slope: float
    deviation: float
    over_range: bool = False


KINDS = {
    "iterations": Kind(0.8, 0.3),
    "size": Kind(0.45, 0.45),
    "share": Kind(0.25, 0.3),
    "batch": Kind(-0.4, 0.4),
    "quiet": Kind(0.0, 0.4, over_range=True),  # names that are known to drive no cost
    "other": Kind(0.0, 1.0, over_range=True),
    "choice": Kind(0.0, 1.0, over_range=True),
}
INFORMED = ("iterations", "size", "share", "batch")

WORDS = {
    "iterations": """round boost tree estimator iteration iter epoch step fold cv repeat restart chain draw particle generation
        pass sweep budget episode trial ensemble member bag learner population popsize cycle""",
    "size": """depth layer unit width hidden neuron node leaf leave channel filter head block degree dim dimension embedding
        embed order component rank cluster kernelsize resolution length len seq window horizon bin topic state grid stack""",
    "share": "subsample sample row colsample column col feature fraction share data example point",
    "batch": "batch minibatch bs",
    "quiet": """rate lr eta alpha lambda gamma beta reg regularization regularisation penalty l1 l2 decay momentum dropout drop
        seed eps epsilon tol tolerance min minimum least warmup temperature noise clip coef coef0 weight shrinkage scale impurity
        nesterov schedule activation smoothing bias init shift offset threshold prior""",
}
KIND_OF_WORD = {word: kind for kind, words in WORDS.items() for word in words.split()}
MIN_LETTERS_WITHIN = 5  # of a word that is looked for within a name that has no separators: "nestimators"


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters and singular: ``n_Estimators``, ``nEstimators`` and ``n-estimators`` are the same."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+", name)
    found = []
    for part in parts:
        word = part.lower()
        found.append(word if word in KIND_OF_WORD else _singular(word.rstrip("0123456789")))
    return [word for word in found if word]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=1024)
def kind_by_name(name: str) -> str:
    """The kind that a name stands for, "other" if it says nothing.

    A quiet word decides where there is one, since it says what is meant: ``min_samples_leaf``, ``layer_dropout``; then a batch.
    """
    words = words_of(name)
    if "batch" in "".join(words) or "bs" in words:
        return "batch"
    if words[-2:] == ["step", "size"]:
        return "quiet"  # a learning rate
    kinds = {KIND_OF_WORD[word] for word in words if word in KIND_OF_WORD}
    if not kinds:
        joined = "".join(words)
        kinds = {kind for word, kind in KIND_OF_WORD.items() if len(word) >= MIN_LETTERS_WITHIN and word in joined}
    return next((kind for kind in ("quiet", *INFORMED) if kind in kinds), "other")


def kind_of(name: str, parameter: Parameter) -> str:
    """The kind of a hyperparameter. A fidelity is there to make evaluations cheaper, whatever it is called."""
    if isinstance(parameter, Choice):
        return "choice"
    return "iterations" if parameter.fidelity else kind_by_name(name)


def log_range(parameter: Numeric) -> float:
    """R."""
    if parameter.low > 0:
        return math.log(parameter.high / parameter.low)
    if parameter.fidelity:
        return math.log1p(1.0 / FIDELITY_OVERHEAD)
    return math.log(parameter.levels) if parameter.levels is not None else RANGE_OF_UNKNOWN_SCALE


def names_say_something(features: CostFeatures) -> bool:
    """Whether any hyperparameter of the space has a name that is known to drive costs."""
    return any(kind_of(name, parameter) in INFORMED for name, parameter in features.encoding.space.items())


def named_prior(features: CostFeatures) -> WeightPrior:
    """The prior of the weights of all hyperparameters, equation (2)."""
    space = features.encoding.space
    mean, deviation = np.zeros(len(features.groups) + 1), np.full(len(features.groups) + 1, np.inf)
    for j, (name, parameter) in enumerate(space.items()):
        kind, columns = KINDS[kind_of(name, parameter)], 1 + features.columns([j])
        scale = 1.0 if kind.over_range or isinstance(parameter, Choice) else log_range(parameter)
        mean[columns], deviation[columns] = kind.slope * scale, max(kind.deviation * scale, MIN_DEVIATION)
    return WeightPrior(mean, NOISE / deviation**2, (NOISE, NOISE_OBSERVATIONS))


def log_cost_by_names(encoding: Encoding, U: Array) -> Array | None:
    """What names alone say about log cost at points, up to a constant; None where they say nothing."""
    features = CostFeatures(encoding)
    return features(U) @ named_prior(features).mean[1:] if names_say_something(features) else None
