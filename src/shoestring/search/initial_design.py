"""The first trials, before there is a model to ask."""

from __future__ import annotations

import numpy as np

from ..acquisition.optimize.candidates import known, quasi_random, unseen
from ..cost.base import expected_log_cost
from ..cost.linear import LinearCost
from ..data.trial import Suggestion
from ..numerics import Array
from ..surrogate.belief import believed_cost
from .base import Situation

CHEAP_SHARE = 0.4  # of the space
CANDIDATES = 500
PULL = 3.0  # a fidelity's share of the way to its target in the start is a uniform number to this power


def start(situation: Situation, by: str, thrifty: bool = False, fidelities: bool = False) -> Suggestion | None:
    """A trial of the space-filling start; None once that is over and a value is known.

    With ``fidelities`` it is a cheap one: most of its trials at low fidelities.
    """
    started = situation.seen.finished + len(situation.seen.pending)
    why = f"space-filling start, {started + 1} of {situation.initial}"
    if started >= situation.initial:
        if situation.seen.finished:
            return None
        why, started = "nothing has succeeded yet", situation.initial - 1
    u, remark = low_fidelity_point(situation, started) if fidelities else start_point(situation, started, thrifty)
    return Suggestion(situation.space.decode(u), by=by, why=why + remark)


def space_filling(situation: Situation) -> Array:
    """The point of the study's Sobol sequence at the trial's number; a random unseen one where that was tried already."""
    space = situation.space
    u = space.snap(space.at_target(sobol_point(situation.seed, situation.number, len(space))[None, :]))
    if known(u, situation.taken)[0]:
        return unseen(space, situation.taken, situation.rng)
    return np.asarray(u[0])


def low_fidelity_point(situation: Situation, started: int) -> tuple[Array, str]:
    """A point of the study's Sobol sequence with its fidelities pulled down, so that the start costs a few target evaluations
    or less, and still tells how fidelities differ.
    """
    space = situation.space
    u = sobol_point(situation.seed, situation.number, len(space))[None, :]
    for j, parameter in enumerate(space.values()):
        if parameter.fidelity:
            goal = float(parameter.to_unit(space.target[space.names[j]]))
            u[:, j] = goal * u[:, j] ** PULL
    spread = quasi_random(CANDIDATES, len(space), situation.rng)  # for where it was tried already, and for small budgets
    columns = [space.names.index(name) for name in space.fidelities]
    spread[:, columns] = u[:, columns] * spread[:, columns]
    pool = space.snap(np.vstack([u, spread]))
    pool = pool[~known(pool, situation.taken)]
    limit = cost_limit(situation, started)
    if limit < np.inf and len(pool):
        pool = pool[linear_cost(situation, pool) <= limit]
    if not len(pool):
        return unseen(space, situation.taken, situation.rng), ""
    return np.asarray(pool[0]), ", at a low fidelity"


def start_point(situation: Situation, started: int, thrifty: bool) -> tuple[Array, str]:
    """The next point of the start, and what there is to say of it.

    The second half of a thrifty start, or of one under a budget in cost, is chosen among the cheaper part of the space (a
    cost-effective start, Lee et al. 2020: at small budgets the start is a large part of what is spent). Under a budget in
    cost, no trial of the start is expected to take more than its share of what is left, as soon as costs are known at all.
    """
    foreseen = situation.cost_is_known or len(situation.seen.gamma) >= 2
    limit = cost_limit(situation, started)
    cheap = (thrifty or situation.cost_limited) and foreseen and started >= (situation.initial + 1) // 2
    u = space_filling(situation)
    if not cheap and (limit == np.inf or linear_cost(situation, u[None, :])[0] <= limit):
        return u, ""
    return cheap_space_filling(situation, CHEAP_SHARE if cheap else 1.0, limit), ", among the cheaper part of the space"


def cost_limit(situation: Situation, started: int) -> float:
    """The logarithm of what a trial of the start may cost: its share of what is left, as soon as costs can be foretold."""
    spending = situation.spending
    foreseen = situation.cost_is_known or len(situation.seen.gamma) >= 2
    if not foreseen or spending is None or not situation.cost_limited or spending.left <= situation.reserved:
        return np.inf
    return float(np.log((spending.left - situation.reserved) / (situation.initial - started + 1)))


def linear_cost(situation: Situation, U: Array) -> Array:
    """Log of the expected cost: by the study's cost model where that needs no data, else by the low-variance one, which
    extrapolates best from a handful of trials.

    Expected, so that a corner of which nothing is known does not pass for a cheap one.
    """
    posterior = situation.cost if situation.cost_is_known else None
    posterior = posterior or believed_cost(situation.seen, situation.encoding, LinearCost(None))
    assert posterior is not None  # asked only when costs are known
    return expected_log_cost(posterior, U)


def cheap_space_filling(situation: Situation, share: float, limit: float) -> Array:
    """The point farthest from all others among the cheapest ``share`` of the space, and below ``limit`` if there is any."""
    space, seen, rng = situation.space, situation.seen, situation.rng
    pool = space.snap(space.at_target(quasi_random(CANDIDATES, len(space), rng)))
    pool = pool[~known(pool, situation.taken)]
    if not len(pool):
        return unseen(space, situation.taken, rng)
    gamma = linear_cost(situation, pool)
    cheap = pool[gamma <= max(min(float(np.quantile(gamma, share)), limit), float(np.quantile(gamma, 0.02)))]
    if not len(seen.seen):
        return np.asarray(cheap[0])
    Z, others = situation.encoding.features(cheap), situation.encoding.features(seen.seen)
    apart = ((Z[:, None, :] - others[None, :, :]) ** 2).sum(axis=2).min(axis=1)
    return np.asarray(cheap[int(np.argmax(apart))])


def sobol_point(seed: int, index: int, dimensions: int) -> Array:
    from scipy.stats import qmc  # here, since it is slow to import

    sequence = qmc.Sobol(dimensions, rng=np.random.default_rng([seed, 0x50B01]))
    if index > 0:  # SciPy 1.17 overflows on fast_forward(0)
        sequence.fast_forward(index)
    return np.asarray(sequence.random(1)[0])
