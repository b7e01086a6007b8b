"""A study: ask, tell, and the loop that does both.

Everything a study knows is in its ledger: suggestions are computed from it and from (seed, number of the trial), so k
trials, a pause and N - k more are the same as N trials.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from . import archive
from .budget import Budget, read_budget
from .checkpoints import Checkpoints
from .encoding import Encoding
from .errors import BudgetError, MethodError, SpaceError
from .evaluate import Objective
from .history import History, observe
from .loop import Callback, run
from .parameters import plain
from .records import Records
from .result import Recommendation, Result
from .search.batch import suggest_many
from .search.choose import choose_cost_model, choose_method
from .search.fitting import keep_to_budget
from .search.front import Front, pareto_front
from .search.giving_up import Prospect, prospect
from .search.method import Situation
from .search.recommend import recommend
from .space import Space
from .surrogate.auto_subset import learnt_from, with_subset
from .surrogate.belief import Spending
from .surrogate.cost.base import CostModel
from .surrogate.gp import GP
from .surrogate.sparse import Model
from .surrogate.subset import Subset
from .termination.choose import choose_rule
from .termination.verdict import Rule, Verdict
from .trial import State, Trial

log = logging.getLogger("shoestring")

INITIAL = 8  # trials of the space-filling start: after a handful the model is a better guide than chance


class Study(Records):
    """``Study(space, method="auto", stop="auto", seed=0)``; then ``ask`` and ``tell``, or ``minimize`` / ``maximize``.

    method     "auto", a search method (st.Random(), ...) or an acquisition (st.EI(), ...)
    stop       "auto" (a bound on the regret where trials have folds, the worth of a trial where there is a price), None (the
               budget alone), or a rule: st.RegretBound(0.01), st.Patience(30), ..., joined by | and &
    model      st.GP(...): the surrogate of the objective; st.GP(subset=st.KMeansSubset()), st.VFE(), st.FITC() for thousands
               of trials
    subset     which trials it learns from once they are many: "auto", None (all), st.KMeansSubset(), st.SeedSubset(), ...
    cost_model "auto", or st.LinearCost(), st.LogGPCost(), st.KnownCost(f), ...: the surrogate of the cost
    budget     for ask and tell with a method that looks at it; ``minimize`` brings its own
    initial    trials of the space-filling start
    checkpoints  the folder of ``trial.checkpoint_dir``, one of its own for each study; a temporary one by default
    unit       of the trials' costs; per_hour  what an hour costs in it, for trials that say nothing of their cost
    """

    def __init__(
        self,
        space: Space,
        method: Any = "auto",
        stop: Rule | Literal["auto"] | None = "auto",
        seed: int | None = 0,
        *,
        name: str = "study",
        unit: str = "s",
        model: Model | None = None,
        subset: Subset | Literal["auto"] | None = "auto",
        cost_model: CostModel | Literal["auto"] = "auto",
        budget: str | int | Budget | None = None,
        initial: int = INITIAL,
        per_hour: float | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        direction: Literal["minimize", "maximize"] = "minimize",
    ) -> None:
        if not isinstance(space, Space):
            raise SpaceError(f"expected an st.Space, not {space!r}; write st.Space(x=st.Float(0, 1), ...)")
        if direction not in ("minimize", "maximize"):
            raise MethodError(f'direction must be "minimize" or "maximize", not {direction!r}')
        if model is not None and not isinstance(model, Model):
            raise MethodError(f"model={model!r} is not a model; write st.GP(), st.GP(warp=True), st.VFE(), ...")
        if seed is not None and whole_number(seed, "seed") < 0:
            raise MethodError(f"seed must be a whole number >= 0 or None, not {seed!r}")
        if whole_number(initial, "initial") < 1:
            raise MethodError(f"initial must be 1 or more, not {initial!r}")
        super().__init__(space, direction, unit, per_hour)
        self.name = name
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self.method = choose_method(method)
        self.model = with_subset(model or GP(), subset)
        self.initial = int(initial)
        self.seconds = 0.0  # spent inside minimize
        self.optimizer_seconds = 0.0  # spent on suggestions
        self.cost_model = choose_cost_model(cost_model)
        self.rule: Rule | None = choose_rule(stop, self.method, self.cost_model)
        self.budget = None if budget is None else read_budget(budget)
        if self.budget is not None and self.budget.unit is not None:
            self.unit = self.budget.unit
        if self.budget is not None and self.budget.per_hour is not None:
            self.per_hour = self.budget.per_hour
        if self.per_hour is not None and not (isinstance(self.per_hour, int | float) and 0 < self.per_hour < math.inf):
            raise BudgetError(f"per_hour must be a positive number, not {self.per_hour!r}")
        self.halted: str | None = None
        self.partial = False  # whether it was said that the model learns from a part of the trials
        self.minded = False  # whether it was said that seconds are counted in another unit
        self.checked: Verdict | None = None  # what the rule said last
        self.checkpoints = Checkpoints(space, checkpoints)
        self._encoding = Encoding(space)

    # -- what happened -----------------------------------------------------------------------------------------------

    @property
    def result(self) -> Result:
        return Result(self, self.history, Verdict(False, "it goes on"), self.unit, self.optimizer_seconds)

    def recommend(self, history: History | None = None, *, tried: bool = False) -> Recommendation | None:
        """The config whose value the model predicts to be best, after all trials or after an earlier history.

        Over the whole space at the target fidelity, or with ``tried=True`` among what was evaluated.
        """
        with self._lock:
            history = self.log if history is None else history
            found = recommend(self._situation(history), tried)
            if found is None:
                return None
            if found.row is None:
                return Recommendation(self.space.decode(found.u), found.value, None)
            trial = history.having(State.DONE)[found.row]
            return Recommendation(trial.detached().config, found.value, trial.number)

    def pareto_front(self) -> Front:
        """The EI-cost front at the present step, where each method would land on it, and the alpha of each landing."""
        with self._lock:
            return pareto_front(self._situation(self.log))

    # -- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial to evaluate: an enqueued config first, else what the method suggests.

        Raises SpaceExhausted when every config of a finite space has been tried.
        """
        with self._lock:
            if self.ledger.queue:
                config, suggestion = self.ledger.queue.pop(0)
            else:
                began = time.perf_counter()
                situation = self._situation(self.log)
                suggested = keep_to_budget(self.method.suggest(situation), situation)
                self.optimizer_seconds += time.perf_counter() - began
                self._mind_the_part(situation)
                config, suggestion = suggested.config, suggested.to_dict()
            return self.ledger.open(config, suggestion).detached()

    def _mind_the_part(self, situation: Situation) -> None:
        """Say so once when the model begins to learn from a part of the trials."""
        part = None if self.partial else learnt_from(self.model, situation.seen.finished, len(self.space))
        if part is not None and situation.known is not None:
            self.partial = True
            log.info("the model learns from %d of %d trials from now on (%s)", part, situation.seen.finished, self.model.subset)

    def ask_many(self, count: int) -> list[Trial]:
        """Several trials to evaluate at the same time, enqueued configs first; the others take each other into account.

        As many calls of ``ask``, except that a method that can values the batch as a whole (``KG``).
        """
        if whole_number(count, "count") < 1:
            raise MethodError(f"count must be 1 or more, not {count!r}")
        with self._lock:
            trials = [self.ask() for _ in range(min(count, len(self.ledger.queue)))]
            began = time.perf_counter()
            suggested = suggest_many(self.method, self._situation(self.log), count - len(trials))
            self.optimizer_seconds += time.perf_counter() - began
            return trials + [self.ledger.open(each.config, each.to_dict()).detached() for each in suggested]

    def checkpoint_dir(self, trial: Trial | int) -> Path:
        """A folder for the files of a trial's configuration, made on first use: the same at every fidelity."""
        with self._lock:
            return self.checkpoints.folder(self._find(trial).config)

    def halt(self, reason: str = "halted by request") -> None:
        """End the running ``minimize`` after the present trial; for callbacks and other threads."""
        self.halted = reason

    # -- the loop ----------------------------------------------------------------------------------------------------

    def minimize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        callbacks: Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """Evaluate the objective until the budget is used up, counting what this study spent before.

        A failed evaluation is recorded and charged, and the study goes on (``raise_errors=True`` raises instead). Ctrl-C
        returns what was learnt; the same call again goes on from there. ``confirm=True`` keeps enough of the budget to
        evaluate at the end what is then recommended, at the target fidelity, unless it was evaluated already.
        """
        self._set_direction("minimize")
        return run(self, objective, read_budget(budget), callbacks, raise_errors, progress, confirm)

    def maximize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        callbacks: Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """As ``minimize``, the other way up."""
        self._set_direction("maximize")
        return run(self, objective, read_budget(budget), callbacks, raise_errors, progress, confirm)

    # -- pieces ------------------------------------------------------------------------------------------------------

    @property
    def situation(self) -> Situation:
        """All that a method may look at, at this moment."""
        return self._situation(self.log)

    def _situation(self, history: History) -> Situation:
        index = history.counted  # an interrupted trial shifts nothing
        return Situation(
            self.space, self._encoding, observe(history), history, index, self.seed, self.model, self.initial, history.known,
            self.cost_model, self._spending(history), self.unit,
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
        return Spending(self.budget.seconds, self.seconds, sum(trial.seconds or 0.0 for trial in start), in_cost=False)

    def prospect(self, trial: Trial | int, reports: Sequence[Mapping[str, Any]]) -> Prospect | None:
        """Whether a running trial with such reports may still become the answer; None where no model can tell."""
        with self._lock:
            began = time.perf_counter()
            found = prospect(self._situation(self.log), self._find(trial), reports)
            self.optimizer_seconds += time.perf_counter() - began
            return found

    # -- to text and back --------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole state but for method, models and rule, which are code: give them to ``from_json`` again."""
        with self._lock:
            return archive.to_json(self)

    @classmethod
    def from_json(
        cls,
        text: str,
        method: Any = "auto",
        stop: Any = "auto",
        model: Model | None = None,
        cost_model: Any = "auto",
        checkpoints: str | os.PathLike[str] | None = None,
        subset: Any = "auto",
    ) -> Study:
        """A study as ``to_json`` left it; its next suggestion is the one the original would have made."""
        code = {"method": method, "stop": stop, "model": model, "cost_model": cost_model, "checkpoints": checkpoints}
        return archive.from_json(cls, text, **code, subset=subset)


def whole_number(value: Any, what: str) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MethodError(f"{what} must be a whole number, not {value!r}")
    return value
