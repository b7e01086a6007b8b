"""The suggester: from what happened to the next trials, and to the verdict of the stopping rule.

Configs in the queue are asked first, then what the method suggests. Suggestions depend on the history and on (seed, number of the
trial) alone, so k trials, a pause and N - k more are the same as N trials.

One belief a step: the search context of a step is kept until the history changes. The stopping rule and the suggestion share its
fits.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ..acquisition.base import Acquisition
from ..acquisition.kg_trace_search import TraceKG
from ..budget import Budget
from ..cost.base import CostModel
from ..data.dataset import to_dataset
from ..data.history import History
from ..data.intermediate import asked_again
from ..data.trial import State, Suggestion, Trial
from ..data.visited import VisitedSet
from ..errors import Conflict, MethodError, NothingFits, OverBudget, SpaceExhausted
from ..numerics import LazyModule, single_threaded
from ..search.auto import Auto
from ..search.base import LazyFits, Method, SearchContext, SearchMethod, no_curves
from ..search.batch import suggest_many
from ..search.bayes import Bayes
from ..search.budget_filter import filter_by_budget
from ..search.halving_start import is_start
from ..search.pruning import PruningForecast, fidelity_doubled, pruning_forecast
from ..search.random import Random
from ..search.recommend import RecommendedPoint, recommend
from ..space.encoding import Encoding
from ..space.space import Config, Space
from ..storage.base import Limits, QueuedConfig
from ..surrogate.base import Surrogate, training_size
from ..surrogate.belief import Belief, Spending
from ..surrogate.curves_study import CurveFit, CurveMemo
from ..surrogate.gp import GP, FixedGP
from ..termination.base import Rule, StopRule, Verdict
from .effort import Effort, Level, counts_time
from .registry import acquisition_class
from .study_state import StudySettings, StudyState

log = logging.getLogger("shoestring")


@dataclass
class Suggester:
    """Suggests trials of one study, by its method, its models and its stopping rule.

    seconds   spent on suggestions so far, without imports;   suggestions  how many there were
    checked   the last verdict of the rule
    workers   how many trials may run at once
    prune     whether running trials may be pruned: True, False, or None: where the method has a model
    """

    state: StudyState
    method: Method
    model: Surrogate
    cost_model: CostModel
    rule: Rule | None
    seconds: float = 0.0
    suggestions: int = 0
    checked: Verdict | None = None
    workers: int = 1
    prune: bool | None = None
    effort: Effort = field(default_factory=Effort, repr=False)
    _step_seconds: float = 0.0  # of the present step, the check of the rule included
    _level: Level = "full"
    _level_key: tuple[Any, ...] = ()
    _said_subset: bool = False  # whether it was said that the model learns from a subset of the trials
    _encoding: Encoding | None = None
    _context: SearchContext | None = field(default=None, repr=False)
    _context_key: tuple[Any, ...] = ()
    _checked_version: int = -1  # of the table of trials, when the rule was checked last
    _curves: CurveMemo = field(default_factory=CurveMemo, repr=False)
    _judged: dict[int, Mapping[str, float]] = field(default_factory=dict, repr=False)  # fidelities of the last plain forecasts

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
            yield self._completed(each, budget), {"suggestion": each.suggestion, "queued": each.id}
        if len(queued) == count:
            return
        if queued:  # they are open now, and other processes may have written: ``seen`` must name what is looked at
            self.state.refresh()
        count -= len(queued)
        level = self.level(budget)
        with self._timed():
            context = self.context(budget=budget)
            suggested = self._suggest(context, count, level)
        if self._may_save_time(budget) and context.warm_start is not None:  # not the initial design, nor the first fit
            self.effort.add(level, self._step_seconds)  # the check of the rule included
        self._step_seconds = 0.0
        self.suggestions += len(suggested)
        self._say_subset(context)
        basis: dict[str, Any] = {"seen": self.state.clock} | ({} if level == "full" else {"effort": level})
        if context.spending is not None:
            basis["spending"] = [*astuple(context.spending)]
        if not context.prunes:
            basis["prunes"] = False
        if len(self.state.spaces) > 1:
            basis["space"] = len(self.state.spaces) - 1
        if reports := reports_seen(context.history):
            basis["reports"] = reports
        evidence = self._rule_evidence()
        for place, found in enumerate(suggested):
            batch = {"batch": [place, count]} if count > 1 else {}
            yield found.config, {"suggestion": found.to_dict() | evidence, "basis": basis | batch}

    def _rule_evidence(self) -> dict[str, Any]:
        """The numbers of the stopping rule's verdict on this history, for pictures: they need no model then."""
        if self.checked is None or self._checked_version != self.state.table.version:
            return {}
        numbers = {name: value for name, value in self.checked.evidence.items() if math.isfinite(value)}
        return {"rule": numbers} if numbers else {}

    def _suggest(self, context: SearchContext, count: int, level: Level) -> list[Suggestion]:
        method = Random() if level == "random" else self.method
        if count > 1:
            return suggest_many(method, context, count)
        suggestion = method.suggest(context)
        return [filter_by_budget(suggestion, context) if context.cost_limited else suggestion]

    def _completed(self, queued: QueuedConfig, budget: Budget | None) -> Config:
        """A config of the queue. What the user has left open is as the method suggests it at this moment."""
        if not queued.suggestion.get("partial"):
            return dict(queued.config)
        space = self.state.space
        try:
            with self._timed():
                suggested = self.method.suggest(self.context(budget=budget)).config
        except (SpaceExhausted, NothingFits):  # the user wants it nevertheless
            suggested = space.decode(np.full(len(space), 0.5))
        return space.complete(queued.config, {**suggested, **space.target})  # at the target fidelity, unless one is given

    def level(self, budget: Budget | None) -> Level:
        """The effort of the next suggestion: full, unless the optimizer's own time counts and a trial takes less."""
        if not self._may_save_time(budget):
            return "full"
        history = self.state.history
        key = (self.state.table.version, budget)
        if self._level_key != key:  # one level a step: the rule and the suggestion share its fits
            in_time = budget is not None and budget.seconds is not None
            timed = counts_time(budget, history)
            self._level = self.effort.choose(history, self.workers, in_time=in_time) if timed else "full"
            self._level_key = key
        return self._level

    def _may_save_time(self, budget: Budget | None) -> bool:
        """Whether less effort is possible: under a budget in trials, the same seed gives the same trials."""
        in_trials = budget is None or (budget.seconds is None and budget.cost is None)
        return not in_trials and isinstance(self.method, Auto | Bayes)

    @contextmanager
    def _timed(self, *, step: bool = True) -> Iterator[None]:
        """Adds the time of what is inside to the optimizer's own seconds, imports excepted: a program imports once.

        ``step``: it is a part of the next suggestion.
        """
        began, imports = time.perf_counter(), LazyModule.import_seconds
        try:
            yield
        finally:
            took = time.perf_counter() - began - (LazyModule.import_seconds - imports)
            self.seconds += took
            self._step_seconds += took if step else 0.0

    def _say_subset(self, context: SearchContext) -> None:
        """Say so once when the model begins to learn from a subset of the trials."""
        if self._said_subset or context.warm_start is None or not context.fits.uses_subset:
            return
        finished = context.history.number_of(State.DONE)
        if (part := training_size(self.model, finished, len(context.space))) is not None:
            self._said_subset = True
            log.info("the model learns from %d of %d trials from now on (%s)", part, finished, self.model.subset)

    # -- what is known -----------------------------------------------------------------------------------------------

    def context(
        self, history: History | None = None, *, budget: Budget | None = None, effort: Literal["full", "reduced"] = "full"
    ) -> SearchContext:
        """All that a method may look at: now, or after an earlier history. Kept until the trials or the settings change.

        ``effort`` is for an earlier history; now, it is what the budget allows.
        """
        if history is not None:
            return self._make_context(history, self._spending(history, budget), effort)
        state, level = self.state, self.level(budget)
        effort = "full" if level == "full" else "reduced"
        settings = state.settings
        key = (state.table.version, state.space, self.model, self.cost_model, settings.unit, settings.maximize, effort)
        history = state.history
        spending = self._spending(history, budget)
        if self._context is None or not same_objects(key, self._context_key):
            self._context, self._context_key = self._make_context(history, spending, effort), key
        elif self._context.spending != spending:
            self._context = replace(self._context, spending=spending)
        return self._context

    def _make_context(
        self, history: History, spending: Spending | None, effort: Literal["full", "reduced"] = "full"
    ) -> SearchContext:
        space, settings = history.space, self.state.settings
        number = history.trials_started  # an interrupted trial shifts nothing
        model = self._model_for(history)
        model = FixedGP.like(model) if effort == "reduced" and type(model) is GP else model
        fits = LazyFits(
            partial(to_dataset, history), self._encode(space), model=model, cost_model=self.cost_model,
            warm_start=history.warm_start, seed=settings.seed, number=number,
            curves=partial(self._fit_curves, history) if self._learns_curves(model, history) else no_curves,
        )  # fmt: skip
        return SearchContext(
            space=space, encoding=fits.encoding, history=history, fits=fits, visited=VisitedSet.of(history), number=number,
            seed=settings.seed, initial=settings.initial, spending=spending, unit=settings.unit, effort=effort,
            prunes=self.prune is not False,
        )  # fmt: skip

    def _model_for(self, history: History) -> Surrogate:
        """The study's model, for the method and as many trials as there are."""
        model, method = self.model, self.method
        if not isinstance(model, GP) or model.inference != "auto":
            return model
        cheap = isinstance(method, Auto) or (isinstance(method, Bayes) and method.acquisition.cheap_to_average)
        return model.resolved(history.number_of(State.DONE), cheap and not history.space.fidelities)

    def _learns_curves(self, model: Surrogate, history: History) -> bool:
        """Whether the belief may come from learning curves: of a GP, for methods that evaluate at the target or know curves."""
        method = self.method
        if not history.space.fidelities or type(model) not in (GP, FixedGP) or not isinstance(method, Auto | Bayes):
            return False
        return isinstance(method, Auto) or not method.acquisition.chooses_fidelity or isinstance(method.acquisition, TraceKG)

    def _fit_curves(self, history: History) -> CurveFit | None:
        """The model of curves; whether they can be trusted is not asked for a method that is made for them."""
        found = self._curves.fit(history, self._encode(history.space))
        made_for_curves = isinstance(self.method, Bayes) and isinstance(self.method.acquisition, TraceKG)
        return found.unjudged if found is not None and made_for_curves else found

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
        if budget.seconds is None and budget.cost is None:
            assert budget.trials is not None
            return Spending(budget.trials, history.trials_used, min(initial, history.trials_used), in_cost=False)
        paid = sum(trial.charge for trial in history[:initial])
        in_cost = None if budget.cost is None else Spending(budget.cost, history.spent, paid, trials=budget.trials)
        if budget.seconds is not None:
            limited = self._time_as_cost(budget.seconds, history, paid)
            limited = None if limited is None else replace(limited, trials=budget.trials)
            if limited is not None and (in_cost is None or limited.left < in_cost.left):
                return limited
            if limited is not None and in_cost is not None:
                return replace(in_cost, most=limited.most, price=price_of_a_second(history, self.state.settings))
        if in_cost is not None:
            return in_cost
        if budget.trials is not None:
            return Spending(budget.trials, history.trials_used, min(initial, history.trials_used), in_cost=False)
        assert budget.seconds is not None
        taken = sum(trial.seconds or 0.0 for trial in history[:initial])
        return Spending(budget.seconds, self.state.run_status.seconds, taken, in_cost=False)

    def _time_as_cost(self, seconds: float, history: History, paid: float) -> Spending | None:
        """The time of all workers as a budget in cost; None while the price of a second is not known."""
        price = price_of_a_second(history, self.state.settings)
        if price is None:
            return None
        gone = min(self.state.run_status.seconds, seconds)
        worth = price * self.workers  # of a second
        return Spending(worth * seconds, worth * gone, paid, most=price * (seconds - gone), timed=True, price=price)

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
            costs = rule.wants_cost if own and isinstance(rule, StopRule) else True
            with self._timed():
                belief = context.belief(costs=costs) if own else LazyBelief(partial(context.belief, costs=costs))
        with self._timed():
            verdict = rule.check(history, belief)
        if not isinstance(verdict, Verdict):
            raise MethodError(f"{type(rule).__name__}.check must return st.Verdict(stop, reason), not {verdict!r}")
        self.checked, self._checked_version = verdict, self.state.table.version
        return verdict

    def recommend(
        self, history: History | None = None, *, tried: bool = False, budget: Budget | None = None
    ) -> RecommendedPoint | None:
        """The config with the lowest posterior mean at the target fidelity."""
        with self.state.lock:
            return recommend(self.context(history, budget=budget), tried)

    @single_threaded  # with two BLAS threads, a solve with fifty points takes 16 ms in place of .1 ms
    def forecast(
        self, trial: Trial, reports: Sequence[Mapping[str, Any]], budget: Budget | None = None, *, live: bool = False
    ) -> PruningForecast | None:
        """Whether a running trial with such reports may still become the answer; None where there is no forecast.

        ``live``: it is asked at each report, so a forecast that costs a fit is made when the fidelity has doubled only.
        """
        if self.prune is False or is_start(trial):
            return None
        with self.state.lock:
            own = self.method.acquisition if isinstance(self.method, Bayes) else self.method
            by = str(trial.suggestion.get("by", ""))
            kind = type(own) if type(own).__name__ == by else acquisition_class(by)
            seeks = kind is not None and issubclass(kind, (Acquisition, SearchMethod)) and kind.seeks_information
            with self._timed(step=False):
                context = self.context(budget=budget)
                curves = self._fit_curves(context.history)
                if curves is not None and not curves.trusted:
                    return None
                if curves is not None and not curves.chosen and self.prune is not True:
                    curves = None
                if curves is None and live:
                    fidelity = reports[-1]["fidelity"] if reports else {}
                    if not fidelity_doubled(fidelity, self._judged.get(trial.number, {})):
                        return None
                    self._judged[trial.number] = fidelity
                return pruning_forecast(
                    context, trial, reports, seeks_information=seeks, curves=curves, always=self.prune is True
                )


def price_of_a_second(history: History, settings: StudySettings) -> float | None:
    """What a second of a trial costs: as the finished trials say, or else as the study was told; None if neither is known."""
    table = history.table
    ended = table.having(State.DONE, State.FAILED) & ~table.added[: table.count] & (table.cost[: table.count] > 0.0)
    seconds = float(table.seconds[: table.count][ended].sum())
    if seconds > 0.0:
        return float(table.cost[: table.count][ended].sum()) / seconds
    return settings.price_of_a_second if settings.time_has_a_price else None


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
