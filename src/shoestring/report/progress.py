"""The live line: spent, best, expected further gain. Silent in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from .._format import amount, plural, rounded
from ..data.trial import State

if TYPE_CHECKING:
    from ..budget import Budget
    from ..study import Study

class Progress(Protocol):
    """Something that shows how a study goes; a context manager."""

    def __enter__(self) -> Progress: ...
    def __exit__(self, *args: object) -> None: ...
    def update(self, study: Study, budget: Budget) -> None: ...


def progress_for(wanted: bool | None) -> Progress:
    """A live line when wanted, or when nothing is said and a person is looking."""
    return LiveLine() if wanted or (wanted is None and sys.stderr.isatty()) else Silence()


class Silence:
    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def update(self, study: Study, budget: Budget) -> None:
        pass


class LiveLine:
    """One line on standard error, redrawn in place by Rich."""

    def __enter__(self) -> LiveLine:
        from rich.console import Console
        from rich.status import Status

        self._status: Any = Status("starting", console=Console(stderr=True))
        self._status.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._status.stop()

    def update(self, study: Study, budget: Budget) -> None:
        from rich.text import Text

        self._status.update(Text(line(study, budget), no_wrap=True, overflow="ellipsis"))


def line(study: Study, budget: Budget) -> str:
    """spent 12 s of 40 s  |  17 trials  |  best 0.0312  |  expected gain 0.0004"""
    history = study.log
    limits = []
    if budget.cost is not None:
        limits.append(f"spent {amount(history.spent, study.unit)} of {amount(budget.cost, study.unit)}")
    else:
        limits.append(f"spent {amount(history.spent, study.unit)}")
    if budget.seconds is not None:
        limits.append(f"{amount(study.seconds, 's')} of {amount(budget.seconds, 's')}")
    trials = plural(history.counted, "trial") + (f" of {budget.trials}" if budget.trials is not None else "")
    running = len(history.having(State.RUNNING))
    if running > 1:
        trials += f", {running} running"
    best = history.best
    gain = history[-1].suggestion.get("gain") if len(history) else None
    parts = [*limits, trials, f"best {rounded(best.value)}" if best else "no result yet"]
    if gain is not None:
        parts.append(f"expected gain {rounded(gain, 2)}")
    return "  |  ".join(parts)
