"""From what the user says of workers to a crew, with everything that cannot be said at once refused before anything runs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .._validation import duration_seconds, whole_number
from ..errors import MethodError
from ..space.space import Space
from .evaluate import Objective
from .executor import TrialExecutor
from .serial import SerialExecutor


def make_executor(
    objective: Objective,
    space: Space,
    *,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | str | None = None,
    threads: bool = False,
    raise_errors: bool = False,
) -> TrialExecutor:
    """Those who will evaluate: this process for one worker without a timeout, or else the executor, threads, or processes."""
    count = None if workers is None else whole_number(workers, "workers", 1)
    limit = None if timeout is None else duration_seconds(timeout, "timeout")
    if executor is not None:
        if threads:
            raise MethodError("give executor= or threads=True, not both")
        return with_executor(executor, objective, space, count, limit, raise_errors)
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
    from .serialization import packed

    return ProcessPool(packed(objective), space, count or 1, limit, raise_errors)


def with_executor(
    executor: Any, objective: Objective, space: Space, count: int | None, limit: float | None, raise_errors: bool
) -> TrialExecutor:
    from .dask_executor import adopted
    from .futures import FuturesExecutor

    if not callable(getattr(executor, "submit", None)):
        raise MethodError(f"executor={executor!r} has no submit(); give something like concurrent.futures.ProcessPoolExecutor()")
    executor = adopted(executor)
    if limit is not None and isinstance(executor, ThreadPoolExecutor):
        raise MethodError("timeout= needs processes: a thread cannot be ended from outside; leave out executor=")
    return FuturesExecutor(executor, objective, space, count or capacity(executor), limit, raise_errors)


def capacity(executor: Any) -> int:
    """How many trials an executor runs at once, as far as it says so."""
    tells = getattr(executor, "capacity", None)
    found = tells() if callable(tells) else getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    if isinstance(found, int) and found >= 1:
        return found
    raise MethodError(f"{type(executor).__name__} does not say how many trials it can run at once; give workers=")
