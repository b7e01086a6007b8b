"""Handlers of SIGINT (Ctrl-C), SIGTERM and SIGHUP: they end a run at once, but never in the middle of recording something.

Python raises KeyboardInterrupt between any two steps of the main thread. While a result is recorded, or while an interrupted run
puts its trials back into the queue, this would lose data. A signal that arrives then is deferred until that step is complete.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from .._format import listed

DEFAULT_HANDLERS: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived."""


class _Deferral:
    """State of the main thread: how many ``shielded`` blocks it is in, and the signal that is deferred until it leaves them."""

    depth = 0
    pending: int | None = None
    since = 0.0  # when that signal arrived


def seconds_deferred() -> float | None:
    """How long a signal has been waiting for a ``shielded`` step to be complete; None if there is none."""
    return None if _Deferral.pending is None else time.monotonic() - _Deferral.since


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interruptible(hangup: bool = False) -> Iterator[list[signal.Signals]]:
    """Inside, SIGINT raises KeyboardInterrupt and SIGTERM raises Terminated, in the main thread. Yields those that it handles.

    A signal for which the user has installed a handler is left alone. With ``hangup``, SIGHUP counts as SIGTERM: a terminal that
    is closed sends it, and by default it would end this process and leave its child processes running. Under nohup SIGHUP is
    ignored, and stays so.
    """
    ours = [number for number, default in DEFAULT_HANDLERS.items() if in_main_thread() and signal.getsignal(number) == default]
    sighup = signal.SIGHUP if hangup and in_main_thread() and hasattr(signal, "SIGHUP") else None
    if sighup is not None and signal.getsignal(sighup) != signal.SIG_DFL:
        sighup = None
    for number in ours:
        signal.signal(number, _interrupt)
    if sighup is not None:
        signal.signal(sighup, lambda number, frame: signal.raise_signal(signal.SIGTERM))
    try:
        yield ours
    finally:
        for number in ours:
            signal.signal(number, DEFAULT_HANDLERS[number])
        if sighup is not None:
            signal.signal(sighup, signal.SIG_DFL)


def end_process(number: signal.Signals) -> None:
    """End this process as the signal would have done, once everything is saved: its parent sees 143 for SIGTERM."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _Deferral.depth and _Deferral.pending is None:
        _Deferral.pending, _Deferral.since = number, time.monotonic()
    else:
        _raise_interrupt(number)  # also for the second signal inside ``shielded``: the user insists


def _raise_interrupt(number: int) -> None:
    raise Terminated("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt


def raised_by_signal_handler(error: BaseException) -> bool:
    """Whether a SystemExit comes from a signal handler of the user, as a handler of SIGTERM often raises it.

    Then it was meant for the process, and not for the code that the signal has interrupted.
    """
    if not isinstance(error, SystemExit) or not in_main_thread():  # handlers run in the main thread only
        return False
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: Any) -> CodeType | None:
    """The code of a signal handler; None for those that are not written in Python."""
    if not callable(handler) or isinstance(handler, signal.Handlers):
        return None
    handler = getattr(handler, "func", handler)  # of a functools.partial
    if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
        handler = type(handler).__call__
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


@contextmanager
def shielded(forget: bool = False) -> Iterator[None]:
    """Defer signals during a short step that must be complete: they are raised on exit, or dropped with ``forget``.

    It works within ``interruptible`` in the main thread, and does nothing elsewhere.
    """
    if not in_main_thread():
        yield
        return
    _Deferral.depth += 1
    try:
        yield
    finally:
        _Deferral.depth -= 1
        if not _Deferral.depth:
            number, _Deferral.pending = _Deferral.pending, None
            if number is not None and not forget:
                _raise_interrupt(number)


def describe_interruption(by: KeyboardInterrupt, again: Sequence[int]) -> str:
    """interrupted; trials 3, 4 and 5 will be asked again"""
    how = "interrupted by SIGTERM" if isinstance(by, Terminated) else "interrupted"
    numbers = listed([str(number) for number in sorted(again)])
    return f"{how}; {'trial' if len(again) == 1 else 'trials'} {numbers} will be asked again" if again else how
