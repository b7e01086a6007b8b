"""The EI-cost Pareto front of the present step: what more cost would buy, and where each method would land.

A point is on the front when no other point has as much EI for less cost (Guinet et al. 2020, section 3.1). EI_alpha lands
where the front, drawn in logarithms, has slope alpha, so each point of it belongs to an alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..acquisition.cost_aware import cheapest_of_the_good, negative_log_cost, per_cost
from ..acquisition.gittins import Gittins
from ..acquisition.improvement import LogEI
from ..acquisition.optimize.candidates import neighbours, quasi_random
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface
from ..errors import StudyError
from ..numerics import Array
from ..space.space import Config
from ..surrogate.belief import Belief
from .base import SearchContext, fit_context_belief, optimizer_for

ALPHAS = (0.1, 0.2, 0.5)
LAMBDAS = (0.05, 0.1, 0.3, 0.5)
KEPT = 8  # points of the short form


@dataclass(frozen=True)
class FrontPoint:
    """A config with its expected improvement (in the objective's units) and its expected cost."""

    config: Config
    ei: float
    cost: float


@dataclass(frozen=True)
class Front:
    """The front from cheap to dear, where each method would land, and the alpha that each landing on it amounts to."""

    points: tuple[FrontPoint, ...]
    landings: Mapping[str, FrontPoint]
    alphas: Mapping[str, float]
    unit: str


def pareto_front(context: SearchContext) -> Front:
    """The front at the present step. Raises StudyError while values or costs are not known."""
    if not context.data.finished:
        raise StudyError("there is no front yet: tell the study a first result")
    belief = fit_context_belief(context, costs=True)
    if belief.cost is None:
        raise StudyError("there is no front yet: no trial has a cost; give cost= with a result, or a st.KnownCost(f)")
    optimizer = optimizer_for(context)
    landed = landings(belief, optimizer)
    gain, cheapness = LogEI().averaged_surface(belief, optimizer.rng), negative_log_cost(belief)
    U = np.vstack([*landed.values(), optimizer.maximize(gain).U, optimizer.maximize(cheapness).U])
    log_ei, log_cost = gain(U, False)[0], -cheapness(U, False)[0]
    scale = 1.0 / belief.output.slope(belief.incumbent)

    def point(i: int) -> FrontPoint:
        return FrontPoint(context.space.decode(U[i]), scale * float(np.exp(log_ei[i])), float(np.exp(log_cost[i])))

    rows = nondominated(log_ei, log_cost)
    places = {name: i for i, name in enumerate(landed)}
    return Front(
        tuple(point(int(i)) for i in rows),
        {name: point(i) for name, i in places.items()},
        dict(zip(landed, map(float, alpha_at(U[: len(landed)], gain, cheapness)), strict=True)),
        context.unit,
    )


def landings(belief: Belief, optimizer: AcquisitionOptimizer) -> dict[str, Array]:
    """The point (1 x D) that each method would choose."""
    gain = LogEI().averaged_surface(belief, optimizer.rng)
    optimum = optimizer.maximize(gain)
    found = {"EI": optimum.u}
    for alpha in ALPHAS:
        found[f"EIAlpha({alpha:g})"] = optimizer.maximize(per_cost(gain, belief, alpha)).u
    found["EIpu"] = optimizer.maximize(per_cost(gain, belief, 1.0)).u
    for lam in LAMBDAS:
        found[f"CEI({lam:g})"] = cheapest_of_the_good(gain, belief, optimizer, optimum, lam)
    found["Gittins()"] = Gittins().select(belief, optimizer).u
    return {name: u[None, :] for name, u in found.items()}


def nondominated(log_ei: Array, log_cost: Array) -> NDArray[np.intp]:
    """The rows on the front, from cheap to dear: each has more EI than every cheaper one."""
    order = np.lexsort((-log_ei, log_cost))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], log_ei[order]]))[:-1]
    return order[log_ei[order] > best]


def alpha_at(U: Array, gain: Surface, cheapness: Surface) -> Array:
    """The alpha whose EI_alpha is highest at each point, as far as its continuous neighbourhood tells.

    At the maximum of log EI - alpha log c inside the cube both gradients are parallel, grad log EI = alpha grad log c; so
    they are at the cheapest point of a given EI. NaN where no coordinate can move.
    """
    _, d_gain = gain(U, True)
    _, d_cheap = cheapness(U, True)
    assert d_gain is not None
    assert d_cheap is not None
    inside = (U > 1e-6) & (U < 1.0 - 1e-6)
    d_cost = np.where(inside, -d_cheap, 0.0)
    length = np.einsum("ij,ij->i", d_cost, d_cost)
    along = np.einsum("ij,ij->i", np.where(inside, d_gain, 0.0), d_cost)
    return np.where(length > 1e-12, np.maximum(along, 0.0) / np.maximum(length, 1e-12), np.nan)


def short_front(belief: Belief, optimizer: AcquisitionOptimizer, u: Array) -> dict[str, object]:
    """A few points of the front (share of the highest EI, expected cost) and of the choice: kept with a suggestion."""
    space = optimizer.encoding.space
    spread = np.vstack([quasi_random(128, len(space), optimizer.rng), neighbours(optimizer.incumbents, 64, space, optimizer.rng)])
    U = np.vstack([u[None, :], space.snap(space.at_target(spread))])
    gain, cheapness = LogEI().averaged_surface(belief, optimizer.rng), negative_log_cost(belief)
    log_ei, log_cost = gain(U, False)[0], -cheapness(U, False)[0]
    rows = nondominated(log_ei, log_cost)
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, KEPT).round().astype(int))]
    share, cost = np.exp(log_ei - log_ei.max()), np.exp(log_cost)
    return {
        "front": [[round(float(share[i]), 4), float(f"{cost[i]:.4g}")] for i in kept],
        "chosen": [round(float(share[0]), 4), float(f"{cost[0]:.4g}")],
        "alpha": None if np.isnan(alpha := float(alpha_at(u[None, :], gain, cheapness)[0])) else round(alpha, 4),
    }
