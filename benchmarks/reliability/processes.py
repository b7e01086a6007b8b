"""Processes of this machine, found by their parent or a mark in their environment, and killed without mistaking one for another.

Linux only. A handle on a process (a pidfd) is taken before it is looked at, so that its number cannot have become another's.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "RELIABILITY_MARK"
WORKER = b"shoestring.execution.worker"


def children(parent: int) -> list[int]:
    return [pid for pid in _all() if _parent(pid) == parent]


def marked(mark: str) -> list[int]:
    """Those that were started with the mark, or by one that was, and still run."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _all() if wanted in _bytes(pid, "environ").split(b"\0")]  # empty of those that have ended


def is_worker(pid: int) -> bool:
    return WORKER in _bytes(pid, "cmdline")


def kill(pid: int, mark: str) -> bool:
    """kill -9 of a process with the mark; False if it is none, or gone."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if f"{MARK}={mark}".encode() not in _bytes(pid, "environ").split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def leave_none(mark: str, patience: float) -> int:
    """Wait for those with the mark to end by themselves; how many had to be killed."""
    until = time.monotonic() + patience
    while (left := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return sum(kill(pid, mark) for pid in left)


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _bytes(pid: int, file: str) -> bytes:
    with contextlib.suppress(OSError):  # gone, or somebody else's
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def _parent(pid: int) -> int:
    fields = _bytes(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] != b"Z" else 0
