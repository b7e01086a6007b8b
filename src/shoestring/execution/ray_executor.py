"""The Ray executor: each trial is a task of a Ray cluster and runs exactly once.

A Ray task has a worker process to itself. So a crash ends that trial alone, and a cancellation kills the process. Retries are
turned off: by itself Ray runs a task again, up to three times, when its process dies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ..errors import MethodError
from .cluster_executor import ClusterExecutor

LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # despite its name, 0 means on every system: listen on loopback only
RAY_ENVIRONMENT = {
    LOOPBACK_VARIABLE: "0",
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage data is sent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's future default; until then Ray warns if it is not set
}


class RayExecutor(ClusterExecutor):
    """Evaluates trials on a Ray cluster, for ``executor=``. It needs ``pip install "shoestring[ray]"``.

    Use it where you have a Ray cluster. It uses Ray if it is initialised already, and else starts it on this machine.
    ``shutdown``, or the end of ``with st.RayExecutor() as executor``, ends what was started or connected here.

    num_cpus, num_gpus, resources  what a trial needs
    address                        of a cluster to connect to; "auto" for the one that runs on this machine

    >>> with st.RayExecutor(num_gpus=1) as executor:  # doctest: +SKIP
    ...     result = st.minimize(train, space, budget="2h", executor=executor)
    """

    isolate = False  # a task has a process of its own already

    def __init__(
        self, num_cpus: float = 1, num_gpus: float = 0, resources: Mapping[str, float] | None = None, address: str | None = None
    ) -> None:
        self.resources = {"CPU": num_cpus, "GPU": num_gpus, **(resources or {})}
        self._options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": dict(resources or {}) or None}
        self._refs: dict[Any, Any] = {}
        self._remote: dict[Any, Any] = {}
        self.ray, self._started_ray = initialised_ray(address)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Submit a call that is not run again; returns a future, whose Ray task ``cancel_running`` can end."""
        if fn not in self._remote:
            self._remote[fn] = self.ray.remote(max_retries=0, retry_exceptions=False, **self._options)(fn)
        ref = self._remote[fn].remote(*args, **kwargs)
        future = ref.future()
        self._refs[future] = ref
        future.add_done_callback(lambda done: self._refs.pop(done, None))
        return future

    def capacity(self) -> int:
        """How many trials the cluster can run at once, by its resources."""
        available = self.ray.cluster_resources()
        return min((int(available.get(name, 0.0) // need) for name, need in self.resources.items() if need > 0), default=0)

    def is_worker_death(self, error: BaseException) -> bool:
        kinds = self.ray.exceptions
        return isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError | kinds.OutOfMemoryError)

    def cancel_running(self, futures: Sequence[Any]) -> None:
        """Kill the processes of these tasks."""
        for future in futures:
            if (ref := self._refs.get(future)) is not None:
                self.ray.cancel(ref, force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut Ray down if it was started or connected here."""
        if self._started_ray:
            self._started_ray = False
            self.ray.shutdown()


def initialised_ray(address: str | None) -> tuple[Any, bool]:
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
    os.environ.update({name: os.environ.get(name, value) for name, value in RAY_ENVIRONMENT.items()})
    constants: Any = import_module("ray._private.ray_constants")
    if os.environ[LOOPBACK_VARIABLE] == "0" and hasattr(constants, "ENABLE_RAY_CLUSTER"):
        constants.ENABLE_RAY_CLUSTER = False  # Ray read the variable when it was imported
    ray.init(include_dashboard=False, logging_level="ERROR")
    return ray, True
