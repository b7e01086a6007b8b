"""Ctrl-C and SIGTERM: both end a run where it stands, but not in the middle of writing something down.

Python raises KeyboardInterrupt between any two steps of the main thread. While a result is recorded, or an interrupted run puts
its trials back, that would lose something, so a signal that comes then waits until it is done.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

USUAL: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Terminated(KeyboardInterrupt):
    """SIGTERM has come."""


class _Shield:
    """Of the main thread: how many ``shielded`` it is in, and the signal that waits for it to leave them."""

    depth = 0
    waiting: int | None = None


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interruptible() -> Iterator[None]:
    """Both signals raise KeyboardInterrupt inside, in the main thread, unless somebody has other plans for them already."""
    ours = [number for number, usual in USUAL.items() if in_main_thread() and signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, USUAL[number])


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _Shield.depth and _Shield.waiting is None:
        _Shield.waiting = number
    else:
        raise_for(number)  # also at the second one inside: whoever insists knows what he wants


def raise_for(number: int) -> None:
    raise Terminated("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def shielded(forget: bool = False) -> Iterator[None]:
    """A signal that comes inside is raised on leaving, or forgotten: for short steps that must be whole.

    Of use only within ``interruptible``, in the main thread; elsewhere it does nothing.
    """
    if not in_main_thread():
        yield
        return
    _Shield.depth += 1
    try:
        yield
    finally:
        _Shield.depth -= 1
        if not _Shield.depth:
            number, _Shield.waiting = _Shield.waiting, None
            if number is not None and not forget:
                raise_for(number)
