"""Evaluations that really took place, one line of JSON each, stored before anything else happens.

A recording of a quasi-random set is the ground truth of the cost-model figures; recordings made during searches are kept
beside it, so that a search interrupted half-way pays for no evaluation twice.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cost_aware import lines

FOLDER = Path(__file__).parent.parent / "results" / "cost_aware" / "xgboost"


@dataclass(frozen=True)
class Recording:
    """One evaluation; ``source`` is "sobol" for the quasi-random set, "run" for what a search asked for.

    ``commit`` is the state of the code that made it; older rows have none.
    """

    problem: str
    config: dict[str, Any]
    value: float
    cost: float
    source: str
    commit: str | None = None


def key(config: Mapping[str, Any]) -> str:
    return json.dumps(dict(config), sort_keys=True)


def append(recording: Recording, folder: Path = FOLDER) -> None:
    entry = {name: value for name, value in asdict(recording).items() if value is not None}
    lines.append(folder / f"{recording.problem}.jsonl", entry)


def read(problem: str, source: str | None = None, folder: Path = FOLDER) -> list[Recording]:
    """All evaluations of a problem, or those of one source, in the order in which they were made."""
    found = [Recording(**entry) for entry in lines.read(folder / f"{problem}.jsonl")]
    return [entry for entry in found if source is None or entry.source == source]
