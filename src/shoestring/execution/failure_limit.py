"""When failures end a run.

A failed trial is normal: a config may need too much memory. But an objective that fails on every config is broken, and each
further trial would be paid for in vain. So while no trial has succeeded, a run ends early:

- at once, if the config cannot be the cause: a name or a module that does not exist, a result that is no number;
- after ``FAILURES_IN_A_ROW`` failures of the same kind.

A failure that is tried again (``retries=``) does not count.

A budget in cost does not limit failures that cost nothing. So a run ends after ``MAX_UNPAID_FAILURES`` of them, if nothing was
spent meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .._format import plural
from ..data.trial import Trial
from ..errors import ObjectiveError
from .evaluate import Evaluation

FAILURES_IN_A_ROW = 3  # of the same kind, before the first success
MAX_UNPAID_FAILURES = 100  # with a budget in cost alone, which they would never use up
NORMAL = "Fix it, or give max_failures=N if it is normal that trials fail, or fail_fast=False to go on in any case"
FATAL = "Fix it, or give fail_fast=False to go on in any case"
UNPAID = "Give a budget with trials= or seconds= as well, or what is to be counted: cost=st.Money(per_hour=...)"
TOO_MANY = "Fix it, or give a larger max_failures"


class RemoteTraceback(Exception):
    """The cause of an ObjectiveError whose exception was raised in another process: the traceback as text."""

    def __str__(self) -> str:
        return f"in a worker:\n{self.args[0]}"


@dataclass
class FailureLimit:
    """Counts the failures of one run, and says when they end it.

    fail_fast      whether a run ends early while no trial has succeeded
    max_failures   how many trials may fail in all; None for no limit. With a number, failures in a row no longer end a run
    """

    fail_fast: bool = True
    max_failures: int | None = None
    failures: int = 0
    unpaid: int = 0  # since something was spent
    _spent: float = 0.0
    _kinds: list[str] = field(default_factory=list)

    def count(
        self, trial: Trial, evaluation: Evaluation, *, succeeded: bool, spent: float | None = None
    ) -> ObjectiveError | None:
        """Count a failed trial; the error that ends the run, or None. ``succeeded``: some trial of the study has.

        ``spent``: what the study has spent, if this trial has cost nothing and cost is the only limit; None otherwise.
        """
        self.failures += 1
        if spent is not None:
            self.unpaid, self._spent = self.unpaid + 1 if spent == self._spent else 1, spent
        if self.unpaid >= MAX_UNPAID_FAILURES:
            what = f"{MAX_UNPAID_FAILURES} trials have failed without a cost, so the budget in cost does not limit them"
            return self._error(what, trial, evaluation, UNPAID)
        if self.max_failures is not None and self.failures > self.max_failures:
            failed = f"{plural(self.failures, 'trial')} of this run {'has' if self.failures == 1 else 'have'} failed"
            return self._error(f"{failed}, and max_failures={self.max_failures}", trial, evaluation, TOO_MANY)
        if not self.fail_fast or succeeded:
            return None
        if evaluation.fatal:
            return self._error(f"trial {trial.number} has failed, and its config is not the cause", trial, evaluation, FATAL)
        if self.max_failures is not None:
            return None
        self._kinds.append(evaluation.kind or "result")
        if self._kinds[-FAILURES_IN_A_ROW:] == [self._kinds[-1]] * FAILURES_IN_A_ROW:
            in_a_row = f"{FAILURES_IN_A_ROW} trials in a row have failed in the same way"
            return self._error(f"{in_a_row}, and none has succeeded", trial, evaluation, NORMAL)
        return None

    def _error(self, what: str, trial: Trial, evaluation: Evaluation, how_to_go_on: str) -> ObjectiveError:
        lines = (trial.error or "").splitlines() or ["no reason is known"]
        hint = f"; {evaluation.hint}" if evaluation.hint else ""
        rest = "".join(f"\n{line}" for line in lines[1:])
        error = ObjectiveError(f"{what}: {lines[0]}{hint}. {how_to_go_on}{rest}")
        cause: BaseException | None = evaluation.exception
        if cause is None and evaluation.traceback:
            cause = RemoteTraceback(evaluation.traceback)
        error.__cause__, error.trial = cause, trial.detached()
        return error
