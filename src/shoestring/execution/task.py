"""What is submitted to an executor: a function of ours, and one argument that holds everything.

Here nobody can be asked while a trial runs: what is left of the budget is what was left when it was submitted, reports come back
with the result, and no model tells whether going on is hopeless. With ``isolate`` the objective is called in a process of its own
beside the executor's worker, which then only watches: so a crash does not take the executor's worker with it, and a trial that is
too late or no longer wanted can be ended.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..budget import Allowance
from ..data.trial import Trial
from ..errors import ExecutionError
from ..space.space import Space
from .evaluate import LiveTrial, Objective
from .process_pool import ProcessPool
from .serialization import Reply, attempt, raised

LOOK = 0.5  # seconds between looks at whether a trial is still wanted
_loaded: dict[str, Objective] = {}  # the objective that was used last, by the hash of its pickle


@dataclass(frozen=True)
class Task:
    """A trial and all that its evaluation needs. ``folder`` is its checkpoint_dir, where the objective may ask for it."""

    objective: bytes
    trial: Trial
    space: Space
    allowance: Allowance
    folder: str | None = None
    raise_errors: bool = False
    isolate: bool = False
    timeout: float | None = None


def perform(task: bytes, token: str, wanted: Callable[[], bool] = lambda: True) -> bytes:
    """Evaluate, and return the reply as a pickle. Each call has another ``token``, so that no engine takes two calls for one."""
    given: Task = pickle.loads(task)
    reply = isolated(given, wanted) if given.isolate else beside_others(given)
    return pickle.dumps(reply)


def beside_others(task: Task) -> Reply:
    """In this very process, whatever else it does."""
    try:
        objective = load(task.objective)
    except Exception as error:
        return "unusable", f"{type(error).__name__}: {error}"
    return attempt(objective, task.trial, live(task), task.raise_errors)


def isolated(task: Task, wanted: Callable[[], bool]) -> Reply:
    """In a process of its own."""
    with ProcessPool(task.objective, task.space, 1, task.timeout, task.raise_errors) as crew:
        try:
            crew.start(task.trial, live(task))
            while not (found := crew.wait(LOOK)):
                if not wanted():
                    return "lost", "cancelled"
        except ExecutionError as error:
            return "unusable", str(error)
        except Exception as error:  # of the objective, and to be raised
            return raised(error)
    return "done", found[0].seen


def load(packed: bytes) -> Objective:
    """The objective; the one that was loaded last is kept, with what it may have kept for itself."""
    key = hashlib.sha256(packed).hexdigest()
    if key not in _loaded:
        objective = pickle.loads(packed)
        _loaded.clear()
        _loaded[key] = objective
    return _loaded[key]


def live(task: Task) -> LiveTrial:
    """The trial as its objective sees it, with answers that were known beforehand."""
    began = time.perf_counter()

    def left() -> Allowance:
        return task.allowance.later(time.perf_counter() - began)

    def folder() -> Path:
        if task.folder is None:
            raise ExecutionError("this trial has no folder: its objective did not seem to take the live trial")
        path = Path(task.folder)
        path.mkdir(parents=True, exist_ok=True)  # on another machine it may not be there yet
        return path

    trial = task.trial
    return LiveTrial(trial.number, trial.config, dict(trial.fidelity), task.space, left, folder)


def reply_of(result: Any) -> Reply:
    """The reply in what an executor has returned."""
    reply: Reply = pickle.loads(result)
    return reply
