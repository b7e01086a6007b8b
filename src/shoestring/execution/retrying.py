"""Failures that are tried again: exceptions, crashes and kills, which may pass.

A value that is NaN, infinite or no number is a result and would be the same again; a trial that ran into its timeout would do
so again, and is the dearest way to fail. Each attempt is a trial of its own, recorded, charged and counted, and the next one is
asked before anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..trial import State, Trial
from ..wording import plural

if TYPE_CHECKING:
    from ..study import Study


def attempts(trial: Trial) -> int:
    """How often its config was tried before, for the same suggestion."""
    return int(trial.suggestion.get("retry", 0))


def try_again(study: Study, trial: Trial, retries: int) -> bool:
    """Have a failed trial's config asked next, unless it was tried again ``retries`` times already."""
    before = attempts(trial)
    if trial.state is not State.FAILED or before >= retries:
        return False
    why = str(trial.suggestion.get("why", "")).split("; again after")[0]
    noted = {**trial.suggestion, "retry": before + 1, "why": f"{why}; again after {plural(before + 1, 'failure')}"}
    # Its place in a plan stays its own: the failure has left it free. The next ask looks at the queue anyway.
    study.storage.enqueue(study.ledger.study, trial.config, noted, first=True)
    return True
