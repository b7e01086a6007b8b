"""The text of the progress line: what was spent, the trials, the best value, what runs and how much time is left.

A line moves while a trial takes long. So what is known of the study is one ``Snapshot``, taken when a trial starts or ends. The
text is made from the last one and the time that has passed since, also by another thread. Where trials end faster than anybody
reads, not each of them costs a snapshot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from .._format import amount, duration, plural, rounded, uncertain
from ..budget import Budget
from ..data.trial import State
from ..state.study_state import StudyState
from ..termination.regret import standard_error

SEPARATOR = " | "
MIN_TRIALS_FOR_ESTIMATE = 3  # finished in this run, before the time left is estimated from their pace
SECONDS_BETWEEN_SNAPSHOTS = 0.1

Clock = Callable[[], float]


@dataclass(frozen=True)
class NoLimits:
    """In place of a budget, for a study that has none."""

    trials: None = None
    cost: None = None
    seconds: None = None


Limits = Budget | NoLimits


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What is known of a study at one moment.

    at        the moment, by the clock of the display
    spent     the cost of all trials;   seconds  the wall-clock time of the study
    finished  the number of trials with a result, failed ones included
    running   the number of each running trial, and the moment at which it started
    best      the best value, and its standard error where it has folds
    gain      the expected gain of the last suggestion
    """

    at: float
    unit: str
    spent: float
    seconds: float
    finished: int
    failed: int
    running: tuple[tuple[int, float], ...]
    best: float | None
    best_error: float | None
    gain: float | None


def snapshot(state: StudyState, now: float, since_update: float = 0.0) -> Snapshot:
    """The study as it is now. Its wall-clock time was counted at the last update."""
    history = state.history
    running, best = history.having(State.RUNNING), history.best
    return Snapshot(
        at=now,
        unit=state.settings.unit,
        spent=history.spent,
        seconds=state.run_status.seconds + since_update,
        finished=max(0, history.trials_used - len(running)),
        failed=history.number_of(State.FAILED),
        running=tuple((trial.number, now - (state.seconds_open(trial) or 0.0)) for trial in running),
        best=None if best is None else best.value,
        best_error=None if best is None else standard_error(best.folds),
        gain=history[-1].suggestion.get("gain") if len(history) else None,
    )


