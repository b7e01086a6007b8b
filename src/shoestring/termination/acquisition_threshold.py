"""Stop when the acquisition falls below a threshold: the baselines of section 4.1.1 (Nguyen et al. 2017; Lorenz et al. 2016).

Expected improvement is given in the user's units: the optimizer finds the highest EI of the modelled values, and the gain there
is mapped back through the output transform. A probability needs no mapping.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
from ..numerics import single_threaded
from ..surrogate.belief import Belief
from ..surrogate.gp import GP
from .base import CANDIDATES_ONLY, RULE_OPTIONS, StopRule, Verdict, belief_of, rule_optimizer

DEFAULT_MODEL = GP(output="standard")  # of a rule that is called with a history alone


@dataclass(frozen=True)
class EIBelow(StopRule):
    """Expected improvement below a threshold: stop once no config is expected to improve the best value by ``gain`` or more.

    Use it where you know from which gain on an improvement is worth nothing to you. ``WorthIt`` weighs the gain against the cost.

    gain   in the objective's units
    after  evaluations before the first check

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 10, method=st.Sobol()).history
    >>> st.EIBelow(gain=0.5, after=10).check(history).stop
    True
    """

    gain: float
    after: int = 20

    def __post_init__(self) -> None:
        number_between(self.gain, "EIBelow: the expected improvement", 0.0, low_included=False)
        whole_number(self.after, "EIBelow: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        what = "expected improvement"
        return check_threshold(what, LogEI(), history, belief, threshold=self.gain, after=self.after, value_of=gain_at)


@dataclass(frozen=True)
class PIBelow(StopRule):
    """Probability of improvement below a threshold: stop once no config has a chance of ``chance`` or more to be the best.

    Use it where any improvement counts, however small; where its size matters, ``EIBelow`` is the better rule.

    chance  a probability
    after   evaluations before the first check

    >>> rule = st.PIBelow(chance=0.01) | st.Patience(30)
    >>> history = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 5, method=st.Sobol(), stop=rule).history
    >>> rule.check(history).stop
    False
    """

    chance: float
    after: int = 20

    def __post_init__(self) -> None:
        number_between(self.chance, "PIBelow: the probability", 0.0, 1.0, low_included=False)
        whole_number(self.after, "PIBelow: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        def probability(belief: Belief, optimum: Optimum) -> float:
            return float(np.exp(optimum.value))

        what, acquisition = "probability of improvement", PI(margin=0.0)
        return check_threshold(
            what, acquisition, history, belief, threshold=self.chance, after=self.after, value_of=probability
        )


def gain_at(belief: Belief, optimum: Optimum) -> float:
    """Expected improvement at the optimum, in the user's units; the probability of failure counts."""
    if belief.output.kind == "standard":
        return math.exp(min(optimum.value + math.log(belief.output.scale), 700.0))
    features = belief.encoding.features(optimum.u[None, :])
    chance = 0.0 if belief.feasibility is None else float(belief.feasibility.log_probability(features)[0])
    return belief.gain(features) * math.exp(chance)


@single_threaded
def check_threshold(
    what: str,
    acquisition: Acquisition,
    history: History,
    belief: Belief | None,
    *,
    threshold: float,
    after: int,
    value_of: Callable[[Belief, Optimum], float],
) -> Verdict:
    """Compare the highest value of an acquisition with a threshold.

    In a run, a few candidates are looked at first: where one of them is above the threshold, there is nothing more to find out.
    """
    found = history.evaluations
    if found < after:
        return Verdict(False, f"{found} of the {after} evaluations are there after which the model is asked")
    searches = (RULE_OPTIONS,) if belief is None else (CANDIDATES_ONLY, RULE_OPTIONS)
    belief = belief_of(history, DEFAULT_MODEL) if belief is None else belief
    data, value = to_dataset(history), math.nan
    for options in searches:
        optimizer = rule_optimizer(data, belief.encoding, anywhere=False, options=options)
        try:
            value = value_of(belief, optimizer.maximize(acquisition.averaged_surface(belief, optimizer.rng)))
        except SpaceExhausted as end:
            return Verdict(True, str(end))
        if value >= threshold:
            break
    low = value < threshold
    more = "" if low or len(searches) == 1 else " or more"
    reason = f"the highest {what} is {rounded(value)}{more}, {'below' if low else 'not below'} {rounded(threshold)}"
    return Verdict(low, reason, {what: value, "threshold": threshold})
