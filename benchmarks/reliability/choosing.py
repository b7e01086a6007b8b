"""A plugin of pytest: runs the tests of the wanted storages alone, and writes down how they fared, for each storage apart.

It is told what to do by the environment: RELIABILITY_STORAGES (none is for tests without one), RELIABILITY_QUICK, and
RELIABILITY_OUT, the file for the counts.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

PLACES = ("memory", "sqlite", "postgresql")
BY_FIXTURE = {
    "sqlite_place": "sqlite", "whole": "sqlite",
    "postgres_place": "postgresql", "server": "postgresql", "own_server_place": "postgresql",
}  # fmt: skip
about: dict[str, str] = {}  # test -> storage
counts: dict[str, dict[str, Any]] = {}


def storage_of(item: pytest.Item) -> str:
    """The storage that a test is about; none if it is about none."""
    spec = getattr(item, "callspec", None)
    named = [value for value in (spec.params.values() if spec else ()) if isinstance(value, str) and value in PLACES]
    used = [BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in BY_FIXTURE]
    return [*named, *used, "none"][0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted, quick = os.environ["RELIABILITY_STORAGES"].split(","), bool(os.environ.get("RELIABILITY_QUICK"))
    about.update({item.nodeid: storage_of(item) for item in items if not (quick and item.get_closest_marker("slow"))})
    kept = [item for item in items if about.get(item.nodeid) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    empty = {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0, "failures": []}
    found = counts.setdefault(about[report.nodeid], empty)
    found["seconds"] += report.duration
    if report.failed:  # its set-up and its end too: what cannot be cleaned up was not survived
        found["failures"] += [] if report.nodeid in found["failures"] else [report.nodeid]
        found["failed"] = len(found["failures"])
    elif report.skipped:
        found["skipped"] += 1
    elif report.when == "call":
        found["passed"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    Path(os.environ["RELIABILITY_OUT"]).write_text(json.dumps(counts))
