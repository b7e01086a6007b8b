"""The progress line: what was spent, the best value, the expected further gain. Not shown when standard error is no terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from .._format import amount, plural, rounded
from ..budget import Budget
from ..data.trial import State
from ..state.study_state import StudyState


class Progress(Protocol):
    """A display of the progress of a study; a context manager."""

    def __enter__(self) -> Progress: ...
    def __exit__(self, *args: object) -> None: ...
    def update(self, state: StudyState, budget: Budget) -> None: ...


@contextlib.contextmanager
def progress_for(wanted: bool | None) -> Iterator[Progress | None]:
    """A progress line if ``wanted``, or if ``wanted`` is None and standard error is a terminal; else None."""
    if wanted or (wanted is None and sys.stderr.isatty()):
        with ProgressLine() as line:
            yield line
    else:
        yield None


class ProgressLine:
    """One line on standard error, which Rich redraws in place."""

    def __enter__(self) -> ProgressLine:
        from rich.console import Console
        from rich.status import Status

        self._status: Any = Status("starting", console=Console(stderr=True))
        self._status.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._status.stop()

    def update(self, state: StudyState, budget: Budget) -> None:
        from rich.text import Text

        self._status.update(Text(progress_line(state, budget), no_wrap=True, overflow="ellipsis"))


def progress_line(state: StudyState, budget: Budget) -> str:
    """The text of the line: "spent 12 s of 40 s  |  17 trials  |  best 0.0312  |  expected gain 0.0004"."""
    history, unit = state.history, state.settings.unit
    limits = []
    if budget.cost is not None:
        limits.append(f"spent {amount(history.spent, unit)} of {amount(budget.cost, unit)}")
    else:
        limits.append(f"spent {amount(history.spent, unit)}")
    if budget.seconds is not None:
        limits.append(f"{amount(state.run_status.seconds, 's')} of {amount(budget.seconds, 's')}")
    trials = plural(history.trials_used, "trial") + (f" of {budget.trials}" if budget.trials is not None else "")
    running = len(history.having(State.RUNNING))
    if running > 1:
        trials += f", {running} running"
    best = history.best
    gain = history[-1].suggestion.get("gain") if len(history) else None
    parts = [*limits, trials, f"best {rounded(best.value)}" if best else "no result yet"]
    if gain is not None:
        parts.append(f"expected gain {rounded(gain, 2)}")
    return "  |  ".join(parts)
