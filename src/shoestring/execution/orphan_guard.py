"""A watchman for the case that the coordinator is killed and can end nothing any more.

Programs run in process groups of their own, so nothing that happens to the coordinator reaches them. If it is killed outright
(kill -9, out of memory), its trials go back to the queue after a while and somebody evaluates them again: then the old programs
should not still be running. So one small process is told which groups run, by a pipe. When the pipe closes, whatever the reason,
it ends the groups that are left, and itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

SCRIPT = """
import os, signal, sys, time
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
def tell(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
tell(signal.SIGTERM)
if groups:
    time.sleep(2)
tell(signal.SIGKILL)
"""


class Guard:
    """``with Guard() as guard``: then ``guard.watch(group)`` and ``guard.release(group)``, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Guard:
        if hasattr(os, "killpg"):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SCRIPT],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody killed the watchman: nothing depends on it while we live
                self._pipe(self._process).close()
            self._process.wait()

    def watch(self, group: int) -> None:
        self._say(f"+{group}\n")

    def release(self, group: int) -> None:
        self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        if self._process is None:
            return
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):  # ValueError: the pipe is closed
            pipe = self._pipe(self._process)
            pipe.write(line)
            pipe.flush()

    @staticmethod
    def _pipe(process: subprocess.Popen[str]) -> IO[str]:
        assert process.stdin is not None
        return process.stdin
