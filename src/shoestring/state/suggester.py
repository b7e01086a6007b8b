"""The suggester: from what happened to the next trials, and to the verdict of the stopping rule.

Configs in the queue are asked first, then what the method suggests. Suggestions depend on the history and on (seed, number of the
trial) alone, so k trials, a pause and N - k more are the same as N trials.

One belief a step: the search context of a step is kept until the history changes. The stopping rule and the suggestion share its
fits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any

from ..acquisition.base import Acquisition
from ..budget import Budget
from ..cost.base import CostModel
from ..data.dataset import to_dataset
from ..data.history import History
from ..data.intermediate import asked_again
from ..data.trial import State, Trial
from ..data.visited import VisitedSet
from ..errors import Conflict, MethodError, NothingFits, OverBudget, SpaceExhausted
from ..search.base import LazyFits, Method, SearchContext, SearchMethod
from ..search.batch import suggest_many
from ..search.bayes import Bayes
from ..search.budget_filter import filter_by_budget
from ..search.pruning import PruningForecast, pruning_forecast
from ..search.recommend import RecommendedPoint, recommend
from ..space.encoding import Encoding
from ..space.space import Config, Space
from ..storage.base import Limits
from ..surrogate.base import Surrogate, training_size
from ..surrogate.belief import Belief, Spending
from ..termination.base import Rule, StopRule, Verdict
from .registry import acquisition_class
from .study_state import StudyState

log = logging.getLogger("shoestring")


@dataclass
class Suggester:
    """Suggests trials of one study, by its method, its models and its stopping rule.

    seconds   spent on suggestions so far;   checked  the last verdict of the rule
    """

    state: StudyState
    method: Method
    model: Surrogate
    cost_model: CostModel
    rule: Rule | None
    seconds: float = 0.0
    checked: Verdict | None = None
    _said_subset: bool = False  # whether it was said that the model learns from a subset of the trials
    _encoding: Encoding | None = None
    _context: SearchContext | None = field(default=None, repr=False)
    _context_key: tuple[Any, ...] = ()

    # -- trials ------------------------------------------------------------------------------------------------------

    def ask(
        self, count: int = 1, *, budget: Budget | None = None, limits: Limits | None = None, lease: float | None = None
    ) -> list[Trial]:
        """Open the next trials: the study's own records. When another process was faster, what is missing is suggested anew.

        budget   what methods plan with;   limits  what the storage holds all workers to
        lease    of the trials, where it is not the usual one

        Raises SpaceExhausted or NothingFits where not even one can be opened.
        """
        trials: list[Trial] = []
        with self.state.asking():
            trials += self.state.recover_unconfirmed()
            while len(trials) < count:
                try:
                    for config, source in self._next(count - len(trials), budget):
                        trials.append(self.state.open(config, limits=limits, lease=lease, **source))
                except Conflict:
                    self.state.refresh()
                except (OverBudget, SpaceExhausted, NothingFits) as end:
                    if trials:
                        break  # as many as there are
                    raise NothingFits(str(end)) if isinstance(end, OverBudget) else end from None
        return trials

    def _next(self, count: int, budget: Budget | None) -> Iterator[tuple[Config, dict[str, Any]]]:
        """Configs to open, and where they come from."""
        queued = self.state.queue[:count]
        for each in queued:
            yield dict(each.config), {"suggestion": each.suggestion, "queued": each.id}
        if len(queued) == count:
            return
        if queued:  # they are open now, and other processes may have written: ``seen`` must name what is looked at
            self.state.refresh()
        began, count = time.perf_counter(), count - len(queued)
        context = self.context(budget=budget)
        if count == 1:
            suggestion = self.method.suggest(context)
            suggested = [filter_by_budget(suggestion, context) if context.cost_limited else suggestion]
        else:
            suggested = suggest_many(self.method, context, count)
        self.seconds += time.perf_counter() - began
        self._say_subset(context)
        basis: dict[str, Any] = {"seen": self.state.clock}
        if context.spending is not None:
            basis["spending"] = [*astuple(context.spending)]
        if len(self.state.spaces) > 1:
            basis["space"] = len(self.state.spaces) - 1
        if reports := reports_seen(context.history):
            basis["reports"] = reports
        for place, found in enumerate(suggested):
            batch = {"batch": [place, count]} if count > 1 else {}
            yield found.config, {"suggestion": found.to_dict(), "basis": basis | batch}

    def _say_subset(self, context: SearchContext) -> None:
        """Say so once when the model begins to learn from a subset of the trials."""
        if self._said_subset or context.warm_start is None or not context.fits.uses_subset:
            return
        finished = context.history.number_of(State.DONE)
        if (part := training_size(self.model, finished, len(context.space))) is not None:
            self._said_subset = True
            log.info("the model learns from %d of %d trials from now on (%s)", part, finished, self.model.subset)

    # -- what is known -----------------------------------------------------------------------------------------------

    def context(self, history: History | None = None, *, budget: Budget | None = None) -> SearchContext:
        """All that a method may look at: now, or after an earlier history. Kept until the trials or the settings change."""
        if history is not None:
            return self._make_context(history, self._spending(history, budget))
        state = self.state
        key = (state.table.version, state.space, self.model, self.cost_model, state.settings.unit, state.settings.maximize)
        history = state.history
        spending = self._spending(history, budget)
        if self._context is None or not same_objects(key, self._context_key):
            self._context, self._context_key = self._make_context(history, spending), key
        elif self._context.spending != spending:
            self._context = replace(self._context, spending=spending)
        return self._context

    def _make_context(self, history: History, spending: Spending | None) -> SearchContext:
        space, settings = history.space, self.state.settings
        number = history.trials_used  # an interrupted trial shifts nothing
        fits = LazyFits(
            partial(to_dataset, history), self._encode(space), model=self.model, cost_model=self.cost_model,
            warm_start=history.warm_start, seed=settings.seed, number=number,
        )  # fmt: skip
        return SearchContext(
            space=space, encoding=fits.encoding, history=history, fits=fits, visited=VisitedSet.of(history), number=number,
            seed=settings.seed, initial=settings.initial, spending=spending, unit=settings.unit,
        )  # fmt: skip

    def _encode(self, space: Space) -> Encoding:
        if self._encoding is None or self._encoding.space is not space:
            found = Encoding(space)
            if space is not self.state.space:  # it was narrower once
                return found
            self._encoding = found
        return self._encoding

    def _spending(self, history: History, budget: Budget | None) -> Spending | None:
        if budget is None:
            return None
        initial = self.state.settings.initial
        if budget.cost is not None:
            return Spending(budget.cost, history.spent, sum(trial.cost or 0.0 for trial in history[:initial]))
        if budget.trials is not None:
            return Spending(budget.trials, history.trials_used, min(initial, history.trials_used), in_cost=False)
        assert budget.seconds is not None
        taken = sum(trial.seconds or 0.0 for trial in history[:initial])
        return Spending(budget.seconds, self.state.run_status.seconds, taken, in_cost=False)

    # -- decisions ---------------------------------------------------------------------------------------------------

    def check_rule(self, budget: Budget | None) -> Verdict:
        """The rule's verdict, from the belief that the next suggestion uses too."""
        rule, context = self.rule, self.context(budget=budget)
        assert rule is not None
        own = is_own_class(rule)
        history = self.state.history if own else self.state.detached_history()  # a copy for code from outside
        wanted = rule.needs_belief(history) if isinstance(rule, StopRule) else True
        belief: Any = None
        if wanted and context.data.finished:
            began = time.perf_counter()
            costs = rule.wants_cost if own and isinstance(rule, StopRule) else True
            belief = context.belief(costs=costs) if own else LazyBelief(partial(context.belief, costs=costs))
            self.seconds += time.perf_counter() - began
        verdict = rule.check(history, belief)
        if not isinstance(verdict, Verdict):
            raise MethodError(f"{type(rule).__name__}.check must return st.Verdict(stop, reason), not {verdict!r}")
        self.checked = verdict
        return verdict

    def recommend(
        self, history: History | None = None, *, tried: bool = False, budget: Budget | None = None
    ) -> RecommendedPoint | None:
        """The config with the lowest posterior mean at the target fidelity."""
        with self.state.lock:
            return recommend(self.context(history, budget=budget), tried)

    def forecast(
        self, trial: Trial, reports: Sequence[Mapping[str, Any]], budget: Budget | None = None
    ) -> PruningForecast | None:
        """Whether a running trial with such reports may still become the answer; None where there is no forecast."""
        with self.state.lock:
            began = time.perf_counter()
            own = self.method.acquisition if isinstance(self.method, Bayes) else self.method
            by = str(trial.suggestion.get("by", ""))
            kind = type(own) if type(own).__name__ == by else acquisition_class(by)
            seeks = kind is not None and issubclass(kind, (Acquisition, SearchMethod)) and kind.seeks_information
            found = pruning_forecast(self.context(budget=budget), trial, reports, seeks_information=seeks)
            self.seconds += time.perf_counter() - began
            return found


