"""What a rule sees: a history as arrays, a model of it, and where to look for something better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..acquisition.maximize import Effort, Seeker
from ..encoding import Encoding
from ..history import History
from ..observations import Observations, observe
from ..space import Space
from ..surrogate.belief import Belief, Spending, believed_cost, form_belief
from ..surrogate.cost.base import CostModel
from ..surrogate.gp import GP

EFFORT = Effort(spread=256, near=128, starts=6, rounds=2)  # a bound is asked for after every trial
GLANCE = Effort(spread=128, near=64, starts=0, rounds=0)
AROUND = 5  # best trials whose neighbourhood is searched
SEED = 0x5709  # the same candidates whenever the same history is looked at


@dataclass(frozen=True)
class Lookout:
    """A history, ready to be modelled. Nothing in it depends on how the trials were chosen."""

    history: History
    encoding: Encoding
    seen: Observations

    @classmethod
    def over(cls, history: History, space: Space) -> Lookout:
        return cls(history, Encoding(space), observe(history))

    def seeker(self, *, anywhere: bool) -> Seeker:
        """``anywhere``: points that were tried count too."""
        seen = self.seen
        tried = np.empty((0, seen.U.shape[1])) if anywhere else seen.seen
        rng = np.random.default_rng([SEED, len(seen.y)])
        return Seeker(self.encoding, rng, tried, seen.U[seen.order[:AROUND]], EFFORT)

    def glance(self) -> Seeker:
        """A few candidates only, tried points included."""
        return replace(self.seeker(anywhere=True), effort=GLANCE)

    @property
    def start(self) -> dict[str, Any] | None:
        """Hyperparameters from which a fit may start: those of the last suggestion."""
        known = self.history.known
        return {"theta": known["theta"], "trials": len(self.seen.y)} if known and known.get("theta") else None

    def belief(self, model: GP, cost_model: CostModel | None = None, spending: Spending | None = None) -> Belief:
        """The model fitted to everything, starting from what the last suggestion knew where there is such."""
        known = self.history.known
        cost = None if cost_model is None else believed_cost(self.seen, self.encoding, cost_model, (known or {}).get("cost"))
        return form_belief(self.seen, self.encoding, model, known, cost, spending)
