"""The live table: the last results, the running trials with their time and predicted cost, and below them the progress line.

    trial  state    value            cost             settings
       16  done     0.0312 ± 0.0011  12 s             lr = 0.0012, depth = 7
       17  failed   -                3 s              CUDA out of memory
       18  running  for 1 s          about 9 s ± 2 s  lr = 0.0031, depth = 5
    spent 3 m 20 s of 10 m 00 s | 17 trials, 1 failed | best 0.0312 ± 0.0011 | about 6 m left
    bound on what is left to gain 0.012, stops at 0.01 | expected further gain 0.0001 per s: 0.0012 for 12 s

It is made of plain lines with the name of a style for each, for any width and height. ``shoestring run`` and ``shoestring top``
draw them with Rich, or as plain text. What it shows is computed by ``views/live_line.py``, as on the page, and no model is
fitted for it. It is read at most twice a second, by the thread that draws.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._format import amount, config_text, duration, uncertain, uncertain_amount
from ..budget import Budget
from ..data.history import History
from ..data.trial import State, Trial
from ..state.study_state import StudyState
from ..termination.regret import standard_error
from .progress_line import SEPARATOR, Clock, Line, whole_seconds
from .summary import error_line
from .trial_log import one_line
from .views.base import Source
from .views.live_line import live_line

MAX_RESULTS_SHOWN = 8
MAX_RUNNING_SHOWN = 8
MIN_ROWS_SHOWN = 2  # of results, and of running trials, however low the terminal is
OTHER_LINES = 6  # of the display: the head, the line and what is below it
SECONDS_BETWEEN_LOOKS = 0.5
MAX_CELL_CHARACTERS = 300
MIN_SETTINGS_WIDTH = 12  # with less space for the settings, other columns are left out
MIN_COSTS_FOR_ERROR = 3  # finished trials with a predicted cost, before it is said how far predictions are off
LAST_COSTS = 50  # of these, it is computed
GAP = "  "
HEAD = {"trial": "trial", "state": "state", "value": "value", "cost": "cost", "time": "time", "settings": "settings"}
LEFT_OUT_FIRST = ("time", "cost")  # where there is little space; the time also where it is the cost
IN_THE_LINE = ("spent", "trials", "time", "best", "failed", "running")  # facts that the progress line has already
STYLES = {"failed": "red", "running": "bold", "best": "green", "head": "dim", "line": "", "facts": "dim"}  # names of Rich

Piece = tuple[str, str]  # a line, and the name of its style
Row = dict[str, str]


@dataclass(frozen=True)
class Seen:
    """What the table shows: rows with the style of each, and the facts below the line."""

    rows: Sequence[tuple[str, Row]] = ()
    facts: Sequence[str] = ()


class LiveTable:
    """The table of a study that runs: ``update`` when something has happened, ``lines`` to draw it."""

    def __init__(self, clock: Clock = time.monotonic, clean: Callable[[str], str] = str) -> None:
        """``clean`` is applied to what comes from the study, for example to hide passwords."""
        self.line, self.clean = Line(clock), clean
        self._state: StudyState | None = None
        self._budget: Budget | None = None
        self._looked, self._seen = -math.inf, Seen()

    def update(self, state: StudyState, budget: Budget | None) -> None:
        """A trial has started or ended. It costs next to nothing: the study is read when the table is drawn."""
        self._state, self._budget = state, budget
        self.line.update(state, budget)

    def lines(self, width: int, height: int = 24, *, ended: bool = False, mark: str = "") -> list[Piece]:
        """The display at this moment, for a terminal of some width and height; ``mark``: in front of the progress line."""
        seen = self._look()
        most = max(MIN_ROWS_SHOWN, (height - OTHER_LINES) // 2)
        running = [row for row in seen.rows if row[0] == "running"]
        results = [row for row in seen.rows if row[0] != "running"]
        rows = results[-min(most, MAX_RESULTS_SHOWN) :] + running[: min(most, MAX_RUNNING_SHOWN)]
        found = table_lines(rows, width) if rows else []
        if (more := len(running) - min(most, MAX_RUNNING_SHOWN)) > 0:
            found.append((cut(f"and {more} more running", width), "head"))
        below = [(part, "line") for part in wrapped(self.line.parts(ended, gain=not seen.facts), width - len(mark))]
        below += [(part, "facts") for part in wrapped(seen.facts, width - len(mark))]
        marks = [mark, *[" " * len(mark)] * (len(below) - 1)]
        return found + [(before + text, style) for before, (text, style) in zip(marks, below, strict=True)]

    def _look(self) -> Seen:
        """What the study shows now, half a second old at most."""
        now = self.line.clock()
        if self._state is not None and now - self._looked >= SECONDS_BETWEEN_LOOKS:
            with contextlib.suppress(LookupError):  # another thread writes a trial at this moment: the next look has it
                self._seen, self._looked = look(self._state, self._budget, self.clean), now
        return self._seen


def look(state: StudyState, budget: Budget | None, clean: Callable[[str], str] = str) -> Seen:
    """The rows and the facts of a study at this moment, from what is stored."""
    history, unit = state.history, state.settings.unit
    best = history.best
    finished = [trial for trial in history[-MAX_RESULTS_SHOWN - 2 * MAX_RUNNING_SHOWN :] if trial.finished]
    error = cost_error(history)
    rows = [
        ("best" if best is not None and trial.number == best.number else str(trial.state), result_row(trial, unit))
        for trial in finished[-MAX_RESULTS_SHOWN:]
    ]
    rows += [("running", running_row(trial, unit, state.seconds_open(trial), error)) for trial in history.having(State.RUNNING)]
    source = Source(
        history=history, unit=unit, name=state.name, budget=budget, halted=state.run_status.halted,
        seconds=state.run_status.seconds, now=time.time(),
    )  # fmt: skip
    facts = [f"{fact['label']} {fact['text']}" for fact in live_line(source)["facts"] if fact["label"] not in IN_THE_LINE]
    cleaned = [(style, {name: shown(text, clean) for name, text in row.items()}) for style, row in rows]
    return Seen(cleaned, [shown(fact, clean) for fact in facts])


def shown(text: str, clean: Callable[[str], str] = str) -> str:
    """A text from the study on one line, without characters that a terminal obeys."""
    return one_line(clean(text), MAX_CELL_CHARACTERS)


def result_row(trial: Trial, unit: str) -> Row:
    """A trial that has ended."""
    time_text = "" if trial.seconds is None or unit == "s" else duration(trial.seconds)
    more = " or more" if trial.censored else ""
    return {
        "trial": str(trial.number), "state": str(trial.state), "value": uncertain(trial.value, standard_error(trial.folds)),
        "cost": "-" if trial.cost is None else amount(trial.cost, unit) + more, "time": time_text,
        "settings": config_text(trial.config) if trial.error is None else error_line(trial.error),
    }  # fmt: skip


def running_row(trial: Trial, unit: str, elapsed: float | None, error: float | None) -> Row:
    """A trial that runs: its time so far, and the predicted cost with the error that predictions had so far."""
    predicted = trial.suggestion.get("cost")
    cost = "-"
    if isinstance(predicted, int | float) and math.isfinite(predicted):
        cost = "about " + uncertain_amount(predicted, None if error is None else error * predicted, unit)
    return {
        "trial": str(trial.number), "state": "running", "value": "-" if elapsed is None else f"for {whole_seconds(elapsed)}",
        "cost": cost, "time": "", "settings": config_text(trial.config),
    }  # fmt: skip


def cost_error(history: History) -> float | None:
    """How far predicted costs were off so far, as a share: the root mean square over the last trials; None with too few."""
    shares = []
    for trial in history[-LAST_COSTS:]:
        predicted = trial.suggestion.get("cost")
        if predicted and trial.cost is not None and trial.state is State.DONE and not trial.censored:
            shares.append((trial.cost - predicted) / predicted)
    if len(shares) < MIN_COSTS_FOR_ERROR:
        return None
    return math.sqrt(sum(min(share * share, 1e12) for share in shares) / len(shares))


# -- lines of a given width --------------------------------------------------------------------------------------------


def table_lines(rows: Sequence[tuple[str, Row]], width: int) -> list[Piece]:
    """The rows below their heads, with as many columns as there is space for; the settings take what is left."""
    names = [name for name in HEAD if name != "time" or any(row[name] for _, row in rows)]
    widths = {name: max(len(HEAD[name]), *(len(row[name]) for _, row in rows)) for name in names}

    def space() -> int:
        return width - sum(widths[name] + len(GAP) for name in names if name != "settings")

    for name in LEFT_OUT_FIRST:
        if space() < MIN_SETTINGS_WIDTH and name in names:
            names.remove(name)
    right = ("trial",)

    def line(row: Row) -> str:
        cells = (row[name].rjust(widths[name]) if name in right else row[name].ljust(widths[name]) for name in names)
        return cut(GAP.join(cells).rstrip(), width)

    return [(line(HEAD), "head"), *((line(row), style) for style, row in rows)]


def wrapped(parts: Sequence[str], width: int) -> list[str]:
    """Parts joined by separators, on as many lines as they need; a part that is longer than a line takes several."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(SEPARATOR) + len(part) <= width:
            lines[-1] += SEPARATOR + part
        else:
            lines += textwrap.wrap(part, max(width, 1))
    return lines


def cut(text: str, width: int) -> str:
    """The text, cut at a width."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def plain_text(lines: Sequence[Piece]) -> str:
    """The display without styles."""
    return "\n".join(text for text, _ in lines)


def rich_text(lines: Sequence[Piece]) -> Any:
    """The display as a text of Rich, which is imported here."""
    from rich.text import Text

    styled = [Text(text, style=STYLES.get(style, ""), no_wrap=True, overflow="ellipsis") for text, style in lines]
    return Text("\n", no_wrap=True, overflow="ellipsis").join(styled)
