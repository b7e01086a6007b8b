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
BY_FIXTURE = {  # the first that a test uses decides
    "sqlite_place": "sqlite", "whole": "sqlite", "killed": "sqlite", "lock": "sqlite",
    "postgres_place": "postgresql", "server": "postgresql", "own_server_place": "postgresql", "proxy": "postgresql",
    "here": "sqlite",  # the command line keeps studies in a file unless it is told otherwise
}  # fmt: skip
FILES = "tests/storage/test_"
PAGE = "tests/web/"  # a server there is that of the page, and it makes no difference where its studies are kept
BY_NAME = {  # tests that make a file of their own, and have no fixture that says so
    f"{FILES}crash.py": "sqlite", f"{FILES}replaced.py": "sqlite", f"{FILES}log_damage.py": "sqlite",
    f"{FILES}addresses.py::test_only_the_user_may_read": "sqlite",
    "tests/execution/test_outage.py::test_a_config_that_kills": "sqlite",
}  # fmt: skip
about: dict[str, str] = {}  # test -> storage
counts: dict[str, dict[str, Any]] = {}


def storage_of(item: pytest.Item) -> str:
    """The storage that a test is about; none if it is about none."""
    if item.nodeid.startswith(PAGE):
        return "none"
    spec = getattr(item, "callspec", None)
    named = [value for value in (spec.params.values() if spec else ()) if isinstance(value, str) and value in PLACES]
    fixtures = getattr(item, "fixturenames", ())
    used = [storage for name, storage in BY_FIXTURE.items() if name in fixtures]
    made = [storage for name, storage in BY_NAME.items() if item.nodeid.startswith(name)]
    return [*named, *used, *made, "none"][0]


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
