"""Which process keeps a SQLite file locked, and whether it is suspended.

A process that is suspended (Ctrl-Z, ``kill -STOP``) in the middle of a write keeps the file locked, and SQLite has no way to take
the lock from it. So those who wait can only say which process it is, and how to let it go on.

The system knows the holder of a lock (``F_GETLK``). It is asked through a descriptor that SQLite itself has open: to open the
file once more and close it would end all locks of this process on it (POSIX). Linux only; elsewhere the holder is not known.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

PROC = Path("/proc")
LOCK_FORMAT = "hhqqi4x"  # Linux's struct flock: type, whence, start, length, process
LOCKED_BYTES = (("-shm", 120, 1), ("", 0x40000000, 2))  # the write lock of WAL mode, and those of the other modes, by file
MAX_COMMAND = 80  # characters that are shown


def find_holder(path: str) -> int | None:
    """The process that has locked a SQLite file (its real path) to write to it; None if there is none or it is not known.

    This process must have the file open, and its own locks do not count.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    for suffix, start, length in LOCKED_BYTES:
        descriptor = _open_descriptor(path + suffix)
        if descriptor is None:
            continue
        question = struct.pack(LOCK_FORMAT, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        try:
            kind, _, _, _, process = struct.unpack(LOCK_FORMAT, fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
        except OSError:  # closed meanwhile
            continue
        if kind != fcntl.F_UNLCK and process > 0:
            return int(process)
    return None


def _open_descriptor(path: str) -> int | None:
    """A descriptor of this process for a file; it must not be closed."""
    try:
        wanted = os.stat(path)
        names = os.listdir(PROC / "self" / "fd")
    except OSError:
        return None
    for name in names:
        try:
            if os.path.samestat(os.stat(PROC / "self" / "fd" / name), wanted):
                return int(name)
        except OSError:  # closed meanwhile
            continue
    return None


def describe_holder(path: str) -> str | None:
    """Who keeps a SQLite file locked and what to do about it, in words; None if that is not known."""
    process = find_holder(path)
    if process is None:
        return None
    try:
        state = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[0]
        words = (PROC / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:  # it has ended, or is hidden
        return None
    name = f"process {process} ({words[:MAX_COMMAND]})" if words else f"process {process}"
    if state in "Tt":
        advice = f"let it go on with: kill -CONT {process}, or end it with: kill -9 {process} (what it has stored is not lost)"
        return f"{name} is suspended in the middle of a write, and keeps it locked; {advice}"
    return f"{name} keeps it locked; wait for it, or end it"