class Line:
    """The text of a display: from the last snapshot, the time since, and the pace of this run."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self._first: Snapshot | None = None  # of this run
        self._last: Snapshot | None = None
        self._paced: Snapshot | None = None  # when a trial ended the last time
        self._budget: Limits = NoLimits()
        self._state: StudyState | None = None
        self._updates = self._seen_updates = 0  # how many there were, and how many of them the last snapshot has seen
        self._updated = self._taken = -math.inf  # when the last update was, and the last snapshot

    def update(self, state: StudyState, budget: Budget | None) -> None:
        """A trial has started or ended."""
        self._state, self._budget, self._updated = state, budget or NoLimits(), self.clock()
        self._updates += 1
        if self._first is None or self._updated - self._taken >= SECONDS_BETWEEN_SNAPSHOTS:
            self._take_snapshot()

    def refresh(self, at_once: bool = False) -> None:
        """Take the snapshot that ``update`` has left out, once trials no longer end so fast."""
        if self._updates > self._seen_updates and (at_once or self.clock() - self._updated >= SECONDS_BETWEEN_SNAPSHOTS):
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        state, updates, now = self._state, self._updates, self.clock()
        if state is None:
            return
        try:
            seen = snapshot(state, now, now - self._updated)
        except LookupError:  # another thread writes a trial at this moment: the next snapshot has it
            return
        self._first = self._first or seen
        if self._paced is None or seen.finished > self._paced.finished:
            self._paced = seen
        self._last, self._seen_updates, self._taken = seen, updates, now

    @property
    def finished(self) -> int:
        """The number of finished trials as of the last snapshot."""
        return 0 if self._last is None else self._last.finished

    def text(self, ended: bool = False) -> str:
        """The line at this moment; when the run has ``ended``, nothing runs and nothing is expected."""
        return SEPARATOR.join(self.parts(ended))

    def parts(self, ended: bool = False, *, gain: bool = True) -> list[str]:
        """The parts of the line; ``gain``: with the expected gain of the last suggestion."""
        self.refresh(at_once=ended)
        seen, budget, now = self._last, self._budget, self.clock()
        if seen is None:
            return ["starting"]
        parts = [*spent_parts(seen, budget, now), trials_part(seen, budget)]
        parts.append("no result yet" if seen.best is None else f"best {uncertain(seen.best, seen.best_error)}")
        if not ended:
            parts += [part for part in (running_part(seen, now), self._time_left(seen, budget, now)) if part]
            if gain and seen.gain is not None:
                parts.append(f"expected gain {rounded(seen.gain, 2)}")
        if budget.cost is None and (budget.seconds is None or seen.unit != "s"):
            parts.append(f"spent {amount(seen.spent, seen.unit)}")
        return parts

    def _time_left(self, seen: Snapshot, budget: Limits, now: float) -> str | None:
        """Until the first limit: known for a limit in seconds, "about" for the others."""
        known = math.inf if budget.seconds is None else budget.seconds - _seconds(seen, now)
        estimated = self._estimated_end(budget) - now
        left = min(known, estimated)
        if not 0.0 < left < math.inf:
            return None
        return f"about {rough_duration(left)} left" if estimated < known else f"{duration(math.ceil(left))} left"

    def _estimated_end(self, budget: Limits) -> float:
        """When the limits on trials and cost are reached at the pace of this run; infinite while that is not known."""
        first, last = self._first, self._paced
        if first is None or last is None or last.finished - first.finished < MIN_TRIALS_FOR_ESTIMATE:
            return math.inf
        limits = (
            (budget.trials, last.finished, last.finished - first.finished),
            (budget.cost, last.spent, last.spent - first.spent),
        )
        elapsed = last.at - first.at
        ends = [last.at + elapsed * (limit - used) / grown for limit, used, grown in limits if limit is not None and grown > 0]
        return min(ends, default=math.inf)


def progress_line(state: StudyState, budget: Budget) -> str:
    """The text of the line: "spent 12 s of 40 s | 17 trials, 2 failed | best 0.0312 | expected gain 0.0004"."""
    line = Line()
    line.update(state, budget)
    return line.text()


def spent_parts(seen: Snapshot, budget: Limits, now: float) -> list[str]:
    """What was used of the limits on cost and time."""
    parts = []
    if budget.cost is not None:
        parts.append(f"spent {amount(seen.spent, seen.unit)} of {amount(budget.cost, seen.unit)}")
    if budget.seconds is not None:
        parts.append(f"{whole_seconds(_seconds(seen, now))} of {duration(budget.seconds)}")
    return parts


def trials_part(seen: Snapshot, budget: Limits) -> str:
    """``17 trials of 20, 3 failed``"""
    text = plural(seen.finished, "trial") + (f" of {budget.trials}" if budget.trials is not None else "")
    return f"{text}, {seen.failed} failed" if seen.failed else text


def running_part(seen: Snapshot, now: float) -> str | None:
    """``trial 17 running for 12 s``, or ``4 running, the longest for 12 s``; None for one that has only just begun."""
    if not seen.running:
        return "choosing the next trial" if now - seen.at >= 1.0 else None
    number, started = min(seen.running, key=lambda each: each[1])
    elapsed = now - started
    if len(seen.running) == 1:
        return f"trial {number} running for {whole_seconds(elapsed)}" if elapsed >= 1.0 else None
    text = f"{len(seen.running)} running"
    return f"{text}, the longest for {whole_seconds(elapsed)}" if elapsed >= 1.0 else text


def _seconds(seen: Snapshot, now: float) -> float:
    """The wall-clock time of the study at this moment."""
    return seen.seconds + now - seen.at


def whole_seconds(seconds: float) -> str:
    """A time that goes on: without parts of a second."""
    return duration(float(int(seconds)))


def rough_duration(seconds: float) -> str:
    """An estimated time: "15 s", "5 m", "3 h 20 m", "4.5 days"."""
    if seconds <= 55.0:
        return f"{5 * math.ceil(seconds / 5)} s"
    if seconds < 3600.0:
        return f"{max(1, round(seconds / 60))} m"
    return duration(seconds) if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
