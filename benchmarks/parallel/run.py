"""Runs that are not stored yet, each stored at once: a line of JSON a run, a file a method.

The sequential run of a problem and seed comes first. The others end after so many evaluations, or when half of the time that the
sequential run took is over, whichever is first.
"""

import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from benchmarks import rows
from benchmarks.cost_aware import lines, tables
from benchmarks.cost_aware.core import CostProblem
from benchmarks.parallel import methods

SEQUENTIAL, PARALLEL = 100, 200  # evaluations: of the sequential run, and of the others at most
QUICK = 30, 72
LIMIT = 0.5  # of the sequential run's time


@dataclass(frozen=True)
class Row(rows.Row):
    """``starts`` and ``ends`` are simulated seconds, in order of asking; ``evaluations`` and ``limit`` are what was asked for."""

    costs: list[float]
    starts: list[float]
    ends: list[float]
    limit: float | None = None


@cache
def load(name: str) -> CostProblem:
    return tables.load(name)


def tidy(numbers: Iterable[float]) -> list[float]:
    return [float(f"{number:.10g}") for number in numbers]


def follow(label: str, name: str, seed: int, evaluations: int, limit: float | None = None) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        course = methods.follow(label, load(name), seed, evaluations, limit)
    series = [tidy(each) for each in (course.costs, course.starts, course.ends)]
    return Row(name, label, seed, evaluations, tidy(course.values), round(course.seconds, 3), rows.versions(), *series, limit)


def runs(
    folder: Path, names: list[str], reference: str, labels: list[str], seeds: int, quick: bool = False, missing: bool = True
) -> list[Row]:
    """The runs, stored or, if they are ``missing``, made now.

    Seeds outermost, then problems, then methods, so that an interrupted benchmark is balanced. A run of another length is another
    run.
    """
    first, others = QUICK if quick else (SEQUENTIAL, PARALLEL)
    stored = {label: read(folder, label) for label in (reference, *labels)}
    found: list[Row] = []
    for seed in range(seeds):
        for name in names:
            limit = None
            for label in (reference, *(label for label in labels if label != reference)):
                key = (name, seed, first if label == reference else others, limit)
                row = stored[label].get(key) or (make(folder, label, *key) if missing else None)
                if label == reference:
                    if row is None:
                        break
                    limit = tidy([LIMIT * max(row.ends)])[0]
                if row is not None:
                    found.append(row)
    return found


def make(folder: Path, label: str, name: str, seed: int, evaluations: int, limit: float | None) -> Row:
    """Make a run and store it, saying so on stderr."""
    row = follow(label, name, seed, evaluations, limit)
    lines.append(folder / f"{label}.jsonl", asdict(row))
    gap, took = min(row.values) - load(name).optimum, f"{max(row.ends):.4g} simulated seconds, {row.seconds:.1f} s of thinking"
    stamp = time.strftime("%H:%M:%S")
    print(f"{stamp} seed {seed} {name} {label}: regret {gap:.4g} after {took}", file=sys.stderr, flush=True)
    return row


def read(folder: Path, label: str) -> dict[tuple[str, int, int, float | None], Row]:
    """The stored runs of a method."""
    found: dict[tuple[str, int, int, float | None], Row] = {}
    for entry in lines.read(folder / f"{label}.jsonl"):
        row = Row(**entry)
        found.setdefault((row.problem, row.seed, row.evaluations, row.limit), row)
    return found
