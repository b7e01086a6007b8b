"""An executor that evaluates trials in worker processes: a crash, an out-of-memory kill or a timeout ends one trial and no other.

A worker evaluates one trial at a time and is kept for the next one: it takes half a second to start, and what the objective
imports may take much longer to load. A worker that dies or is killed is replaced when the next trial needs it. So what a trial
leaves in memory is still there for the next trial of the same worker, as it is in a plain loop. The working directory is reset.

Each worker is a new interpreter. It is not a fork, which would copy locks in an unknown state. It is not started by
multiprocessing either, which would run the caller's script again unless the script guards against it. A worker has the caller's
``sys.path``, working directory and output, and an empty standard input. It leads a session and process group of its own. So
Ctrl-C in the terminal does not reach it, it cannot read from the terminal, and all that its objective has started can be ended
together with it; what has left the group is found by a mark (see ``process_tree``).
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
from .orphan_guard import OrphanGuard
from .process_tree import end_marked, has_exited, marked_environment, new_mark
from .serialization import evaluation_from_reply, trial_for_worker, worker_lost
from .signals import shielded
from .worker import QUESTIONS, Channel, answer_question

LIVENESS_CHECK_SECONDS = 0.25  # between checks that all workers live; usually a closed channel shows a death at once
EXIT_POLL_SECONDS = 0.01  # between checks whether workers that were asked to exit have done so
EXIT_GRACE_SECONDS = 1.0  # from the request to exit to the kill
MAX_LOADING_SECONDS = 600.0  # for a worker to start and load the objective
MAX_FAILED_STARTS = 3  # workers in a row that exit before their trial starts: then something is wrong with all of them
MAX_KILLED_STARTS = 50  # the same for workers that are killed by a signal, which may be bad luck

WORKER_PROGRAM = """
import json, sys
fileno, path = sys.argv[1:]
sys.argv, sys.path[:] = [""], json.loads(path)
from shoestring.execution.worker import run_worker
run_worker(int(fileno))
"""
THREAD_COUNT_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


@dataclass
class Job:
    """A trial that a worker has received: when it was sent and when it started, by the clock that all processes share."""

    trial: Trial
    live: LiveTrial
    sent: float = 0.0
    started: float | None = None


class ProcessPool:
    """An executor with up to ``workers`` worker processes.

    objective  as ``serialize_objective`` returns it
    timeout    the time limit of a trial in seconds, from the call of the objective
    """

    def __init__(
        self, objective: bytes, space: Space, workers: int, timeout: float | None = None, raise_errors: bool = False
    ) -> None:
        self.workers, self.timeout = workers, timeout
        self._setup = (objective, space, raise_errors)
        self._threads_per_worker = max(1, usable_cores() // workers)
        self._processes: list[WorkerProcess] = []  # all that were started and not removed; those with a job are busy
        self._failed_starts = 0
        self._buffer = ResultBuffer()
        self._selector = selectors.DefaultSelector()
        self._guard = OrphanGuard()  # ends the workers if this process is killed

    # -- the executor protocol ---------------------------------------------------------------------------------------

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._assign(Job(trial, live))

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        deadline = None if seconds is None else self.now() + seconds
        while any(process.job for process in self._processes):
            self._selector.select(0.0 if self._buffer else self._select_seconds(deadline))
            for process in list(self._processes):  # all of them: an interruption may have left unread messages
                self._buffer.collect(self._receive, process)
            for process in list(self._processes):
                self._buffer.collect(self._check, process)
            if self._buffer or (deadline is not None and self.now() >= deadline):
                break
        return self._buffer.take(seconds)

    def cancel(self) -> None:
        busy = [process for process in self._processes if process.job]
        terminate(busy)
        self._remove(busy)

    def __enter__(self) -> Self:
        self._guard.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        with shielded(forget=True):  # the run ends in any case
            self.cancel()
            shut_down(self._processes)
            self._remove(list(self._processes))
            self._selector.close()
            self._guard.__exit__(*error)

    # -- from trial to result ----------------------------------------------------------------------------------------

    def _assign(self, job: Job) -> None:
        """Send a job to an idle worker, or to a new one."""
        process = next((each for each in self._processes if each.job is None and not each.has_exited()), None)
        with shielded():  # a worker that is started and not added to the list would never be ended
            if process is None:
                process = WorkerProcess(self._setup, self._threads_per_worker)
                self._processes.append(process)
                self._guard.watch(process.group, process.mark)
                self._selector.register(process.channel.socket, selectors.EVENT_READ, process)
            process.job = job
        process.send_job()

    def _receive(self, process: WorkerProcess) -> list[CompletedTrial]:
        """Read a worker's messages: answer questions, keep reports, and return the result if there is one."""
        for number, *message in process.channel.received():
            job = process.job
            if job is None or (number is not None and number != job.trial.number):
                continue  # from a thread that an earlier trial has left behind
            if message[0] == "started":
                job.started, self._failed_starts = message[1], 0
            elif message[0] == "report":
                job.live.reports.append(message[1])
                job.live.on_report(message[1])
            elif message[0] in QUESTIONS:
                process.send_answer(answer_question(job.live, message[0]))
            else:
                process.job = None
                return [CompletedTrial(job.trial, evaluation_from_reply(tuple(message), self._elapsed(job)))]
        return self._replace(process) if process.channel.closed else []

    def _check(self, process: WorkerProcess) -> list[CompletedTrial]:
        """Check whether a worker has died, or its trial has exceeded the time limit."""
        job, exited = process.job, process.has_exited()
        late = self.timeout is not None and job is not None and job.started is not None and self._elapsed(job) >= self.timeout
        if exited or late:
            completed = self._receive(process)  # its last messages
            if completed or process not in self._processes or process.job is not job:
                return completed
        if exited:
            return self._replace(process)
        if late and job is not None and self.timeout is not None:
            self._remove([process])
            reason, reports = f"timed out after {duration(self.timeout)}", tuple(job.live.reports)
            ended = Evaluation(Outcome(None), self._elapsed(job), reason, reports, censored=True, kind="timeout")
            return [CompletedTrial(job.trial, ended)]
        if job is not None and job.started is None and self._elapsed(job) > MAX_LOADING_SECONDS:
            raise ExecutionError(f"a worker has not started trial {job.trial.number} after {duration(MAX_LOADING_SECONDS)}")
        return []

    def _replace(self, process: WorkerProcess) -> list[CompletedTrial]:
        """Remove a worker that has died. Its trial has failed; if it had not started, another worker gets it."""
        (reason,), job = self._remove([process]), process.job
        if job is None:
            return []
        if job.started is not None:
            return [CompletedTrial(job.trial, worker_lost(reason, self._elapsed(job), tuple(job.live.reports)))]
        self._failed_starts += 1
        if self._failed_starts >= (MAX_KILLED_STARTS if (process.popen.returncode or 0) < 0 else MAX_FAILED_STARTS):
            attempts = f"{self._failed_starts} attempts"
            raise ExecutionError(f"no worker could be started, in {attempts}: {reason}; see its standard error")
        self._assign(job)
        return []

    def _elapsed(self, job: Job) -> float:
        """Seconds since the objective was called; before that, since the trial was sent."""
        return self.now() - (job.sent if job.started is None else job.started)

    def _select_seconds(self, deadline: float | None) -> float:
        """How long to wait for messages before the next check of the workers."""
        limits = [LIVENESS_CHECK_SECONDS] if deadline is None else [LIVENESS_CHECK_SECONDS, deadline - self.now()]
        if self.timeout is not None:
            limits += [self.timeout - self._elapsed(each.job) for each in self._processes if each.job and each.job.started]
        return max(0.0, min(limits))

    def _remove(self, processes: Sequence[WorkerProcess]) -> list[str]:
        """Kill what is left of workers and of all that they have started, and say how each of them ended."""
        reasons = list[str]()
        for process in processes:
            with contextlib.suppress(KeyError):  # an interruption came in between when it was removed for the first time
                self._selector.unregister(process.channel.socket)
            reasons.append(process.kill())
        end_marked([process.mark for process in processes], EXIT_GRACE_SECONDS)
        for process in processes:
            self._guard.release(process.group, process.mark)
            self._processes.remove(process)
        return reasons


