"""The trials of one ``ask_many``, each of which begins when it is taken out of the list.

Without a cost, the seconds of a trial are what it costs. Trials of a batch that are evaluated one after the other cannot begin
when the batch is asked: the last would be charged for all of them. The list does not know how they are evaluated, but it sees
when each is looked at. A loop takes one, evaluates and tells it, and takes the next. A program that evaluates all at the same
time takes them all first. So the clock of a trial starts when it is taken for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex, overload

from ..data.trial import Trial


class AskedBatch(list[Trial]):
    """A list of trials that calls ``begin`` with the number of each when it is first taken."""

    def __init__(self, trials: Iterable[Trial], begin: Callable[[int], None]) -> None:
        super().__init__(trials)
        self._begin, self._begun = begin, set[int]()

    def _take(self, trial: Trial) -> Trial:
        if trial.number not in self._begun:
            self._begun.add(trial.number)
            self._begin(trial.number)
        return trial

    def __iter__(self) -> Iterator[Trial]:
        for trial in super().__iter__():
            yield self._take(trial)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Trial: ...

    @overload
    def __getitem__(self, index: slice) -> list[Trial]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Trial | list[Trial]:
        found = super().__getitem__(index)
        return self._take(found) if isinstance(found, Trial) else [self._take(trial) for trial in found]

    def pop(self, index: SupportsIndex = -1) -> Trial:
        """Take one out of the list."""
        return self._take(super().pop(index))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)  # in another process it is a plain list
