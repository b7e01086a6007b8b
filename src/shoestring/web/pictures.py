"""The pictures of a page: SVG, with the same numbers as tables for screen readers, for tests, and for copying.

The numbers come from ``report.views``, which keeps a view until its study changes and fits no model while a study runs.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.trial import State
from ..report.svg import draw
from ..report.views import VIEWS, view
from ..study import Study

MAX_ROWS = 100  # of a table of numbers: a longer one says where all of them are
MAX_KEPT_DRAWINGS = 200
QUIET_SECONDS = 60.0  # after so long without a trial, a study does not run
LAST_TRIALS = 20  # among these the last end is looked for: workers do not end in the order in which they began
FIRST_VIEWS = 2  # pictures in the first answer; the others are loaded after it
OWN_FIELDS = ("kind", "title", "caption", "empty", "trials", "name", "shown", "role", "mark", "label")


@dataclass(frozen=True)
class NumberTable:
    """A part of a view as a table. ``left_out``: how many rows are not shown."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left_out: int = 0


@dataclass(frozen=True)
class Picture:
    """One picture: its SVG text, and what it shows in words and numbers."""

    name: str
    title: str
    caption: str
    svg: str
    empty: str | None
    tables: Sequence[NumberTable]


class Pictures:
    """Draws views, and keeps what it has drawn while the numbers stay the same."""

    def __init__(self, hide: Callable[[Any], Any] = lambda document: document) -> None:
        self.hide = hide  # takes passwords out of the texts of a view
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[Mapping[str, Any], Picture]] = OrderedDict()

    def picture(self, study: Study, name: str) -> Picture:
        """A picture of a study by the name of its view."""
        return self.drawn(name, current_view(study, name))

    def drawn(self, name: str, data: Mapping[str, Any]) -> Picture:
        """The picture of a view, drawn once: the views keep the same object while nothing changes."""
        with self._lock:
            known = self._kept.get(id(data))
            if known is not None and known[0] is data:
                self._kept.move_to_end(id(data))
                return known[1]
        shown = self.hide(data)
        empty = shown.get("empty")
        svg = "" if empty else draw(shown)
        found = Picture(name, str(shown["title"]), str(shown.get("caption") or ""), svg, empty, tables_of(shown))
        with self._lock:
            self._kept[id(data)] = data, found
            while len(self._kept) > MAX_KEPT_DRAWINGS:
                self._kept.popitem(last=False)
        return found


def current_view(study: Study, name: str) -> dict[str, Any]:
    """The numbers of a picture. A model is fitted for it only if the study surely does not run."""
    return view(study, name, fit=is_quiet(study))


def is_quiet(study: Study) -> bool:
    """Whether nothing runs and nothing has ended for a while. Between two trials of a run, nothing runs either."""
    history = study.log
    if history.number_of(State.RUNNING):
        return False
    ends = [trial.asked_at + (trial.seconds or 0.0) for trial in history[-LAST_TRIALS:] if trial.asked_at is not None]
    return time.time() - max(ends, default=0.0) > QUIET_SECONDS


def first_views() -> list[str]:
    """The pictures in the first answer: none of them needs a model."""
    return shown_views()[:FIRST_VIEWS]


def shown_views() -> list[str]:
    """All pictures of a study's page; the live line is text there."""
    return [name for name in VIEWS if name != "live"]


def tables_of(part: Any, title: str = "") -> list[NumberTable]:
    """All numbers of a view, whatever its kind: columns of equal length are a table, lists of numbers in lists are one too."""
    if isinstance(part, list):
        return [table for each in part for table in tables_of(each, title)]
    if not isinstance(part, Mapping):
        return []
    title = str(part.get("name") or part.get("title") or title)
    columns = {name: values for name, values in part.items() if is_column(values)}
    lengths = {len(values) for values in columns.values()}
    found: list[NumberTable] = []
    for length in sorted(lengths - {0}, reverse=True):
        same = {name: values for name, values in columns.items() if len(values) == length}
        rows = list(zip(*same.values(), strict=True))
        found.append(NumberTable(title, list(same), rows[:MAX_ROWS], max(0, len(rows) - MAX_ROWS)))
    for name, inner in part.items():
        if is_matrix(inner):
            found.append(
                NumberTable(
                    f"{title} {name}".strip(),
                    [str(j) for j in range(len(inner[0]))],
                    inner[:MAX_ROWS],
                    max(0, len(inner) - MAX_ROWS),
                )
            )
        elif name not in columns and name not in OWN_FIELDS and name not in ("x", "y"):
            found += tables_of(inner, f"{title} {name}".strip())
    return found


def is_column(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(not isinstance(each, list | dict) for each in values)


def is_matrix(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(is_column(each) and len(each) == len(values[0]) for each in values)
