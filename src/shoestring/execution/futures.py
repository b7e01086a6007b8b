"""An executor that submits trials to an executor of the user: ``concurrent.futures``, Dask, Ray, loky, mpi4py.

The user's executor needs a ``submit`` that returns a future, with ``result``, ``cancel`` and ``add_done_callback``. A thread pool
gets the objective as it is. All others get a ``Task``: one argument that holds everything, for the function ``run_task``.

A task cannot ask the coordinator while it runs. What is left of the budget is what was left when the trial was submitted, reports
come back with the result, and no model decides about pruning. With ``isolate``, the objective is called in a process of its own
beside the executor's worker, which only watches it. So a crash does not end the executor's worker, and a trial that exceeds its
time limit or is cancelled can be ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import queue
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..budget import Allowance
from ..data.trial import Trial
from ..errors import ExecutionError
from ..space.space import Space
from .cluster_executor import ClusterExecutor
from .describe import safe_text
from .evaluate import LiveTrial, Objective, evaluate, takes_trial
from .executor import CompletedTrial, ResultBuffer, WorkersLost, next_item
from .process_pool import ProcessPool
from .serialization import (
    Reply,
    evaluate_to_reply,
    evaluation_from_reply,
    exception_reply,
    serialize_objective,
    trial_for_worker,
    worker_lost,
)

MAX_CONSECUTIVE_ERRORS = 3  # of the user's executor itself, with no success in between: then it is given up
CANCEL_CHECK_SECONDS = 0.5  # between checks of an isolated task whether its result is still wanted


# -- in the coordinator ------------------------------------------------------------------------------------------------


class FuturesExecutor:
    """Evaluates trials on the workers of the user's executor. It does not shut the user's executor down."""

    def __init__(
        self,
        executor: ClusterExecutor,
        objective: Objective,
        space: Space,
        workers: int,
        *,
        timeout: float | None = None,
        raise_errors: bool = False,
    ) -> None:
        self.executor, self.objective, self.space, self.workers = executor, objective, space, workers
        self.timeout, self.raise_errors = timeout, raise_errors
        self._pickled_objective = b"" if executor.shares_memory else serialize_objective(objective)
        self._takes_trial = takes_trial(objective) is not None
        self._running: dict[int, tuple[Trial, Any, float]] = {}  # by number: the trial, its future, when it was submitted
        self._done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._buffer = ResultBuffer()
        self._consecutive_errors = 0

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        done, number = self._done, trial.number
        try:
            future = self._submit(trial, live)
        except (BrokenExecutor, RuntimeError) as error:  # RuntimeError: it was shut down
            raise ExecutionError(f"the executor takes no more trials: {error}; continue with another executor") from error
        self._running[number] = (trial, future, self.now())
        future.add_done_callback(lambda _: done.put(number))

    def _submit(self, trial: Trial, live: LiveTrial) -> Any:
        if self.executor.shares_memory:
            return self.executor.submit(evaluate, self.objective, trial, live, raise_errors=self.raise_errors)
        task = Task(
            self._pickled_objective,
            trial_for_worker(trial),
            self.space,
            live.left(),
            folder=str(live.folder()) if self._takes_trial else None,  # only the coordinator knows where it is
            raise_errors=self.raise_errors,
            isolate=self.timeout is not None or self.executor.isolate,
            timeout=self.timeout,
        )
        return self.executor.submit_task(run_task, pickle.dumps(task), f"shoestring-trial-{trial.number}-{uuid.uuid4().hex}")

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        while self._running:
            try:
                number = next_item(self._done, 0.0 if self._buffer else seconds)
            except queue.Empty:
                break
            self._buffer.collect(self._finish, number)
        return self._buffer.take(seconds)

    def _finish(self, number: int) -> Iterator[CompletedTrial]:
        trial, future, submitted = self._running[number]
        seconds = self.now() - submitted
        try:
            result = future.result()
        except CancelledError as error:
            raise ExecutionError(
                f"trial {number} was cancelled by the executor: {error}; continue with another executor"
            ) from error
        except BrokenExecutor as error:
            if len(self._running) > 1:  # it is not known which trial broke it, so all of them are evaluated again
                what = f"the executor broke while {len(self._running)} trials ran: {error}"
                raise WorkersLost(f"{what}; with workers= in place of executor=, only the trial at fault fails") from error
            evaluation = worker_lost(f"the executor broke: {error}", seconds)
        except Exception as error:
            if self.executor.shares_memory and self.raise_errors:
                raise
            evaluation = worker_lost(self._describe(error, number), seconds)
        else:
            evaluation = result if self.executor.shares_memory else evaluation_from_reply(pickle.loads(result), seconds)
            self._consecutive_errors = 0
        yield CompletedTrial(trial, evaluation)
        del self._running[number]
        with contextlib.suppress(Exception):
            self.executor.release(future)

    def _describe(self, error: Exception, number: int) -> str:
        """Why a trial was lost; raises ExecutionError after too many errors of the executor in a row."""
        text = (safe_text(error).strip() or type(error).__name__).splitlines()[0]
        if self.executor.is_worker_death(error):
            return f"the worker died: {text}"
        self._consecutive_errors += 1
        if self._consecutive_errors >= MAX_CONSECUTIVE_ERRORS:
            times = f"{MAX_CONSECUTIVE_ERRORS} times in a row"
            raise ExecutionError(f"the executor failed {times}; trial {number}: {text}") from error
        return f"the executor failed: {type(error).__name__}: {text}"

    def cancel(self) -> None:
        futures = [future for _, future, _ in self._running.values()]
        self._running, self._done = {}, queue.SimpleQueue()
        if not futures:  # nothing to tell the executor: Dask would announce it to all clients of the cluster
            return
        with contextlib.suppress(Exception):  # the executor may be gone
            self.executor.cancel_running(futures)
            for future in futures:
                future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


class WrappedExecutor(ClusterExecutor):
    """Any object with a ``submit`` that returns futures. What has started cannot be cancelled."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.shares_memory = isinstance(executor, ThreadPoolExecutor)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self.executor.submit(fn, *args, **kwargs)

    def capacity(self) -> int | None:
        """The attribute in which ``concurrent.futures`` and loky, or mpi4py, keep their number of workers."""
        found = getattr(self.executor, "_max_workers", None) or getattr(self.executor, "num_workers", None)
        return found if isinstance(found, int) else None


