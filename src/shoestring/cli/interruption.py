"""Ctrl-C, SIGTERM and the end of the terminal while programs run: an interruption, and which one it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ..execution.signals import Terminated, in_main_thread, interruptible

CTRL_C, SIGTERM = 130, 143  # as a shell has them: 128 and the signal's number


@contextmanager
def interruptions() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside, SIGTERM and SIGHUP its subclass Terminated.

    A terminal that closes sends SIGHUP, which would end us without a word and leave the programs to themselves.
    """
    usual = in_main_thread() and hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    if usual:  # not so under nohup, for example
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
    try:
        with interruptible():
            yield
    finally:
        if usual:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)


def exit_code(stopped: BaseException | str) -> int:
    """Of an exception, or of the reason that a run gives for having been interrupted."""
    by_signal = "SIGTERM" in stopped if isinstance(stopped, str) else isinstance(stopped, Terminated)
    return SIGTERM if by_signal else CTRL_C
