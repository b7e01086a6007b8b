"""The Pareto front of expected improvement and cost at the present step, and the point that each method would choose.

A point is on the front if no other point has as much EI for less cost (Guinet et al. 2020, section 3.1). EI_alpha chooses the
point where the front, drawn in logarithms, has slope alpha; so each point of the front corresponds to an alpha.

Notation
    EI, c     expected improvement, in the units of the objective, and expected cost of a point
    gain      log EI as a surface;  cheapness  -log c as a surface
    alpha     exponent of the cost in EI_alpha = EI / c^alpha
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..acquisition.cost_aware import cost_weighted_surface, maximize_contextual_ei, negative_log_cost
from ..acquisition.gittins import Gittins
from ..acquisition.improvement import LogEI, log_ei_in_units
from ..acquisition.optimize.candidates import neighbours, quasi_random
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Surface
from ..errors import StudyError
from ..numerics import Array
from ..space.space import Config
from ..surrogate.belief import Belief
from .base import SearchContext

ALPHAS = (0.1, 0.2, 0.5)  # exponents of EIAlpha that are shown
LAMBDAS = (0.05, 0.1, 0.3, 0.5)  # lambdas of CEI that are shown
SHORT_FRONT_POINTS = 8  # points of the front that are kept with a suggestion
RAW_SAMPLES, LOCAL_SAMPLES = 128, 64  # points over the whole space and around the best trials, for the short front
BOUNDARY = 1e-6  # a coordinate nearer than this to 0 or 1 is at the bound of the unit cube
MIN_SQUARED_GRADIENT = 1e-12  # of log c; below this, no coordinate can move


@dataclass(frozen=True)
class FrontPoint:
    """A config with its expected improvement (in the objective's units) and its expected cost.

    The points of ``study.pareto_front()``.

    >>> st.FrontPoint({"depth": 4}, ei=0.02, cost=3.5).cost
    3.5
    """

    config: Config
    ei: float
    cost: float


@dataclass(frozen=True)
class Front:
    """The Pareto front of expected improvement and expected cost at one step, as ``study.pareto_front()`` returns it.

    Use it to see what a more expensive trial would buy; ``st.plot.pareto(study)`` draws it.

    points    the front, from cheap to expensive
    landings  the point that each method would choose, by its name
    alphas    the alpha that each of those points corresponds to, by the same names
    unit      of the costs

    >>> study = st.Study(st.Space(depth=st.Int(1, 16)))
    >>> for depth in (1, 4, 16):
    ...     _ = study.add({"depth": depth}, value=1 / depth, cost=depth)
    >>> front = study.pareto_front()
    >>> front.points[0].cost <= front.points[-1].cost, "EIpu" in front.landings
    (True, True)
    """

    points: tuple[FrontPoint, ...]
    landings: Mapping[str, FrontPoint]
    alphas: Mapping[str, float]
    unit: str


def pareto_front(context: SearchContext) -> Front:
    """The front at the present step. Raises StudyError while values or costs are not known."""
    if not context.data.finished:
        raise StudyError("there is no front yet: report a first result with study.tell()")
    belief = context.belief(costs=True)
    if belief.cost is None:
        raise StudyError("there is no front yet: no trial has a cost; give cost= with a result, or a st.KnownCost(f)")
    optimizer = context.optimizer()
    landed = landings(belief, optimizer)
    gain, cheapness = log_ei_in_units(belief), negative_log_cost(belief)
    U = np.vstack([*landed.values(), optimizer.maximize(gain).U, optimizer.maximize(cheapness).U])
    log_ei, log_cost = gain(U, False)[0], -cheapness(U, False)[0]

    def point(i: int) -> FrontPoint:
        return FrontPoint(context.space.decode(U[i]), float(np.exp(log_ei[i])), float(np.exp(log_cost[i])))

    rows = nondominated(log_ei, log_cost)
    places = {name: i for i, name in enumerate(landed)}
    return Front(
        tuple(point(int(i)) for i in rows),
        {name: point(i) for name, i in places.items()},
        dict(zip(landed, map(float, alpha_at(U[: len(landed)], gain, cheapness)), strict=True)),
        context.unit,
    )


def landings(belief: Belief, optimizer: AcquisitionOptimizer) -> dict[str, Array]:
    """The point (1 x D) that each method would choose, by the method's name."""
    gain = LogEI().averaged_surface(belief, optimizer.rng)
    optimum = optimizer.maximize(gain)
    found = {"EI": optimum.u}
    for alpha in ALPHAS:
        found[f"EIAlpha({alpha:g})"] = optimizer.maximize(cost_weighted_surface(gain, belief, alpha)).u
    found["EIpu"] = optimizer.maximize(cost_weighted_surface(gain, belief, 1.0)).u
    in_units = log_ei_in_units(belief)
    highest = optimizer.maximize(in_units)
    for lam in LAMBDAS:
        found[f"CEI({lam:g})"] = maximize_contextual_ei(in_units, belief, optimizer, highest, lam)
    found["Gittins()"] = Gittins().select(belief, optimizer).u
    return {name: u[None, :] for name, u in found.items()}


def nondominated(log_ei: Array, log_cost: Array) -> NDArray[np.intp]:
    """The rows on the front, from cheap to expensive: each has more EI than every cheaper one."""
    order = np.lexsort((-log_ei, log_cost))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], log_ei[order]]))[:-1]
    return order[log_ei[order] > best]


def alpha_at(U: Array, gain: Surface, cheapness: Surface) -> Array:
    """The alpha whose EI_alpha is highest at each point, by the first-order condition.

    At a maximum of log EI - alpha log c inside the cube, grad log EI = alpha grad log c. The gradients are parallel at the
    cheapest point of a given EI too. NaN where no coordinate can move.
    """
    _, d_gain = gain(U, True)
    _, d_cheap = cheapness(U, True)
    assert d_gain is not None
    assert d_cheap is not None
    inside = (U > BOUNDARY) & (U < 1.0 - BOUNDARY)
    d_cost = np.where(inside, -d_cheap, 0.0)
    squared = np.einsum("ij,ij->i", d_cost, d_cost)
    product = np.einsum("ij,ij->i", np.where(inside, d_gain, 0.0), d_cost)
    return np.where(squared > MIN_SQUARED_GRADIENT, np.maximum(product, 0.0) / np.maximum(squared, MIN_SQUARED_GRADIENT), np.nan)


def short_front(belief: Belief, optimizer: AcquisitionOptimizer, u: Array) -> dict[str, object]:
    """A few points (share of the highest EI, expected cost) of the front, and of the chosen u; kept with a suggestion."""
    space, rng = optimizer.encoding.space, optimizer.rng
    sampled = np.vstack([quasi_random(RAW_SAMPLES, len(space), rng), neighbours(optimizer.incumbents, LOCAL_SAMPLES, space, rng)])
    U = np.vstack([u[None, :], space.snap(space.at_target(sampled))])
    gain, cheapness = log_ei_in_units(belief), negative_log_cost(belief)
    log_ei, log_cost = gain(U, False)[0], -cheapness(U, False)[0]
    rows = nondominated(log_ei, log_cost)
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, SHORT_FRONT_POINTS).round().astype(int))]
    share, cost = np.exp(log_ei - log_ei.max()), np.exp(log_cost)
    return {
        "front": [[round(float(share[i]), 4), float(f"{cost[i]:.4g}")] for i in kept],
        "chosen": [round(float(share[0]), 4), float(f"{cost[0]:.4g}")],
        "alpha": None if np.isnan(alpha := float(alpha_at(u[None, :], gain, cheapness)[0])) else round(alpha, 4),
    }
