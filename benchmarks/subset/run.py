"""One run: the best value after so many evaluations, and what the suggestions took.

The paper's budget: 100 d evaluations, of which the first 20 d fill the space. Seeds are paired: all methods of a seed begin with
the same 20 d points. Best values and seconds are noted at marks, every 5 d evaluations from the end of the start on, where
subsets are picked anew.

``optimizer_seconds`` is the study's own account, by the clock on the wall; ``processor_seconds`` is the processor's time inside
ask and tell, which other programs on the machine disturb less. Both are without the evaluations.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cost_aware import lines
from benchmarks.peers import shoestring_space
from benchmarks.problems.core import Problem
from benchmarks.subset import functions, methods

FACTOR, INITIAL, STEP = 100, 20, 5  # evaluations a dimension: of a run, of its start, between marks


@dataclass(frozen=True)
class Run:
    """A finished run; the lists have an entry for each mark."""

    problem: str
    dimensions: int
    method: str
    seed: int
    evaluations: int
    best: float
    marks: list[int]
    regrets: list[float]
    seconds_at_marks: list[float]
    processor_at_marks: list[float]
    optimizer_seconds: float
    processor_seconds: float
    seconds: float
    versions: dict[str, str]


def marks_of(dimensions: int, factor: int) -> list[int]:
    """Numbers of evaluations; the last is the end of the run."""
    found = [multiple * dimensions for multiple in range(INITIAL, factor + 1, STEP)]
    return found if found and found[-1] == factor * dimensions else [*found, factor * dimensions]


def follow(problem: Problem, label: str, seed: int, factor: int = FACTOR) -> Run:
    """Run a method to its end."""
    d = len(problem.dimensions)
    study = methods.study(label, shoestring_space(problem), seed, initial=min(INITIAL, factor) * d)
    marks = marks_of(d, factor)
    regrets, seconds, processor_at_marks = [], [], []
    best, processor, began = float("inf"), 0.0, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count in range(1, factor * d + 1):
            start = time.process_time()
            trial = study.ask()
            processor += time.process_time() - start
            value = problem.evaluate(trial.config)
            start = time.process_time()
            study.tell(trial, value, cost=1.0)
            processor += time.process_time() - start
            best = min(best, value)
            if count in marks:
                regrets.append(float(f"{best - problem.optimum:.8g}"))
                seconds.append(round(study.optimizer_seconds, 4))
                processor_at_marks.append(round(processor, 4))
    return Run(
        problem.name, d, label, seed, factor * d, float(f"{best:.8g}"), marks, regrets, seconds, processor_at_marks,
        round(study.optimizer_seconds, 4), round(processor, 4), round(time.perf_counter() - began, 2), rows.versions(),
    )  # fmt: skip


@cache
def warm_up() -> None:
    """A few suggestions that are not counted, once a process: some modules are imported when they are first needed."""
    follow(functions.load("levy2"), "exact", 0, INITIAL + 1)


def run_missing(
    folder: Path, load: Callable[[str], Problem], names: Iterable[str], labels: Iterable[str], seeds: int, factor: int = FACTOR
) -> None:
    """Make the runs that the folder does not hold, a seed of every method before the next one, each stored at once.

    A method that this version of the library does not have is passed over with a note.
    """
    from shoestring import MethodError

    labels, names = list(labels), list(names)
    stored = {label: {key(row) for row in read(folder, label)} for label in labels}
    left_out: set[str] = set()
    for seed in range(seeds):
        for name in names:
            for label in labels:
                problem = load(name)
                wanted = (name, seed, factor * len(problem.dimensions))
                if label in left_out or wanted in stored[label]:
                    continue
                warm_up()
                try:
                    found = follow(problem, label, seed, factor)
                except (AttributeError, MethodError) as error:
                    left_out.add(label)
                    print(f"{label} is left out: {error}", file=sys.stderr, flush=True)
                    continue
                lines.append(folder / f"{label}.jsonl", asdict(found))
                print(
                    f"{time.strftime('%H:%M:%S')} seed {seed} {name} {label}: {found.best:.4g} after {found.evaluations}, "
                    f"{found.optimizer_seconds:.1f} s of optimizer, {found.seconds:.0f} s in all",
                    file=sys.stderr,
                    flush=True,
                )


def key(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["problem"], row["seed"], row["evaluations"]


def read(folder: Path, label: str) -> list[dict[str, Any]]:
    """The stored runs of a method, each once."""
    found: dict[Any, dict[str, Any]] = {}
    for row in lines.read(folder / f"{label}.jsonl"):
        found.setdefault(key(row), row)
    return list(found.values())
