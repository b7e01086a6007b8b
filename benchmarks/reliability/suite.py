"""Items that are tests already: pytest in a process of its own, and rows of what it counted."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.reliability.items import Item

ROOT = Path(__file__).parent.parent.parent
LONGEST = 1800  # seconds a test
NOTHING = (0, 5)  # exit codes of pytest: all passed, none was there to run
Row = dict[str, Any]


def row(item: int | str, what: str, storage: str, tried: int, survived: int, seconds: float, **more: Any) -> Row:
    lost = tried - survived
    found = {"item": item, "what": what, "storage": storage, "tried": tried, "survived": survived, "lost": lost}
    return found | {"seconds": round(seconds, 1), **more}


def run(item: Item, storages: Sequence[str], quick: bool) -> dict[str, Row | None]:
    """A row for each storage, None where no test is about it. ``tried`` counts tests, whatever they try inside."""
    if not item.tests:
        rows = {"none": row(item.number, item.what, "none", 0, 0, 0.0, note=item.note)} if item.note else {}
        return {storage: rows.get(storage) for storage in storages}
    with tempfile.TemporaryDirectory(prefix="shoestring-suite-") as folder:
        out = Path(folder) / "counts.json"
        told = {"RELIABILITY_STORAGES": ",".join(storages), "RELIABILITY_QUICK": quick * "1", "RELIABILITY_OUT": str(out)}
        command = [sys.executable, "-m", "pytest", "-p", "benchmarks.reliability.choosing", "-p", "no:cacheprovider"]
        ended = subprocess.run(
            [*command, f"--timeout={LONGEST}", "--tb=short", *item.tests],
            cwd=ROOT, env=os.environ | told, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        counts = json.loads(out.read_text()) if out.exists() else {}
    if ended.returncode not in NOTHING and not any(found["failed"] for found in counts.values()):
        said = (ended.stdout + ended.stderr)[-1000:]  # pytest itself found fault: a test that is not there, say
        return {storage: row(item.number, item.what, storage, 1, 0, 0.0, failures=[said]) for storage in storages}
    what = f"{item.what} ({'short ' * quick}tests)"
    rows = {storage: _row(item.number, what, storage, found, ended.stdout) for storage, found in counts.items()}
    return {storage: rows.get(storage) for storage in storages}


def _row(number: int | str, what: str, storage: str, found: dict[str, Any], said: str) -> Row:
    passed, failed = found["passed"], found["failed"]
    more = {"skipped": found["skipped"]} if found["skipped"] else {}
    more |= {"failures": found["failures"], "said": said[-3000:]} if failed else {}
    return row(number, what, storage, passed + failed, passed, found["seconds"], **more)
