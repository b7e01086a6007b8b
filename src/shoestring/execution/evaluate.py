"""The evaluation of one trial: a call of the user's objective, measured, whose errors end the trial and not the study."""

from __future__ import annotations

import copy
import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from .._optuna_names import OF_A_TRIAL, hint_attributes
from ..budget import Allowance
from ..cost.meter import Measurement, MeteredObjective
from ..data.intermediate import BUDGET, PRUNED
from ..data.outcome import Outcome, finish_trial, is_cost, joined, read_attr, read_cost, read_value
from ..data.trial import ResumedFrom, Trial
from ..errors import ConfigError, OutcomeError
from ..space.space import Config, Space
from .describe import WrongType, explain
from .signals import raised_by_signal_handler

Objective = Callable[..., Any]


@hint_attributes(OF_A_TRIAL)
@dataclass
class LiveTrial:
    """A trial while it runs, as its objective sees it: the objective's second argument.

    Use it to report intermediate values, to ask whether to go on, and to keep facts and files.

    number          of the trial
    config          a plain dict, fidelities included
    fidelity        the fidelities alone
    space           the search space
    left            what the budget has left now
    folder          the checkpoint folder of its run
    resumed_from    what the trial goes on from: the number of the earlier trial, the fidelity that it has reached (by name) and
                    what was paid for it; None for a run from the start
    prune_reason    why the trial should be pruned, given its reports, or None
    on_report       is called with each report at once
    now             a clock
    reports         what was reported
    attrs           what ``set_attr`` was given
    stopped         once it was told to stop: the kind of reason, and the reason in words
    answer_seconds  spent on answers to the objective's questions, which are not the objective's own time
    measurement     of its cost, where the study has a meter

    >>> def train(config, trial):
    ...     trial.set_attr("host", "gpu3")
    ...     for epoch in range(1, config["epochs"] + 1):
    ...         trial.report(1 / epoch, epoch, cost=epoch)
    ...         if trial.should_stop():
    ...             break
    ...     (trial.checkpoint_dir / "model.txt").write_text("weights")
    ...     return st.Outcome(1 / epoch, cost=trial.spent)
    >>> space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 4))
    >>> trial = st.minimize(train, space, 1, method=st.Random()).best
    >>> trial.value, trial.cost, trial.attrs, len(trial.reports)
    (0.25, 4.0, {'host': 'gpu3'}, 4)
    """

    number: int
    config: Config
    fidelity: dict[str, float]
    space: Space
    left: Callable[[], Allowance]
    folder: Callable[[], Path]
    prune_reason: Callable[[Sequence[Mapping[str, Any]]], str | None] = lambda reports: None
    on_report: Callable[[dict[str, Any]], object] = lambda report: None
    now: Callable[[], float] = time.perf_counter
    reports: list[dict[str, Any]] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    stopped: dict[str, str] | None = None
    answer_seconds: float = 0.0
    resumed_from: ResumedFrom | None = None
    measurement: Measurement | None = None
    _folder: Path | None = None  # once it was asked for
    _spent: float = 0.0
    _told: bool = False  # whether the objective has reported a cost itself
    _answer_cost: float = 0.0  # measured while questions were answered
    _judged: int = 0  # reports when a forecast was asked for last

    def __post_init__(self) -> None:
        self.began = self.now()

    def report(self, value: float, step: float | None = None, *, cost: float | None = None, **fidelity: float) -> None:
        """An intermediate value: ``trial.report(0.31, epochs=5, cost=12.0)``; the cost is that of the trial so far.

        Where the space has one fidelity, ``trial.report(0.31, 5)`` is the same as naming it. The report is stored with the trial.
        Where it has a fidelity, the model learns from it.
        """
        if step is not None:
            fidelity = self._named(step, fidelity)
        number = read_value(value)
        if not math.isfinite(number):
            raise OutcomeError(f"trial {self.number}: a report must be a finite number, not {number!r}")
        at: dict[str, Any] = {}
        for name, amount in fidelity.items():
            if name not in self.space.fidelities:
                known = ", ".join(self.space.fidelities) or "none"
                raise OutcomeError(f"trial {self.number}: {name!r} is not a fidelity of this space (it has: {known})")
            amount = self._checked(name, amount)
            if amount > self.fidelity[name]:
                asked = f"{name} = {self.fidelity[name]:g}"
                raise OutcomeError(f"trial {self.number}: a report at {name} = {amount:g}, but the trial was asked at {asked}")
            if amount < max((each["fidelity"].get(name, amount) for each in self.reports), default=amount):
                raise OutcomeError(f"trial {self.number}: the report goes backwards, {name} = {amount:g} after a higher one")
            at[name] = amount
        if cost is not None:
            if read_cost(cost) < self._spent:
                given = f"a cost of {cost:g} after {self._spent:g}"
                raise OutcomeError(f"trial {self.number}: {given}; a report's cost is that of the whole trial so far")
            self._spent, self._told = read_cost(cost), True
        so_far = self._spent if cost is not None else self._measured()
        self.reports.append({"value": number, "fidelity": at, "cost": so_far})
        self.on_report(self.reports[-1])

    def _named(self, step: float, fidelity: Mapping[str, float]) -> dict[str, float]:
        """The fidelity that a step without a name is."""
        names = list(self.space.fidelities)
        if "step" in names:
            return {"step": step, **fidelity}
        if len(names) == 1 and not fidelity:
            return {names[0]: step}
        if not names:
            how = "write trial.report(value), or give the space a fidelity: epochs=st.Fidelity(1, 50)"
            raise OutcomeError(f"trial {self.number}: the space has no fidelity, so the step {step!r} has no meaning; {how}")
        raise OutcomeError(f"trial {self.number}: say of which fidelity {step!r} is: trial.report(value, {names[0]}={step!r})")

    def _checked(self, name: str, amount: float) -> float:
        try:
            return self.space[name].check(amount, name)
        except ConfigError as error:
            hint = f"; count from 1: trial.report(value, {name}={name} + 1)" if amount == 0 else ""
            raise OutcomeError(f"trial {self.number}: {error}{hint}") from None

    def set_attr(self, name: str, value: Any) -> None:
        """Keep a fact with the trial: ``trial.set_attr("host", "gpu3")``; anything that JSON can hold.

        It is stored with the result, also if the trial fails after this.
        """
        kept = read_attr(name, value)
        self.attrs[joined(name)] = kept

    @property
    def spent(self) -> float:
        """The cost so far: what was reported last, or what the study's meter has measured; 0 without both."""
        return self._measured() or self._spent

    def _measured(self) -> float | None:
        """The measured cost so far; None without a meter, or if the objective reports costs itself."""
        if self.measurement is None or self._told:
            return None
        used = self.measurement.read() - self._answer_cost
        if not math.isfinite(used):
            raise OutcomeError(f"trial {self.number}: the reading of the study's meter is {used!r}, which is not a cost")
        return max(0.0, used)

    def should_stop(self) -> bool:
        """True once going on would exceed the budget, or does not pay any more: then return the value reached so far.

        The second is a forecast of a model, from what was reported with its fidelity. A pruned trial is then one of the fidelity
        that it has reached.
        """
        if self.stopped is None:
            asked, measured = time.perf_counter(), self._measured()
            if self.left().exceeded(measured or self._spent, self.now() - self.began if measured is None else 0.0):
                self.stopped = {"kind": BUDGET, "reason": "going on would exceed the budget"}
            elif self._advanced() and (reason := self.prune_reason(self.reports)) is not None:
                self.stopped = {"kind": PRUNED, "reason": reason}
            self.answer_seconds += time.perf_counter() - asked
            if measured is not None:
                self._answer_cost += (self._measured() or measured) - measured
        return self.stopped is not None

    def _advanced(self) -> bool:
        """Whether there is a report since the last forecast, at a fidelity below what was asked for."""
        at = self.reports[-1]["fidelity"] if self.reports else {}
        if len(self.reports) == self._judged or not any(amount < self.fidelity[name] for name, amount in at.items()):
            return False
        self._judged = len(self.reports)
        return True

    @property
    def checkpoint_dir(self) -> Path:
        """A folder for the files of this trial's configuration, made on first use.

        It is the same for all trials of the configuration, at every fidelity: one that is asked again with more epochs finds
        there what it saved, and can continue from it. Two trials that run at the same time never share it.
        """
        self._folder = self.folder()
        return self._folder

    def _has_saved(self) -> bool:
        """Whether there are files in the checkpoint folder, if it was asked for."""
        try:
            return self._folder is not None and any(self._folder.iterdir())
        except OSError:  # the objective has removed it
            return False


