"""How results enter a study: reported by ``tell``, added from elsewhere, or recorded by a run.

Bad input is refused here, before anything is written. A result is written once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._validation import plain
from ..data.outcome import Outcome, finish_trial, is_cost
from ..data.training_run import restarted
from ..data.trial import State, Trial
from ..errors import MethodError, OutcomeError, TrialError
from ..execution.evaluate import Evaluation
from ..storage.trial_lifecycle import awaits_late_result
from .study_state import Direction, StudyState

log = logging.getLogger("shoestring")


@dataclass
class Results:
    """The results of one study: checks them, and writes them to its state."""

    state: StudyState
    warned_of_unit: bool = False  # whether it was said that seconds are counted in another unit
    warned_of_restart: bool = False  # whether it was said that a trial did not go on
    said_resumable: bool = False  # whether it was said that runs are taken to be resumable

    def find(self, trial: Trial | int) -> Trial:
        """The study's own record of a trial; a TrialError if there is none."""
        state = self.state
        number = trial.number if isinstance(trial, Trial) else plain(trial)
        if isinstance(number, int) and number >= len(state):  # else the storage finds out if another process was faster
            state.refresh()
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(state):
            raise TrialError(f"there is no trial {number!r} in this study; it has {len(state)}")
        found = state.trials[number]
        if isinstance(trial, Trial) and trial.asked_at != found.asked_at:
            raise TrialError(f"trial {number} was asked by another study, not by this one")
        return found

    def tell(self, trial: Trial | int, outcome: Outcome, error: str | None = None, censored: bool = False) -> Trial:
        """Record what came of a trial that was asked."""
        with self.state.lock:
            opened = self.find(trial)
            if not opened.finished and outcome.cost is None and error is None:
                self._require_cost(opened)
            return self._close(opened, outcome, error=error, seconds=self.state.seconds_open(opened), censored=censored)

    def _require_cost(self, trial: Trial) -> None:
        """An OutcomeError where a meter would measure the cost: it does so where an objective runs, and here none does."""
        settings = self.state.settings
        if "cost" in settings.code and not settings.time_has_a_price:
            how = f"give what it has cost: study.tell(trial, value, cost=...), in {settings.unit}; or use minimize or maximize"
            raise OutcomeError(f"trial {trial.number}: the study's meter measures an objective that the study runs; {how}")

    def add(self, config: Mapping[str, Any], outcome: Outcome, error: str | None = None, censored: bool = False) -> Trial:
        """Record a result from elsewhere."""
        with self.state.lock:
            space = self.state.space
            draft = replace(self.state.draft(space.check(config), {"by": "you", "why": "added"}), added=True)
            return self.state.add(finish_trial(draft, outcome, error, None, censored=censored, space=space))

    def record(self, trial: Trial, evaluation: Evaluation) -> Trial:
        """Record an evaluation of a run; a result that cannot be read is a failed trial."""
        with self.state.lock:
            opened = self._noted(self.state.trials[trial.number], evaluation)
            rest: dict[str, Any] = {"seconds": evaluation.seconds, "reports": evaluation.reports}
            rest["traceback"] = evaluation.traceback
            try:
                how: dict[str, Any] = {"censored": evaluation.censored, "stopped": evaluation.stopped}
                kept = self._close(opened, evaluation.outcome, error=evaluation.error, **how, **rest)
            except OutcomeError as error:
                cost = evaluation.outcome.cost if is_cost(evaluation.outcome.cost) else None
                kept = self._close(opened, Outcome(None, cost), error=str(error), **rest)
            except TrialError as error:  # another result was there before: no reason to end the other trials
                log.warning("%s; what was found now is not kept", error)
                return self.state.trials[trial.number]
            self._warn_of_unit(kept)
            return kept

    def _noted(self, trial: Trial, evaluation: Evaluation) -> Trial:
        """The trial with what its evaluation says about its run: whether it has saved files, and whether it went on at all."""
        if not evaluation.saved and "resumed_from" not in trial.suggestion:
            return trial
        if not self.state.space.resumable:
            return trial
        noted = dict(trial.suggestion)
        if evaluation.saved:
            noted["saved"] = True
            self._say_resumable(trial)
        if restarted(trial, evaluation.reports):
            noted["restarted_from"] = noted.pop("resumed_from")
            if not self.warned_of_restart:
                self.warned_of_restart = True
                what = "trial %d was to go on from trial %d, but its first report is of an earlier part: it began from the start"
                fix = "load what the earlier trial has saved in trial.checkpoint_dir, or say resumable=False"
                log.warning(f"{what}; {fix}", trial.number, noted["restarted_from"]["number"])
        return replace(trial, suggestion=noted)

    def _say_resumable(self, trial: Trial) -> None:
        """Say so once when a space that leaves it open is taken to be resumable."""
        if self.state.space.resumable_if_saved and not self.state.table.saved and not self.said_resumable:
            self.said_resumable = True
            name = self.state.space.resumable[0]
            text = "trial %d has saved files in its checkpoint folder: a config that is asked with more %s goes on from them"
            fix = "if it begins from the start instead, say st.Fidelity(..., resumable=False)"
            log.info(f"{text}, and pays for the rest alone; {fix}", trial.number, name)

    def give_back(self, number: int, reports: Sequence[Mapping[str, Any]] = (), died: bool = False) -> bool:
        """Abandon a trial that was interrupted and have its config asked first; False if it has finished.

        ``died``: its worker did. A config with which that happens again and again has failed.
        """
        with self.state.lock:
            trial = self.state.trials[number]
            if trial.finished:
                return False
            self.state.give_back(trial, reports, died)
            return True

    def set_direction(self, direction: Direction) -> None:
        """Fix whether values are minimized or maximized; a MethodError if there are results of the other direction."""
        with self.state.lock:
            self.state.refresh()  # another process may have fixed it
            if direction == self.state.settings.direction:
                return
            if any(trial.state is State.DONE for trial in self.state.trials):
                begun = self.state.settings.direction
                how = f"call {begun}, or begin another study with name=..."
                raise MethodError(f"this study was begun to {begun}; its results cannot be read in the other direction; {how}")
            self.state.settings.direction = direction
            self.state.save_settings({"direction": direction})

    def _close(
        self,
        trial: Trial,
        outcome: Outcome,
        *,
        error: str | None,
        seconds: float | None,
        **how: Any,
    ) -> Trial:
        price, space = self.state.settings.price_of_a_second, self.state.space
        finished = finish_trial(trial, outcome, error, seconds, price=price, space=space, **how)
        if not self.state.settings.time_has_a_price and not told_cost(outcome, how.get("reports", ())):
            finished = self._without_price(finished)
        late = trial.state is State.RUNNING or awaits_late_result(trial)  # a late result is a result
        kept = self.state.close(finished) if late else trial
        same = (kept.state, kept.value, kept.error) == (finished.state, finished.value, finished.error)
        if same and (outcome.cost is None or kept.cost == finished.cost):
            return kept
        raise TrialError(f"trial {trial.number} is already {kept.state} with value {kept.value}; it cannot be changed")

    def _without_price(self, trial: Trial) -> Trial:
        """The cost of a trial for which none is known, where seconds have no price.

        With a meter, which was lost with its worker: its seconds, at the rate of the trials that were measured. Without one, a
        failed trial has no cost: seconds are none.
        """
        if "cost" in self.state.settings.code:
            known = [each for each in self.state.trials if each.cost is not None and each.seconds and not each.added]
            cost, seconds = sum(each.cost or 0.0 for each in known), sum(each.seconds or 0.0 for each in known)
            return replace(trial, cost=cost / seconds * trial.seconds if known and trial.seconds is not None else None)
        return replace(trial, cost=None) if trial.state is State.FAILED else trial

    def _warn_of_unit(self, trial: Trial) -> None:
        """Say so once when seconds are counted as if they were the study's unit, or when a failed trial costs nothing."""
        settings = self.state.settings
        if settings.time_has_a_price or self.warned_of_unit or "cost" in settings.code:
            return
        if trial.cost is None and trial.state is State.FAILED:
            self.warned_of_unit = True
            log.warning(
                "trial %d has failed and gave no cost, so it counts as 0 %s; report what a trial has cost so far "
                "(trial.report(value, cost=...)), or say what an hour costs: cost=st.Money(per_hour=...)",
                trial.number, settings.unit,
            )  # fmt: skip
        if trial.cost is None or trial.cost != trial.seconds:
            return
        self.warned_of_unit = True
        log.warning(
            "trial %d gave no cost, so its seconds are counted as %s; return st.Outcome(value, cost=...), "
            "or say what an hour costs: st.Budget(..., per_hour=...)",
            trial.number,
            settings.unit,
        )


def told_cost(outcome: Outcome, reports: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a trial says what it has cost."""
    return outcome.cost is not None or any(report["cost"] is not None for report in reports)


def merged_outcome(value: float | Outcome | None, error: str | None, **given: Any) -> Outcome:
    """The outcome that ``tell`` and ``add`` were given: a value or an Outcome, with the other arguments laid over it."""
    outcome = value if isinstance(value, Outcome) else Outcome(value)
    if error is not None and (outcome.value is not None or outcome.folds is not None or given.get("folds") is not None):
        raise OutcomeError("a trial has a value or an error, not both; leave out error=, or the value and the folds")
    return replace(outcome, **{name: item for name, item in given.items() if item is not None})
