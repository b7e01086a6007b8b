"""Stop when the acquisition promises little: the baselines of section 4.1.1 (Nguyen et al. 2017; Lorenz et al. 2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._format import rounded
from ..acquisition.base import Acquisition
from ..acquisition.improvement import PI, LogEI
from ..data.history import History
from ..errors import SpaceExhausted
from ..space.space import Space
from ..surrogate.belief import Belief
from ..surrogate.gp import GP
from .base import Lookout, StopRule, Verdict
from .regret import check_after, check_number

MODEL = GP(output="standard")


@dataclass(frozen=True)
class EIBelow(StopRule):
    """``EIBelow(e)``: stop once no config has an expected improvement of e or more, in the objective's units."""

    gain: float
    after: int = 20

    def __post_init__(self) -> None:
        check_number("EIBelow", "the expected improvement", self.gain, 0.0, math.inf)
        check_after("EIBelow", self.after)

    def check(self, history: History, space: Space) -> Verdict:
        found = highest(LogEI(), history, space, self.after)
        if isinstance(found, Verdict):
            return found
        belief, value = found
        value = math.exp(min(value + math.log(belief.output.scale), 700.0))
        return verdict("expected improvement", value, self.gain)


@dataclass(frozen=True)
class PIBelow(StopRule):
    """``PIBelow(p)``: stop once no config has a chance of p or more to be better than the best one."""

    chance: float
    after: int = 20

    def __post_init__(self) -> None:
        check_number("PIBelow", "the probability", self.chance, 0.0, 1.0)
        check_after("PIBelow", self.after)

    def check(self, history: History, space: Space) -> Verdict:
        found = highest(PI(margin=0.0), history, space, self.after)
        return found if isinstance(found, Verdict) else verdict("probability of improvement", math.exp(found[1]), self.chance)


def highest(acquisition: Acquisition, history: History, space: Space, after: int) -> tuple[Belief, float] | Verdict:
    """The acquisition's highest value over the space; a verdict where there is nothing to compute or nothing left."""
    found = history.evaluations
    if found < after:
        return Verdict(False, f"{found} of the {after} evaluations are there after which the model is asked")
    lookout = Lookout.over(history, space)
    belief = lookout.belief(MODEL)
    optimizer = lookout.optimizer(anywhere=False)
    try:
        return belief, optimizer.maximize(acquisition.averaged_surface(belief, optimizer.rng)).value
    except SpaceExhausted as end:
        return Verdict(True, str(end))


def verdict(what: str, value: float, threshold: float) -> Verdict:
    low = value < threshold
    reason = f"the highest {what} is {rounded(value)}, {'below' if low else 'not below'} {rounded(threshold)}"
    return Verdict(low, reason, {what: value, "threshold": threshold})
