"""A study: ask, tell, and the loop that does both.

Everything a study knows is in its ledger: suggestions are computed from it and from (seed, number of the trial), so k
trials, a pause and N - k more are the same as N trials.

The shortest way in: one call from an objective and a space to a result.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ._format import plural
from ._validation import duration_seconds, whole_number
from .budget import Budget, read_budget
from .cost.base import CostModel
from .data.history import History
from .data.trial import State, Trial
from .errors import BudgetError, MethodError, SpaceError
from .execution.evaluate import Objective
from .execution.factory import make_executor
from .execution.runner import Callback, run
from .report.result import Recommendation, Result
from .search.auto import choose_cost_model, choose_method
from .search.pareto import Front, pareto_front
from .search.recommend import recommend
from .space.encoding import Encoding
from .space.extend import known_space
from .space.space import Space
from .state import persistence as archive
from .state.checkpoints import Checkpoints
from .state.persistence import LEASE, begun, find_storage, load, take_over, texts
from .state.replay import Replay, replay
from .state.suggester import Asking
from .storage import Limits, Storage
from .surrogate.auto_subset import with_subset
from .surrogate.gp import GP
from .surrogate.sparse import Model
from .surrogate.subset import Subset
from .termination.auto import choose_rule
from .termination.base import Rule, Verdict

log = logging.getLogger("shoestring")

INITIAL = 8  # trials of the space-filling start: after a handful the model is a better guide than chance


class Study(Asking):
    """``Study(space, method="auto", stop="auto", seed=0)``; then ``ask`` and ``tell``, or ``minimize`` / ``maximize``.

    method     "auto", a search method (st.Random(), ...) or an acquisition (st.EI(), ...)
    stop       "auto" (a bound on the regret where trials have folds, the worth of a trial where there is a price), None (the
               budget alone), or a rule: st.RegretBound(0.01), st.Patience(30), ..., joined by | and &
    model      st.GP(...): the surrogate of the objective; st.GP(subset=st.KMeansSubset()), st.VFE(), st.FITC() for thousands
               of trials
    subset     which trials it learns from once they are many: "auto", None (all), st.KMeansSubset(), st.SeedSubset(), ...
    cost_model "auto", or st.LinearCost(), st.LogGPCost(), st.KnownCost(f), ...: the surrogate of the cost
    budget     for ask and tell with a method that looks at it; ``minimize`` brings its own
    storage    where it is kept: "sqlite:///tune.db" or "tune.db", "postgresql://...", or None: in memory. A study of that name
               that is there already goes on, also in several processes at once; ``extend=True`` widens its space to this one
    lease      seconds after which the trials of a worker that is gone are asked again; with a storage only
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
        storage: str | os.PathLike[str] | Storage | None = None,
        name: str = "study",
        extend: bool = False,
        lease: float = LEASE,
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
        self.code = texts({"method": method, "stop": stop, "model": model, "cost_model": cost_model, "subset": subset})
        self.storage = find_storage(storage)
        found = self.storage.find(name)
        space = known_space(found, space, extend)
        super().__init__(space, direction, unit, per_hour)
        self.name = name
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self.method = choose_method(method)
        self.model = with_subset(model or GP(), subset)
        self.initial = int(initial)
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
        self.limits: Limits | None = None  # what the storage keeps all workers of a running study to
        self.partial = False  # whether it was said that the model learns from a part of the trials
        self.minded = False  # whether it was said that seconds are counted in another unit
        self.checked: Verdict | None = None  # what the rule said last
        self.checkpoints = Checkpoints(space, checkpoints)
        self._encoding, self.spaces = Encoding(space), [space]
        if found is not None:
            take_over(self, found)
        self.state = begun(self, self.storage, name, duration_seconds(lease, "lease"), extend)

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
            found = recommend(self.context_of(history), tried)
            if found is None:
                return None
            if found.row is None:
                return Recommendation(self.space.decode(found.u), found.value, None)
            trial = history.having(State.DONE)[found.row]
            return Recommendation(trial.detached().config, found.value, trial.number)

    def pareto_front(self) -> Front:
        """The EI-cost front at the present step, where each method would land on it, and the alpha of each landing."""
        with self._lock:
            return pareto_front(self.context)

    # -- while it runs -----------------------------------------------------------------------------------------------

    def checkpoint_dir(self, trial: Trial | int) -> Path:
        """A folder for the files of a trial's configuration, made on first use: the same at every fidelity."""
        with self._lock:
            return self.checkpoints.folder(self._find(trial).config)

    def halt(self, reason: str = "halted by request") -> None:
        """End the running ``minimize`` after the present trial; for callbacks and other threads."""
        self.state.run_status.halt(reason)

    @property
    def halted(self) -> str | None:
        """Why somebody asked for an end, or None; all processes that work on the study see it."""
        return self.state.run_status.halted

    @halted.setter
    def halted(self, reason: str | None) -> None:
        if reason is None:
            self.state.run_status.begin_to_listen()
        else:
            self.state.run_status.halt(reason)

    @property
    def seconds(self) -> float:
        """Of wall-clock time during which anybody, in whatever process, was inside ``minimize``."""
        return self.state.run_status.seconds

    @seconds.setter
    def seconds(self, total: float) -> None:
        self.state.run_status.took(total)  # it can only grow

    def replay(self) -> Replay:
        """Compute every suggestion again from what is stored, and tell the first that differs."""
        with self._lock:
            self.state.refresh()
            return replay(self)

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
        callbacks: Iterable[Callback] = (),
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
        """
        crew = make_executor(
            objective, self.space,
            workers=workers, executor=executor, timeout=timeout, threads=threads, raise_errors=raise_errors,
        )
        self._set_direction("minimize")
        return run(self, read_budget(budget), crew, callbacks, progress, confirm, whole_number(retries, "retries", 0))

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
        callbacks: Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """As ``minimize``, the other way up."""
        crew = make_executor(
            objective, self.space,
            workers=workers, executor=executor, timeout=timeout, threads=threads, raise_errors=raise_errors,
        )
        self._set_direction("maximize")
        return run(self, read_budget(budget), crew, callbacks, progress, confirm, whole_number(retries, "retries", 0))

    # -- kept, and found again ---------------------------------------------------------------------------------------

    @classmethod
    def load(cls, storage: str | os.PathLike[str] | Storage, name: str | None = None, **code: Any) -> Study:
        """A study that is in a storage; the name may be left out where there is only one.

        ``code`` is method, stop, model, cost_model and subset; left out, they are as the study was made with.
        """
        return load(cls, storage, name, code)

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


RUNNING = ("callbacks", "raise_errors", "progress", "confirm", "workers", "executor", "timeout", "retries", "threads")


def minimize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """Find the config with the lowest value: ``st.minimize(train, space, budget="10m", seed=0)``.

    The objective takes a config (a dict) and returns a number or an ``st.Outcome``. ``options`` are those of ``Study``
    and of ``Study.minimize``.
    """
    return _optimize("minimize", objective, space, budget, options)


def maximize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """As ``minimize``, the other way up."""
    return _optimize("maximize", objective, space, budget, options)


def _optimize(
    direction: Literal["minimize", "maximize"], objective: Objective, space: Space, budget: Any, options: dict[str, Any]
) -> Result:
    running = {name: options.pop(name) for name in RUNNING if name in options}
    if "direction" in options:
        raise MethodError(f"st.{direction} has its direction in its name; leave direction= out")
    read_budget(budget)
    study = Study(space, direction=direction, **options)
    try:
        return getattr(study, direction)(objective, budget, **running)  # type: ignore[no-any-return]
    except Exception as error:
        error.study = study  # type: ignore[attr-defined]
        error.add_note(f"{plural(len(study.state), 'trial')} of the study are kept: they are in this exception's .study")
        raise