@dataclass(frozen=True)
class Evaluation:
    """What came of one call: an outcome, empty where there is an error.

    censored   the call was cut off, so its cost is a lower bound
    transient  the failure may not happen again (an exception, a crash); a result such as NaN would: only the former is retried
    traceback  of a failure, as text;   exception  itself, if it was raised in this process
    kind       of a failure: failures of one kind are taken for the same;   hint  what to do about it
    fatal      the config cannot be the cause of the failure
    saved      there are files in its checkpoint folder: a later trial can go on from them
    """

    outcome: Outcome
    seconds: float
    error: str | None = None
    reports: tuple[dict[str, Any], ...] = ()
    stopped: dict[str, str] | None = None
    censored: bool = False
    transient: bool = False
    traceback: str | None = None
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    kind: str | None = None
    hint: str | None = None
    fatal: bool = False
    saved: bool = False


class Failure(Exception):
    """Raised by an objective to fail its trial and to say what that has cost; ``censored`` if it was cut off.

    ``kind`` and ``traceback`` as for ``Evaluation``.
    """

    def __init__(
        self,
        reason: str,
        cost: float | None = None,
        censored: bool = False,
        *,
        kind: str | None = None,
        traceback: str | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.cost, self.censored = reason, cost, censored
        self.kind, self.traceback, self.attrs = kind, traceback, attrs


def call(objective: Objective, config: Config, live: LiveTrial) -> Any:
    """Call the objective, with the live trial if it takes one."""
    how = takes_trial(objective)
    if how is None:
        return objective(config)
    return objective(config, live) if how == "second" else objective(config, trial=live)


def takes_trial(objective: Objective) -> Literal["second", "by name"] | None:
    """How an objective takes the live trial: as its second parameter, by the name ``trial`` alone, or None for not at all."""
    if isinstance(objective, MeteredObjective):
        objective = objective.objective
    try:
        parameters = list(inspect.signature(objective).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    if any(p.kind is p.KEYWORD_ONLY and p.name == "trial" for p in parameters):
        return "by name"
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wants = len(positional) >= 2 and (positional[1].default is inspect.Parameter.empty or positional[1].name == "trial")
    return "second" if wants else None


def evaluate(objective: Objective, trial: Trial, live: LiveTrial, *, raise_errors: bool = False) -> Evaluation:
    """Call the objective on a copy of the config. Any exception, None, text or other non-number is a failed evaluation.

    ``sys.exit`` in the objective is one too: it must not end the run, or the same config would end the next run as well.
    """
    if isinstance(objective, MeteredObjective):
        return _evaluate_metered(objective, trial, live, raise_errors)
    config = copy.deepcopy(trial.config)  # the objective may do with it what it likes
    began = time.perf_counter()

    def finished(outcome: Outcome, error: str | None = None, **how: Any) -> Evaluation:
        seconds = time.perf_counter() - began - live.answer_seconds
        if outcome.cost is None and (measured := live._measured()) is not None:
            outcome = replace(outcome, cost=measured)
        if live.attrs:
            outcome = replace(outcome, attrs={**live.attrs, **(outcome.attrs or {})})
        return Evaluation(outcome, seconds, error, tuple(live.reports), live.stopped, saved=live._has_saved(), **how)

    outcome = Outcome(None)
    try:
        result = call(objective, config, live)
        outcome = result if isinstance(result, Outcome) else Outcome(read_result(result))
        if outcome.value is not None:
            read_result(outcome.value)
        if raise_errors:
            require_finite(outcome, trial, live.space)
    except BaseException as error:  # whatever the user's code raises is this trial's failure, not the study's
        if raise_errors or isinstance(error, KeyboardInterrupt) or raised_by_signal_handler(error):
            raise
        if isinstance(error, Failure):
            how: dict[str, Any] = {"kind": error.kind, "traceback": error.traceback}
            failed = Outcome(None, error.cost, attrs=error.attrs)
            return finished(failed, error.reason, censored=error.censored, transient=not error.censored, **how)
        cost = outcome.cost if is_cost(outcome.cost) else None
        return finished(Outcome(None, cost), **explain(error, live.space))
    return finished(outcome)


def _evaluate_metered(metered: MeteredObjective, trial: Trial, live: LiveTrial, raise_errors: bool) -> Evaluation:
    """Evaluate, and measure the cost meanwhile. Where nothing can be measured, the objective is not called at all."""
    try:
        live.measurement = metered.meter.start()
    except Exception as error:  # a meter from outside may raise anything
        if raise_errors:
            raise
        reason = f"its cost could not be measured where it runs: {error}"
        return Evaluation(Outcome(None), 0.0, reason, kind="meter", fatal=True, exception=error)
    try:
        return evaluate(metered.objective, trial, live, raise_errors=raise_errors)
    finally:
        live.measurement.close()


def read_result(result: Any) -> float:
    """A result as a float; WrongType if it is not a number."""
    if result is None:
        raise WrongType("the objective returned None; end it with: return value")
    if inspect.iscoroutine(result):
        result.close()  # or else Python warns that it was never awaited
        raise WrongType("a result must be a number, not a coroutine; run it: return asyncio.run(train(config))")
    try:
        return read_value(result)
    except OutcomeError as error:
        several = isinstance(result, Mapping | list | tuple)
        raise WrongType(f"{error}{'; for further numbers: st.Outcome(value, metrics={...})' if several else ''}") from None


def require_finite(outcome: Outcome, trial: Trial, space: Space) -> None:
    """For ``raise_errors``: what would be recorded as a failure is raised."""
    finished = finish_trial(trial, outcome, None, 0.0, space=space)
    if finished.error is not None:
        raise OutcomeError(f"trial {trial.number}: {finished.error}")
