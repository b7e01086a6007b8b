"""Progress for a pipe or a log file: a few plain lines in place of one that is redrawn."""

from __future__ import annotations

from collections.abc import Callable

from .. import Budget, Study, Trial
from ..progress import line


class SparingLines:
    """A callback of ``Study.minimize`` that says how far it is each time another quarter of the budget is spent."""

    def __init__(self, budget: Budget, say: Callable[[str], object], parts: int = 4) -> None:
        self.budget, self.say, self.parts, self.said = budget, say, parts, 0

    def __call__(self, study: Study, trial: Trial) -> None:
        reached = int(self.parts * self.share(study))
        if self.said < reached < self.parts:  # the end needs no line: the summary follows
            self.say(line(study, self.budget))
        self.said = max(self.said, reached)

    def share(self, study: Study) -> float:
        """How much of the budget is spent, by the limit that is nearest."""
        used = (
            (study.log.counted, self.budget.trials),
            (study.seconds, self.budget.seconds),
            (study.log.spent, self.budget.cost),
        )
        return max(amount / limit for amount, limit in used if limit is not None)
