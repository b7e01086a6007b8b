"""One worker process, as the coordinator sees it.

It is a fresh interpreter, not a fork (which copies locks in whatever state they are) and not what multiprocessing starts (which
runs the caller's script again unless it is guarded). It has the caller's ``sys.path`` and folder, nothing on its standard input,
and the caller's output. It leads a session of its own: Ctrl-C in the terminal does not reach it, it cannot ask the terminal for
anything, and all that its objective has started can be ended with it.

Worker processes of our own: a crash, a kill for want of memory or a timeout takes one trial and nothing else.

A worker evaluates one trial at a time and is kept for the next one, since starting it takes half a second and loading what the
objective needs may take much longer. One that dies or is ended is replaced when there is something for it to do. What a trial
leaves behind in memory is therefore there in the next one that the same worker gets, as it is in a loop; its folder is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from .._format import duration
from ..data.outcome import Outcome
from ..data.trial import Trial
from ..errors import ExecutionError
from ..space.space import Space
from .evaluate import Evaluation, LiveTrial
from .executor import CompletedTrial, ResultBuffer
from .orphan_guard import Guard
from .serialization import evaluation_of, lost, slim
from .signals import shielded
from .worker import Channel, answer

PROGRAM = """
import json, sys
fileno, path = sys.argv[1:]
sys.argv, sys.path[:] = [""], json.loads(path)
from shoestring.execution.worker import work
work(int(fileno))
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")
GRACE = 1.0  # seconds from the request to end to the end
LOOK_AT_EXIT = 0.01


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
        time.sleep(LOOK_AT_EXIT)
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


LOOK = 0.25  # seconds between looks at whether all are alive, which the channels usually tell at once
STILLBORN = 3  # workers in a row that end by themselves before they begin: that is no accident
KILLED = 50  # the same of workers that somebody kills
LOADING = 600.0  # seconds in which a worker has to start and load the objective


class ProcessPool:
    """``objective`` as ``travel.packed`` packs it; ``timeout`` in seconds, from the moment at which the objective is called."""

    def __init__(
        self, objective: bytes, space: Space, workers: int, timeout: float | None = None, raise_errors: bool = False
    ) -> None:
        self.workers, self.timeout = workers, timeout
        self._setup = (objective, space, raise_errors)
        self._cap = max(1, cores() // workers)
        self._staff: list[Process] = []  # all that were started and are not buried; those with a job are at work
        self._stillborn = 0
        self._basket = ResultBuffer()
        self._selector = selectors.DefaultSelector()
        self._guard = Guard()  # ends the workers if this process is killed

    def now(self) -> float:
        return time.perf_counter()

    # -- what the loop asks ------------------------------------------------------------------------------------------

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._assign(Job(trial, live))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        deadline = None if seconds is None else self.now() + seconds
        while any(process.job for process in self._staff):
            self._selector.select(0.0 if self._basket else self._pause(deadline))
            for process in list(self._staff):  # all: an interruption may have left some that were heard in part
                self._basket.collect(self._hear, process)
            for process in list(self._staff):
                self._basket.collect(self._check, process)
            if self._basket or (deadline is not None and self.now() >= deadline):
                break
        return self._basket.hand_out(seconds)

    def cancel(self) -> None:
        ending = [process for process in self._staff if process.job]
        end(ending)
        for process in ending:
            self._bury(process)

    # -- from trial to result ----------------------------------------------------------------------------------------

    def _assign(self, job: Job) -> None:
        """To somebody who is free and alive, or to somebody new."""
        process = next((each for each in self._staff if each.job is None and not each.ended()), None)
        with shielded():  # a worker that was started and not written down would be forgotten
            if process is None:
                process = Process(self._setup, self._cap)
                self._staff.append(process)
                self._guard.watch(process.group)
                self._selector.register(process.channel.socket, selectors.EVENT_READ, process)
            process.job = job
        process.begin()

    def _hear(self, process: Process) -> list[CompletedTrial]:
        """What a worker has to say: questions are answered, reports kept; a result, if there is one."""
        for number, *message in process.channel.arrived():
            job = process.job
            if job is None or (number is not None and number != job.trial.number):
                continue  # a thread that an earlier trial has left behind
            if message[0] == "begun":
                job.begun, self._stillborn = message[1], 0
            elif message[0] == "report":
                job.live.reports.append(message[1])
                job.live.told(message[1])
            elif message[0] in ("left", "folder", "hopeless"):
                process.reply(answer(job.live, message))
            else:
                process.job = None
                return [CompletedTrial(job.trial, evaluation_of(tuple(message), self._seconds(job)))]
        return self._lose(process) if process.channel.closed else []

    def _check(self, process: Process) -> list[CompletedTrial]:
        """Whether a worker is gone, or too late."""
        job, gone = process.job, process.ended()
        late = self.timeout is not None and job is not None and job.begun is not None and self._seconds(job) >= self.timeout
        if gone or late:
            said = self._hear(process)  # its last words
            if said or process not in self._staff or process.job is not job:
                return said
        if gone:
            return self._lose(process)
        if late and job is not None and self.timeout is not None:
            self._bury(process)
            why, reports = f"timed out after {duration(self.timeout)}", tuple(job.live.reports)
            return [CompletedTrial(job.trial, Evaluation(Outcome(None), self._seconds(job), why, reports, censored=True))]
        if job is not None and job.begun is None and self._seconds(job) > LOADING:
            raise ExecutionError(f"a worker has not begun with trial {job.trial.number} after {duration(LOADING)}")
        return []

    def _lose(self, process: Process) -> list[CompletedTrial]:
        """A worker has died: with its trial, or before it began with it, and then the trial goes to another one."""
        reason, job = self._bury(process), process.job
        if job is None:
            return []
        if job.begun is not None:
            return [CompletedTrial(job.trial, lost(reason, self._seconds(job), tuple(job.live.reports)))]
        self._stillborn += 1
        if self._stillborn >= (KILLED if (process.popen.returncode or 0) < 0 else STILLBORN):
            raise ExecutionError(f"no worker could be started, in {self._stillborn} attempts: {reason}; see its standard error")
        self._assign(job)
        return []

    def _seconds(self, job: Job) -> float:
        return self.now() - (job.sent if job.begun is None else job.begun)

    def _pause(self, deadline: float | None) -> float:
        """How long to listen until the next look."""
        ends = [LOOK] if deadline is None else [LOOK, deadline - self.now()]
        if self.timeout is not None:
            ends += [self.timeout - self._seconds(process.job) for process in self._staff if process.job and process.job.begun]
        return max(0.0, min(ends))

    # -- workers that go ---------------------------------------------------------------------------------------------

    def _bury(self, process: Process) -> str:
        """End what is left of a worker, and say how it ended."""
        self._selector.unregister(process.channel.socket)
        reason = process.bury()
        self._guard.release(process.group)
        self._staff.remove(process)
        return reason

    def __enter__(self) -> Self:
        self._guard.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        with shielded(forget=True):  # it is over in any case
            self.cancel()
            dismiss(self._staff)
            for process in list(self._staff):
                self._bury(process)
            self._selector.close()
            self._guard.__exit__(*error)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
