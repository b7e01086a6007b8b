"""The EI-cost Pareto front of the present step: what more cost would buy, and where each method would land.

A point is on the front when no other point has as much EI for less cost (Guinet et al. 2020, section 3.1). EI_alpha lands
where the front, drawn in logarithms, has slope alpha, so each point of it belongs to an alpha: for the points i of the
front it is the best EI_alpha for all alpha between the steepest slope to a dearer point and the flattest slope to a cheaper
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..acquisition.candidates import neighbours, quasi_random
from ..acquisition.cost_aware import cheapest_of_the_good, negative_log_cost, per_cost
from ..acquisition.gittins import Gittins
from ..acquisition.improvement import LogEI
from ..acquisition.maximize import Seeker
from ..errors import StudyError
from ..numerics import Array
from ..space import Config
from ..surrogate.belief import Belief
from .look import believe, seeker_for
from .method import Situation

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


def pareto_front(situation: Situation) -> Front:
    """The front at the present step. Raises StudyError while values or costs are not known."""
    if not len(situation.seen.y):
        raise StudyError("there is no front yet: tell the study a first result")
    belief = believe(situation, costs=True)
    if belief.cost is None:
        raise StudyError("there is no front yet: no trial has a cost; give cost= with a result, or a st.KnownCost(f)")
    seeker = seeker_for(situation)
    landed = landings(belief, seeker)
    gain, cheapness = LogEI().on(belief, seeker.rng), negative_log_cost(belief)
    U = np.vstack([*landed.values(), seeker.highest(gain).U, seeker.highest(cheapness).U])
    log_ei, log_cost = gain(U, False)[0], -cheapness(U, False)[0]
    scale = 1.0 / belief.output.slope(belief.incumbent)

    def point(i: int) -> FrontPoint:
        return FrontPoint(situation.space.decode(U[i]), scale * float(np.exp(log_ei[i])), float(np.exp(log_cost[i])))

    rows = nondominated(log_ei, log_cost)
    places = {name: i for i, name in enumerate(landed)}
    return Front(
        tuple(point(int(i)) for i in rows),
        {name: point(i) for name, i in places.items()},
        {name: alpha_of(log_ei[i], log_cost[i], log_ei[rows], log_cost[rows]) for name, i in places.items()},
        situation.unit,
    )


def landings(belief: Belief, seeker: Seeker) -> dict[str, Array]:
    """The point (1 x D) that each method would choose."""
    gain = LogEI().on(belief, seeker.rng)
    peak = seeker.highest(gain)
    found = {"EI": peak.u}
    for alpha in ALPHAS:
        found[f"EIAlpha({alpha:g})"] = seeker.highest(per_cost(gain, belief, alpha)).u
    found["EIpu"] = seeker.highest(per_cost(gain, belief, 1.0)).u
    for lam in LAMBDAS:
        found[f"CEI({lam:g})"] = cheapest_of_the_good(gain, belief, seeker, peak, lam)
    found["Gittins()"] = Gittins().choose(belief, seeker).u
    return {name: u[None, :] for name, u in found.items()}


def nondominated(log_ei: Array, log_cost: Array) -> NDArray[np.intp]:
    """The rows on the front, from cheap to dear: each has more EI than every cheaper one."""
    order = np.lexsort((-log_ei, log_cost))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], log_ei[order]]))[:-1]
    return order[log_ei[order] > best]


def alpha_of(log_ei: float, log_cost: float, front_ei: Array, front_cost: Array) -> float:
    """The alpha whose EI_alpha is highest at a point of the front: the middle of its slopes to cheaper and dearer points."""
    away = np.abs(front_cost - log_cost) > 1e-9
    slopes = (front_ei[away] - log_ei) / (front_cost[away] - log_cost)
    dearer = front_cost[away] > log_cost
    low = max(float(slopes[dearer].max()), 0.0) if dearer.any() else 0.0
    high = max(float(slopes[~dearer].min()), 0.0) if (~dearer).any() else low
    return 0.5 * (low + high)


def short_front(belief: Belief, seeker: Seeker, u: Array) -> dict[str, object]:
    """A few points of the front (share of the highest EI, expected cost) and of the choice: kept with a suggestion."""
    space = seeker.encoding.space
    spread = np.vstack([quasi_random(128, len(space), seeker.rng), neighbours(seeker.best, 64, space, seeker.rng)])
    U = np.vstack([u[None, :], space.snap(space.at_target(spread))])
    log_ei = LogEI().on(belief, seeker.rng)(U, False)[0]
    log_cost = -negative_log_cost(belief)(U, False)[0]
    rows = nondominated(log_ei, log_cost)
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, KEPT).round().astype(int))]
    share, cost = np.exp(log_ei - log_ei.max()), np.exp(log_cost)
    return {
        "front": [[round(float(share[i]), 4), float(f"{cost[i]:.4g}")] for i in kept],
        "chosen": [round(float(share[0]), 4), float(f"{cost[0]:.4g}")],
        "alpha": round(alpha_of(log_ei[0], log_cost[0], log_ei[rows], log_cost[rows]), 4),
    }


