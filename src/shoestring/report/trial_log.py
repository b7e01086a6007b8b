"""Log lines: one line a trial to the logger "shoestring", shown on standard error unless the user configures logging.

Logging is the user's. As soon as the root logger or the logger "shoestring" has a handler, the handler of this module steps back:
then only the user's handlers and levels count. Before that it shows lines of level INFO and above.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .._format import amount, config_text, duration, rounded
from .._validation import plain
from ..data.history import History
from ..data.trial import State, Trial
from ..errors import MethodError

log = logging.getLogger("shoestring")

MAX_CONFIG_CHARACTERS = 300  # of a log line
MAX_ERROR_CHARACTERS = 300
DEFAULT_LEVEL = logging.INFO - 1  # shows INFO; no user sets this number, so a level that the user has set can be told from it
ROOT_DEFAULT = logging.WARNING  # the level of the root logger as Python sets it
QUIET = logging.CRITICAL + 1
VERBOSITY = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "quiet": QUIET}


# -- one line a trial ------------------------------------------------------------------------------------------------


def log_trial(trial: Trial, history: History, unit: str) -> None:
    """Log the end of a trial: INFO, or WARNING if it failed. Nothing is computed for a line that is not shown.

    history  with the trial in it;   unit  of costs
    """
    level = logging.WARNING if trial.state is State.FAILED else logging.INFO
    if log.isEnabledFor(level):
        log.log(level, trial_text(trial, history, unit))


def trial_text(trial: Trial, history: History, unit: str) -> str:
    """``trial 12: 0.03121 in 12 s (best 0.0289, trial 9): lr = 0.001, depth = 5``"""
    config = one_line(config_text(trial.config), MAX_CONFIG_CHARACTERS)
    if trial.state is State.DONE:
        before = f", on from trial {known['number']}" if (known := trial.suggestion.get("resumed_from")) else ""
        return f"trial {trial.number}: {rounded(trial.value)}{_price(trial, unit)}{before}{_best(trial, history)}: {config}"
    seconds = trial.cost if trial.seconds is None and unit == "s" else trial.seconds
    after = "" if seconds is None else f" after {duration(seconds)}"
    error = "" if trial.error is None else f": {one_line(trial.error, MAX_ERROR_CHARACTERS)}"
    return f"trial {trial.number} {trial.state}{after}{error}: {config}"


def one_line(text: str, limit: int) -> str:
    """The text on one line of at most ``limit`` characters, without characters that move the cursor of a terminal."""
    if not text.isprintable():
        spaced = " ".join(text.split())
        text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in spaced)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _price(trial: Trial, unit: str) -> str:
    """`` in 12 s``, or `` for 0.3 USD in 12 s`` if costs are no times."""
    if unit == "s":
        seconds = trial.seconds if trial.cost is None else trial.cost
        return "" if seconds is None else f" in {duration(seconds)}"
    cost = "" if trial.cost is None else f" for {amount(trial.cost, unit)}"
    return cost if trial.seconds is None else f"{cost} in {duration(trial.seconds)}"


def _best(trial: Trial, history: History) -> str:
    best = history.best
    if best is None:
        return ""
    return " (new best)" if best.number == trial.number else f" (best {rounded(best.value)}, trial {best.number})"


# -- where the lines go ----------------------------------------------------------------------------------------------


class StderrHandler(logging.Handler):
    """Writes lines on what standard error is at that moment, or has a progress line print them above itself."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.write: Callable[[str], object] = write_line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # as every handler of logging does: an error in a log call must not end the program
            self.handleError(record)
            return
        with contextlib.suppress(OSError, ValueError):  # a stream that was closed is no reason to end a run
            self.write(text)


class LineFormatter(logging.Formatter):
    """``2026-11-16 12:30:05 shoestring: trial 12: ...``; the level is named from WARNING on."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return stamped(record.message, record.levelname.lower() if record.levelno >= logging.WARNING else "", record.created)


def stamped(text: str, level: str = "", at: float | None = None) -> str:
    """A line with its time and where it comes from: ``2026-11-16 12:30:05 shoestring warning: trial 13 failed``."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return f"{moment} shoestring {level}: {text}" if level else f"{moment} shoestring: {text}"


def write_line(text: str) -> None:
    """Write a line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


_handler = StderrHandler()
_lock = threading.Lock()


def send_lines_to(write: Callable[[str], object]) -> None:
    """Have lines that go to standard error written by this function; ``write_line`` is the usual one."""
    _handler.write = write


def configure_logging() -> None:
    """Show log lines on standard error unless the user has configured logging. Called when a run starts."""
    with _lock:
        if _configured_by_user():
            _step_back()
            return
        if _handler not in log.handlers:
            log.addHandler(_handler)
            log.addFilter(_still_ours)
        if log.level == logging.NOTSET and logging.getLogger().level == ROOT_DEFAULT:
            log.setLevel(DEFAULT_LEVEL)


def set_verbosity(level: str | int) -> None:
    """Choose what Shoestring logs: "debug", "info" (a line a trial), "warning" (failures), "error", "quiet", or a logging level.

    It is the level of the logger "shoestring", so it also holds for handlers of your own. With "quiet" nothing is logged: errors
    are still raised. ``logging.NOTSET`` goes back to the default: INFO, or the root logger's level once logging is configured.

    >>> import logging
    >>> st.set_verbosity("warning")
    >>> logging.getLogger("shoestring").level == logging.WARNING
    True
    >>> st.set_verbosity(logging.NOTSET)  # the default again
    """
    chosen: Any = plain(level)
    if isinstance(chosen, str):
        chosen = VERBOSITY.get(chosen.strip().lower())
    if isinstance(chosen, bool) or not isinstance(chosen, int) or chosen < 0:
        names = ", ".join(f'"{name}"' for name in VERBOSITY)
        raise MethodError(f"set_verbosity({level!r}) is not known; give {names} or a level of logging, such as logging.INFO")
    log.setLevel(chosen)
    configure_logging()


def _configured_by_user() -> bool:
    """Whether records go to handlers of the user, or the user has cut the logger off from those of the root logger."""
    return not log.propagate or any(each is not _handler for each in (*log.handlers, *logging.getLogger().handlers))


def _step_back() -> None:
    log.removeHandler(_handler)
    log.removeFilter(_still_ours)
    if log.level == DEFAULT_LEVEL:
        log.setLevel(logging.NOTSET)


def _still_ours(record: logging.LogRecord) -> bool:
    """A filter, which sees a record before all handlers do: steps back if logging was configured during a run."""
    if not _configured_by_user():
        return True
    with _lock:
        _step_back()
    return log.isEnabledFor(record.levelno)
