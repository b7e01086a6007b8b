"""Anything shaped like ``concurrent.futures.Executor``: ``submit`` that returns something with ``result``, ``cancel`` and
``add_done_callback``.

An executor of threads gets the objective as it is; all others get a ``Task``. Those of ours (``DaskExecutor``, ``RayExecutor``)
also say what to submit (``task``), whether it should have a process of its own (``isolate``), how many run at once
(``capacity``), what a dead worker looks like (``died``), how to end what has begun (``end``; elsewhere it runs on), and what to
do when a trial is over (``settle``).
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor
from typing import Any, Self

from ..data.trial import Trial
from ..errors import ExecutionError
from ..space.space import Space
from .evaluate import LiveTrial, Objective, evaluate, takes_trial
from .executor import CompletedTrial, ResultBuffer
from .serialization import evaluation_of, lost, packed, slim
from .task import Task, perform, reply_of

IN_A_ROW = 3  # errors of the executor itself, with nothing that worked between them, that are no accident


class FuturesExecutor:
    """Trials on somebody else's workers. The executor is the user's and stays open."""

    def __init__(
        self,
        executor: Any,
        objective: Objective,
        space: Space,
        workers: int,
        timeout: float | None = None,
        raise_errors: bool = False,
    ) -> None:
        self.executor, self.objective, self.space, self.workers = executor, objective, space, workers
        self.timeout, self.raise_errors = timeout, raise_errors
        self.here = isinstance(executor, ThreadPoolExecutor)
        self._packed = b"" if self.here else packed(objective)
        self._live = takes_trial(objective) is not None
        self._running: dict[int, tuple[Trial, Any, float]] = {}
        self._done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._basket = ResultBuffer()
        self._troubles = 0

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        done, number = self._done, trial.number
        try:
            future = self._submit(trial, live)
        except (BrokenExecutor, RuntimeError) as error:  # RuntimeError: it was shut down
            raise ExecutionError(f"the executor takes no more trials: {error}; go on with another one") from error
        self._running[number] = (trial, future, self.now())
        future.add_done_callback(lambda _: done.put(number))

    def _submit(self, trial: Trial, live: LiveTrial) -> Any:
        if self.here:
            return self.executor.submit(evaluate, self.objective, trial, live, raise_errors=self.raise_errors)
        isolate = self.timeout is not None or bool(getattr(self.executor, "isolate", False))
        folder = str(live.folder()) if self._live else None  # only here is it known where it is
        given = Task(self._packed, slim(trial), self.space, live.left(), folder, self.raise_errors, isolate, self.timeout)
        token = f"shoestring-trial-{trial.number}-{uuid.uuid4().hex}"
        return self.executor.submit(getattr(self.executor, "task", perform), pickle.dumps(given), token)

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        while self._running:
            try:
                number = self._done.get(block=not self._basket and seconds != 0.0, timeout=seconds)
            except queue.Empty:
                break
            self._basket.collect(self._finish, number)
        return self._basket.hand_out(seconds)

    def _finish(self, number: int) -> Iterator[CompletedTrial]:
        trial, future, submitted = self._running[number]
        seconds = self.now() - submitted
        try:
            result = future.result()
        except CancelledError as error:
            raise ExecutionError(f"trial {number} was cancelled by the executor: {error}; go on with another one") from error
        except BrokenExecutor as error:
            if len(self._running) > 1:  # nobody knows who did it: all are asked again
                raise ExecutionError(f"the executor broke while {len(self._running)} trials ran: {error}") from error
            seen = lost(f"the executor broke: {error}", seconds)
        except Exception as error:
            if self.here and self.raise_errors:
                raise
            seen = lost(self._explain(error, number), seconds)
        else:
            seen = result if self.here else evaluation_of(reply_of(result), seconds)
            self._troubles = 0
        yield CompletedTrial(trial, seen)
        del self._running[number]
        with contextlib.suppress(Exception):
            if hasattr(self.executor, "settle"):
                self.executor.settle(future)

    def _explain(self, error: Exception, number: int) -> str:
        """Why a trial was lost; an ExecutionError if the executor seems to be of no more use."""
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        if getattr(self.executor, "died", lambda error: False)(error):
            return f"the worker died: {text}"
        self._troubles += 1
        if self._troubles >= IN_A_ROW:
            raise ExecutionError(f"the executor failed {IN_A_ROW} times in a row; trial {number}: {text}") from error
        return f"the executor failed: {type(error).__name__}: {text}"

    def cancel(self) -> None:
        futures = [future for _, future, _ in self._running.values()]
        self._running, self._done = {}, queue.SimpleQueue()
        with contextlib.suppress(Exception):  # an executor that is gone cannot be asked
            if hasattr(self.executor, "end"):
                self.executor.end(futures)
            for future in futures:
                future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()
