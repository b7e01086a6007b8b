"""Stop when the acquisition falls below a threshold: the baselines of section 4.1.1 (Nguyen et al. 2017; Lorenz et al. 2016).

Expected improvement is given in the user's units: the optimizer finds the highest EI of the modelled values, and the gain there
is mapped back through the output transform. A probability needs no mapping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._format import rounded
from .._validation import number_between, whole_number
from ..acquisition.base import Acquisition
from ..acquisition.improvement import PI, LogEI
from ..acquisition.optimize.optimizer import Optimum
from ..data.dataset import to_dataset
from ..data.history import History
from ..errors import SpaceExhausted
from ..surrogate.belief import Belief
from ..surrogate.gp import GP
from .base import StopRule, Verdict, belief_of, rule_optimizer

DEFAULT_MODEL = GP(output="standard")  # of a rule that is called with a history alone


@dataclass(frozen=True)
class EIBelow(StopRule):
    """Expected improvement below a threshold: stop once no config has an EI of ``gain`` or more, in the objective's units."""

    gain: float
    after: int = 20

    def __post_init__(self) -> None:
        number_between(self.gain, "EIBelow: the expected improvement", 0.0, low_included=False)
        whole_number(self.after, "EIBelow: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        found = highest(LogEI(), history, belief, self.after)
        if isinstance(found, Verdict):
            return found
        belief, optimum = found
        if belief.output.kind == "standard":
            value = math.exp(min(optimum.value + math.log(belief.output.scale), 700.0))
        else:
            features = belief.encoding.features(optimum.u[None, :])
            chance = 0.0 if belief.feasibility is None else float(belief.feasibility.log_probability(features)[0])
            value = belief.gain(features) * math.exp(chance)
        return threshold_verdict("expected improvement", value, self.gain)


@dataclass(frozen=True)
class PIBelow(StopRule):
    """Probability of improvement below a threshold: stop once no config has a chance of ``chance`` or more to be the best."""

    chance: float
    after: int = 20

    def __post_init__(self) -> None:
        number_between(self.chance, "PIBelow: the probability", 0.0, 1.0, low_included=False)
        whole_number(self.after, "PIBelow: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        found = highest(PI(margin=0.0), history, belief, self.after)
        if isinstance(found, Verdict):
            return found
        return threshold_verdict("probability of improvement", float(np.exp(found[1].value)), self.chance)


def highest(acquisition: Acquisition, history: History, belief: Belief | None, after: int) -> tuple[Belief, Optimum] | Verdict:
    """Where the acquisition is highest over the space; a verdict where there is nothing to compute or nothing left."""
    found = history.evaluations
    if found < after:
        return Verdict(False, f"{found} of the {after} evaluations are there after which the model is asked")
    belief = belief_of(history, DEFAULT_MODEL) if belief is None else belief
    optimizer = rule_optimizer(to_dataset(history), belief.encoding, anywhere=False)
    try:
        return belief, optimizer.maximize(acquisition.averaged_surface(belief, optimizer.rng))
    except SpaceExhausted as end:
        return Verdict(True, str(end))


def threshold_verdict(what: str, value: float, threshold: float) -> Verdict:
    low = value < threshold
    reason = f"the highest {what} is {rounded(value)}, {'below' if low else 'not below'} {rounded(threshold)}"
    return Verdict(low, reason, {what: value, "threshold": threshold})
