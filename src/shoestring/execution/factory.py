"""The factory of executors: from ``workers=``, ``executor=``, ``timeout=`` and ``threads=`` to an executor.

Options that exclude each other are refused here, before any trial runs.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .._validation import duration_seconds, whole_number
from ..cost.meter import Meter, MeteredObjective
from ..errors import MethodError
from ..space.space import Space
from ..storage.address import pickles_with_passwords
from .cluster_executor import ClusterExecutor
from .evaluate import Objective
from .executor import SerialExecutor, TrialExecutor
from .objective import check_objective


def make_executor(
    objective: Objective,
    space: Space,
    *,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | str | None = None,
    threads: bool = False,
    raise_errors: bool = False,
    meter: Meter | None = None,
) -> TrialExecutor:
    """The executor for these options: the user's one, threads, or worker processes.

    One worker without a timeout is this process itself. An objective that cannot work is refused, and so is a meter.
    """
    check_objective(objective, space)
    count = None if workers is None else whole_number(workers, "workers", 1)
    limit = None if timeout is None else duration_seconds(timeout, "timeout")
    if meter is not None and not meter.by_time_alone:
        shares_process = threads or isinstance(executor, ThreadPoolExecutor)
        objective = metered(objective, meter, count, elsewhere=executor is not None, shares_process=shares_process)
    if executor is not None:
        if threads:
            raise MethodError("give executor= or threads=True, not both")
        return futures_executor(executor, objective, space, count, timeout=limit, raise_errors=raise_errors)
    if threads:
        if limit is not None:
            raise MethodError("timeout= needs processes: a thread cannot be ended from outside; leave out threads=True")
        from .threads import ThreadExecutor

        return ThreadExecutor(objective, count or 1, raise_errors)
    if (count or 1) == 1 and limit is None:
        return SerialExecutor(objective, raise_errors)
    if os.name != "posix":
        raise MethodError("worker processes need Linux or macOS; use threads=True or executor=ProcessPoolExecutor()")
    from .process_pool import ProcessPool
    from .serialization import serialize_objective

    with pickles_with_passwords():  # a worker gets it through a socket of this process
        pickled = serialize_objective(objective)
    return ProcessPool(pickled, space, count or 1, limit, raise_errors)


def metered(objective: Objective, meter: Meter, count: int | None, *, elsewhere: bool, shares_process: bool) -> MeteredObjective:
    """The objective with its meter; a MethodError if it cannot be measured.

    elsewhere        trials run on workers of the user's executor, perhaps on other machines: they check the meter themselves
    shares_process   trials run in threads of one process
    """
    several = count != 1 if elsewhere else (count or 1) > 1
    if shares_process and several and meter.whole_process:
        raise MethodError(
            f"{meter!r} cannot tell trials in threads of one process apart; give workers= in place of threads, or workers=1"
        )
    meter = meter.for_workers(2 if several else 1)
    if not elsewhere or shares_process:
        meter.check()
    return MeteredObjective(objective, meter)


def futures_executor(
    executor: Any, objective: Objective, space: Space, workers: int | None, *, timeout: float | None, raise_errors: bool
) -> TrialExecutor:
    """The executor that submits trials to the user's executor."""
    from .futures import FuturesExecutor

    if not callable(getattr(executor, "submit", None)):
        raise MethodError(f"executor={executor!r} has no submit(); give something like concurrent.futures.ProcessPoolExecutor()")
    if timeout is not None and isinstance(executor, ThreadPoolExecutor):
        raise MethodError("timeout= needs processes: a thread cannot be ended from outside; leave out executor=")
    cluster = as_cluster_executor(executor)
    count = workers or capacity(cluster, type(executor).__name__)
    return FuturesExecutor(cluster, objective, space, count, timeout=timeout, raise_errors=raise_errors)


def as_cluster_executor(executor: Any) -> ClusterExecutor:
    """The user's executor as a ClusterExecutor."""
    from .dask_executor import from_dask
    from .futures import WrappedExecutor

    if isinstance(executor, ClusterExecutor):
        return executor
    return from_dask(executor) or WrappedExecutor(executor)


def capacity(executor: ClusterExecutor, name: str) -> int:
    """How many trials an executor can run at once; raises MethodError if it does not say so, or says 0."""
    found = executor.capacity()
    if found is None or found < 1:
        raise MethodError(f"{name} does not say how many trials it can run at once; give workers=")
    return found
