"""A study: ask, tell, and the loop that does both.

A study owns three things: a ``StudyState`` (what happened, as the storage keeps it), a ``Suggester`` (from the history to the
next trial) and, while it runs, a ``Runner`` (the loop). Suggestions are computed from the state and from (seed, number of the
trial), so k trials, a pause and N - k more are the same as N trials.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from ._optuna_names import OF_A_STUDY, hint_arguments, hint_attributes
from ._validation import duration_seconds, number_between, whole_number
from .budget import Budget, read_budget
from .cost.base import CostModel
from .cost.meter import Meter
from .data.history import History
from .data.outcome import Outcome
from .data.trial import Trial
from .errors import BudgetError, MethodError, ShoestringError, SpaceError, StudyError
from .execution.evaluate import Objective
from .execution.executor import TrialExecutor
from .execution.factory import make_executor
from .execution.failure_limit import FailureLimit
from .execution.interruption import OnInterrupt, after_interruption
from .execution.runner import Runner
from .report.notebook_view import study_html
from .report.result import Result
from .report.summary import trials_text
from .report.trial_log import configure_logging
from .search.auto import read_cost_model, read_search_method
from .space.space import Space
from .state.asked_batch import AskedBatch
from .state.checkpoints import Checkpoints
from .state.persistence import (
    LEASE_SECONDS,
    fill_from_json,
    find_record,
    json_arguments,
    load_arguments,
    open_study,
    read_json,
    study_id,
    to_json,
    without_price,
)
from .state.prior import add_prior
from .state.probe import check_parts
from .state.registry import read_code, read_meter, texts_of
from .state.results import Results, merged_outcome
from .state.study_state import StudySettings
from .state.suggester import Suggester
from .storage import Storage, open_storage
from .storage.trial_lifecycle import MAX_RETRIES
from .study_view import StudyView
from .surrogate.base import Surrogate, check_surrogate, with_subset
from .surrogate.gp import GP
from .surrogate.subset import Subset
from .termination.auto import read_rule
from .termination.base import Rule, Verdict

log = logging.getLogger("shoestring")

INITIAL_TRIALS = 8  # of the initial design: after these the model is a better guide than chance

EXECUTOR_OPTIONS = ("workers", "executor", "timeout", "threads", "raise_errors")

Callback = Callable[["Study", Trial], object]


@hint_attributes(OF_A_STUDY)
class Study(StudyView):
    """A search for the best config: ``ask`` and ``tell``, or ``minimize`` and ``maximize``.

    Use it in place of ``st.minimize`` to evaluate trials yourself, to run in several parts, or to look at a study while it runs.

    space        an ``st.Space``
    method       "auto", a search method (st.Random(), ...) or an acquisition (st.EI(), ...), also as text: "EI"
    stop         "auto" (a bound on the regret where trials have folds, cost against gain where there is a price), None (the
                 budget alone), or a rule: st.RegretBound(0.01), st.Patience(30), ..., joined by | and &
    seed         of all random draws; None: a new one
    storage      where it is kept: "sqlite:///tune.db" or "tune.db", "postgresql://...", or None: in memory. A study of that name
                 that is there already is continued, also in several processes at once
    name         of the study in the storage
    extend       True: widen the space of a stored study to this one
    lease        seconds after which the trials of a lost worker are asked again; with a storage only
    cost         what an evaluation costs, where it does not say so itself: "seconds" (as without it), "cpu", "gpu", "energy",
                 st.Money(per_hour=2.5) or another meter. It is measured where the objective runs, for failed trials too
    unit         of the trials' costs
    per_hour     what an hour costs in that unit, for trials that report no cost
    model        st.GP(...): the surrogate of the objective; st.GP(subset=st.KMeansSubset()), st.VFE(), st.FITC() for thousands of
                 trials
    subset       which trials it learns from once they are many: "auto", None (all), st.KMeansSubset(), st.SeedSubset(), ...
    cost_model   "auto", or st.LinearCost(), st.LogGPCost(), st.KnownCost(f), ...: the surrogate of the cost
    budget       for ask and tell with a method that looks at it; ``minimize`` brings its own
    initial      trials of the initial design
    prune        whether ``trial.should_stop()`` may end trials that no longer pay: None: with methods that have a model; True:
                 with all methods, by learning curves; False: never. A budget ends trials in any case
    checkpoints  the folder in which ``trial.checkpoint_dir`` is; a temporary one by default
    direction    "minimize" or "maximize"
    prior        earlier studies or results whose trials it starts with, as far as they fit the space

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random(), stop=st.Patience(30), name="demo", unit="USD")
    >>> trial = study.ask()
    >>> _ = study.tell(trial, 0.25, cost=2.0)
    >>> study.best.value, len(study.history), len(study.log), study.result.spent
    (0.25, 1, 1, 2.0)
    >>> study.name, study.direction, study.seed, study.initial, study.unit, study.per_hour, study.budget
    ('demo', 'minimize', 0, 8, 'USD', None, None)
    >>> study.method, study.rule, study.cost_model, study.model.kernel, study.code["stop"]
    (Random(), Patience(trials=30), AutoCost(), 'matern52', 'Patience(trials=30)')
    >>> study.storage.url, study.space.names, study.halted, study.checked, study.seconds, study.optimizer_seconds >= 0
    ('memory://', ('x',), None, None, 0.0, True)
    """

    @hint_arguments
    def __init__(
        self,
        space: Space,
        method: Any = "auto",
        stop: Rule | Literal["auto"] | None = "auto",
        seed: int | None = 0,
        *,
        storage: str | os.PathLike[str] | Storage | None = None,
        name: str | None = None,
        extend: bool = False,
        lease: float = LEASE_SECONDS,
        cost: str | Meter | None = None,
        unit: str | None = None,
        model: Surrogate | None = None,
        subset: Subset | Literal["auto"] | None = "auto",
        cost_model: CostModel | Literal["auto"] = "auto",
        budget: str | int | Budget | None = None,
        initial: int = INITIAL_TRIALS,
        per_hour: float | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        direction: Literal["minimize", "maximize"] = "minimize",
        prior: Iterable[Any] = (),
        prune: bool | None = None,
    ) -> None:
        if prune not in (None, True, False):
            raise MethodError(f"prune must be True, False or None (with methods that have a model), not {prune!r}")
        if not isinstance(space, Space):
            raise SpaceError(f"expected an st.Space, not {space!r}; write st.Space(x=st.Float(0, 1), ...)")
        if direction not in ("minimize", "maximize"):
            raise MethodError(f'direction must be "minimize" or "maximize", not {direction!r}')
        if model is not None:
            check_surrogate(model)
        if seed is not None:
            seed = whole_number(seed, "seed", 0)
        planned = None if budget is None else read_budget(budget)
        if unit is not None and planned is not None and planned.unit not in (None, unit):
            raise BudgetError(f"unit={unit!r} and a budget in {planned.unit}: costs have one unit; give one of the two")
        own_unit = unit if planned is None or planned.unit is None else planned.unit
        price = per_hour if planned is None or planned.per_hour is None else planned.per_hour
        meter = read_meter(cost)
        if meter is not None:
            if price is not None:
                raise BudgetError("give cost= or per_hour=, not both; a price of an hour is cost=st.Money(per_hour=...)")
            meter = meter if own_unit is None else meter.in_unit(own_unit)
            own_unit, price = meter.unit, meter.hourly_price
        method = read_code("method", method) if isinstance(method, str) else method
        stop = read_code("stop", stop) if isinstance(stop, str) else stop
        settings = StudySettings(
            direction=direction,
            seed=int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed,
            initial=whole_number(initial, "initial", 1),
            unit="s" if own_unit is None else own_unit,
            per_hour=price,
            budget=planned,
            code=texts_of(
                {"method": method, "stop": stop, "model": model, "cost_model": cost_model, "subset": subset}
                | ({} if meter is None else {"cost": meter})
            ),
        )
        number_between(settings.per_hour, "per_hour", 0.0, low_included=False, optional=True, error=BudgetError)
        search, surrogate, costs = read_search_method(method), with_subset(model or GP(), subset), read_cost_model(cost_model)
        rule = read_rule(stop, search)
        check_parts(space, search, surrogate, costs)
        self._checkpoints = Checkpoints(checkpoints)
        where = open_storage("memory" if storage is None else storage)
        self._opened_storage = where is not storage  # what it has opened itself, it closes
        named, seconds = "study" if name is None else name, duration_seconds(lease, "lease")
        self.state = open_study(where, named, space, settings, extend=extend, lease=seconds)
        self.meter = self._meter_of(meter)
        self._checkpoints.identity = partial(study_id, self.state)
        self.state.holds_checkpoint = lambda trial: self._checkpoints.holds(trial, self.state.space)
        self.suggester = Suggester(self.state, search, surrogate, costs, rule, prune=prune)
        self._results = Results(self.state)
        if prior:
            configure_logging()  # what was left out is to be seen
            with self.state.asking():  # of several processes that begin together, one takes it
                add_prior(self.state, prior)

    def _meter_of(self, given: Meter | None) -> Meter | None:
        """The meter, in the unit of the study; of a stored study, its own if none is given."""
        code, unit = self.state.settings.code, self.state.settings.unit
        if given is None and "cost" in code and code["cost"] is None:
            raise MethodError(
                f"study {self.state.name!r} was made with a meter that has no text to store; give it again: cost=..., "
                "or register its class: st.register(...)"
            )
        meter = read_code("cost", str(code["cost"])) if given is None and "cost" in code else given
        if isinstance(meter, Meter) and meter.unit != unit and unit not in meter.UNITS:
            raise MethodError(
                f"study {self.state.name!r} counts cost in {unit}, and {meter!r} does not; begin another study with name=..., "
                "or give a cost= in that unit"
            )
        return meter.in_unit(unit) if isinstance(meter, Meter) else None

    # -- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self, *, lease: float | str | None = None) -> Trial:
        """The next trial to evaluate: an enqueued config first, else what the method suggests.

        Raises SpaceExhausted when every config of a finite space has been tried. ``lease`` is for a process that ends before the
        trial does: how long the trial stays reserved ("24h"), since no process renews it.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> trial = study.ask()
        >>> trial.number, 0 <= trial.config["x"] <= 1
        (0, True)
        """
        reserved = None if lease is None else duration_seconds(lease, "lease")
        return self.suggester.ask(budget=self.budget, lease=reserved)[0].detached()

    def ask_many(self, count: int) -> list[Trial]:
        """Several trials to evaluate at the same time, enqueued configs first; the others take each other into account.

        As many calls of ``ask``, except that some methods value the batch as a whole (``KG``). Where the space or the budget
        holds fewer, these.

        >>> [trial.number for trial in st.Study(st.Space(x=st.Float(0, 1))).ask_many(3)]
        [0, 1, 2]
        """
        trials = self.suggester.ask(whole_number(count, "count", 1), budget=self.budget)
        return AskedBatch([trial.detached() for trial in trials], self.state.hand_out)

    def tell(
        self,
        trial: Trial | int,
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        metrics: Mapping[str, float] | None = None,
        attrs: Mapping[str, Any] | None = None,
        error: str | None = None,
        censored: bool = False,
    ) -> Trial:
        """Record what came of a trial: a value (or the folds it is the mean of), or an error.

        ``metrics`` and ``attrs`` are kept with it. ``censored=True``: the evaluation was cut off, so the cost is a lower bound. A
        NaN or infinite value is a failed trial. Without a cost, the seconds since ``ask`` are the cost, or since the trial
        was taken from the list of ``ask_many``. Bad input raises OutcomeError and leaves the trial open; telling the same result
        twice changes nothing.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.tell(study.ask(), 0.31, cost=12.5, metrics={"accuracy": 0.93}).value
        0.31
        >>> study.tell(study.ask(), error="out of memory").state
        <State.FAILED: 'failed'>
        """
        outcome = merged_outcome(value, error, cost=cost, folds=folds, gradient=gradient, metrics=metrics, attrs=attrs)
        return self._results.tell(trial, outcome, error, censored).detached()

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Have a config asked next, after those enqueued before it. What it leaves open is suggested when it is asked.

        >>> study = st.Study(st.Space(x=st.Float(0, 1), n=st.Int(1, 9)))
        >>> study.enqueue({"x": 0.5})
        >>> study.ask().config["x"]
        0.5
        """
        with self.state.lock:
            whole = self.space.complete(config, self.space.decode(np.full(len(self.space), 0.5)))  # a ConfigError now, not later
            if set(whole) - set(self.space.fidelities) <= set(config):
                self.state.enqueue(self.space.check(config), {"by": "you", "why": "enqueued"})
            else:
                given = {name: whole[name] for name in config}
                self.state.enqueue(given, {"by": "you", "why": "enqueued, the rest suggested", "partial": True})

    def add(
        self,
        config: Mapping[str, Any],
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        metrics: Mapping[str, float] | None = None,
        attrs: Mapping[str, Any] | None = None,
        error: str | None = None,
        censored: bool = False,
    ) -> Trial:
        """A result from elsewhere: ``study.add(config, 0.05, cost=9.0)``; the rest as for ``tell``.

        The model learns from it. It takes nothing from the budget: this study has not paid for it.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.add({"x": 0.5}, 0.05, cost=9.0).added, study.history.spent
        (True, 0.0)
        """
        outcome = merged_outcome(value, error, cost=cost, folds=folds, gradient=gradient, metrics=metrics, attrs=attrs)
        return self._results.add(config, outcome, error, censored).detached()

    # -- the loop ----------------------------------------------------------------------------------------------------

    @hint_arguments
    def minimize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        workers: int | None = None,
        executor: Any = None,
        timeout: float | str | None = None,
        retries: int = 0,
        max_retries: int = MAX_RETRIES,
        threads: bool = False,
        callbacks: Callback | Iterable[Callback] = (),
        raise_errors: bool = False,
        fail_fast: bool = True,
        max_failures: int | None = None,
        on_interrupt: OnInterrupt | None = None,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """Evaluate the objective until the budget is used up, counting what this study spent before.

        A failed evaluation is recorded and charged, and the study goes on. But an objective that is broken ends it: while no
        trial has succeeded, three failures of the same kind, or one that cannot be the config's fault, raise ObjectiveError.

        workers       trials at once, each in a process; 1 is this process, one after the other
        threads       True: trials at once in threads of this process
        executor      have them evaluated by an Executor: st.DaskExecutor(...), st.RayExecutor(), concurrent.futures, ...;
                      ``workers`` at once, by default as many as it says that it can run
        timeout       of a trial, "10m" or seconds: then it is killed and has failed, with a cost that is a lower bound
        retries       how often a trial that failed by an exception or a crash is tried again, as another trial
        max_retries   how often a config is asked again whose worker was lost (its process or machine has died): after that, its
                      trial has failed
        callbacks     called with (study, trial) after each trial
        raise_errors  raise the first error of the objective
        fail_fast     False: go on, however many trials fail, up to max_failures
        max_failures  where failing is normal: ObjectiveError once more trials of this run than this have failed
        on_interrupt  after Ctrl-C: "raise" KeyboardInterrupt once all is saved and the summary is printed, or "return" the
                      result. By default "raise", and "return" in a notebook. SIGTERM saves, then ends the process
        progress      True: show it also where the output is no terminal. False: never
        confirm       keep enough of the budget to evaluate at the end what is then recommended, at the target fidelity

        >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random())
        >>> len(study.minimize(lambda config: config["x"], budget=3).history)
        3
        >>> len(study.minimize(lambda config: config["x"], budget=5).history)
        5
        """
        return self._optimize("minimize", **{name: value for name, value in locals().items() if name != "self"})

    @hint_arguments
    def maximize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        workers: int | None = None,
        executor: Any = None,
        timeout: float | str | None = None,
        retries: int = 0,
        max_retries: int = MAX_RETRIES,
        threads: bool = False,
        callbacks: Callback | Iterable[Callback] = (),
        raise_errors: bool = False,
        fail_fast: bool = True,
        max_failures: int | None = None,
        on_interrupt: OnInterrupt | None = None,
        progress: bool | None = None,
        confirm: bool = False,
    ) -> Result:
        """As ``minimize``, for the highest value.

        >>> study = st.Study(st.Space(n=st.Int(1, 3)), method=st.Random(), direction="maximize")
        >>> study.maximize(lambda config: config["n"], budget=3).best.value
        3.0
        """
        return self._optimize("maximize", **{name: value for name, value in locals().items() if name != "self"})

    def _optimize(
        self, direction: Literal["minimize", "maximize"], objective: Objective, budget: str | int | Budget, **options: Any
    ) -> Result:
        limit = read_budget(budget)  # before a worker is started
        if self.meter is not None and limit.unit not in (None, self.unit):
            raise BudgetError(f"a budget in {limit.unit}, but {self.meter!r} counts in {self.unit}; give a budget in {self.unit}")
        how = {name: options.pop(name) for name in EXECUTOR_OPTIONS}
        executor = make_executor(objective, self.space, **how, meter=self.meter)
        self._results.set_direction(direction)
        return self.run(executor, limit, **options)

    def run(
        self,
        executor: TrialExecutor,
        budget: str | int | Budget,
        *,
        callbacks: Callback | Iterable[Callback] = (),
        fail_fast: bool = True,
        max_failures: int | None = None,
        on_interrupt: OnInterrupt | None = None,
        progress: bool | None = None,
        confirm: bool | Callable[[], bool] = False,
        retries: int = 0,
        max_retries: int = MAX_RETRIES,
        log_trials: bool = True,
    ) -> Result:
        """The loop itself, over a ``TrialExecutor``: for those who bring one of their own. The options as for ``minimize``.

        ``log_trials=False``: no line for each trial is logged.

        >>> from shoestring.execution.executor import SerialExecutor
        >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random())
        >>> len(study.run(SerialExecutor(lambda config: config["x"]), budget=2).history)
        2
        """
        limit, calls = read_budget(budget), (callbacks,) if callable(callbacks) else tuple(callbacks)
        if on_interrupt not in (None, "raise", "return"):
            raise MethodError(f'on_interrupt must be "raise" or "return", not {on_interrupt!r}')
        allowed = None if max_failures is None else whole_number(max_failures, "max_failures", 0)
        runner = Runner(
            self.suggester, self._results, executor, limit,
            checkpoints=self._checkpoints, on_result=[partial(call, self) for call in calls], progress=progress, confirm=confirm,
            retries=whole_number(retries, "retries", 0), max_retries=whole_number(max_retries, "max_retries", 0),
            failures=FailureLimit(bool(fail_fast), allowed), log_trials=log_trials,
        )  # fmt: skip
        verdict = runner.run()
        result = self._result(self.state.detached_history(), verdict, limit, runner.known)
        if runner.interruption is None and 0 < runner.known == len(result.history):
            log.warning("%s; %s", trials_text(result.history, nothing_new=True), verdict.reason)
        if runner.interruption is not None:
            after_interruption(runner.interruption, runner.handled, result, on_interrupt)
        return result

    def halt(self, reason: str = "halted by request") -> None:
        """End the running ``minimize`` after the present trial; for callbacks and other threads and processes.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random())
        >>> study.minimize(lambda c: c["x"], 20, callbacks=lambda study, trial: study.halt("seen enough")).stop.reason
        'seen enough'
        """
        self.state.run_status.request_stop(reason)

    @property
    def result(self) -> Result:
        """The result so far, as a run returns it."""
        return self._result(self.history, Verdict(False, "not stopped"))

    def _repr_html_(self) -> str:
        return study_html(self, lambda: self._result(self.log, Verdict(False, "not stopped")).rows(fit=False))

    def to_dataframe(self) -> Any:
        """The trials as a DataFrame of pandas, one row per trial, as ``Result.to_dataframe`` says.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> trial = study.tell(study.ask(), 0.5, metrics={"accuracy": 0.93})
        >>> study.to_dataframe()["metric_accuracy"].tolist()
        [0.93]
        """
        return self.result.to_dataframe()

    def _result(self, history: History, verdict: Verdict, budget: Budget | None = None, before: int = 0) -> Result:
        own = self.suggester
        seconds = dict(own.effort.seconds)
        return Result(self, history, verdict, self.unit, own.seconds, budget, before, self.seconds, own.suggestions, seconds)

    # -- stored, and opened again ------------------------------------------------------------------------------------

    @classmethod
    def load(cls, storage: str | os.PathLike[str] | Storage, name: str | None = None, **code: Any) -> Study:
        """A study that is in a storage; the name may be left out where there is only one.

        ``code`` is method, stop, model, cost_model, subset and cost; without them, they are as the study was made with.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage="tune.db", name="demo")
        >>> _ = study.add({"x": 0.5}, 0.05)
        >>> st.Study.load("tune.db").best.value
        0.05
        """
        where = open_storage(storage, create=False)
        study = cls(storage=where, **load_arguments(find_record(where, name), code))
        study._opened_storage = where is not storage
        return study

    def close(self) -> None:
        """Close what the study has open: its connections to the database, and the thread that renews its leases.

        A trial that it has asked and not told is asked again when its lease ends, unless it is told before. Connections that
        another study of this process uses stay open, and so does a storage that you have opened yourself (``st.open_storage``).
        To close a study twice is no error, and a closed one can be used: then it opens its connections again. A study in memory
        has nothing to close. ``with`` closes it at the end of the block:

        >>> with st.Study(st.Space(x=st.Float(0, 1)), storage="closed.db") as study:
        ...     trial = study.tell(study.ask(), 0.25)
        >>> study.best.value
        0.25
        >>> study.close()
        """
        self.state.close_leases()
        if self._opened_storage:
            self.storage.close_connections()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def to_json(self) -> str:
        """The whole state as text. Method, models and rule are code: give them to ``from_json`` again.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> _ = study.add({"x": 0.5}, 0.05)
        >>> st.Study.from_json(study.to_json()).best.value
        0.05
        """
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
        cost: str | Meter | None = None,
    ) -> Study:
        """A study as ``to_json`` left it; its next suggestion is the one the original would have made."""
        code = {"method": method, "stop": stop, "model": model, "cost_model": cost_model, "subset": subset, "cost": cost}
        try:
            stored = read_json(text)
            code["cost"] = (stored.get("code") or {}).get("cost") if cost is None else cost
            study = cls(**without_price({**json_arguments(stored), "checkpoints": checkpoints, **code}))
            fill_from_json(study.state, stored)
        except ShoestringError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise StudyError(f"this study cannot be read: {type(error).__name__}: {error}") from error
        return study
