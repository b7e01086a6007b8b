"""Descriptions of a failure of the objective: one line that names the user's own code, the traceback, and what to do about it."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ..data.outcome import capped
from ..errors import OutcomeError

MAX_TRACEBACK_BYTES = 10_000  # that are kept with a trial
MAX_MESSAGE_BYTES = 60_000  # of an exception: with its class and its line, it stays below what is kept of an error
NOT_OF_THE_CONFIG = (NameError, ImportError, SyntaxError)  # errors that every config would raise

_ROOT = Path(__file__).parents[1]
_OWN_OBJECTIVES = (_ROOT / "program", _ROOT / "cli")  # the library's own objectives are there
_LIBRARIES = {Path(path).resolve() for name, path in sysconfig.get_paths().items() if name in ("stdlib", "purelib", "platlib")}


class WrongType(OutcomeError):
    """The objective has returned something that is no number."""


def explain(error: BaseException, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What an ``Evaluation`` keeps of an exception; ``parameters`` are those of the space."""
    return {
        "error": describe(error),
        "traceback": traceback_text(error),
        "exception": error,
        "kind": type(error).__name__,
        "hint": hint(error, parameters),
        "fatal": isinstance(error, (*NOT_OF_THE_CONFIG, WrongType)),
        "transient": not isinstance(error, OutcomeError),
    }


def hint(error: BaseException, parameters: Mapping[str, Any]) -> str | None:
    """What to do about a common mistake; None if it is none."""
    names = ", ".join(parameters)
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        name = error.args[0]
        if name not in parameters:
            return f"the config has these parameters: {names}"
        if getattr(parameters[name], "when", None) is None:
            return None  # of another dict
        return f"{name} is conditional, and not in the config where it does not apply: read it with config.get({name!r})"
    if isinstance(error, SystemExit):
        return "the objective must not end the process: raise an exception in place of sys.exit(), or return a value"
    if type(error).__name__ == "TrialPruned":
        return "a trial that is stopped early returns the value that it has reached: if trial.should_stop(): return value"
    text = safe_text(error)
    if isinstance(error, AttributeError) and "'dict' object" in text:
        read = "suggest_" in text and "; the space says what is searched"
        return f'the objective gets the config as a dict: read it with config["{next(iter(parameters), "lr")}"]{read or ""}'
    if isinstance(error, TypeError) and "'dict'" in text:
        return f'the objective gets the config as a dict: read it with config["{next(iter(parameters), "lr")}"]'
    return None


def describe(error: BaseException) -> str:
    """The error in one line, with the place in the user's own code: "KeyError: 'lr' (train.py, line 12)"."""
    message = " ".join(safe_text(error).split())
    if isinstance(error, WrongType):  # there is no line of the user's in it
        return message
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    outside = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_internal(Path(frame.filename))]
    own = [frame for frame in outside if not _is_library(frame.filename)] or outside
    return f"{text} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else text


def traceback_text(error: BaseException) -> str:
    """The whole traceback as text, from the user's first line on. The middle of a very long one is left out."""
    start: TracebackType | None = error.__traceback__
    while start is not None and _is_internal(Path(start.tb_frame.f_code.co_filename)):
        start = start.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, start))
    except Exception:  # its __str__ raises
        text = "".join(traceback.format_tb(start)) + type(error).__name__
    return capped(text, MAX_TRACEBACK_BYTES)


def safe_text(error: BaseException) -> str:
    """``str(error)``, capped; empty if that raises, or calls ``sys.exit``."""
    try:
        return capped(error, MAX_MESSAGE_BYTES)
    except (Exception, SystemExit):
        return ""


def _is_internal(path: Path) -> bool:
    """Whether a file belongs to this library, its own objectives excepted."""
    return _ROOT in path.parents and path.parent not in _OWN_OBJECTIVES


def _is_library(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    if filename.startswith("<frozen "):
        return True
    parents = Path(filename).resolve().parents
    return any(library in parents for library in _LIBRARIES) or "site-packages" in filename or "dist-packages" in filename


