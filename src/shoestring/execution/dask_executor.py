"""Dask: trials as tasks of a cluster, each run once.

Dask runs a task again, three times, when the worker that has it dies, and takes two calls with equal arguments for one. Here
each submission has a key of its own, and a task first claims that key at the scheduler: one that finds it claimed was begun by
a worker that has died, and ends at once as a failed trial. A trial that has begun cannot be cancelled by Dask, whose tasks are
threads; so the objective is called in a process of its own beside the Dask worker (``isolate=True``), and the task ends that
process when the scheduler no longer wants its result: after a cancellation, and also if the coordinator is gone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from importlib import import_module
from typing import Any

from ..errors import MethodError


class DaskExecutor(Executor):
    """``st.DaskExecutor(client)``, or the address of a scheduler; for ``executor=``.

    resources  what a trial takes of what the workers were started with: ``{"GPU": 1}``
    isolate    call the objective in a process of its own; False for objectives that are fast, or that need the Dask worker's own
               process: then one that has begun cannot be ended before it is done
    """

    def __init__(self, client: Any, *, resources: Mapping[str, float] | None = None, isolate: bool = True) -> None:
        self.resources, self.isolate = dict(resources or {}), isolate
        self._ours = isinstance(client, str)
        self.client = connect(client) if self._ours else client
        if not hasattr(self.client, "scheduler_info"):
            raise MethodError(f"{client!r} is neither a Dask client nor the address of a scheduler")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A Dask future; the last argument of a ``task`` is its key."""
        key = args[-1] if fn is self.task else None
        return self.client.submit(fn, *args, **kwargs, key=key, pure=False, retries=0, resources=self.resources or None)

    def capacity(self) -> int:
        """Trials that the cluster can run at once, by its threads and resources."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(room(worker, self.resources) for worker in workers)

    def died(self, error: BaseException) -> bool:
        """Whether an error says no more than that a worker is gone."""
        scheduler: Any = import_module("distributed.scheduler")
        return isinstance(error, scheduler.KilledWorker)

    def settle(self, future: Any) -> None:
        """A trial is over: let go of its claim."""
        dask: Any = import_module("distributed")
        dask.Event(future.key, client=self.client).clear()

    def end(self, futures: Sequence[Any]) -> None:
        """Really cancel."""
        self.client.cancel(list(futures), force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the client if it was made here."""
        if self._ours:
            self.client.close()

    @staticmethod
    def task(task: bytes, token: str) -> bytes:
        """What is submitted: claim, then perform."""
        from .task import perform

        dask: Any = import_module("distributed")
        claim = dask.Event(token)
        if claim.is_set():
            return pickle.dumps(("lost", "the Dask worker died"))
        claim.set()
        worker = dask.get_worker()

        def wanted() -> bool:
            there = worker.state.tasks.get(token)
            return there is not None and there.state != "cancelled"

        return perform(task, token, wanted)


def connect(address: str) -> Any:
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise MethodError('DaskExecutor needs Dask: pip install "shoestring[dask]"') from None
    return dask.Client(address, set_as_default=False)


def room(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    """How many trials fit on a worker."""
    there = worker.get("resources") or {}
    return min([int(worker["nthreads"]), *(int(there.get(name, 0.0) // need) for name, need in resources.items())])


def adopted(executor: Any) -> Any:
    """A Dask client or its ``get_executor()`` as one of ours, since they would rerun and cache; anything else as it is."""
    kind = type(executor)
    if kind.__module__.startswith("distributed.") and kind.__name__ == "Client":
        return DaskExecutor(executor)
    if kind.__module__.startswith("distributed.") and kind.__name__ == "ClientExecutor":
        return DaskExecutor(executor._client, resources=executor._kwargs.get("resources"))
    return executor
