"""The studies that the server shows: opened once, then brought up to date by what has changed.

A study of 10,000 trials takes half a second to read. After that, only its changes are read: a storage has a clock for each study,
and a page asks for what came after the clock that it knows.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from typing import Any

from ..budget import Budget
from ..errors import MethodError, ShoestringError
from ..state.persistence import read_budget_dict
from ..storage.base import Storage, StudyRecord
from ..study import Study

MAX_OPEN_STUDIES = 16  # in memory at the same time: the one that was not looked at for longest goes first
STUDIES_TO_WARM_UP = 3
LAST_CHANGES = 3  # of a study's clock: in these, the last activity is looked for
# In place of code that a study was made with and that has no text: its trials can be read all the same.
DEFAULT_CODE: dict[str, Any] = {"method": "auto", "stop": None, "model": None, "cost_model": "auto", "subset": "auto"}


class NoStudy(LookupError):
    """There is no study of this name in the storage."""


class Catalog:
    """The studies of a storage, for many threads."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.Lock()
        self._open: OrderedDict[int, Study] = OrderedDict()
        self._asking: dict[int, Study] = {}

    def records(self) -> list[StudyRecord]:
        """All studies without their trials, the newest first."""
        return self.storage.studies()[::-1]

    def record(self, name: str) -> StudyRecord:
        found = self.storage.find(name)
        if found is None:
            raise NoStudy(name)
        return found

    def study(self, name: str) -> Study:
        """The study with its trials, as they are now. For reading: it may have other code than it was made with."""
        record = self.record(name)
        with self._lock:
            study = self._open.get(record.id)
            if study is None:
                study = self._open[record.id] = self._load(record.name)
            self._open.move_to_end(record.id)
            while len(self._open) > MAX_OPEN_STUDIES:
                self._open.popitem(last=False)[1].close()
        study.refresh()
        study.budget = budget_of(record)  # it may have been extended
        return study

    def newest(self) -> list[Study]:
        """The newest studies with their trials. What cannot be read says so when it is looked at."""
        found = []
        for record in self.records()[:STUDIES_TO_WARM_UP]:
            with contextlib.suppress(ShoestringError, NoStudy):
                found.append(self.study(record.name))
        return found

    def _load(self, name: str) -> Study:
        try:
            return Study.load(self.storage, name)
        except MethodError:
            return Study.load(self.storage, name, **DEFAULT_CODE)

    def asking_study(self, name: str) -> Study:
        """The study for ask and tell. Another object than that of the pages, which must not wait while it suggests."""
        record = self.record(name)
        with self._lock:
            study = self._asking.get(record.id)
            if study is None:
                study = self._asking[record.id] = Study.load(self.storage, record.name)
        study.budget = budget_of(record)  # it may have been extended
        return study

    def last_activity(self, record: StudyRecord) -> float:
        """When something happened the last time, in seconds since 1970. Reads the last changes alone."""
        changes = self.storage.changes_since(record.id, max(record.clock - LAST_CHANGES, 1)) if record.clock > 1 else None
        ends = [
            stored.trial.asked_at + (stored.trial.seconds or 0.0)
            for stored in (changes.trials if changes is not None else ())
            if stored.trial.asked_at is not None
        ]
        return min(max([record.created_at, *ends]), time.time())

    def close(self) -> None:
        """Close the studies, and the connections to the storage."""
        with self._lock:
            for study in (*self._open.values(), *self._asking.values()):
                study.close()
            self._open.clear()
            self._asking.clear()


def budget_of(record: StudyRecord) -> Budget | None:
    """The budget of a study: that of its program, or else the one that it was made with or run with last."""
    plan = record.settings.get("run")
    return (read_budget_dict(plan) if isinstance(plan, dict) else None) or read_budget_dict(record.settings)
