"""Classifiers from scikit-learn, as surfaces to search (``pip install "shoestring[sklearn]"``).

Trees and others give P(good | x) at points. A multi-layer perceptron also has an exact gradient, which scikit-learn does not
give: with layers h_0 = z, a_k = h_{k-1} W_k + b_k, h_k = s(a_k) and the last a_K, a number, the log odds,

    d a_K / d h_{K-1} = W_K',    d a_K / d h_{k-1} = (d a_K / d h_k  o  s'(a_k)) W_k'.

The surface is log P = -log(1 + exp(-a_K)), d log P / d a_K = 1 - P: steep where P nears 0, and level where it nears 1, since
to be still surer than sure is no reason to go to the far corners of the space.

Bayesian optimization by density-ratio estimation: a classifier in place of a regression (BORE, Tiao et al. 2021).

Call good the gamma n best of n values, l(x) the density of their configs and g(x) that of the others. The expected
improvement on the gamma-quantile rises with the ratio l / (gamma l + (1 - gamma) g), and that is P(good | x) / gamma: the
chance that a classifier learns from labels alone. TPE estimates the two densities; here their ratio is learnt at once.

    good          the ceil(gamma n) best, at least one; equal values are never parted (see ``labels``)
    not good      the other finished trials, failed ones (worse than any value), and running ones: a lie that sends the next
                  suggestion elsewhere until the truth is known
    weights       1 for every trial

The chance is searched over the whole space, and of points with equal chances one is drawn: the classifier does not know how
little it knows, so this is all the exploration there is.

Values at another fidelity cannot be compared: only trials at the target count, or all while there are none.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import plain
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface, maximize_without_gradient
from ..data.dataset import Dataset
from ..data.trial import Suggestion
from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.encoding import Encoding
from .base import SearchContext
from .initial_design import initial_suggestion, space_filling

NAMES = ("forest", "mlp")
STRETCH = 10.0  # of the perceptron's inputs: from small ones it learns no bends, and asks in the corners of the space


def check_classifier(given: Any) -> None:
    """Raise MethodError unless this is a classifier that can be used, and scikit-learn is there."""
    if find_spec("sklearn") is None:
        raise MethodError('BORE needs scikit-learn, which is not installed; install it with\n  pip install "shoestring[sklearn]"')
    if isinstance(given, str):
        if given not in NAMES:
            raise MethodError(f'BORE: classifier={given!r} is not known; give "forest", "mlp" or a scikit-learn classifier')
        return
    if isinstance(given, type):
        raise MethodError(f"BORE: classifier={given.__name__} is a class; write {given.__name__}()")
    if not all(hasattr(given, need) for need in ("fit", "get_params", "predict_proba")):
        raise MethodError(
            f"BORE: classifier={given!r} does not tell chances; give a scikit-learn classifier that has predict_proba "
            '(for SVC: SVC(probability=True), or CalibratedClassifierCV(SVC())), or "forest", or "mlp"'
        )


@single_threaded
def fitted(given: Any, Z: Array, good: NDArray[np.bool_], seed: int) -> Any:
    """A new classifier, fitted to features and labels of both kinds; what was given stays as it is."""
    from sklearn.base import clone

    machine = _named(given) if isinstance(given, str) else clone(given)
    unseeded = [name for name, value in machine.get_params().items() if name.split("__")[-1] == "random_state" and value is None]
    machine.set_params(**dict.fromkeys(sorted(unseeded), seed))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "not converged" is no news here
            if given != "mlp":
                return machine.fit(Z, good.astype(int))
            return unstretched(machine.fit(STRETCH * (Z - 0.5), good.astype(int)))
    except ValueError as error:
        counts = f"{good.sum()} good and {(~good).sum()} other trials"
        raise MethodError(f"BORE: the classifier cannot be fitted to {counts}: {error}; give another one") from error


def _named(name: str) -> Any:
    if name == "mlp":
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32, 32), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=200)
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50, n_jobs=1)


def unstretched(machine: Any) -> Any:
    """A perceptron of STRETCH (z - 1/2) as one of z."""
    W = STRETCH * machine.coefs_[0]
    machine.coefs_[0], machine.intercepts_[0] = W, machine.intercepts_[0] - 0.5 * W.sum(axis=0)
    return machine


def has_gradient(machine: Any) -> bool:
    from sklearn.neural_network import MLPClassifier

    return isinstance(machine, MLPClassifier)


def chances(machine: Any, encoding: Encoding) -> Surface:
    """P(good) as a surface without gradient."""
    column = list(machine.classes_).index(1)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        return np.asarray(machine.predict_proba(encoding.features(U))[:, column], dtype=float), None

    return value


def log_chances(machine: Any, encoding: Encoding) -> Surface:
    """log P(good) of a perceptron, with its gradient."""

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        odds, slope = odds_with_gradient(machine, encoding.features(U))
        total = -np.logaddexp(0.0, -odds)
        return total, encoding.pull_back(U, -np.expm1(total)[:, None] * slope) if gradient else None

    return value


def odds_with_gradient(machine: Any, Z: Array) -> tuple[Array, Array]:
    """a_K (m) of features Z (m x p), and its gradient (m x p)."""
    h, slopes = Z, []
    for W, b in zip(machine.coefs_[:-1], machine.intercepts_[:-1], strict=True):
        h, slope = _activation(machine.activation, h @ W + b)
        slopes.append(slope)
    odds = (h @ machine.coefs_[-1] + machine.intercepts_[-1])[:, 0]
    back = np.broadcast_to(machine.coefs_[-1][:, 0], h.shape)
    for W, slope in zip(machine.coefs_[-2::-1], reversed(slopes), strict=True):
        back = (back * slope) @ W.T
    return odds, np.array(back)


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


ALIKE = 0.01  # log chances nearer than this are equal: one of the points is drawn


@dataclass(frozen=True)
class BORE:
    """Asks where a classifier gives the highest chance to be among the best ``gamma`` of all trials.

    classifier   "forest" (random forest, best of many candidates), "mlp" (perceptron, by gradients), or any scikit-learn
                 classifier with predict_proba: it is copied, seeded where its random_state is None, and fitted each time
    gamma        the share of trials that are called good
    """

    classifier: Any = "forest"
    gamma: float = 0.25

    def __post_init__(self) -> None:
        share = plain(self.gamma)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
            raise MethodError(f"BORE: gamma must lie between 0 and 1, for example 0.25, not {self.gamma!r}")
        check_classifier(self.classifier)

    def suggest(self, context: SearchContext) -> Suggestion:
        begun = initial_suggestion(context, "BORE")
        if begun is not None:
            return begun
        space, encoding, seen = context.space, context.encoding, context.data
        optimizer = AcquisitionOptimizer(encoding, context.rng, context.visited, seen.U[:0])  # not around the best trials: see ``plateaus``
        U, good = training_set(seen, self.gamma)
        if good.all() or not good.any():
            u, why = space_filling(context), "space-filling, while all values are alike"
            return Suggestion(space.decode(u), by="BORE", why=why)
        machine = fitted(self.classifier, encoding.features(U), good, int(optimizer.rng.integers(2**31)))
        if has_gradient(machine):
            optimum = optimizer.maximize(log_chances(machine, encoding))
            u = optimum.U[optimizer.rng.choice(np.flatnonzero(optimum.values >= optimum.value - ALIKE))]
        else:
            u = maximize_without_gradient(chances(machine, encoding), optimizer)
        chance = float(chances(machine, encoding)(u[None, :], False)[0][0])
        why = f"chance {chance:.2f} to be among the best {self.gamma:.0%} of {len(seen.eligible)} trials"
        return Suggestion(space.decode(u), by="BORE", why=why)


def training_set(seen: Dataset, gamma: float) -> tuple[Array, NDArray[np.bool_]]:
    """Points and labels: finished trials, then failed and running ones, which are not good."""
    U = np.vstack([seen.U[seen.eligible], seen.failed, seen.pending])
    good = np.zeros(len(U), dtype=bool)
    found = labels(seen.y[seen.eligible], gamma)
    good[: len(found)] = found
    return U, good


def labels(y: Array, gamma: float) -> NDArray[np.bool_]:
    """Which values (lower is better) are good: exactly ceil(gamma n) where no two are equal.

    Equal values that the boundary would part are none of them good, so that there are fewer, except for the lowest value
    of all, which is good however often it is there.
    """
    count = max(1, math.ceil(gamma * len(y) - 1e-9))  # 0.07 * 100 is a little more than 7
    ranked = np.sort(y)
    last = ranked[count - 1]
    parted = count < len(y) and ranked[count] == last and last > ranked[0]
    return np.asarray(y < last if parted else y <= last)
