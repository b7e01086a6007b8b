"""The config to take home: where the model's mean is lowest at the target fidelity.

Risk-neutral: of all configs the one with the best expected value, tried or not. Noise fools it less than the best value seen,
and a fidelity at which nothing was evaluated yet is no obstacle. Where evaluations fail, only places that are likelier to
succeed than not are considered beside those that have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..acquisition.averaging import average
from ..acquisition.candidates import SAME
from ..acquisition.improvement import Surface
from ..acquisition.maximize import Seeker
from ..numerics import Array
from ..surrogate.belief import Belief
from .look import believe, seeker_for
from .method import Situation

LIKELY = float(np.log(0.5))


@dataclass(frozen=True)
class Pick:
    """A point at the target fidelity, its predicted value in the user's units, and the finished trial (in order) there."""

    u: Array
    value: float
    row: int | None


def recommend(situation: Situation, tried: bool = False) -> Pick | None:
    """The best expected value over the space, or with ``tried`` over what was evaluated; None while nothing has succeeded.

    ``tried`` looks at trials of the target fidelity, and at all while there are none.
    """
    seen = situation.seen
    if not seen.finished:
        return None
    belief = believe(situation, costs=False)
    falling = negative_mean(belief)
    if tried:
        row = int(seen.eligible[np.argmax(falling(seen.U[seen.eligible], False)[0])])
        return Pick(seen.U[row], in_users_units(belief, falling, seen.U[row], seen.sign), row)
    u = lowest_mean(belief, falling, seeker_for(situation))
    same = np.flatnonzero((np.abs(seen.U[: seen.finished] - u) < SAME).all(axis=1))
    return Pick(u, in_users_units(belief, falling, u, seen.sign), int(same[np.argmin(seen.y[same])]) if len(same) else None)


def lowest_mean(belief: Belief, falling: Surface, seeker: Seeker) -> Array:
    """Where the mean is lowest at the target fidelity: found by the same search as an acquisition's maximum."""
    found = replace(seeker, seen=seeker.seen[:0]).highest(falling)
    points, values = found.U, found.values
    if belief.viability is not None:
        likely = belief.viability.log_chance(belief.encoding.features(points)) >= LIKELY
        points, values = points[likely], values[likely]
    points = np.vstack([points, belief.tried])
    values = np.concatenate([values, falling(belief.tried, False)[0]])
    return np.asarray(points[int(np.argmax(values))])


def negative_mean(belief: Belief) -> Surface:
    """Minus the posterior mean, over all sets of hyperparameters; what is only supposed of running trials does not count."""

    def under(one: Belief) -> Surface:
        posterior = one.settled or one.objective

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            Z = belief.encoding.features(U)
            if not gradient:
                return -posterior.mean_at(Z), None
            mean, _, slope, _ = posterior.with_gradients(Z)
            return -mean, -belief.encoding.pull_back(U, slope)

        return value

    return average([under(one) for one in belief.sets], in_logs=False)


def in_users_units(belief: Belief, falling: Surface, u: Array, sign: float) -> float:
    return sign * float(belief.output.inverse(-falling(u[None, :], False)[0])[0])
