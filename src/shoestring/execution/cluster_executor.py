"""The base class of executors for clusters (Dask, Ray): what trials need beyond ``concurrent.futures.Executor``.

``Executor.submit`` says nothing of how many tasks run at once, how to end a task that has started, or how the death of a worker
shows. ``ClusterExecutor`` declares a method for each of these, with a default where there is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any


class ClusterExecutor(Executor, ABC):
    """An executor that runs each trial once, and for which the library knows how to cancel it.

    isolate        whether the objective is called in a process of its own beside the executor's worker
    shares_memory  whether tasks run in this process, so that the objective need not be serialized
    """

    isolate: bool = False
    shares_memory: bool = False

    def submit_task(self, run: Callable[..., bytes], task: bytes, token: str) -> Any:
        """Submit a trial: the call ``run(task, token)`` of ``futures.run_task``; returns a future of its result.

        ``token`` differs between any two calls, so that no cluster takes two calls for one and returns a cached result.
        """
        return self.submit(run, task, token)

    @abstractmethod
    def capacity(self) -> int | None:
        """How many trials can run at once; None if that is not known."""

    def is_worker_death(self, error: BaseException) -> bool:
        """Whether an error of a task means that its worker has died, and not that the executor itself has failed."""
        return False

    def cancel_running(self, futures: Sequence[Any]) -> None:
        """End tasks that have started. By default they run on."""
        return

    def release(self, future: Any) -> None:
        """A trial is over: free what the cluster holds for it."""
        return
