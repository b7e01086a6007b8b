"""What a fork does to the studies of a process.

A fork copies the memory of a process, but only the thread that forks. So the lock of a study that another thread was using stays
locked in the child, and what that thread was changing stays half changed. The child could only hang, or go on with a wrong state.
So it gets an error that says what to do. Other studies go on in the child, on connections of their own (``storage.connections``).
"""

from __future__ import annotations

import os
import weakref
from contextlib import AbstractContextManager
from typing import Protocol

from ..errors import StudyError


class StudyLock(AbstractContextManager[bool, None], Protocol):
    """What a study needs of its lock, which one thread may take several times."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


class InUseAtFork:
    """Takes the place of a study's lock that another thread held at a fork: a clear error in place of a wait for ever."""

    def __init__(self, name: str) -> None:
        self.name = name

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise StudyError(
            f"study {self.name!r} was in use by another thread when this process was forked, so it cannot be used here; "
            f"open it again in this process: st.Study.load(storage, {self.name!r}); a study in memory is lost here"
        )

    def release(self) -> None:
        """Nothing to do: it is never held."""

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class Forked(Protocol):
    """What is told that it is in the child of a fork."""

    def after_fork(self) -> None: ...


_states: weakref.WeakSet[Forked] = weakref.WeakSet()


def call_after_fork(state: Forked) -> None:
    """From now on, its ``after_fork`` is called in the child of each fork."""
    _states.add(state)


def _after_fork_in_child() -> None:
    for state in list(_states):
        state.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
