"""How a study comes to its next trials: what waits is asked first, then what the method suggests from what is known.

Several processes may ask at once: each suggestion sees those before it, and one that was overtaken is made anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

from .._validation import duration_seconds, whole_number
from ..budget import Budget
from ..cost.base import CostModel
from ..data.dataset import to_dataset
from ..data.history import History
from ..data.trial import State, Trial
from ..data.visited import VisitedSet
from ..errors import Conflict, MethodError, NothingFits, OverBudget, SpaceExhausted
from ..search.base import Method, SearchContext
from ..search.batch import suggest_many
from ..search.budget_filter import filter_by_budget
from ..search.pruning import PruningForecast, pruning_forecast
from ..space.encoding import Encoding
from ..space.space import Config, Space
from ..storage import Limits, Storage
from ..surrogate.auto_subset import training_size
from ..surrogate.belief import Spending
from ..surrogate.sparse import Model
from .replay import reports_seen
from .results import Records

log = logging.getLogger("shoestring")


class Asking(Records):
    """The part of a study that suggests.

    limits             what the storage keeps all workers of a running study to
    partial            whether it was said that the model learns from a part of the trials
    optimizer_seconds  spent on suggestions
    spaces             all that it had, one after the other: it may have been extended
    """

    storage: Storage
    method: Method
    model: Model
    cost_model: CostModel
    seed: int
    initial: int
    budget: Budget | None
    limits: Limits | None = None
    partial: bool = False
    optimizer_seconds: float = 0.0
    spaces: Sequence[Space]
    _encoding: Encoding

    def ask(self, *, lease: float | str | None = None) -> Trial:
        """The next trial to evaluate: an enqueued config first, else what the method suggests.

        Raises SpaceExhausted when every config of a finite space has been tried. ``lease`` is for a process that ends before the
        trial does: how long the trial stays reserved ("24h"), since nobody is there to renew it.
        """
        return self._asked(1, duration_seconds(lease, "lease") if lease is not None else None)[0]

    def ask_many(self, count: int) -> list[Trial]:
        """Several trials to evaluate at the same time, enqueued configs first; the others take each other into account.

        As many calls of ``ask``, except that a method that can values the batch as a whole (``KG``). Where the space or the
        budget holds fewer, these.
        """
        if whole_number(count, "count") < 1:
            raise MethodError(f"count must be 1 or more, not {count!r}")
        return self._asked(count, None)

    def _asked(self, count: int, lease: float | None) -> list[Trial]:
        """Opened one by one; whenever another process was quicker, what is missing is suggested anew."""
        trials: list[Trial] = []
        with self._lock:
            while len(trials) < count:
                with self.storage.asking(self.state.study):
                    self.reap()
                    self.state.refresh()
                    trials += [trial.detached() for trial in self.state.found_again()]
                    try:
                        for config, how in self._next(count - len(trials)):
                            trials.append(self.state.open(config, limits=self.limits, seconds=lease, **how).detached())
                    except Conflict:
                        continue
                    except (OverBudget, SpaceExhausted, NothingFits) as end:
                        if trials:
                            break  # as many as there are
                        raise NothingFits(str(end)) if isinstance(end, OverBudget) else end from None
        return trials

    def reap(self) -> None:
        """Have the trials of workers that are gone asked again, and charge them."""
        self.state.reap(self.price_of_a_second if self.unit == "s" or self.per_hour is not None else None)

    def _next(self, count: int) -> Iterator[tuple[Config, dict[str, Any]]]:
        """Configs to open, and where they come from."""
        waiting = self.state.queue[:count]
        for each in waiting:
            yield dict(each.config), {"suggestion": each.suggestion, "queued": each.id}
        if len(waiting) == count:
            return
        if waiting:  # they are open now, and others may have written meanwhile: ``seen`` must name what is looked at
            self.state.refresh()
        began, count = time.perf_counter(), count - len(waiting)
        context = self.context
        if count == 1:
            suggested = [filter_by_budget(self.method.suggest(context), context)]
        else:
            suggested = suggest_many(self.method, context, count)
        self.optimizer_seconds += time.perf_counter() - began
        self._mind_the_part(context)
        basis: dict[str, Any] = {"seen": self.state.clock}
        if context.spending is not None:
            basis["spending"] = [*astuple(context.spending)]
        if len(self.spaces) > 1:
            basis["space"] = len(self.spaces) - 1
        if reports := reports_seen(context.history):
            basis["reports"] = reports
        for place, found in enumerate(suggested):
            batch = {"batch": [place, count]} if count > 1 else {}
            yield found.config, {"suggestion": found.to_dict(), "basis": basis | batch}

    def _mind_the_part(self, context: SearchContext) -> None:
        """Say so once when the model begins to learn from a part of the trials."""
        finished = context.history.number_of(State.DONE)
        part = None if self.partial else training_size(self.model, finished, len(self.space))
        if part is not None and context.warm_start is not None:
            self.partial = True
            log.info("the model learns from %d of %d trials from now on (%s)", part, finished, self.model.subset)

    @property
    def context(self) -> SearchContext:
        """All that a method may look at, at this moment."""
        return self.context_of(self.log)

    def context_of(self, history: History) -> SearchContext:
        """The same, of another history."""
        index, space = history.counted, history.space  # an interrupted trial shifts nothing
        encoding = self._encoding if space is self.space else Encoding(space)  # it was narrower once
        return SearchContext(
            space, encoding, partial(to_dataset, history), VisitedSet.of(history), history, index, self.seed, self.model, self.initial,
            history.warm_start, self.cost_model, self._spending(history), self.unit,
        )

    def _spending(self, history: History) -> Spending | None:
        if self.budget is None:
            return None
        start = history[: self.initial]
        if self.budget.cost is not None:
            return Spending(self.budget.cost, history.spent, sum(trial.cost or 0.0 for trial in start))
        if self.budget.trials is not None:
            return Spending(self.budget.trials, history.counted, min(self.initial, history.counted), in_cost=False)
        assert self.budget.seconds is not None
        taken = sum(trial.seconds or 0.0 for trial in start)
        return Spending(self.budget.seconds, self.state.run_status.seconds, taken, in_cost=False)

    def pruning_forecast(self, trial: Trial | int, reports: Sequence[Mapping[str, Any]]) -> PruningForecast | None:
        """Whether a running trial with such reports may still become the answer; None where no model can tell."""
        with self._lock:
            began = time.perf_counter()
            found = pruning_forecast(self.context, self._find(trial), reports)
            self.optimizer_seconds += time.perf_counter() - began
            return found
