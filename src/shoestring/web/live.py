"""Live updates by server-sent events: a small message when something has changed, and nothing while nothing changes.

A message is {"version": ..., "line": ...}. The script of the page then fetches the parts that have changed and can be seen. The
storage is asked once a second for all pages of a study together, for one row: the clock of the study says whether there is news.
Trials are read by the parts, and each part is written once for all pages (``Site.part``).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from ..data.trial import State
from .catalog import Catalog
from .pages import line, state_of, version_of
from .security import json_text

SECONDS_BETWEEN_LOOKS = 1.0
MAX_LOOKS_LEFT_OUT = 1  # while every look finds something new: a study of cheap trials must not wait for its pages
SECONDS_BETWEEN_SIGNS = 15.0  # of life: a comment, so that a connection that is gone is noticed
MAX_LISTENERS = 64

Look = Callable[[], dict[str, Any]]


class Watch:
    """What listeners are told, read once for all of them. ``closing`` ends all streams."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self.closing, self.listeners = catalog, False, 0
        self._lock = threading.Lock()
        self._seen: dict[str | None, tuple[float, dict[str, Any]]] = {}

    def look(self, name: str | None) -> dict[str, Any]:
        """The message about a study, or with None about all of them: a second old at most."""
        with self._lock:
            at, seen = self._seen.get(name, (0.0, {}))
            if time.monotonic() - at < SECONDS_BETWEEN_LOOKS * 0.9 and seen:
                return seen
            found = self._all_studies() if name is None else self._one_study(name, seen)
            self._seen[name] = time.monotonic(), found
            return found

    def _one_study(self, name: str, seen: dict[str, Any]) -> dict[str, Any]:
        record = self.catalog.record(name)
        version = version_of(record)
        if seen.get("version") == version:
            return seen
        state = state_of(record)
        if state == seen.get("state"):  # the line is read aloud when a study begins or ends: only then are trials read for it
            return {"version": version, "line": seen["line"], "state": state}
        history = self.catalog.study(name).log
        text = line(record, history.number_of(State.FAILED), history.best)
        return {"version": version, "line": text, "state": state}

    def _all_studies(self) -> dict[str, Any]:
        records = self.catalog.records()
        return {"version": version_of(*records), "line": "", "state": ""}

    def stream(self, name: str | None) -> StreamingResponse:
        """The endless answer with the messages about a study."""
        return StreamingResponse(self._messages(name), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _messages(self, name: str | None) -> AsyncIterator[str]:
        self.listeners += 1
        version, quiet, news = None, time.monotonic(), 0
        try:
            while not self.closing:
                try:
                    found = await run_in_threadpool(self.look, name)
                except LookupError:  # the study was deleted
                    yield "event: gone\ndata: {}\n\n"
                    return
                news = min(news + 1, MAX_LOOKS_LEFT_OUT) if found["version"] != version else 0
                if found["version"] != version:
                    version, quiet = found["version"], time.monotonic()
                    yield f"data: {json_text(found)}\n\n"
                elif time.monotonic() - quiet > SECONDS_BETWEEN_SIGNS:
                    quiet = time.monotonic()
                    yield ": nothing new\n\n"
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS * (1 + news))
        finally:
            self.listeners -= 1
