"""A trial while it runs, as its objective sees it, and the clock of the run that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..budget import Allowance, Budget
from ..data.trial import Trial
from ..errors import Away
from ..storage.patience import SHORT, patience
from .evaluate import LiveTrial

if TYPE_CHECKING:
    from ..study import Study

class Clock:
    """The wall-clock time of a study while a run goes on: what was there before, and the time since.

    Others may be at work at the same time, and what they have counted is the same time, not more of it: the larger number is
    right. So a study takes as long as anybody is at work on it, however many they are.
    """

    def __init__(self, study: Study, now: Callable[[], float]) -> None:
        self.study, self.now = study, now
        self._mark = study.seconds, now()  # the study's seconds, and when that was: one object, as other threads look at it

    def tick(self) -> None:
        now = self.now()
        self._mark = self._total_at(now), now
        self.study.seconds = self._mark[0]

    @property
    def total(self) -> float:
        """The study's seconds up to this moment."""
        return self._total_at(self.now())

    def _total_at(self, now: float) -> float:
        seconds, then = self._mark
        return max(self.study.seconds, seconds + now - then)


def live(study: Study, trial: Trial, budget: Budget, clock: Clock) -> LiveTrial:
    """The trial as its objective sees it."""

    def left() -> Allowance:
        cost = None if budget.cost is None else budget.cost - study.log.spent
        return Allowance(cost, None if budget.seconds is None else budget.seconds - clock.total, study.price_of_a_second)

    def folder() -> Path:
        # by the record, since the objective may have changed its own copy of the config
        return study.checkpoints.folder(study.state.trials[trial.number].config)

    def hopeless(reports: Sequence[Mapping[str, Any]]) -> str | None:
        try:
            with patience(SHORT):
                found = study.pruning_forecast(trial.number, reports)
        except Away:
            return None  # nobody can tell at the moment
        return found.reason if found is not None and found.hopeless else None

    def told(report: Mapping[str, Any]) -> None:
        study.state.report(trial.number, found.reports)

    found = LiveTrial(trial.number, trial.config, dict(trial.fidelity), study.space, left, folder, hopeless, told, clock.now)
    return found
