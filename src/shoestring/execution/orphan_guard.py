"""A watchdog process that ends child processes if the coordinator is killed and cannot end them itself.

Child processes run in process groups of their own, so a signal to the coordinator does not reach them. If the coordinator is
killed (kill -9, out of memory), its trials return to the queue after a while and are evaluated again. The old processes must not
still be running then. So one small process knows which groups run: their numbers, and the marks by which processes that have
left the group are found (see ``process_tree``), are sent to it through a pipe. When the pipe closes, for whatever reason, it ends
the remaining processes and exits.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import subprocess
import sys
import threading
from typing import IO

from . import process_tree

WATCHDOG_PROGRAM = """
import sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups = {}
for line in sys.stdin:
    group, mark = line[1:].split()
    groups[int(group)] = mark
    if line[0] == "-":
        del groups[int(group)]
def send_signal(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            del groups[group]
deadline, marks = time.monotonic() + 2, list(groups.values())
asked = set(groups)
send_signal(signal.SIGTERM)
end_marked(marks, 2, asked_groups=asked)
while any(is_running(group) for group in groups) and time.monotonic() < deadline:
    time.sleep(0.05)
send_signal(signal.SIGKILL)
"""


class OrphanGuard:
    """``with OrphanGuard() as guard``: then ``guard.watch(group, mark)`` and ``guard.release(group, mark)``, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> OrphanGuard:
        if hasattr(os, "killpg"):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", inspect.getsource(process_tree) + WATCHDOG_PROGRAM],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):  # the watchdog was killed: it is needed only after our own death
                self._pipe(self._process).close()
            self._process.wait()

    def watch(self, group: int, mark: str) -> None:
        """End this process group, and the processes with this mark, if the coordinator dies."""
        self._send(f"+{group} {mark}\n")

    def release(self, group: int, mark: str) -> None:
        """The process group has ended: its number may soon belong to another one."""
        self._send(f"-{group} {mark}\n")

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
