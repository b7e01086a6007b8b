"""The initial design: space-filling trials before there is a model, none of which takes much of a budget in cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..acquisition.optimize.candidates import is_visited, quasi_random, random_unvisited
from ..cost.auto import NamedLinearCost
from ..cost.base import expected_log_cost
from ..cost.name_priors import log_cost_by_names
from ..data.trial import Suggestion
from ..numerics import Array, qmc
from ..surrogate.belief import fit_cost
from .base import SearchContext

CHEAPEST_SHARE = 0.02  # of the space: the part that is left where no trial is expected to fit into its share of the budget
CANDIDATES = 500
FIDELITY_POWER = 3.0  # in the initial design, a fidelity's share of its target is a uniform number to this power


def initial_suggestion(context: SearchContext, by: str, fidelities: bool = False) -> Suggestion:
    """A trial of the initial design: while ``context.in_initial_design``; with ``fidelities``, most are at low fidelities."""
    started = context.fits.learnt.finished + len(context.data.pending)
    why = f"space-filling start, {started + 1} of {context.initial}"
    if started >= context.initial:
        why, started = "nothing has succeeded yet", context.initial - 1
    u, remark = low_fidelity_point(context, started) if fidelities else start_point(context, started)
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


def start_point(context: SearchContext, started: int) -> tuple[Array, str]:
    """The next point of the initial design, and a remark: it fills the space.

    Under a budget in cost, no trial is expected to take more than its share of what is left, and the first one, of which no cost
    is known, is in the half of the space that names say is cheaper. A design in the cheaper part of the space (Lee et al. 2020)
    was worse on the tuning problems: what it saves is less than what a good first model is worth.
    """
    u = space_filling(context)
    if not context.cost_limited:
        return u, ""
    if not costs_are_known(context):
        return cheaper_by_names(context, u)
    limit = cost_limit(context, started)
    if limit == np.inf or linear_cost(context, u[None, :])[0] <= limit:
        return u, ""
    return affordable_space_filling(context, limit), ", among what the budget allows"


def costs_are_known(context: SearchContext) -> bool:
    """Whether anything can be said about the costs of other configs."""
    return context.cost_is_known or len(context.data.log_cost) >= 1


def cheaper_by_names(context: SearchContext, u: Array) -> tuple[Array, str]:
    """u, or if names say that it is in the more expensive half of the space, a point of the cheaper half."""
    pool = np.vstack([u[None, :], context.space.snap(context.space.at_target(quasi_random(CANDIDATES, len(u), context.rng)))])
    log_cost = log_cost_by_names(context.encoding, pool)
    if log_cost is None or log_cost[0] <= np.median(log_cost):
        return u, ""
    cheap = pool[(log_cost <= np.median(log_cost)) & ~is_visited(pool, context.visited)]
    return (np.asarray(cheap[0]), ", in the part of the space that names say is cheaper") if len(cheap) else (u, "")


def cost_limit(context: SearchContext, started: int) -> float:
    """The logarithm of what a trial of the initial design may cost: its share of what is left, once any cost is known."""
    spending = context.spending
    if not costs_are_known(context) or spending is None or not context.cost_limited or context.affordable <= 0.0:
        return np.inf
    left = spending.left if spending.timed else spending.left - context.reserved
    return float(np.log(min(left / (context.initial - started + 1), context.affordable)))


def linear_cost(context: SearchContext, U: Array) -> Array:
    """Log of the expected cost: by the study's cost model where that needs no data, else by the linear one with priors by name.

    The linear model extrapolates best from a few trials. It is the expected cost, so that a corner of which nothing is known does
    not look cheap.
    """
    posterior = context.cost if context.cost_is_known else None
    posterior = posterior or fit_cost(context.data, context.encoding, NamedLinearCost())
    assert posterior is not None  # asked only when costs are known
    return expected_log_cost(posterior, U)


def affordable_space_filling(
    context: SearchContext, limit: float, log_cost_at: Callable[[Array], Array] | None = None
) -> Array:
    """The point farthest from all others among those with a log cost below ``limit``, or in the cheapest part of the space.

    ``log_cost_at`` gives the log costs of points, where it is not ``linear_cost``.
    """
    space, data, rng = context.space, context.data, context.rng
    pool = space.snap(space.at_target(quasi_random(CANDIDATES, len(space), rng)))
    pool = pool[~is_visited(pool, context.visited)]
    if not len(pool):
        return random_unvisited(space, context.visited, rng)
    log_cost = linear_cost(context, pool) if log_cost_at is None else log_cost_at(pool)
    cheap = pool[log_cost <= max(limit, float(np.quantile(log_cost, CHEAPEST_SHARE)))]
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
