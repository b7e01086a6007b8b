"""What a search method is: a function from a search context to a suggestion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from .._format import amount
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, OptimizerOptions
from ..cost.base import CostModel, CostPosterior, expected_log_cost, needs_no_data
from ..cost.incremental import incremental_cost
from ..data.dataset import Dataset
from ..data.history import History
from ..data.trial import Suggestion
from ..data.visited import VisitedSet
from ..errors import NothingFits
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.base import Surrogate
from ..surrogate.belief import Belief, Spending, fit_belief, fit_cost
from ..surrogate.curves_study import CurveFit
from ..surrogate.curves_target import CurveSurrogate
from .continuation import continuation_points

MIN_NOTICED_SECONDS = 0.1  # measured costs below this are not worth saving: they are mostly timing noise
MIN_COSTS_FOR_PREDICTION = 3
SMALL_PART = 0.02  # of what is left of a budget: a trial that costs fifty times the highest cost so far is not expected
BEST_TRIALS_SEARCHED = 5  # best trials whose neighbourhood is searched
REDUCED_SEARCH = OptimizerOptions(raw_samples=128, local_samples=64, restarts=2, rounds=1)
MCMC_STREAM = 0xC4A1  # hyperparameters are drawn with randomness of their own: the acquisition optimizer does not depend on it


def no_curves() -> None:
    """In place of a model of learning curves, where there is none."""


class LazyFits:
    """A dataset and the models fitted to it. Each is computed when it is first needed, at most once.

    One step has one of these: the stopping rules and the suggestion share its belief.
    """

    def __init__(
        self,
        load: Callable[[], Dataset],
        encoding: Encoding,
        *,
        model: Surrogate,
        cost_model: CostModel,
        warm_start: Mapping[str, Any] | None,
        seed: int,
        number: int,
        curves: Callable[[], CurveFit | None] = no_curves,
    ) -> None:
        self.fit_curves = curves
        self.load, self.encoding, self.model, self.cost_model = load, encoding, model, cost_model
        self.warm_start, self.seed, self.number = warm_start, seed, number

    @cached_property
    def data(self) -> Dataset:
        """The trials as arrays."""
        return self.load()

    @cached_property
    def cost(self) -> CostPosterior | None:
        """The cost posterior; None while nothing is known."""
        found = fit_cost(self.data, self.encoding, self.cost_model, (self.warm_start or {}).get("cost"))
        if found is None or self.data.started is None:
            return found
        return incremental_cost(found, self.data, self.encoding.space)  # a trial that continues a run pays for the rest

    @property
    def uses_subset(self) -> bool:
        """Whether a belief was formed, and from a subset of what it may learn from."""
        return "belief" in vars(self) and len(self.belief.data.y) < len(self.learnt.y)

    @cached_property
    def belief(self) -> Belief:
        """The belief about the objective, without cost and spending."""
        rng = np.random.default_rng([self.seed, self.number, MCMC_STREAM])
        curves = self.curves
        model = self.model if curves is None or not curves.chosen or not curves.trusted else CurveSurrogate(curves)
        return fit_belief(self.learnt, self.encoding, model, self.warm_start, rng, self.seed)

    @cached_property
    def learnt(self) -> Dataset:
        """What the belief is learnt from: all of the data, or complete runs alone where others mislead (``CurveFit.trusted``)."""
        data, curves = self.data, self.curves
        if curves is None or curves.trusted or np.isfinite(data.gradients).any() or not data.at_target[: data.finished].any():
            return data
        return data.select(np.flatnonzero(data.at_target))

    @cached_property
    def curves(self) -> CurveFit | None:
        """The model of learning curves, where the study may learn from it; None where there are none."""
        return self.fit_curves()


@dataclass(frozen=True, kw_only=True)
class SearchContext:
    """All that a search method may look at when it is asked for trial ``number``.

    history    the trials, for methods that follow a plan (``Suggestion.plan``)
    fits       the dataset and the models fitted to it, each computed when it is first needed
    visited    the points that need not be suggested again
    initial    how many trials the initial design has
    spending   the budget and what is spent of it, None without a budget
    effort     "full", or "reduced" where time is short: the acquisition is then searched less thoroughly
    prunes     whether trials that ask may be stopped before they have ended
    """

    space: Space
    encoding: Encoding
    history: History
    fits: LazyFits
    visited: VisitedSet
    number: int
    seed: int
    initial: int
    spending: Spending | None = None
    unit: str = "s"
    effort: Literal["full", "reduced"] = "full"
    prunes: bool = True

    @property
    def data(self) -> Dataset:
        """The trials as arrays."""
        return self.fits.data

    @property
    def model(self) -> Surrogate:
        return self.fits.model

    @property
    def warm_start(self) -> Mapping[str, Any] | None:
        """What the last model-based suggestion left for the next fit."""
        return self.fits.warm_start

    @property
    def cost(self) -> CostPosterior | None:
        """The cost posterior; None while nothing is known."""
        return self.fits.cost

    @property
    def in_initial_design(self) -> bool:
        """Whether trials of the initial design are missing, or nothing has succeeded yet."""
        learnt = self.fits.learnt
        return not learnt.finished or learnt.finished + len(learnt.pending) < self.initial

    @property
    def cost_limited(self) -> bool:
        """Whether the budget is in cost, or in time that can be counted as cost."""
        return self.spending is not None and self.spending.in_cost

    @property
    def costs_go_unnoticed(self) -> bool:
        """Whether all costs are measured seconds, and so few that they are mostly timing noise."""
        data = self.data
        return bool(len(data.log_cost) and data.measured.all() and float(np.exp(np.median(data.log_cost))) < MIN_NOTICED_SECONDS)

    @property
    def cost_is_known(self) -> bool:
        """Whether the cost model needs no data."""
        return needs_no_data(self.fits.cost_model)

    @cached_property
    def reserved(self) -> float:
        """What pending trials are expected to cost.

        Each at most as much as the dearest trial so far, or its median if that is more: with a few costs that differ much, the
        mean of a log-normal is so high that one pending trial would reserve the whole budget.
        """
        if not len(self.data.pending) or self.cost is None:
            return 0.0
        expected = expected_log_cost(self.cost, self.data.pending)
        if len(self.data.log_cost):
            median = self.cost.log_cost(self.data.pending)[0]
            expected = np.minimum(expected, np.maximum(median, self.data.log_cost.max()))
        return float(np.exp(expected).sum())

    @property
    def affordable(self) -> float:
        """What the next trial may cost at most; infinite without a budget in cost or in time."""
        spending = self.spending
        if spending is None or not spending.in_cost:
            return np.inf
        left = spending.left if spending.timed else spending.left - self.reserved
        return left if spending.most is None else min(left, spending.most)

    def nothing_fits(self, cheapest: float | None = None, trial: str = "trial") -> NothingFits:
        """The error that says what is left, and what the cheapest trial is expected to cost: in time, if time is the limit."""
        spending, left = self.spending, max(self.affordable, 0.0)
        in_time = spending is not None and spending.price and (spending.timed or spending.most == self.affordable)
        price, unit = (spending.price, "s") if in_time and spending is not None else (1.0, self.unit)
        rest = f"{amount(left / (price or 1.0), unit)} of the {'time' if in_time else 'budget'} are left"
        if cheapest is None:
            return NothingFits(rest)
        expected = f"the {'shortest' if in_time else 'cheapest'} {trial} is expected to {'take' if in_time else 'cost'}"
        return NothingFits(f"{rest}, and {expected} {amount(cheapest / (price or 1.0), unit)}")

    @property
    def far_from_limit(self) -> bool:
        """Whether every trial is expected to fit, whatever a cost model says: all so far cost a small part of what is left."""
        spending, log_cost = self.spending, self.data.log_cost
        if spending is None or not spending.in_cost or self.cost_is_known or len(log_cost) < MIN_COSTS_FOR_PREDICTION:
            return False
        highest = float(np.exp(log_cost.max()))
        left = spending.left - highest * len(self.data.pending)
        part = SMALL_PART if self.effort == "full" else 1.0  # where time is short, what fitted so far is taken to fit again
        return part * (left if spending.most is None else min(left, spending.most)) >= highest

    @property
    def rng(self) -> np.random.Generator:
        """Randomness for this trial alone: the same in a study that was interrupted and one that was not."""
        return np.random.default_rng([self.seed, self.number])

    def belief(self, *, costs: bool) -> Belief:
        """The belief about the objective; with ``costs``, the cost posterior too. The fit is shared by all who ask."""
        cost, spending = self.cost if costs else None, self.spending
        if spending is not None and spending.in_cost and not spending.timed and cost is not None:
            spending = replace(spending, spent=spending.spent + self.reserved)  # pending trials will be paid for too
        samples = tuple(replace(each, cost=cost, spending=spending) for each in self.fits.belief.hyperparameter_samples)
        return replace(self.fits.belief, cost=cost, spending=spending, hyperparameter_samples=samples)

    def optimizer(self, *, fidelities: bool = False) -> AcquisitionOptimizer:
        """The acquisition optimizer for this step; ``fidelities``: they may be chosen too."""
        best = self.data.U[self.data.best(BEST_TRIALS_SEARCHED)]
        options = OptimizerOptions() if self.effort == "full" else REDUCED_SEARCH
        found = AcquisitionOptimizer(self.encoding, self.rng, self.visited, best, options, fidelities=fidelities)
        if self.data.started is None or not len(self.data.started):
            return found
        ahead = continuation_points(self.data, self.space, self.fits.belief)
        if not isinstance(self.fits.belief.model, CurveSurrogate):  # without its chances, what was stopped would be stopped again
            return replace(found, continuations=ahead)
        return replace(found, continuations=ahead, visited=self.visited.reopened(ahead))

    def with_data(self, data: Dataset, **fits: Any) -> SearchContext:
        """The same with other observations; ``fits`` may name another model or warm start."""
        given = {
            "model": self.fits.model, "cost_model": self.fits.cost_model, "warm_start": self.fits.warm_start,
            "seed": self.seed, "number": self.number, "curves": self.fits.fit_curves,
        }  # fmt: skip
        return replace(self, fits=LazyFits(lambda: data, self.encoding, **{**given, **fits}))


class SearchMethod(ABC):
    """Base class of search methods: a frozen specification that turns a search context into a suggestion.

    Derive from it for a method that is no acquisition. All that it may know is in the context: space, history, fits, budget.

    seeks_information  its trials are asked for what they tell, not because they may be the best: this decides about pruning

    >>> class Middle(st.SearchMethod):
    ...     def suggest(self, context):
    ...         return st.Suggestion(context.space.decode(np.full(len(context.space), 0.5)), by="Middle", why="why not")
    >>> st.Study(st.Space(x=st.Float(0, 1)), method=Middle()).ask().config
    {'x': 0.5}
    """

    seeks_information: ClassVar[bool] = False

    @abstractmethod
    def suggest(self, context: SearchContext) -> Suggestion:
        """The next trial. Randomness comes from ``context.rng`` alone, so that a study can be continued and replayed."""


class Method(Protocol):
    """What the suggester asks of a method: a ``SearchMethod``, or anything else that suggests."""

    def suggest(self, context: SearchContext) -> Suggestion: ...