class LazyBelief:
    """A belief that is fitted when it is first looked at: for rules from outside, which may not look at it at all."""

    def __init__(self, fit: Callable[[], Belief]) -> None:
        self._fit = fit

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).setdefault("_belief", None) or self._fitted(), name)

    def _fitted(self) -> Belief:
        found = vars(self)["_belief"] = self._fit()
        return found


def is_own_class(part: object) -> bool:
    """Whether an object's class comes from this library."""
    return type(part).__module__.split(".")[0] == "shoestring"


def same_objects(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two keys hold the same objects: numbers and texts by value, all else by identity."""
    plain = int | str
    return len(one) == len(other) and all(
        a == b if isinstance(a, plain) and isinstance(b, plain) else a is b for a, b in zip(one, other, strict=True)
    )


def reports_seen(history: History) -> dict[str, int]:
    """How many reports there are of trials without a result, by their numbers: a suggestion is stored with that.

    Reports may become more, and the storage does not keep when. Those of an abandoned trial count in spaces with a fidelity,
    until its config is asked again.
    """
    running = [trial for trial in history.having(State.RUNNING) if trial.reports]
    left = [trial for trial in history.having(State.ABANDONED) if trial.reports] if history.space.fidelities else []
    left = [trial for trial in left if not asked_again(trial, history.trials, history.space)]
    return {str(trial.number): len(trial.reports) for trial in [*left, *running]}
