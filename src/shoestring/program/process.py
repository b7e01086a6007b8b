"""One run of a program: in a process group of its own, its output into files, nothing on its standard input.

Its own group (and session) means that Ctrl-C in the terminal reaches Shoestring alone, which then decides; that everything the
program has started ends with it; and that it cannot ask a terminal for anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

GRACE = 2.0  # seconds between the request to end and the end
LOOK = 0.25  # seconds between two looks at whether to go on


class TimedOut(Exception):
    """It ran longer than it was allowed to."""


class Interrupted(Exception):
    """Somebody wanted it to end."""


class Watchman(Protocol):
    """Somebody who ends the groups that he watches if we are killed."""

    def watch(self, group: int) -> None: ...
    def release(self, group: int) -> None: ...


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: Path,
    err: Path,
    *,
    timeout: float | None = None,
    unwanted: Callable[[], bool] = lambda: False,
    watchman: Watchman | None = None,
) -> int:
    """Run it to its end and return its exit code; TimedOut or Interrupted after ending it, OSError if it cannot be started."""
    with out.open("wb") as output, err.open("wb") as errors:
        process = subprocess.Popen(
            list(arguments), env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
    try:
        if watchman is not None:
            watchman.watch(process.pid)
        return wait(process, timeout, unwanted)
    except BaseException:  # KeyboardInterrupt too: whatever ends us ends the program
        end(process)
        raise
    finally:
        if watchman is not None:
            watchman.release(process.pid)


def wait(process: subprocess.Popen[bytes], timeout: float | None, unwanted: Callable[[], bool]) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        if unwanted():
            raise Interrupted
        left = LOOK if deadline is None else min(LOOK, deadline - time.monotonic())
        try:
            return process.wait(max(left, 0.0))
        except subprocess.TimeoutExpired:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut from None


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole group to end, and end what has not after two seconds. An interruption in between only makes it quicker."""
    try:
        deadline = time.monotonic() + GRACE
        there = send(process, signal.SIGTERM)
        while time.monotonic() < deadline and (process.poll() is None or there):
            time.sleep(0.02)
            there = send(process, 0)
    finally:
        if hasattr(signal, "SIGKILL"):
            send(process, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def send(process: subprocess.Popen[bytes], number: int) -> bool:
    """A signal to the group; False when nobody is left in it."""
    if not hasattr(os, "killpg"):  # Windows has no groups of this kind
        if number:
            process.terminate()
        return process.poll() is None
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of which only zombies are left
        return False
    return True
