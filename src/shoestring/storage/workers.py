"""Who a worker is, so that one that has died on this machine is known to be dead without waiting for its lease.

A name is the machine since it was booted, the space of process numbers (a container has its own), the process's number, and when
it began, since numbers are used again. Elsewhere than on Linux a name tells nothing, and the lease decides.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

PROC = Path("/proc")


def own_name() -> str:
    """Of this process."""
    return f"{socket.gethostname()}/{_place()}/{os.getpid()}/{_began(os.getpid())}"


def surely_dead(name: str) -> bool:
    """Whether a worker ran here and does so no more; False where nobody can tell."""
    parts = name.split("/")
    if len(parts) != 4 or not _place() or parts[:2] != [socket.gethostname(), _place()]:
        return False
    process, began = parts[2:]
    return process.isdecimal() and bool(began) and _began(int(process)) != began


def _place() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{(PROC / 'self/ns/pid').readlink()}".replace("/", "")
    except OSError:
        return ""


def _began(process: int) -> str:
    """In ticks since the machine was booted; empty if there is no such process, or if it is dead and nobody has noticed."""
    try:
        fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
