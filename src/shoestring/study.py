"""A study: ask, tell, and the loop that does both.

A study owns three things: a ``StudyState`` (what happened, as the storage keeps it), a ``Suggester`` (from the history to the
next trial) and, while it runs, a ``Runner`` (the loop). Suggestions are computed from the state and from (seed, number of the
trial), so k trials, a pause and N - k more are the same as N trials.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ._format import amount, plural, rounded
from ._validation import duration_seconds, number_between, whole_number
from .budget import Budget, read_budget
from .cost.base import CostModel
from .data.history import History
from .data.outcome import Outcome
from .data.trial import State, Trial
from .errors import BudgetError, MethodError, ShoestringError, SpaceError, StudyError
from .execution.evaluate import Objective
from .execution.executor import TrialExecutor
from .execution.factory import make_executor
from .execution.runner import Runner
from .report.result import Recommendation, Result
from .search.auto import read_cost_model, read_search_method
from .search.base import Method, SearchContext
from .search.pareto import Front, pareto_front
from .search.pruning import PruningForecast
from .space.space import Space
from .state.checkpoints import Checkpoints
from .state.persistence import (
    LEASE_SECONDS,
    fill_from_json,
    find_record,
    json_arguments,
    load_arguments,
    open_study,
    read_json,
    to_json,
)
from .state.probe import check_parts
from .state.registry import texts_of
from .state.replay import Replay, replay
from .state.results import Results, merged_outcome
from .state.study_state import StudySettings
from .state.suggester import Suggester
from .storage import Storage, open_storage
from .surrogate.base import Surrogate, check_surrogate, with_subset
from .surrogate.gp import GP
from .surrogate.subset import Subset
from .termination.auto import read_rule
from .termination.base import Rule, Verdict

INITIAL_TRIALS = 8  # of the initial design: after these the model is a better guide than chance

Callback = Callable[["Study", Trial], object]


class Study:
    """A search for the best config: ``ask`` and ``tell``, or ``minimize`` and ``maximize``.

    ``Study(space, method="auto", stop="auto", seed=0)``

    method     "auto", a search method (st.Random(), ...) or an acquisition (st.EI(), ...)
    stop       "auto" (a bound on the regret where trials have folds, cost against gain where there is a price), None (the
               budget alone), or a rule: st.RegretBound(0.01), st.Patience(30), ..., joined by | and &
    model      st.GP(...): the surrogate of the objective; st.GP(subset=st.KMeansSubset()), st.VFE(), st.FITC() for thousands
               of trials
    subset     which trials it learns from once they are many: "auto", None (all), st.KMeansSubset(), st.SeedSubset(), ...
    cost_model "auto", or st.LinearCost(), st.LogGPCost(), st.KnownCost(f), ...: the surrogate of the cost
    budget     for ask and tell with a method that looks at it; ``minimize`` brings its own
    storage    where it is kept: "sqlite:///tune.db" or "tune.db", "postgresql://...", or None: in memory. A study of that name
               that is there already is continued, also in several processes at once; ``extend=True`` widens its space to this one
    lease      seconds after which the trials of a lost worker are asked again; with a storage only
    initial    trials of the initial design
    checkpoints  the folder of ``trial.checkpoint_dir``, one of its own for each study; a temporary one by default
    unit       of the trials' costs; per_hour  what an hour costs in it, for trials that report no cost
    """

    def __init__(
        self,
        space: Space,
        method: Any = "auto",
        stop: Rule | Literal["auto"] | None = "auto",
        seed: int | None = 0,
        *,
        storage: str | os.PathLike[str] | Storage | None = None,
        name: str = "study",
        extend: bool = False,
        lease: float = LEASE_SECONDS,
        unit: str = "s",
        model: Surrogate | None = None,
        subset: Subset | Literal["auto"] | None = "auto",
        cost_model: CostModel | Literal["auto"] = "auto",
        budget: str | int | Budget | None = None,
        initial: int = INITIAL_TRIALS,
        per_hour: float | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        direction: Literal["minimize", "maximize"] = "minimize",
    ) -> None:
        if not isinstance(space, Space):
            raise SpaceError(f"expected an st.Space, not {space!r}; write st.Space(x=st.Float(0, 1), ...)")
        if direction not in ("minimize", "maximize"):
            raise MethodError(f'direction must be "minimize" or "maximize", not {direction!r}')
        if model is not None:
            check_surrogate(model)
        if seed is not None:
            seed = whole_number(seed, "seed", 0)
        planned = None if budget is None else read_budget(budget)
        settings = StudySettings(
            direction=direction,
            seed=int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed,
            initial=whole_number(initial, "initial", 1),
            unit=unit if planned is None or planned.unit is None else planned.unit,
            per_hour=per_hour if planned is None or planned.per_hour is None else planned.per_hour,
            budget=planned,
            code=texts_of({"method": method, "stop": stop, "model": model, "cost_model": cost_model, "subset": subset}),
        )
        number_between(settings.per_hour, "per_hour", 0.0, low_included=False, optional=True, error=BudgetError)
        search, surrogate, costs = read_search_method(method), with_subset(model or GP(), subset), read_cost_model(cost_model)
        rule = read_rule(stop, search)
        check_parts(space, search, surrogate, costs)
        self._checkpoints = Checkpoints(checkpoints)
        where = open_storage("memory" if storage is None else storage)
        self.state = open_study(where, name, space, settings, extend=extend, lease=duration_seconds(lease, "lease"))
        self.suggester = Suggester(self.state, search, surrogate, costs, rule)
        self._results = Results(self.state)

    def __repr__(self) -> str:
        history, settings = self.state.history, self.state.settings
        if self.state.heartbeat is not None and not len(history):
            record = self.storage.find(self.name)
            count = plural(0 if record is None else record.trials, "trial")
            return f"Study {self.name!r} to {settings.direction}: {count} in {self.storage.url}, not read yet"
        best = history.best
        value = "nothing finished yet" if best is None else f"best {rounded(best.value)} (trial {best.number})"
        where = "in memory" if self.state.heartbeat is None else f"in {self.storage.url}"
        spent = f"spent {amount(history.spent, settings.unit)}"
        return f"Study {self.name!r} to {settings.direction}: {plural(len(history), 'trial')}, {value}, {spent}, {where}"

    # -- what it was made with ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def storage(self) -> Storage:
        return self.state.storage

    @property
    def space(self) -> Space:
        """The space of today: the study may have been extended."""
        return self.state.space

    @property
    def direction(self) -> str:
        return self.state.settings.direction

    @property
    def seed(self) -> int:
        return self.state.settings.seed

    @property
    def initial(self) -> int:
        """Trials of the initial design."""
        return self.state.settings.initial

    @property
    def unit(self) -> str:
        """Of the trials' costs."""
        return self.state.settings.unit

    @property
    def per_hour(self) -> float | None:
        return self.state.settings.per_hour

    @property
    def budget(self) -> Budget | None:
        """The budget of the last run, or the one that ``ask`` plans with."""
        return self.state.settings.budget

    @budget.setter
    def budget(self, budget: str | int | Budget | None) -> None:
        self.state.settings.budget = None if budget is None else read_budget(budget)

    @property
    def code(self) -> Mapping[str, str | None]:
        """The texts of method, stop, model, cost_model and subset, None where there is none to store."""
        return self.state.settings.code

    @property
    def method(self) -> Method:
        return self.suggester.method

    @property
    def model(self) -> Surrogate:
        return self.suggester.model

    @property
    def cost_model(self) -> CostModel:
        return self.suggester.cost_model

    @property
    def rule(self) -> Rule | None:
        """The stopping rule; None: the budget alone decides."""
        return self.suggester.rule

    @rule.setter
    def rule(self, rule: Rule | None) -> None:
        self.suggester.rule = rule

    # -- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self, *, lease: float | str | None = None) -> Trial:
        """The next trial to evaluate: an enqueued config first, else what the method suggests.

        Raises SpaceExhausted when every config of a finite space has been tried. ``lease`` is for a process that ends before the
        trial does: how long the trial stays reserved ("24h"), since no process renews it.
        """
        reserved = None if lease is None else duration_seconds(lease, "lease")
        return self.suggester.ask(budget=self.budget, lease=reserved)[0].detached()

    def ask_many(self, count: int) -> list[Trial]:
        """Several trials to evaluate at the same time, enqueued configs first; the others take each other into account.

        As many calls of ``ask``, except that some methods value the batch as a whole (``KG``). Where the space or the budget
        holds fewer, these.
        """
        return [trial.detached() for trial in self.suggester.ask(whole_number(count, "count", 1), budget=self.budget)]

    def tell(
        self,
        trial: Trial | int,
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        error: str | None = None,
        censored: bool = False,
    ) -> Trial:
        """Record what came of a trial: a value (or the folds it is the mean of), or an error.

        ``censored=True``: the evaluation was cut off, so the cost is a lower bound.

        A NaN or infinite value is a failed trial. Without a cost, the seconds since ``ask`` are the cost. Bad input raises
        OutcomeError and leaves the trial open; telling the same result twice changes nothing.
        """
        outcome = merged_outcome(value, cost=cost, folds=folds, gradient=gradient)
        return self._results.tell(trial, outcome, error, censored).detached()

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Have a config asked next, after those enqueued before it."""
        with self.state.lock:
            self.state.enqueue(self.space.check(config), {"by": "you", "why": "enqueued"})

    def add(
        self,
        config: Mapping[str, Any],
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        error: str | None = None,
        censored: bool = False,
    ) -> Trial:
        """A result from elsewhere: ``study.add(config, 0.05, cost=9.0)``; the rest as for ``tell``."""
        outcome = merged_outcome(value, cost=cost, folds=folds, gradient=gradient)
        return self._results.add(config, outcome, error, censored).detached()

    # -- what happened -----------------------------------------------------------------------------------------------

    @property
    def history(self) -> History:
        """The trials so far: a copy, which is yours to change."""
        self.refresh()
        return self.state.detached_history()

    @property
    def log(self) -> History:
        """The trials that this process knows of, shared with the study: to look at, not to change."""
        return self.state.history

    def refresh(self) -> None:
        """Learn what other processes have written."""
        with self.state.lock:
            self.state.refresh()

    @property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        state = self.state
        if state.heartbeat is not None and not len(state):  # no need to read all the others
            with state.lock:
                state.reload_settings()
            return state.storage.best(state.study, state.settings.maximize)
        self.refresh()
        found = state.history.best
        return None if found is None else found.detached()

    @property
    def result(self) -> Result:
        return self._result(self.history, Verdict(False, "not stopped"))

    def _result(self, history: History, verdict: Verdict, budget: Budget | None = None) -> Result:
        return Result(self, history, verdict, self.unit, self.suggester.seconds, budget)

    def recommend(self, history: History | None = None, *, tried: bool = False) -> Recommendation | None:
        """The config whose value the model predicts to be best, after all trials or after an earlier history.

        Over the whole space at the target fidelity, or with ``tried=True`` among what was evaluated.
        """
        with self.state.lock:
            found = self.suggester.recommend(history, tried=tried, budget=self.budget)
            if found is None:
                return None
            if found.row is None:
                return Recommendation(self.space.decode(found.u), found.value, None)
            trial = (self.state.history if history is None else history).having(State.DONE)[found.row]
            return Recommendation(trial.detached().config, found.value, trial.number)

    def pareto_front(self) -> Front:
        """The EI-cost front at the present step, where each method would land on it, and the alpha of each landing."""
        with self.state.lock:
            return pareto_front(self.context)

    @property
    def context(self) -> SearchContext:
        """All that a method may look at, at this moment."""
        return self.suggester.context(budget=self.budget)

    def replay(self) -> Replay:
        """Compute every suggestion again from what is stored, and report the first that differs."""
        with self.state.lock:
            self.state.refresh()
            return replay(self.suggester)

    # -- while it runs -----------------------------------------------------------------------------------------------

    def checkpoint_dir(self, trial: Trial | int) -> Path:
        """A folder for the files of a trial's configuration, made on first use: the same at every fidelity."""
        with self.state.lock:
            return self._checkpoints.folder(self._results.find(trial).config, self.space)

    def pruning_forecast(self, trial: Trial | int, reports: Sequence[Mapping[str, Any]]) -> PruningForecast | None:
        """Whether a running trial with such reports may still become the answer; None where there is no forecast."""
        with self.state.lock:
            return self.suggester.forecast(self._results.find(trial), reports, self.budget)

    def halt(self, reason: str = "halted by request") -> None:
        """End the running ``minimize`` after the present trial; for callbacks and other threads and processes."""
        self.state.run_status.request_stop(reason)

    @property
    def halted(self) -> str | None:
        """Why a stop was requested, or None; all processes that work on the study see it."""
        return self.state.run_status.halted

    @property
    def seconds(self) -> float:
        """Wall-clock seconds during which any process was inside ``minimize``."""
        return self.state.run_status.seconds

    @property
    def optimizer_seconds(self) -> float:
        """Seconds that this process spent on suggestions."""
        return self.suggester.seconds

    @property
    def checked(self) -> Verdict | None:
        """The last verdict of the stopping rule."""
        return self.suggester.checked

    # -- the loop ----------------------------------------------------------------------------------------------------

    def minimize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        workers: int | None = None,
        executor: Any = None,
        timeout: float | str | None = None,
        retries: int = 0,
        threads: bool = False,
        callbacks: Callback | Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """Evaluate the objective until the budget is used up, counting what this study spent before.

        A failed evaluation is recorded and charged, and the study goes on (``raise_errors=True`` raises instead). Ctrl-C
        returns what was learnt; the same call again goes on from there. ``confirm=True`` keeps enough of the budget to
        evaluate at the end what is then recommended, at the target fidelity, unless it was evaluated already.

        workers    trials at once, each in a process; 1 is this process, one after the other. ``threads=True``: in threads of it
        executor   have them evaluated by an Executor: st.DaskExecutor(...), st.RayExecutor(), those of concurrent.futures, ...;
                   ``workers`` at once, by default as many as it says that it can run
        timeout    of a trial, "10m" or seconds: then it is killed and has failed, with a cost that is a lower bound
        retries    how often a trial that failed by an exception or a crash is tried again, as another trial
        callbacks  called with (study, trial) after each trial
        """
        chosen = make_executor(
            objective, self.space,
            workers=workers, executor=executor, timeout=timeout, threads=threads, raise_errors=raise_errors,
        )  # fmt: skip
        self._results.set_direction("minimize")
        return self.run(chosen, budget, callbacks=callbacks, progress=progress, confirm=confirm, retries=retries)

    def maximize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        workers: int | None = None,
        executor: Any = None,
        timeout: float | str | None = None,
        retries: int = 0,
        threads: bool = False,
        callbacks: Callback | Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """As ``minimize``, for the highest value."""
        chosen = make_executor(
            objective, self.space,
            workers=workers, executor=executor, timeout=timeout, threads=threads, raise_errors=raise_errors,
        )  # fmt: skip
        self._results.set_direction("maximize")
        return self.run(chosen, budget, callbacks=callbacks, progress=progress, confirm=confirm, retries=retries)

    def run(
        self,
        executor: TrialExecutor,
        budget: str | int | Budget,
        *,
        callbacks: Callback | Iterable[Callback] = (),
        progress: bool | None = None,
        confirm: bool | Callable[[], bool] = False,
        retries: int = 0,
    ) -> Result:
        """The loop itself, over a ``TrialExecutor``: for those who bring one of their own. The options as for ``minimize``."""
        limit, calls = read_budget(budget), (callbacks,) if callable(callbacks) else tuple(callbacks)
        runner = Runner(
            self.suggester, self._results, executor, limit,
            checkpoints=self._checkpoints, on_result=[partial(call, self) for call in calls], progress=progress, confirm=confirm,
            retries=whole_number(retries, "retries", 0),
        )  # fmt: skip
        verdict = runner.run()
        return self._result(self.state.detached_history(), verdict, limit)

    # -- stored, and opened again ------------------------------------------------------------------------------------

    @classmethod
    def load(cls, storage: str | os.PathLike[str] | Storage, name: str | None = None, **code: Any) -> Study:
        """A study that is in a storage; the name may be left out where there is only one.

        ``code`` is method, stop, model, cost_model and subset; without them, they are as the study was made with.
        """
        where = open_storage(storage)
        return cls(storage=where, **load_arguments(find_record(where, name), code))

    def to_json(self) -> str:
        """The whole state as text. Method, models and rule are code: give them to ``from_json`` again."""
        with self.state.lock:
            return to_json(self.state)

    @classmethod
    def from_json(
        cls,
        text: str,
        method: Any = "auto",
        stop: Any = "auto",
        model: Surrogate | None = None,
        cost_model: Any = "auto",
        checkpoints: str | os.PathLike[str] | None = None,
        subset: Any = "auto",
    ) -> Study:
        """A study as ``to_json`` left it; its next suggestion is the one the original would have made."""
        code = {"method": method, "stop": stop, "model": model, "cost_model": cost_model, "subset": subset}
        try:
            stored = read_json(text)
            study = cls(**json_arguments(stored), checkpoints=checkpoints, **code)
            fill_from_json(study.state, stored)
        except ShoestringError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise StudyError(f"this study cannot be read: {type(error).__name__}: {error}") from error
        return study
