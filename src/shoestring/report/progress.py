"""The progress of a run while it runs: a line in a terminal, an HTML line in a notebook, plain lines in a pipe or a log file.

    in a terminal    Rich redraws one line; for ``shoestring run``, a table of trials above it (``live_table.py``)
    in a notebook    one HTML line is updated
    elsewhere        with ``progress=True`` alone: a line on standard error after a trial, at most one in some seconds

A thread of the display moves the line while a trial takes long. ``progress_line.py`` has the text.
"""

from __future__ import annotations

import contextlib
import html
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol, Self

from ..budget import Budget
from ..state.study_state import StudyState
from .live_table import LiveTable, rich_text
from .progress_line import Clock, Line
from .trial_log import log, send_lines_to, stamped, write_line

REDRAWS_PER_SECOND = 8  # of a line in a terminal
SECONDS_BETWEEN_PRINTS = 0.1  # log lines above a line in a terminal: those of a fast study are printed together
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SECONDS_BETWEEN_REDRAWS = 0.5  # of a line in a notebook, while trials end
SECONDS_BETWEEN_TICKS = 1.0  # of the thread that moves a line during a long trial
MIN_SECONDS_BETWEEN_LINES = 5.0  # plain lines, at the start of a run
MAX_SECONDS_BETWEEN_LINES = 60.0  # plain lines, later and during a long trial
RUN_SECONDS_PER_SECOND_OF_PAUSE = 60.0  # after ten minutes, there are ten seconds between two plain lines
NOTEBOOK_STYLE = "font-family: monospace; white-space: nowrap; overflow: hidden; text-overflow: ellipsis"


class Progress(Protocol):
    """A display of the progress of a study; a context manager. ``update`` is called when a trial starts or ends."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def update(self, state: StudyState, budget: Budget) -> None: ...


@contextlib.contextmanager
def progress_for(wanted: bool | None) -> Iterator[Progress | None]:
    """The display for where the process runs; None if it is not wanted.

    ``wanted=None``: in a terminal or a notebook only. There is one display at a time: a run inside an objective has none.
    """
    display = None if wanted is False else _choose(bool(wanted))
    if display is None or not _one_display.acquire(blocking=False):
        yield None
        return
    try:
        with display:
            yield display
    finally:
        _one_display.release()


_one_display = threading.Lock()
_with_table = ContextVar("shoestring progress with a table", default=False)


@contextlib.contextmanager
def table_in_terminal() -> Iterator[None]:
    """Within this, runs that show their progress in a terminal show a table of trials above the line."""
    before = _with_table.set(True)
    try:
        yield
    finally:
        _with_table.reset(before)


def _choose(wanted: bool) -> Progress | None:
    if in_notebook():
        return NotebookLine()
    if in_terminal():
        return TerminalTable() if _with_table.get() else TerminalLine()
    return PlainLines() if wanted else None


def in_notebook() -> bool:
    """Whether this is a Jupyter notebook or the like. IPython is not imported: its kernel has done so."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_shell is not None and "ZMQInteractiveShell" in [kind.__name__ for kind in type(get_shell()).__mro__]


def in_terminal() -> bool:
    """Whether standard error is a terminal in which a line can be redrawn."""
    if not is_terminal(sys.stderr):
        return False
    from rich.console import Console

    return not Console(stderr=True).is_dumb_terminal


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; not so if it is None or closed."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


# -- the displays ----------------------------------------------------------------------------------------------------


