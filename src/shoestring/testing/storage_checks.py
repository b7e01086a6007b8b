"""What the checks of a storage share: the storage to test, and small helpers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..data.trial import Trial
from ..storage import Storage, StudyRecord


@contextmanager
def raises(error: type[BaseException], match: str = "") -> Iterator[None]:
    """Check that the block raises this error, with this text in its message."""
    try:
        yield
    except error as raised:
        message = str(raised)
    else:
        raise AssertionError(f"{error.__name__} was not raised")
    assert match in message, f"{match!r} is not in the message {message!r}"


def record_of(storage: Storage, name: str = "study") -> StudyRecord:
    """The record of a study that must exist."""
    found = storage.find(name)
    assert found is not None
    return found


def best_of(storage: Storage, study: int, maximize: bool) -> Trial:
    """The best trial of a study that must have one."""
    found = storage.best(study, maximize)
    assert found is not None
    return found


def run_threads(*targets: Callable[[], None]) -> None:
    """Call functions at the same time, each in a thread, and wait for all of them."""
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class StorageChecks:
    """Checks of a storage, without the checks: what a derived class defines, and what the checks call."""

    lease_seconds = 2.0

    def open(self) -> Storage:
        raise NotImplementedError("return the storage to test")

    def use_fake_clock(self) -> None:
        """Called before ``open`` by the checks that call ``wait``."""

    def wait(self, seconds: float) -> None:
        """Let time pass by the clock of the storage."""
        time.sleep(seconds)

    def with_study(self) -> tuple[Storage, int]:
        """A storage, and the id of a new study in it."""
        storage = self.open()
        return storage, storage.begin("study", {"seed": 0})[0].id
