"""One worker process, as the coordinator sees it.

It is a fresh interpreter, not a fork (which copies locks in whatever state they are) and not what multiprocessing starts (which
runs the caller's script again unless it is guarded). It has the caller's ``sys.path`` and folder, nothing on its standard input,
and the caller's output. It leads a session of its own: Ctrl-C in the terminal does not reach it, it cannot ask the terminal for
anything, and all that its objective has started can be ended with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..evaluate import LiveTrial
from ..trial import Trial
from .channel import Channel
from .travel import slim

PROGRAM = """
import json, sys
fileno, path = sys.argv[1:]
sys.argv, sys.path[:] = [""], json.loads(path)
from shoestring.execution.worker import work
work(int(fileno))
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")
GRACE = 1.0  # seconds from the request to end to the end
LOOK = 0.01


@dataclass
class Job:
    """A trial in the hands of a worker, and when it got it and began, by a clock that all processes of the machine share."""

    trial: Trial
    live: LiveTrial
    sent: float = 0.0
    begun: float | None = None


class Process:
    """A worker and what it is doing; ``cap`` is how many threads its numerical libraries may use unless the user has said so."""

    def __init__(self, setup: Sequence[object], cap: int) -> None:
        ours, theirs = socket.socketpair()
        path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, *flags, "-c", PROGRAM, str(theirs.fileno()), path],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**dict.fromkeys(THREADS, str(cap)), **os.environ},
            )
        self.channel = Channel(ours)
        self.job: Job | None = None
        self._setup: Sequence[object] | None = setup

    @property
    def group(self) -> int:
        """The number of its process group, which is its own."""
        return self.popen.pid

    def begin(self) -> None:
        """Send it its job, and before the first one what it needs for all of them."""
        assert self.job is not None
        self.job.sent, self.job.begun = time.perf_counter(), None
        with contextlib.suppress(OSError):  # one that has died is found when it is looked at
            if self._setup is not None:
                self.channel.send(*self._setup)
                self._setup = None
            self.channel.send(slim(self.job.trial), os.getcwd())

    def reply(self, answer: tuple[bool, object]) -> None:
        """To a question that its objective has asked."""
        with contextlib.suppress(OSError):
            self.channel.send(*answer)

    def ended(self) -> bool:
        """Whether the process is gone: children that hold its end of the channel may outlive it.

        Its exit status is left where it is: until it is taken, no other process can get its number.
        """
        if not hasattr(os, "waitid"):
            return self.popen.poll() is not None
        try:
            return os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else has waited for it
            return True

    def signal(self, number: int) -> None:
        """To it and to all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    def bury(self) -> str:
        """End what is left of it, and say how it ended."""
        by_itself = wait_for([self], GRACE if self.channel.closed else 0.0)
        self.signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel, and ends when that lets go of it
            self.popen.wait(GRACE)
        self.channel.close()
        return how_it_ended(self.popen.returncode or 0) if by_itself else "the worker closed its connection"


def wait_for(processes: Iterable[Process], seconds: float) -> bool:
    """Until all have ended, or so long; whether they have."""
    deadline = time.perf_counter() + seconds
    while not (gone := all(process.ended() for process in processes)) and time.perf_counter() < deadline:
        time.sleep(LOOK)
    return gone


def end(processes: Sequence[Process]) -> None:
    """Ask them to end, and all that they have started, and give them time for it; they are to be buried next."""
    for process in processes:
        process.signal(signal.SIGTERM)
    wait_for(processes, GRACE)


def dismiss(processes: Sequence[Process]) -> None:
    """Let idle ones go by themselves, so that what their objective wants done at the exit is done, but not for long."""
    for process in processes:
        process.channel.hang_up()
    if not wait_for(processes, GRACE):
        end(processes)


def how_it_ended(code: int) -> str:
    """In words, of an exit code."""
    if code >= 0:
        return f"the worker exited with code {code}"
    if -code == signal.SIGKILL:
        return "the worker was killed by signal 9 (out of memory?)"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"the worker was killed by signal {-code} ({name})"
