"""The initial design: space-filling trials before there is a model, cheap ones where cost is weighed or limited."""

from __future__ import annotations

import numpy as np

from ..acquisition.optimize.candidates import is_visited, quasi_random, random_unvisited
from ..cost.base import expected_log_cost
from ..cost.linear import LinearCost
from ..data.trial import Suggestion
from ..numerics import Array, qmc
from ..surrogate.belief import fit_cost
from .base import SearchContext

CHEAP_SHARE = 0.4  # of the space: the part from which the second half of a cheap initial design is taken
CANDIDATES = 500
FIDELITY_POWER = 3.0  # in the initial design, a fidelity's share of its target is a uniform number to this power


def initial_suggestion(context: SearchContext, by: str, cheap: bool = False, fidelities: bool = False) -> Suggestion:
    """A trial of the initial design: while ``context.in_initial_design``.

    cheap        the second half is taken from the cheaper part of the space
    fidelities   most trials are at low fidelities
    """
    started = context.data.finished + len(context.data.pending)
    why = f"space-filling start, {started + 1} of {context.initial}"
    if started >= context.initial:
        why, started = "nothing has succeeded yet", context.initial - 1
    u, remark = low_fidelity_point(context, started) if fidelities else start_point(context, started, cheap)
    return Suggestion(context.space.decode(u), by=by, why=why + remark)


def space_filling(context: SearchContext) -> Array:
    """The point of the study's Sobol sequence at the trial's number; a random unseen one where that was tried already."""
    space = context.space
    u = space.snap(space.at_target(sobol_point(context.seed, context.number, len(space))[None, :]))
    if is_visited(u, context.visited)[0]:
        return random_unvisited(space, context.visited, context.rng)
    return np.asarray(u[0])


def low_fidelity_point(context: SearchContext, started: int) -> tuple[Array, str]:
    """A point of the study's Sobol sequence at low fidelities.

    The initial design then costs a few target evaluations or less, and still shows how fidelities differ.
    """
    space = context.space
    u = sobol_point(context.seed, context.number, len(space))[None, :]
    for j, parameter in enumerate(space.values()):
        if parameter.fidelity:
            goal = float(parameter.to_unit(space.target[space.names[j]]))
            u[:, j] = goal * u[:, j] ** FIDELITY_POWER
    spread = quasi_random(CANDIDATES, len(space), context.rng)  # for where it was tried already, and for small budgets
    columns = [space.names.index(name) for name in space.fidelities]
    spread[:, columns] = u[:, columns] * spread[:, columns]
    pool = space.snap(np.vstack([u, spread]))
    pool = pool[~is_visited(pool, context.visited)]
    limit = cost_limit(context, started)
    if limit < np.inf and len(pool):
        pool = pool[linear_cost(context, pool) <= limit]
    if not len(pool):
        return random_unvisited(space, context.visited, context.rng), ""
    return np.asarray(pool[0]), ", at a low fidelity"


def start_point(context: SearchContext, started: int, cheap: bool) -> tuple[Array, str]:
    """The next point of the initial design, and a remark.

    The second half of a cheap initial design, or of one under a budget in cost, is chosen among the cheaper part of the space
    (a cost-effective initial design, Lee et al. 2020: at small budgets it is a large part of what is spent). Under a budget in
    cost, no trial is expected to take more than its share of what is left, as soon as costs are known at all.
    """
    predictable = context.cost_is_known or len(context.data.log_cost) >= 2
    limit = cost_limit(context, started)
    cheap = (cheap or context.cost_limited) and predictable and started >= (context.initial + 1) // 2
    u = space_filling(context)
    if not cheap and (limit == np.inf or linear_cost(context, u[None, :])[0] <= limit):
        return u, ""
    return cheap_space_filling(context, CHEAP_SHARE if cheap else 1.0, limit), ", among the cheaper part of the space"


def cost_limit(context: SearchContext, started: int) -> float:
    """The logarithm of what a trial of the initial design may cost: its share of what is left, once costs can be predicted."""
    spending = context.spending
    predictable = context.cost_is_known or len(context.data.log_cost) >= 2
    if not predictable or spending is None or not context.cost_limited or context.affordable <= 0.0:
        return np.inf
    left = spending.left if spending.timed else spending.left - context.reserved
    return float(np.log(min(left / (context.initial - started + 1), context.affordable)))


def linear_cost(context: SearchContext, U: Array) -> Array:
    """Log of the expected cost: by the study's cost model where that needs no data, else by the low-variance one.

    The low-variance model extrapolates best from a few trials. It is the expected cost, so that a corner of which nothing is
    known does not look cheap.
    """
    posterior = context.cost if context.cost_is_known else None
    posterior = posterior or fit_cost(context.data, context.encoding, LinearCost(None))
    assert posterior is not None  # asked only when costs are known
    return expected_log_cost(posterior, U)


def cheap_space_filling(context: SearchContext, share: float, limit: float) -> Array:
    """The point farthest from all others among the cheapest ``share`` of the space, and below ``limit`` if there is any."""
    space, data, rng = context.space, context.data, context.rng
    pool = space.snap(space.at_target(quasi_random(CANDIDATES, len(space), rng)))
    pool = pool[~is_visited(pool, context.visited)]
    if not len(pool):
        return random_unvisited(space, context.visited, rng)
    log_cost = linear_cost(context, pool)
    cheap = pool[log_cost <= max(min(float(np.quantile(log_cost, share)), limit), float(np.quantile(log_cost, 0.02)))]
    if not len(data.visited):
        return np.asarray(cheap[0])
    Z, others = context.encoding.features(cheap), context.encoding.features(data.visited)
    apart = ((Z[:, None, :] - others[None, :, :]) ** 2).sum(axis=2).min(axis=1)
    return np.asarray(cheap[int(np.argmax(apart))])


def sobol_point(seed: int, index: int, dimensions: int) -> Array:
    sequence = qmc.Sobol(dimensions, rng=np.random.default_rng([seed, 0x50B01]))
    if index > 0:  # SciPy 1.17 overflows on fast_forward(0)
        sequence.fast_forward(index)
    return np.asarray(sequence.random(1)[0])
