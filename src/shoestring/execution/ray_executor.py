"""Ray: trials as tasks of a Ray cluster, each run once.

A Ray task has a worker process to itself, so a crash takes that trial alone, and a cancellation ends the process. Retries are
turned off: Ray would run a task again three times when its process dies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from importlib import import_module
from typing import Any

from ..errors import MethodError

LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # despite its name, 0 means on every system: listen on the loopback interface only
QUIET = {
    LOOPBACK: "0",
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing calls home
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do by itself one day, and warns about until then
}


class RayExecutor(Executor):
    """``st.RayExecutor()`` for ``executor=``: uses Ray as it was initialised, or else starts it, here and for itself alone.

    num_cpus, num_gpus, resources   what a trial takes
    address                         of a cluster to connect to; "auto" for the one that runs on this machine

    ``shutdown``, or the end of ``with st.RayExecutor() as executor``, ends what was started or connected here.
    """

    isolate = False  # a task has a process of its own already

    def __init__(
        self, num_cpus: float = 1, num_gpus: float = 0, resources: Mapping[str, float] | None = None, address: str | None = None
    ) -> None:
        self.resources = {"CPU": num_cpus, "GPU": num_gpus, **(resources or {})}
        self._options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": dict(resources or {}) or None}
        self._refs: dict[Any, Any] = {}
        self._remote: dict[Any, Any] = {}
        self.ray, self._ours = joined(address)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A future of Ray's; ``end`` knows its task."""
        if fn not in self._remote:
            self._remote[fn] = self.ray.remote(max_retries=0, retry_exceptions=False, **self._options)(fn)
        ref = self._remote[fn].remote(*args, **kwargs)
        future = ref.future()
        self._refs[future] = ref
        future.add_done_callback(lambda done: self._refs.pop(done, None))
        return future

    def capacity(self) -> int:
        """Trials that the cluster can run at once, by its resources."""
        there = self.ray.cluster_resources()
        return min((int(there.get(name, 0.0) // need) for name, need in self.resources.items() if need > 0), default=0)

    def died(self, error: BaseException) -> bool:
        """Whether an error says no more than that a worker or its machine is gone."""
        gone = self.ray.exceptions
        return isinstance(error, gone.WorkerCrashedError | gone.NodeDiedError | gone.OutOfMemoryError)

    def end(self, futures: Sequence[Any]) -> None:
        """Really cancel: the processes are killed."""
        for future in futures:
            if (ref := self._refs.get(future)) is not None:
                self.ray.cancel(ref, force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._ours:
            self._ours = False
            self.ray.shutdown()


def joined(address: str | None) -> tuple[Any, bool]:
    """The module ``ray``, initialised, and whether that was done here."""
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise MethodError('RayExecutor needs Ray: pip install "shoestring[ray]"') from None
    if ray.is_initialized():
        return ray, False
    if address is not None:
        ray.init(address=address, logging_level="ERROR")
        return ray, True
    os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
    constants: Any = import_module("ray._private.ray_constants")
    if os.environ[LOOPBACK] == "0" and hasattr(constants, "ENABLE_RAY_CLUSTER"):
        constants.ENABLE_RAY_CLUSTER = False  # what the variable says, which was read when ray was imported
    ray.init(include_dashboard=False, logging_level="ERROR")
    return ray, True
