"""What a search method is: a function from a situation to a suggestion.

From a situation to a belief about it, and to where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..acquisition.optimize.optimizer import AcquisitionOptimizer
from ..cost.base import CostModel, CostPosterior, expected_log_cost
from ..data.dataset import Dataset
from ..data.history import History
from ..data.trial import Suggestion
from ..data.visited import VisitedSet
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.belief import Belief, Spending, fit_belief, fit_cost
from ..surrogate.sparse import Model

MIN_NOTICED_SECONDS = 0.1  # seconds: measured costs below this are not worth saving, and vary with the machine's mood


@dataclass(frozen=True)
class SearchContext:
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
    load_dataset: Callable[[], Dataset]
    visited: VisitedSet
    history: History
    number: int
    seed: int
    model: Model
    initial: int
    warm_start: Mapping[str, Any] | None
    cost_model: CostModel
    spending: Spending | None = None
    unit: str = "s"

    @cached_property
    def data(self) -> Dataset:
        """The trials as arrays."""
        return self.load_dataset()

    @property
    def cost_limited(self) -> bool:
        """Whether the budget is in cost."""
        return self.spending is not None and self.spending.in_cost

    @cached_property
    def cost(self) -> CostPosterior | None:
        """What evaluations cost, fitted when it is first asked for; None while nothing is known."""
        return fit_cost(self.data, self.encoding, self.cost_model, (self.warm_start or {}).get("cost"))

    @property
    def costs_go_unnoticed(self) -> bool:
        """Whether costs are seconds that nobody gave, and so few that they say more of the machine's mood than of the trials."""
        seen = self.data
        return bool(len(seen.log_cost) and seen.measured.all() and float(np.exp(np.median(seen.log_cost))) < MIN_NOTICED_SECONDS)

    @property
    def cost_is_known(self) -> bool:
        """Whether the cost model needs no data."""
        return bool(getattr(self.cost_model, "needs_no_data", False))

    @cached_property
    def reserved(self) -> float:
        """What trials that are still running are expected to cost."""
        if not len(self.data.pending) or self.cost is None:
            return 0.0
        return float(np.exp(expected_log_cost(self.cost, self.data.pending)).sum())

    @property
    def rng(self) -> np.random.Generator:
        """Randomness for this trial alone: the same in a study that was interrupted and one that was not."""
        return np.random.default_rng([self.seed, self.number])


class Method(Protocol):
    """A strategy. Frozen: everything it needs to know is in the situation."""

    def suggest(self, context: SearchContext) -> Suggestion: ...


BEST_TRIALS_SEARCHED = 5  # best trials whose neighbourhood is searched
MCMC_STREAM = 0xC4A1  # hyperparameters are drawn with randomness of their own: the search for the maximum does not depend on it


def fit_context_belief(context: SearchContext, *, costs: bool) -> Belief:
    """The model fitted to what was seen; with ``costs``, the cost model too."""
    cost, spending = context.cost if costs else None, context.spending
    if spending is not None and spending.in_cost and cost is not None:
        spending = replace(spending, spent=spending.spent + context.reserved)  # running trials will be paid for too
    return fit_belief(
        context.data, context.encoding, context.model, context.warm_start, cost, spending,
        np.random.default_rng([context.seed, context.number, MCMC_STREAM]), context.seed,
    )


def optimizer_for(context: SearchContext) -> AcquisitionOptimizer:
    seen = context.data
    return AcquisitionOptimizer(context.encoding, context.rng, context.visited, seen.U[seen.best(BEST_TRIALS_SEARCHED)])
