"""The Dask executor: each trial is a task of a Dask cluster and runs exactly once.

By itself Dask runs a task again, up to three times, when the worker that has it dies. It also takes two calls with equal
arguments for one. Here each submission has a key of its own. A task first sets an event of that name at the scheduler: if the
event is set already, a worker that has died had started the task, and it ends at once as a failed trial.

Dask runs tasks in threads, so it cannot cancel one that has started. Therefore the objective is called in a process of its own
beside the Dask worker (``isolate=True``). The task ends that process when the scheduler no longer wants its result: after a
cancellation, and also if the coordinator is gone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ..errors import MethodError
from .cluster_executor import ClusterExecutor


class DaskExecutor(ClusterExecutor):
    """Evaluates trials on a Dask cluster, for ``executor=``. It needs ``pip install "shoestring[dask]"``.

    Use it where you have a Dask cluster; a Dask client given as ``executor=`` is wrapped by it. Each trial runs exactly once.

    client     a Dask client, or the address of a scheduler
    resources  what a trial needs of the resources with which the workers were started: ``{"GPU": 1}``
    isolate    call the objective in a process of its own. False for objectives that are fast, or that need the process of the
               Dask worker: then a trial that has started cannot be ended before it is done

    >>> executor = st.DaskExecutor("tcp://scheduler:8786", resources={"GPU": 1})  # doctest: +SKIP
    >>> result = st.minimize(train, space, budget="2h", executor=executor)  # doctest: +SKIP
    """

    def __init__(self, client: Any, *, resources: Mapping[str, float] | None = None, isolate: bool = True) -> None:
        self.resources, self.isolate = dict(resources or {}), isolate
        self._owns_client = isinstance(client, str)
        self.client = connect(client) if self._owns_client else client
        if not hasattr(self.client, "scheduler_info"):
            raise MethodError(f"{client!r} is neither a Dask client nor the address of a scheduler")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Submit a call that is neither cached nor run again; returns a Dask future."""
        return self._submit(None, fn, *args, **kwargs)

    def submit_task(self, run: Callable[..., bytes], task: bytes, token: str) -> Any:
        return self._submit(token, run_once, run, task, token)

    def _submit(self, key: str | None, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.client.submit(fn, *args, **kwargs, key=key, pure=False, retries=0, resources=self.resources or None)

    def capacity(self) -> int:
        """How many trials the cluster can run at once, by its threads and resources."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker_capacity(worker, self.resources) for worker in workers)

    def is_worker_death(self, error: BaseException) -> bool:
        scheduler: Any = import_module("distributed.scheduler")
        return isinstance(error, scheduler.KilledWorker)

    def cancel_running(self, futures: Sequence[Any]) -> None:
        self.client.cancel(list(futures), force=True)

    def release(self, future: Any) -> None:
        """Delete the event of the trial at the scheduler."""
        dask: Any = import_module("distributed")
        dask.Event(future.key, client=self.client).clear()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the client if it was created here."""
        if self._owns_client:
            self.client.close()


def connect(address: str) -> Any:
    """A Dask client for the scheduler at an address."""
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise MethodError('DaskExecutor needs Dask: pip install "shoestring[dask]"') from None
    return dask.Client(address, set_as_default=False)


def worker_capacity(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    """How many trials that need these resources fit on a Dask worker."""
    available = worker.get("resources") or {}
    return min([int(worker["nthreads"]), *(int(available.get(name, 0.0) // need) for name, need in resources.items())])


def run_once(run: Callable[..., bytes], task: bytes, token: str) -> bytes:
    """What is submitted to Dask: run the task, unless a worker that has died had started it. ``token`` is its Dask key."""
    dask: Any = import_module("distributed")
    started = dask.Event(token)
    if started.is_set():
        return pickle.dumps(("worker_lost", "the Dask worker died"))
    started.set()
    worker = dask.get_worker()

    def wanted() -> bool:
        state = worker.state.tasks.get(token)
        return state is not None and state.state != "cancelled"

    return run(task, token, wanted)


def from_dask(executor: Any) -> DaskExecutor | None:
    """A DaskExecutor for a Dask client or its ``get_executor()``, which would run trials again and cache them; else None."""
    kind = type(executor)
    if kind.__module__.startswith("distributed.") and kind.__name__ == "Client":
        return DaskExecutor(executor)
    if kind.__module__.startswith("distributed.") and kind.__name__ == "ClientExecutor":
        return DaskExecutor(executor._client, resources=executor._kwargs.get("resources"))
    return None
