"""What a search method is: a function from a situation to a suggestion.

From a situation to a belief about it, and to where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..acquisition.optimize.optimizer import Seeker
from ..cost.base import CostModel, CostPosterior, expected_log_cost
from ..data.dataset import Observations
from ..data.history import History
from ..data.trial import Suggestion
from ..data.visited import Taken
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.belief import Belief, Spending, believed_cost, form_belief
from ..surrogate.sparse import Model

NOTICED = 0.1  # seconds: measured costs below this are not worth saving, and vary with the machine's mood


@dataclass(frozen=True)
class Situation:
    """All that a method may look at when it is asked for trial ``number``.

    look       makes ``seen``, the trials as arrays: once, when a method first looks at them
    taken      the points that need not be asked again
    history    the trials themselves, for methods that follow a plan (``Suggestion.plan``)
    known      what the last model-based suggestion left behind (``Suggestion.model``)
    initial    how many trials the space-filling start has
    spending   the budget and what is gone of it, None without a budget
    """

    space: Space
    encoding: Encoding
    look: Callable[[], Observations]
    taken: Taken
    history: History
    number: int
    seed: int
    model: Model
    initial: int
    known: Mapping[str, Any] | None
    cost_model: CostModel
    spending: Spending | None = None
    unit: str = "s"

    @cached_property
    def seen(self) -> Observations:
        """The trials as arrays."""
        return self.look()

    @property
    def cost_limited(self) -> bool:
        """Whether the budget is in cost."""
        return self.spending is not None and self.spending.in_cost

    @cached_property
    def cost(self) -> CostPosterior | None:
        """What evaluations cost, fitted when it is first asked for; None while nothing is known."""
        return believed_cost(self.seen, self.encoding, self.cost_model, (self.known or {}).get("cost"))

    @property
    def costs_go_unnoticed(self) -> bool:
        """Whether costs are seconds that nobody gave, and so few that they say more of the machine's mood than of the trials."""
        seen = self.seen
        return bool(len(seen.gamma) and seen.measured.all() and float(np.exp(np.median(seen.gamma))) < NOTICED)

    @property
    def cost_is_known(self) -> bool:
        """Whether the cost model needs no data."""
        return bool(getattr(self.cost_model, "needs_no_data", False))

    @cached_property
    def reserved(self) -> float:
        """What trials that are still running are expected to cost."""
        if not len(self.seen.pending) or self.cost is None:
            return 0.0
        return float(np.exp(expected_log_cost(self.cost, self.seen.pending)).sum())

    @property
    def rng(self) -> np.random.Generator:
        """Randomness for this trial alone: the same in a study that was interrupted and one that was not."""
        return np.random.default_rng([self.seed, self.number])


class Method(Protocol):
    """A strategy. Frozen: everything it needs to know is in the situation."""

    def suggest(self, situation: Situation) -> Suggestion: ...


AROUND = 5  # best trials whose neighbourhood is searched
CHAIN = 0xC4A1  # hyperparameters are drawn with randomness of their own: the search for the maximum does not depend on it


def believe(situation: Situation, *, costs: bool) -> Belief:
    """The model fitted to what was seen; with ``costs``, the cost model too."""
    cost, spending = situation.cost if costs else None, situation.spending
    if spending is not None and spending.in_cost and cost is not None:
        spending = replace(spending, spent=spending.spent + situation.reserved)  # running trials will be paid for too
    return form_belief(
        situation.seen, situation.encoding, situation.model, situation.known, cost, spending,
        np.random.default_rng([situation.seed, situation.number, CHAIN]), situation.seed,
    )


def seeker_for(situation: Situation) -> Seeker:
    seen = situation.seen
    return Seeker(situation.encoding, situation.rng, situation.taken, seen.U[seen.best(AROUND)])
