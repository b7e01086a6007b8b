"""A study whose trials Ray Tune runs: Tune's trial ids, result dicts and configs on one side, trials and reports on the other.

This is the part of the searcher ``ShoestringSearch`` that needs no Ray. Tune asks for a config (``suggest``), reports results as
they come (``result``) and says when a trial has ended (``complete``). The study lives in memory; its state is a dict that is
ready for JSON, and a study made from it gives the same next suggestion.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from typing import Any, Literal

from .._format import listed
from .._validation import is_number
from ..budget import Budget
from ..data.outcome import Outcome, capped, read_value
from ..data.trial import State, Trial
from ..errors import MethodError, NothingFits, OutcomeError, SpaceExhausted, StudyError
from ..execution.evaluate import Evaluation
from ..execution.runner import RunClock, check_budget
from ..state.results import Results
from ..study import Study
from ..termination.base import Verdict
from .distributions import Translation
from .ray_spaces import flattened, nested

log = logging.getLogger("shoestring")

FINISHED = "FINISHED"  # what Tune takes for "no more trials"
TIME_TOTAL = "time_total_s"  # the seconds of a trial, in every result of Tune
TRAINING_ITERATION = "training_iteration"  # how many results a trial has reported
STATE_VERSION = 1
STOPPED = {"kind": "scheduler", "reason": "Ray Tune ended it before the fidelity that was asked"}

Result = Mapping[str, Any]


class TuneStudy:
    """The study of one Tune experiment.

    translation  the space, and the values for its configs
    metric       the key of the objective in results
    cost         the key of the cost in results, that of the whole trial so far
    options      of ``st.Study``, the budget included
    verdict      why the search has ended; None while it goes on
    """

    def __init__(self, translation: Translation, *, metric: str, cost: str, options: Mapping[str, Any]) -> None:
        self.translation, self.metric, self.cost = translation, metric, cost
        self.code = {name: options[name] for name in ("method", "stop", "model", "cost_model") if name in options}
        self._open(Study(translation.space, **options))

    def _open(self, study: Study) -> None:
        self.study, self._results = study, Results(study.state)
        self._clock = RunClock(study.state.run_status, time.monotonic)
        self.verdict: Verdict | None = None
        self._numbers: dict[str, int] = {}  # of the trials, by Tune's ids
        self._reports: dict[str, list[dict[str, Any]]] = {}  # of running trials
        self._waits_at: int | None = None  # the version of the trials at which nothing fitted into the budget

    # -- what Tune calls ---------------------------------------------------------------------------------------------

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The config of a new trial, FINISHED, or None: nothing now, but perhaps when a running trial has ended."""
        if trial_id in self._numbers:
            return self._config(self.study.log[self._numbers[trial_id]])
        version = self.study.state.table.version
        if self._waits_at == version:
            return None
        self._clock.tick()
        verdict = self.reason_to_stop()
        if verdict.stop:
            return self._finish(verdict)
        try:
            trial = self.study.ask()
        except SpaceExhausted as end:
            return self._finish(Verdict(True, str(end), kind="exhausted"))
        except NothingFits as end:
            if self.study.log.number_of(State.RUNNING):  # what runs may turn out cheaper than expected
                self._waits_at = version
                return None
            return self._finish(Verdict(True, str(end), kind="budget"))
        self._numbers[trial_id] = trial.number
        self._reports[trial_id] = []
        return self._config(trial)

    def result(self, trial_id: str, result: Result) -> None:
        """An intermediate result of a trial. One without a finite metric is left out."""
        if trial_id not in self._reports:
            return
        self._clock.tick()
        value = self._value(result)
        if value is None or not math.isfinite(value):
            return
        reports = self._reports[trial_id]
        trial = self.study.log[self._numbers[trial_id]]
        reached = self._reached(trial, result)
        if reports and any(reached.get(name, at) < at for name, at in reports[-1]["fidelity"].items()):
            reports.clear()  # Tune has begun the trial again, without a checkpoint
        reports.append({"value": value, "fidelity": reached, "cost": self._cost_so_far(result, required=True)})

    def complete(self, trial_id: str, result: Result | None, error: bool) -> None:
        """A trial has ended: with a result, by an error, or because Tune has ended it."""
        if trial_id not in self._numbers:
            return
        self._clock.tick()
        trial = self.study.log[self._numbers[trial_id]]
        reports = self._reports.pop(trial_id, [])
        if trial.finished:
            self._add_second_result(trial, result, error)
            return
        last = result if result is not None and self._value(result) is not None else None
        if error:
            self._fail(trial, trial_id, "the trial failed", result, reports)
        elif last is None and not reports:
            missing = "ended without a result" if result is None else f"its result has no {self.metric!r}"
            self._fail(trial, trial_id, missing, result, reports)
        else:
            self._record(trial, last, reports)

    # -- results -----------------------------------------------------------------------------------------------------

    def _record(self, trial: Trial, last: Result | None, reports: list[dict[str, Any]]) -> None:
        """Write a value: that of the last result, or of the last report where Tune has ended the trial between results."""
        value = reports[-1]["value"] if last is None else self._value(last)
        seconds = None if last is None else last.get(TIME_TOTAL)
        cost = self._cost_so_far(last, required=True) if last is not None else reports[-1]["cost"]
        if last is not None and (reached := self._reached(trial, last)):
            final = {"value": value, "fidelity": reached, "cost": cost}
            if not reports or reports[-1]["fidelity"] != reached:
                reports = [*reports, final]
        evaluation = Evaluation(
            Outcome(value, cost), self._seconds(trial, seconds), reports=tuple(reports), stopped=dict(STOPPED)
        )
        self._results.record(trial, evaluation)

    def _fail(self, trial: Trial, trial_id: str, why: str, result: Result | None, reports: list[dict[str, Any]]) -> None:
        cost = None if result is None else self._cost_so_far(result, required=False)
        cost = reports[-1]["cost"] if cost is None and reports else cost
        seconds = self._seconds(trial, None if result is None else result.get(TIME_TOTAL))
        said = capped(f"{why}: trial {trial_id} of Ray Tune")
        self._results.record(trial, Evaluation(Outcome(None, cost), seconds, said, reports=tuple(reports)))

    def _add_second_result(self, trial: Trial, result: Result | None, error: bool) -> None:
        """A trial that had failed and was run again by Tune: its result is added. What has succeeded stays as it is."""
        value = None if result is None or error else self._value(result)
        if trial.state is State.FAILED and value is not None and math.isfinite(value):
            assert result is not None
            self.study.add(trial.config, value, cost=self._cost_so_far(result, required=False))

    def add(self, parameters: Mapping[str, Any], value: float | None, *, error: bool) -> None:
        """A result from elsewhere, at the values of a config of Tune; other keys of the config are left out."""
        values = {name: held for name, held in flattened(parameters) if name in self.translation.entries}
        config = {name: self._encoded(name, held) for name, held in values.items()}
        self.study.add(config, None if error else value, error="failed elsewhere" if error else None)

    def enqueue(self, parameters: Mapping[str, Any]) -> None:
        """A config of Tune to be tried first."""
        self.study.enqueue({name: self._encoded(name, held) for name, held in flattened(parameters)})

    # -- reading results ---------------------------------------------------------------------------------------------

    def _value(self, result: Result) -> float | None:
        """The metric of a result; None if there is none."""
        if result.get(self.metric) is None:
            return None
        try:
            return read_value(result[self.metric])
        except OutcomeError as error:
            raise MethodError(f"the metric {self.metric!r} must be a number: {error}") from None

    def _cost_so_far(self, result: Result, *, required: bool) -> float | None:
        """What the trial has cost so far; None if results do not say."""
        cost = result.get(self.cost)
        if cost is None and required and self.cost != TIME_TOTAL:
            known = ", ".join(sorted(map(str, result)))
            raise MethodError(
                f"a result has no {self.cost!r}, which cost= names; report it, for example "
                f"tune.report({{{self.metric!r}: value, {self.cost!r}: cost}}); it has: {known}"
            )
        if cost is None:
            return None
        if not is_number(cost) or not 0 <= cost < math.inf:
            if not required:
                return None
            how = "it is a finite number of 0 or more, that of the whole trial so far"
            raise MethodError(f"a result has {self.cost!r}: {cost!r}, which cost= names; report a number: {how}")
        price = self.study.state.settings.price_of_a_second if self.cost == TIME_TOTAL else 1.0
        return float(cost) * price

    def _seconds(self, trial: Trial, seconds: Any) -> float:
        return float(seconds) if seconds is not None else self.study.state.seconds_open(trial) or 0.0

    def _reached(self, trial: Trial, result: Result) -> dict[str, float]:
        """The fidelities that a result was reported at: the result's key of that name, or the number of results so far."""
        reached = {}
        for name in self.study.space.fidelities:
            alone = len(self.study.space.fidelities) == 1
            at = result.get(name, result.get(TRAINING_ITERATION) if alone else None)
            parameter = self.study.space[name]
            if at is None or at < parameter.low:  # type: ignore[union-attr]
                continue
            limited = min(float(at), float(trial.config[name]))
            reached[name] = parameter.from_unit(float(parameter.to_unit(limited)))
        return reached

    def _config(self, trial: Trial) -> dict[str, Any]:
        """The values that Tune hands to the trainable, as a nested dict."""
        return nested(self.translation.params(dict(trial.config)))

    def _encoded(self, name: str, value: Any) -> Any:
        """The value as the study's configs hold it: for objects, their index among the options."""
        decode = self.translation.entries[name][1] if name in self.translation.entries else None
        if decode is None:
            return value
        options = self.study.space[name].options  # type: ignore[union-attr]
        return next((index for index in options if decode(index) is value or decode(index) == value), value)

    # -- the end -----------------------------------------------------------------------------------------------------

    def reason_to_stop(self) -> Verdict:
        """The first of: a stop that was requested, the budget, the study's rule."""
        study, suggester = self.study, self.study.suggester
        if (why := study.state.run_status.stop_reason) is not None:
            return Verdict(True, why, kind="halted")
        budget: Budget | None = study.budget
        going_on = Verdict(False, "no limit")
        if budget is not None:
            going_on = check_budget(budget, study.log, self._clock.total, study.unit)
        if going_on.stop or suggester.rule is None or study.state.queue or suggester.level(budget) == "random":
            return going_on
        return suggester.check_rule(budget)

    def _finish(self, verdict: Verdict) -> Literal["FINISHED"]:
        if self.verdict is None:
            log.info("the search ends: %s", verdict.reason)
        self.verdict = verdict
        return "FINISHED"

    # -- its state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, ready for JSON."""
        self._clock.tick()
        return {
            "shoestring_tune": STATE_VERSION, "metric": self.metric, "cost": self.cost, "numbers": dict(self._numbers),
            "reports": self._reports, "study": json.loads(self.study.to_json()),
        }  # fmt: skip

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there, with the method, the rule and the models of this object."""
        check_state(state)
        budget = self.study.budget
        study = Study.from_json(json.dumps(state["study"]), **self.code)
        if dict(study.space) != dict(self.study.space):
            raise StudyError(
                f"the saved search has another space ({study.space!r}) than this one ({self.study.space!r}); "
                "give the same search space, or begin another experiment"
            )
        if (state["metric"], study.direction) != (self.metric, self.study.direction):
            saved, own = (state["metric"], study.direction), (self.metric, self.study.direction)
            raise StudyError(f"the saved search is of the metric {saved[0]!r} to {saved[1]}, this one of {own[0]!r} to {own[1]}")
        if not all(0 <= number < len(study.log) for number in state["numbers"].values()):
            has = len(study.log)
            raise StudyError(f"the saved search names a trial that is not among its {has}; give the file that save() wrote")
        if budget is not None:
            study.budget = budget  # it may have been raised since
        self._open(study)
        self._numbers = {str(trial_id): int(number) for trial_id, number in state["numbers"].items()}
        self._reports = {str(trial_id): list(reports) for trial_id, reports in state["reports"].items()}


def check_state(state: Any) -> None:
    """A StudyError for what is not the state of a search, or is not all of it."""
    how = "give the file that save() wrote"
    if not isinstance(state, Mapping) or state.get("shoestring_tune") != STATE_VERSION:
        raise StudyError(f"this is not the state of a ShoestringSearch of this version; {how}")
    kinds = {"metric": str, "numbers": Mapping, "reports": Mapping, "study": Mapping}
    wrong = [name for name, kind in kinds.items() if not isinstance(state.get(name), kind)]
    if not wrong:
        study = state["study"]
        fits = {
            "numbers": all(type(number) is int for number in state["numbers"].values()),
            "reports": all(isinstance(reports, list) for reports in state["reports"].values()),
            "study": "space" in study and study.get("direction") in ("minimize", "maximize"),
        }
        wrong = [name for name, right in fits.items() if not right]
    if wrong:
        how = f"{how}, or begin another experiment"
        raise StudyError(f"the state of this ShoestringSearch is not complete: {listed(wrong)} missing or damaged; {how}")


def check_cost_key(cost: str, budget: Budget | None, unit: str | None, per_hour: float | None) -> None:
    """A MethodError where Tune's seconds would count as another unit, such as dollars."""
    counted = unit if budget is None or budget.unit is None else budget.unit
    priced = per_hour is not None or (budget is not None and budget.per_hour is not None)
    if cost != TIME_TOTAL or counted in (None, "s") or priced:
        return
    how = (
        'name the key of the results that holds a trial\'s cost so far: cost="dollars" with tune.report({..., "dollars": 0.31}); '
        f"or say what an hour costs in {counted}: per_hour=2.5; or give a budget in time"
    )
    raise MethodError(f"costs are in {counted}, but cost={cost!r} counts seconds; {how}")
