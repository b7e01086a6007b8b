"""Failures that are tried again: exceptions, crashes and kills, which may pass.

A value that is NaN, infinite or no number is a result and would be the same again; a trial that ran into its timeout would do
so again, and is the dearest way to fail. Each attempt is a trial of its own, recorded, charged and counted, and the next one is
asked before anything else.

A storage that does not answer for a while: no reason to throw away what is being evaluated.

What runs goes on, results are held in memory, and the storage is tried again and again. Only when it has been away for long does
the run end; then each result that could not be kept is said, with the command that tells it later.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._format import duration, plural
from ..data.trial import State, Trial
from ..errors import Away
from ..storage.patience import SHORT, patience
from .executor import CompletedTrial

if TYPE_CHECKING:
    from ..study import Study

def attempts(trial: Trial) -> int:
    """How often its config was tried before, for the same suggestion."""
    return int(trial.suggestion.get("retry", 0))


def retry_trial(study: Study, trial: Trial, retries: int) -> bool:
    """Have a failed trial's config asked next, unless it was tried again ``retries`` times already."""
    before = attempts(trial)
    if trial.state is not State.FAILED or before >= retries:
        return False
    why = str(trial.suggestion.get("why", "")).split("; again after")[0]
    noted = {**trial.suggestion, "retry": before + 1, "why": f"{why}; again after {plural(before + 1, 'failure')}"}
    # Its place in a plan stays its own: the failure has left it free. The next ask looks at the queue anyway.
    study.storage.enqueue(study.state.study, trial.config, noted, first=True)
    return True


log = logging.getLogger("shoestring")

LONGEST = 1800.0  # seconds
PAUSE = 1.0  # seconds between attempts
SAY = 5.0  # seconds after which it is worth a word

Result = TypeVar("Result")


class OutageGuard:
    """Of one run's storage.

    meanwhile  looks after what runs, for about so many seconds;   after  hears how long it was
    """

    def __init__(self, meanwhile: Callable[[float], None], after: Callable[[float], None]) -> None:
        self.meanwhile, self.after = meanwhile, after
        self.since: float | None = None
        self._said = False

    def bridge(self, step: Callable[[], Result]) -> Result:
        """Do what needs the storage, as soon as that can be done. ``step`` may be done again."""
        while True:
            try:
                with patience(SHORT):
                    found = step()
            except Away as error:
                self._goes_on(error)
            else:
                self._over()
                return found
            again = time.monotonic() + PAUSE
            self.meanwhile(PAUSE)
            time.sleep(max(0.0, again - time.monotonic()))

    def _goes_on(self, error: Away) -> None:
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > LONGEST:
            raise error
        if now - self.since >= SAY and not self._said:
            self._said = True
            log.warning("%s; what runs goes on, results are held, and it is tried again for %s", error, duration(LONGEST))

    def _over(self) -> None:
        if self.since is None:
            return
        lasted, self.since = time.monotonic() - self.since, None
        if self._said:
            log.warning("the storage answers again, after %s", duration(lasted))
        self._said = False
        self.after(lasted)


def tell_command(study: Study, done: CompletedTrial) -> str:
    """The command that tells a result which could not be kept."""
    told, error = done.seen.outcome, done.seen.error
    if error is None and told.folds is not None:
        result = ["--folds", ",".join(repr(float(fold)) for fold in told.folds)]
    elif error is None and told.value is not None:
        result = [repr(float(told.value))]
    else:
        result = ["--error", str(error or "no value").splitlines()[-1]]
    cost = float(done.seen.seconds * study.price_of_a_second if told.cost is None else told.cost)
    where = ["--storage", study.storage.url]
    return shlex.join(["shoestring", "tell", study.name, str(done.trial.number), *result, "--cost", repr(cost), *where])
