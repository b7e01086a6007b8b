"""Bayesian optimization by density-ratio estimation: a classifier in place of a regression (BORE, Tiao et al. 2021).

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..acquisition.maximize import Seeker
from ..acquisition.plateaus import highest_of_many
from ..errors import MethodError
from ..numerics import Array
from ..observations import Observations
from ..parameters import plain
from ..trial import Suggestion
from .classifiers import chances, check_classifier, fitted, has_gradient, log_chances
from .method import Situation
from .start import space_filling, start

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

    def suggest(self, situation: Situation) -> Suggestion:
        begun = start(situation, "BORE")
        if begun is not None:
            return begun
        space, encoding, seen = situation.space, situation.encoding, situation.seen
        seeker = Seeker(encoding, situation.rng, situation.taken, seen.U[:0])  # not around the best trials: see ``plateaus``
        U, good = training_set(seen, self.gamma)
        if good.all() or not good.any():
            u, why = space_filling(situation), "space-filling, while all values are alike"
            return Suggestion(space.decode(u), by="BORE", why=why)
        machine = fitted(self.classifier, encoding.features(U), good, int(seeker.rng.integers(2**31)))
        if has_gradient(machine):
            peak = seeker.highest(log_chances(machine, encoding))
            u = peak.U[seeker.rng.choice(np.flatnonzero(peak.values >= peak.value - ALIKE))]
        else:
            u = highest_of_many(chances(machine, encoding), seeker)
        chance = float(chances(machine, encoding)(u[None, :], False)[0][0])
        why = f"chance {chance:.2f} to be among the best {self.gamma:.0%} of {len(seen.eligible)} trials"
        return Suggestion(space.decode(u), by="BORE", why=why)


def training_set(seen: Observations, gamma: float) -> tuple[Array, NDArray[np.bool_]]:
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
