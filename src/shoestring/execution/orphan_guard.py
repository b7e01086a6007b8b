"""A watchdog process that ends child processes if the coordinator is killed and cannot end them itself.

Child processes run in process groups of their own, so a signal to the coordinator does not reach them. If the coordinator is
killed (kill -9, out of memory), its trials return to the queue after a while and are evaluated again. The old processes must not
still be running then. So one small process knows which groups run: their numbers are sent to it through a pipe. When the pipe
closes, for whatever reason, it ends the remaining groups and exits.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

WATCHDOG_PROGRAM = """
import os, signal, sys, time
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
def send_signal(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
send_signal(signal.SIGTERM)
if groups:
    time.sleep(2)
send_signal(signal.SIGKILL)
"""


class OrphanGuard:
    """``with OrphanGuard() as guard``: then ``guard.watch(group)`` and ``guard.release(group)``, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> OrphanGuard:
        if hasattr(os, "killpg"):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCHDOG_PROGRAM],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):  # the watchdog was killed: it is needed only after our own death
                self._pipe(self._process).close()
            self._process.wait()

    def watch(self, group: int) -> None:
        """End this process group if the coordinator dies."""
        self._send(f"+{group}\n")

    def release(self, group: int) -> None:
        """The process group has ended: its number may soon belong to another one."""
        self._send(f"-{group}\n")

    def _send(self, line: str) -> None:
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
