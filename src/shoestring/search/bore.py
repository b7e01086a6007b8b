"""BORE: Bayesian optimization by density-ratio estimation, with a classifier from scikit-learn in place of a regression.

Source: Tiao et al., "BORE: Bayesian optimization by density-ratio estimation" (2021).
Install it with ``pip install "shoestring[sklearn]"``.

The gamma n best of n values are called good. Let l(x) be the density of their configs and g(x) that of the others. The expected
improvement on the gamma-quantile rises with the ratio l / (gamma l + (1 - gamma) g) = P(good | x) / gamma, and a classifier
learns P(good | x) from labels alone. TPE estimates the two densities; BORE learns their ratio directly.

    good          the ceil(gamma n) best, at least one; equal values get equal labels (see ``labels``)
    not good      the other finished trials, failed trials (worse than any value), and running trials: a constant liar, which
                  sends the next suggestion elsewhere until the value is known
    weights       1 for every trial

The probability is maximized over the whole space, and of points with equal probabilities one is drawn at random: the classifier
has no measure of its own uncertainty, so this is all the exploration there is. Values at different fidelities cannot be
compared: only trials at the target are used, or all while there are none.

Random forests and other classifiers give P(good | x) at points. A multi-layer perceptron also has an exact gradient, which
scikit-learn does not compute. With layers h_0 = z, a_k = h_{k-1} W_k + b_k, h_k = s(a_k), and the last a_K, a number, the log
odds:

    d a_K / d h_{K-1} = W_K',    d a_K / d h_{k-1} = (d a_K / d h_k  o  s'(a_k)) W_k'

The surface is log P = -log(1 + exp(-a_K)), with d log P / d a_K = 1 - P. It is steep where P is near 0 and flat where P is near
1, so that certainty near 1 is no reason to move to the corners of the space.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import is_number, plain
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface, maximize_without_gradient
from ..data.dataset import Dataset
from ..data.trial import Suggestion
from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.encoding import Encoding
from .base import SearchContext, SearchMethod
from .initial_design import initial_suggestion, space_filling

CLASSIFIER_NAMES = ("forest", "mlp")
INPUT_SCALE = 10.0  # of the perceptron's inputs: with small inputs it fits nearly linear functions and suggests corners
LOG_PROBABILITY_TOLERANCE = 0.01  # log probabilities that differ by less are equal: one of the points is drawn


@dataclass(frozen=True)
class BORE(SearchMethod):
    """Suggests the config that a classifier gives the highest probability of being among the best trials.

    Use it where you trust a classifier more than a Gaussian process, or for comparisons. It needs ``pip install
    "shoestring[sklearn]"``.

    classifier  "forest" (random forest, best of many candidates), "mlp" (perceptron, by gradients), or any scikit-learn
                classifier with predict_proba: it is cloned, seeded where its random_state is None, and fitted each time
    gamma       the share of trials that are called good

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.BORE(gamma=0.2))
    >>> study.ask().suggestion["by"]
    'BORE'
    """

    classifier: Any = "forest"
    gamma: float = 0.25

    def __post_init__(self) -> None:
        share = plain(self.gamma)
        if not is_number(share) or not 0.0 < share < 1.0:
            raise MethodError(f"BORE: gamma must lie between 0 and 1, for example 0.25, not {self.gamma!r}")
        check_classifier(self.classifier)

    def suggest(self, context: SearchContext) -> Suggestion:
        if context.in_initial_design:
            return initial_suggestion(context, "BORE")
        space, encoding, data = context.space, context.encoding, context.data
        # no candidates around the best trials: the classifier is certain there, and the search would stay at the first good ones
        optimizer = AcquisitionOptimizer(encoding, context.rng, context.visited, data.U[:0])
        U, good = training_set(data, self.gamma)
        if good.all() or not good.any():
            u, why = space_filling(context), "space-filling, while all values are alike"
            return Suggestion(space.decode(u), by="BORE", why=why)
        classifier = fit_classifier(self.classifier, encoding.features(U), good, int(optimizer.rng.integers(2**31)))
        if has_gradient(classifier):
            optimum = optimizer.maximize(log_probability_surface(classifier, encoding))
            equal = np.flatnonzero(optimum.values >= optimum.value - LOG_PROBABILITY_TOLERANCE)
            u = optimum.U[optimizer.rng.choice(equal)]
        else:
            u = maximize_without_gradient(probability_surface(classifier, encoding), optimizer)
        probability = float(probability_surface(classifier, encoding)(u[None, :], False)[0][0])
        why = f"chance {probability:.2f} to be among the best {self.gamma:.0%} of {len(data.eligible)} trials"
        return Suggestion(space.decode(u), by="BORE", why=why)


# -- labels --------------------------------------------------------------------------------------------------------------------


def training_set(data: Dataset, gamma: float) -> tuple[Array, NDArray[np.bool_]]:
    """Points and labels: finished trials, then failed and running ones, which are not good."""
    U = np.vstack([data.U[data.eligible], data.failed, data.pending])
    good = np.zeros(len(U), dtype=bool)
    finished = labels(data.y[data.eligible], gamma)
    good[: len(finished)] = finished
    return U, good


def labels(y: Array, gamma: float) -> NDArray[np.bool_]:
    """Which values (lower is better) are good: exactly ceil(gamma n) where no two are equal.

    If equal values lie on both sides of the boundary, none of them is good, so that fewer are good. The lowest value of all is
    good however often it occurs.
    """
    count = max(1, math.ceil(gamma * len(y) - 1e-9))  # 0.07 * 100 is a little more than 7
    ranked = np.sort(y)
    last = ranked[count - 1]
    tied = count < len(y) and ranked[count] == last and last > ranked[0]
    return np.asarray(y < last if tied else y <= last)


# -- the classifier ------------------------------------------------------------------------------------------------------------


def check_classifier(given: Any) -> None:
    """Raise MethodError unless this is a classifier that can be used, and scikit-learn is installed."""
    if find_spec("sklearn") is None:
        raise MethodError('BORE needs scikit-learn, which is not installed; install it with\n  pip install "shoestring[sklearn]"')
    if isinstance(given, str):
        if given not in CLASSIFIER_NAMES:
            raise MethodError(f'BORE: classifier={given!r} is not known; give "forest", "mlp" or a scikit-learn classifier')
        return
    if isinstance(given, type):
        raise MethodError(f"BORE: classifier={given.__name__} is a class; write {given.__name__}()")
    if not all(hasattr(given, need) for need in ("fit", "get_params", "predict_proba")):
        raise MethodError(
            f"BORE: classifier={given!r} does not predict probabilities; give a scikit-learn classifier that has predict_proba "
            '(for SVC: SVC(probability=True), or CalibratedClassifierCV(SVC())), or "forest", or "mlp"'
        )


@single_threaded
def fit_classifier(given: Any, Z: Array, good: NDArray[np.bool_], seed: int) -> Any:
    """A new classifier, fitted to features and labels; the given one is not changed."""
    from sklearn.base import clone

    classifier = _built_in(given) if isinstance(given, str) else clone(given)
    params = classifier.get_params().items()
    unseeded = [name for name, value in params if name.split("__")[-1] == "random_state" and value is None]
    classifier.set_params(**dict.fromkeys(sorted(unseeded), seed))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the fit has not converged does not matter here
            if given != "mlp":
                return classifier.fit(Z, good.astype(int))
            return with_unscaled_inputs(classifier.fit(INPUT_SCALE * (Z - 0.5), good.astype(int)))
    except ValueError as error:
        counts = f"{good.sum()} good and {(~good).sum()} other trials"
        raise MethodError(f"BORE: the classifier cannot be fitted to {counts}: {error}; give another one") from error


def _built_in(name: str) -> Any:
    """The classifier of a name."""
    if name == "mlp":
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32, 32), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=200)
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50, n_jobs=1)


def with_unscaled_inputs(perceptron: Any) -> Any:
    """A perceptron that was fitted to INPUT_SCALE (z - 1/2), changed to take z: the scale moves into the first layer."""
    W = INPUT_SCALE * perceptron.coefs_[0]
    perceptron.coefs_[0], perceptron.intercepts_[0] = W, perceptron.intercepts_[0] - 0.5 * W.sum(axis=0)
    return perceptron


def has_gradient(classifier: Any) -> bool:
    """Whether the gradient of the log odds is known: that of a perceptron."""
    from sklearn.neural_network import MLPClassifier

    return isinstance(classifier, MLPClassifier)


def probability_surface(classifier: Any, encoding: Encoding) -> Surface:
    """P(good | x) as a surface without gradient."""
    column = list(classifier.classes_).index(1)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        return np.asarray(classifier.predict_proba(encoding.features(U))[:, column], dtype=float), None

    return value


def log_probability_surface(perceptron: Any, encoding: Encoding) -> Surface:
    """log P(good | x) of a perceptron, with its gradient."""

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        log_odds, slope = log_odds_and_gradient(perceptron, encoding.features(U))
        total = -np.logaddexp(0.0, -log_odds)
        return total, encoding.pull_back(U, -np.expm1(total)[:, None] * slope) if gradient else None

    return value


def log_odds_and_gradient(perceptron: Any, Z: Array) -> tuple[Array, Array]:
    """a_K (m) of features Z (m x p), and its gradient (m x p)."""
    h, derivatives = Z, []
    for W, b in zip(perceptron.coefs_[:-1], perceptron.intercepts_[:-1], strict=True):
        h, derivative = _activation(perceptron.activation, h @ W + b)
        derivatives.append(derivative)
    log_odds = (h @ perceptron.coefs_[-1] + perceptron.intercepts_[-1])[:, 0]
    back = np.broadcast_to(perceptron.coefs_[-1][:, 0], h.shape)
    for W, derivative in zip(perceptron.coefs_[-2::-1], reversed(derivatives), strict=True):
        back = (back * derivative) @ W.T
    return log_odds, np.array(back)


def _activation(name: str, a: Array) -> tuple[Array, Array]:
    """s(a) and s'(a)."""
    if name == "tanh":
        h = np.tanh(a)
        return h, 1.0 - h * h
    if name == "relu":
        return np.maximum(a, 0.0), (a > 0.0).astype(float)
    if name == "logistic":
        h = 0.5 + 0.5 * np.tanh(0.5 * a)
        return h, h * (1.0 - h)
    return a, np.ones_like(a)
