"""One run of one method on a problem with costs, and the rows that runs leave behind.

Rows are those of the regret benchmark with costs added: one line a run, one file a method, written at once.
"""

import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cost_aware import catalog, lines, methods

RESULTS = Path(__file__).parent.parent / "results" / "cost_aware"


@dataclass(frozen=True)
class CostRow(rows.Row):
    """``limit`` is the cost after which the run was ended (None: by the number of evaluations alone)."""

    costs: list[float]
    limit: float | None = None
    alphas: list[float | None] | None = None  # what a suggestion amounts to on the EI-cost front, where the study says so


@dataclass(frozen=True)
class Task:
    """A run to be made."""

    method: str
    problem: str
    seed: int
    evaluations: int
    limit: float | None = None


def _tidy(number: float) -> float:
    return float(f"{number:.10g}")


def _alpha(entry: Any) -> float | None:
    """The exponent that a suggestion amounts to, wherever the study has noted it."""
    if isinstance(entry, dict):
        if isinstance(entry.get("alpha"), int | float):
            return _tidy(entry["alpha"])
        for inner in entry.values():
            if (found := _alpha(inner)) is not None:
                return found
    return None


def _over() -> tuple[type[Exception], ...]:
    """How a study says that nothing is left to do: no config that fits the budget it was told, or no config at all."""
    from shoestring import errors

    return tuple(getattr(errors, name) for name in ("NothingFits", "SpaceExhausted") if hasattr(errors, name))


def run(task: Task) -> CostRow:
    """Evaluate until the number or the cost is reached; the evaluation that crosses the limit is the last and is stored.
    A study that was told its budget may end earlier, when nothing fits into what is left.

    Time is counted inside the optimizer only.
    """
    problem = catalog.load(task.problem)
    values: list[float] = []
    costs: list[float] = []
    alphas: list[float | None] = []
    seconds, spent = 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = methods.study(task.method, problem, task.seed, task.limit)
        while len(values) < task.evaluations and (task.limit is None or spent < task.limit):
            start = time.perf_counter()
            try:
                trial = study.ask()
            except _over():
                break
            seconds += time.perf_counter() - start
            value, cost = problem.evaluate(trial.config)
            start = time.perf_counter()
            study.tell(trial, value, cost=cost)
            seconds += time.perf_counter() - start
            values.append(_tidy(value))
            costs.append(_tidy(cost))
            alphas.append(_alpha(dict(trial.suggestion)))
            spent += cost
    noted = alphas if any(alpha is not None for alpha in alphas) else None
    return CostRow(
        task.problem, task.method, task.seed, len(values), values, round(seconds, 3), rows.versions(), costs, task.limit, noted
    )


def read(folder: Path, method: str) -> list[CostRow]:
    """All rows of a method; unfinished lines are passed over, and a run stored twice counts once."""
    found: dict[tuple[str, int], CostRow] = {}
    for entry in lines.read(folder / f"{method}.jsonl"):
        row = CostRow(**entry)
        found.setdefault((row.problem, row.seed), row)
    return list(found.values())


def run_missing(folder: Path, tasks: Iterable[Task]) -> None:
    """Make the runs that the folder does not hold, saying so on stderr; a method that cannot be built is passed over."""
    stored: dict[str, set[tuple[str, int]]] = {}
    broken: set[str] = set()
    for task in tasks:
        known = stored.setdefault(task.method, {(row.problem, row.seed) for row in read(folder, task.method)})
        if (task.problem, task.seed) in known or task.method in broken:
            continue
        try:
            row = run(task)
        except (AttributeError, ImportError, RuntimeError) as error:
            broken.add(task.method)
            print(f"{task.method} is left out: {error}", file=sys.stderr, flush=True)
            continue
        rows.append(folder, row)
        print(
            f"{time.strftime('%H:%M:%S')} seed {task.seed} {task.problem} {task.method}: best {min(row.values):.5g}, "
            f"cost {sum(row.costs):.4g} in {row.evaluations}, {row.seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
