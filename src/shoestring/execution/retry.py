"""Retries: of failed trials, and of a storage that does not answer for a while.

A failed trial is tried again where the failure may be transient: an exception, a crash, a kill. A value that is NaN, infinite or
no number is a result and would be the same again; a trial that ran into its time limit would do so again, and is the most
expensive way to fail. Each attempt is a trial of its own, recorded, charged and counted, and is asked before anything else.

While the storage does not answer, running trials go on, their results are held in memory, and the storage is tried again. The run
ends only after a long outage; then each result that could not be stored is logged, with the command that tells it later.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .._format import duration, plural
from ..data.trial import State, Trial
from ..errors import Away
from ..storage.transactions import SHORT_WAIT_SECONDS, wait_limit
from .executor import CompletedTrial

log = logging.getLogger("shoestring")

MAX_OUTAGE_SECONDS = 1800.0
PAUSE_SECONDS = 1.0  # between attempts
SILENT_SECONDS = 5.0  # an outage of less is not worth a word

Answer = TypeVar("Answer")


def retry_suggestion(trial: Trial, retries: int) -> dict[str, Any] | None:
    """The suggestion with which a failed trial's config is asked again; None if it was tried again ``retries`` times already."""
    before = int(trial.suggestion.get("retry", 0))
    if trial.state is not State.FAILED or before >= retries:
        return None
    why = str(trial.suggestion.get("why", "")).split("; again after")[0]
    # Its place in a plan stays its own: the failure has left it free.
    return {**trial.suggestion, "retry": before + 1, "why": f"{why}; again after {plural(before + 1, 'failure')}"}


class OutageGuard:
    """Bridges outages of one run's storage.

    meanwhile  looks after running trials, for about so many seconds;   after  is called with the length of an outage
    """

    def __init__(self, meanwhile: Callable[[float], None], after: Callable[[float], None]) -> None:
        self.meanwhile, self.after = meanwhile, after
        self.since: float | None = None
        self._said = False

    def bridge(self, step: Callable[[], Answer]) -> Answer:
        """Do a step that needs the storage, as soon as that can be done. ``step`` may be repeated."""
        while True:
            try:
                with wait_limit(SHORT_WAIT_SECONDS):
                    found = step()
            except Away as error:
                self._continues(error)
            else:
                self._ended()
                return found
            again = time.monotonic() + PAUSE_SECONDS
            self.meanwhile(PAUSE_SECONDS)
            time.sleep(max(0.0, again - time.monotonic()))

    def _continues(self, error: Away) -> None:
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > MAX_OUTAGE_SECONDS:
            raise error
        if now - self.since >= SILENT_SECONDS and not self._said:
            self._said = True
            limit = duration(MAX_OUTAGE_SECONDS)
            log.warning("%s; running trials go on, results are held, and it is tried again for %s", error, limit)

    def _ended(self) -> None:
        if self.since is None:
            return
        lasted, self.since = time.monotonic() - self.since, None
        if self._said:
            log.warning("the storage answers again, after %s", duration(lasted))
        self._said = False
        self.after(lasted)


def tell_command(study: str, url: str, price_of_a_second: float, done: CompletedTrial) -> str:
    """The command that tells a result which could not be stored."""
    outcome, error = done.evaluation.outcome, done.evaluation.error
    if error is None and outcome.folds is not None:
        result = ["--folds", ",".join(repr(float(fold)) for fold in outcome.folds)]
    elif error is None and outcome.value is not None:
        result = [repr(float(outcome.value))]
    else:
        result = ["--error", str(error or "no value").splitlines()[-1]]
    cost = float(done.evaluation.seconds * price_of_a_second if outcome.cost is None else outcome.cost)
    where = ["--storage", url]
    return shlex.join(["shoestring", "tell", study, str(done.trial.number), *result, "--cost", repr(cost), *where])
