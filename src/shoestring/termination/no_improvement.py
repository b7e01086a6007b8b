"""Stop after a number of trials without improvement: the naive convergence test (section 4.1.1 of the termination paper)."""

from __future__ import annotations

from dataclasses import dataclass

from .._format import plural
from .._validation import whole_number
from ..data.history import History
from ..surrogate.belief import Belief
from .base import StopRule, Verdict


@dataclass(frozen=True)
class Patience(StopRule):
    """No improvement: stop once the best value has not changed for ``trials`` finished trials in a row.

    The simplest rule, and a good partner of others: ``st.SureBound() | st.Patience(30)``. The first value counts as a change.
    Failed trials count: they brought nothing either. Trials below the target fidelity do not.

    trials  how many in a row

    >>> result = st.minimize(lambda c: 1.0, st.Space(x=st.Float(0, 1)), 20, method=st.Random(), stop=st.Patience(4))
    >>> len(result.history), result.stop.reason
    (5, 'the best value has not changed for 4 trials')
    """

    trials: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", whole_number(self.trials, "Patience: the number of trials", 1))

    def needs_belief(self, history: History) -> bool:
        return False

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        waited = since_best(history)
        evidence = {"unchanged": float(waited), "patience": float(self.trials)}
        if waited >= self.trials:
            return Verdict(True, f"the best value has not changed for {plural(waited, 'trial')}", evidence)
        return Verdict(False, f"the best value has not changed for {waited} of {plural(self.trials, 'trial')}", evidence)


def since_best(history: History) -> int:
    """Trials since the best value last changed; 0 while nothing has succeeded."""
    waited, best = 0, None
    for value in history.results():
        better = value is not None and (best is None or (value > best if history.maximize else value < best))
        if better:
            best, waited = value, 0
        elif best is not None:
            waited += 1
    return waited