class WorkerProcess:
    """One worker process, as the coordinator sees it: its channel and its present job.

    setup    what it needs for all trials; sent before the first one
    threads  how many threads its numerical libraries may use, unless the user's environment says so
    """

    def __init__(self, setup: Sequence[object], threads: int) -> None:
        self.mark = new_mark()
        ours, theirs = socket.socketpair()
        path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, *flags, "-c", WORKER_PROGRAM, str(theirs.fileno()), path],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**dict.fromkeys(THREAD_COUNT_VARIABLES, str(threads)), **os.environ, **marked_environment(self.mark)},
            )
        self.channel = Channel(ours)
        self.job: Job | None = None
        self._setup: Sequence[object] | None = setup

    @property
    def group(self) -> int:
        """The number of its process group, which it leads."""
        return self.popen.pid

    def send_job(self) -> None:
        """Send the job, and before the first one the setup."""
        assert self.job is not None
        self.job.sent, self.job.started = time.perf_counter(), None
        with contextlib.suppress(OSError):  # a worker that has died is found by the next check
            if self._setup is not None:
                self.channel.send(*self._setup)
                self._setup = None
            self.channel.send(trial_for_worker(self.job.trial), os.getcwd())

    def send_answer(self, answer: tuple[bool, object]) -> None:
        """Answer a question of its objective."""
        with contextlib.suppress(OSError):
            self.channel.send(*answer)

    def has_exited(self) -> bool:
        """Whether the process has exited. The channel does not show it if a child process still holds the worker's end."""
        return has_exited(self.popen)

    def send_signal(self, number: int) -> None:
        """Send a signal to the worker and to all processes that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    def kill(self) -> str:
        """Kill what is left of the worker's process group, collect the exit status, and say how the worker ended."""
        by_itself = wait_for_exit([self], EXIT_GRACE_SECONDS if self.channel.closed else 0.0)
        self.send_signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in a system call, and ends when that returns
            self.popen.wait(EXIT_GRACE_SECONDS)
        self.channel.close()
        return exit_reason(self.popen.returncode or 0) if by_itself else "the worker closed its connection"


def wait_for_exit(processes: Iterable[WorkerProcess], seconds: float) -> bool:
    """Wait until all have exited, at most so long; whether they have."""
    deadline = time.perf_counter() + seconds
    while not (exited := all(process.has_exited() for process in processes)) and time.perf_counter() < deadline:
        time.sleep(EXIT_POLL_SECONDS)
    return exited


def terminate(processes: Sequence[WorkerProcess]) -> None:
    """Ask workers, and all that they have started, to exit, and give them time for it. The caller kills them next."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    wait_for_exit(processes, EXIT_GRACE_SECONDS)


def shut_down(processes: Sequence[WorkerProcess]) -> None:
    """Let idle workers exit by themselves, so that the objective's exit handlers run; terminate those that take too long."""
    for process in processes:
        process.channel.shut_down()
    if not wait_for_exit(processes, EXIT_GRACE_SECONDS):
        terminate(processes)


def exit_reason(code: int) -> str:
    """How a worker ended, in words; ``code`` as ``subprocess`` has it: below 0 for a signal."""
    if code >= 0:
        return f"the worker exited with code {code}"
    if -code == signal.SIGKILL:
        return "the worker was killed by signal 9 (out of memory?)"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"the worker was killed by signal {-code} ({name})"


def usable_cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