class Ticker:
    """A thread that calls a function about once a second until it is stopped. What the function raises is ignored."""

    def __init__(self, call: Callable[[], object], seconds: float = SECONDS_BETWEEN_TICKS) -> None:
        self.call, self.seconds, self._stopped = call, seconds, threading.Event()
        self._thread = threading.Thread(target=self._run, name="shoestring progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=1.0)  # a stream that blocks must not keep the run from ending

    def _run(self) -> None:
        while not self._stopped.wait(self.seconds):
            with contextlib.suppress(Exception):
                self.call()


class TerminalLine:
    """One line on standard error, which a thread of Rich redraws in place.

    What others print or log meanwhile appears above it. Standard output is left alone if it is no terminal.
    """

    def __init__(self, clock: Clock = time.monotonic, console: Any = None) -> None:
        self.line, self.console = Line(clock), console
        self._lock = threading.Lock()
        self._waiting: list[str] = []  # log lines that are not printed yet
        self._printed = -math.inf
        self._ticker = Ticker(self.print_waiting, SECONDS_BETWEEN_PRINTS)

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self.console = self.console or Console(stderr=True)
        self._streams = sys.stdout, sys.stderr
        self._live = Live(
            console=self.console, get_renderable=self._text, refresh_per_second=REDRAWS_PER_SECOND, transient=True,
            redirect_stdout=is_terminal(sys.stdout),
        )  # fmt: skip
        self._live.start()
        self._handlers = self._redirect_handlers()
        send_lines_to(self.print_above)
        self._ticker.start()
        return self

    def __exit__(self, *args: object) -> None:
        send_lines_to(write_line)
        self._ticker.stop()
        self.print_waiting()
        for handler, stream, shown in self._handlers:
            if handler.stream is shown:
                handler.setStream(stream)
        self._live.stop()

    def update(self, state: StudyState, budget: Budget) -> None:
        self.line.update(state, budget)

    def print_above(self, text: str) -> None:
        """Print a log line above the progress line: at once, or together with others in a fast study."""
        with self._lock:
            self._waiting.append(text)
        if self.line.clock() - self._printed >= SECONDS_BETWEEN_PRINTS:
            self.print_waiting()

    def print_waiting(self) -> None:
        from rich.text import Text

        with self._lock:
            lines, self._waiting = self._waiting, []
            if lines:
                self._printed = self.line.clock()
                self.console.print(Text("\n".join(lines)), soft_wrap=True)

    def _text(self) -> Any:
        from rich.text import Text

        return Text(f"{self._frame()} {self.line.text()}", no_wrap=True, overflow="ellipsis")

    def _frame(self) -> str:
        """The sign that moves in front of the line."""
        return SPINNER[int(self.line.clock() * REDRAWS_PER_SECOND) % len(SPINNER)]

    def _redirect_handlers(self) -> list[tuple[Any, Any, Any]]:
        """Have the user's log handlers print above the line as well: they hold the stream that they were made with."""
        shown_on = [(old, new) for old, new in zip(self._streams, (sys.stdout, sys.stderr), strict=True) if old is not new]
        changed = []
        for handler in {*logging.getLogger().handlers, *log.handlers}:
            for old, new in shown_on:
                if isinstance(handler, logging.StreamHandler) and handler.stream is old:
                    handler.setStream(new)
                    changed.append((handler, old, new))
        return changed


class TerminalTable(TerminalLine):
    """The last results and the running trials above the line, in as many columns as fit the width of the terminal."""

    def __init__(self, clock: Clock = time.monotonic, console: Any = None) -> None:
        super().__init__(clock, console)
        self.table = LiveTable(clock)
        self.line = self.table.line

    def update(self, state: StudyState, budget: Budget) -> None:
        self.table.update(state, budget)

    def _text(self) -> Any:
        return rich_text(self.table.lines(self.console.width, self.console.height, mark=f"{self._frame()} "))


class NotebookLine:
    """One HTML line below the cell, which stays there when the run has ended."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.line, self._drawn = Line(clock), -math.inf

    def __enter__(self) -> Self:
        ipython: Any = import_module("IPython.display")
        self._html = ipython.HTML
        self._handle = ipython.display(self._content("starting"), display_id=True)
        self._ticker = Ticker(self.draw)
        self._ticker.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._ticker.stop()
        self.draw(ended=True)

    def update(self, state: StudyState, budget: Budget) -> None:
        self.line.update(state, budget)
        if self.line.clock() - self._drawn >= SECONDS_BETWEEN_REDRAWS:
            self.draw()

    def draw(self, ended: bool = False) -> None:
        self._drawn = self.line.clock()
        if self._handle is not None:
            self._handle.update(self._content(self.line.text(ended)))

    def _content(self, text: str) -> Any:
        return self._html(f'<div style="{NOTEBOOK_STYLE}">{html.escape(text)}</div>')


class PlainLines:
    """Lines on standard error for a pipe or a log file: after trials, and about every minute during a long one.

    Two lines are at least five seconds apart, and further in a long run.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.line, self._lock = Line(clock), threading.Lock()
        self._started = self._waits_since = clock()
        self._told: int | None = None  # finished trials in the last line, or at the start of the run
        self._has_written = False
        self._ticker = Ticker(self.write_if_due)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._ticker.stop()
        self.line.refresh(at_once=True)
        if self._told is not None and self.line.finished > self._told:
            self.write(ended=True)

    def update(self, state: StudyState, budget: Budget) -> None:
        self.line.update(state, budget)
        self.write_if_due()

    def write_if_due(self) -> None:
        """Write a line if there are new results, or if there was none for long."""
        with self._lock:
            self.line.refresh()
            if self._told is None:
                self._told = self.line.finished
            waited = self.line.clock() - self._waits_since
            if self.line.finished > self._told:
                due = not self._has_written or waited >= self._pause()
            else:
                due = waited >= MAX_SECONDS_BETWEEN_LINES
            if due:
                self.write()

    def write(self, ended: bool = False) -> None:
        self._told, self._waits_since, self._has_written = self.line.finished, self.line.clock(), True
        with contextlib.suppress(OSError, ValueError):  # a stream that was closed is no reason to end the run
            write_line(stamped(self.line.text(ended)))

    def _pause(self) -> float:
        """The seconds between two lines after trials: more the longer the run takes."""
        grown = (self.line.clock() - self._started) / RUN_SECONDS_PER_SECOND_OF_PAUSE
        return min(max(MIN_SECONDS_BETWEEN_LINES, grown), MAX_SECONDS_BETWEEN_LINES)