# -- in a worker of the user's executor --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A trial and all that its evaluation needs.

    objective  serialized;   allowance  what was left of the budget when the trial was submitted
    folder     the checkpoint_dir, if the objective takes the live trial and so may ask for it
    isolate    whether it is evaluated in a process of its own;   timeout  its time limit in seconds, with ``isolate``
    """

    objective: bytes
    trial: Trial
    space: Space
    allowance: Allowance
    folder: str | None = None
    raise_errors: bool = False
    isolate: bool = False
    timeout: float | None = None


def run_task(task: bytes, token: str, wanted: Callable[[], bool] = lambda: True) -> bytes:
    """Evaluate a serialized task; returns the serialized reply. An isolated task ends early once ``wanted()`` is False."""
    loaded: Task = pickle.loads(task)
    reply = run_in_own_process(loaded, wanted) if loaded.isolate else run_in_this_process(loaded)
    return pickle.dumps(reply)


def run_in_this_process(task: Task) -> Reply:
    """Evaluate a task in the executor's worker process."""
    try:
        objective = cached_objective(task.objective)
    except (Exception, SystemExit) as error:
        return "load_error", f"{type(error).__name__}: {safe_text(error)}"
    return evaluate_to_reply(objective, task.trial, live_trial(task), task.raise_errors)


def run_in_own_process(task: Task, wanted: Callable[[], bool]) -> Reply:
    """Evaluate a task in a new process beside the executor's worker."""
    with ProcessPool(task.objective, task.space, 1, task.timeout, task.raise_errors) as pool:
        try:
            pool.start(task.trial, live_trial(task))
            while not (completed := pool.wait(CANCEL_CHECK_SECONDS)):
                if not wanted():
                    return "worker_lost", "cancelled"
        except ExecutionError as error:
            return "load_error", str(error)
        except (Exception, SystemExit) as error:  # the objective's exception, with raise_errors
            return exception_reply(error)
    return "done", completed[0].evaluation


_objective_cache: dict[str, Objective] = {}  # the objective that was loaded last, by the hash of its pickle


def cached_objective(pickled: bytes) -> Objective:
    """The objective. The one that was loaded last is kept, so that what it holds in memory lasts from trial to trial."""
    key = hashlib.sha256(pickled).hexdigest()
    if key not in _objective_cache:
        objective = pickle.loads(pickled)
        _objective_cache.clear()
        _objective_cache[key] = objective
    return _objective_cache[key]


def live_trial(task: Task) -> LiveTrial:
    """The live trial of a task: its answers were computed when the trial was submitted."""
    began = time.perf_counter()

    def left() -> Allowance:
        return task.allowance.later(time.perf_counter() - began)

    def folder() -> Path:
        if task.folder is None:
            raise ExecutionError("this trial has no checkpoint folder: its objective does not appear to take the live trial")
        path = Path(task.folder)
        path.mkdir(parents=True, exist_ok=True)  # on another machine it may not exist yet
        return path

    trial = task.trial
    fidelity, before = dict(trial.fidelity), trial.resumed_from
    return LiveTrial(trial.number, trial.config, fidelity, task.space, left, folder, resumed_from=before)
