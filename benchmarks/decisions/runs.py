"""One run of one method on one problem, and the rows that runs leave behind.

A row is a line of ``<folder>/<method>.jsonl``, written at once. It holds every config, value and cost, so that a question that
nobody has asked yet needs no new run. What is stored is not run again.
"""

import math
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cost_aware import lines
from benchmarks.decisions import methods, problems

RESULTS = Path(__file__).parent.parent / "results" / "decisions"
TRIALS, CAP = 80, 200
KINDS = ("trials", "cost")
BOTH = "both"  # a method that knows nothing of a budget: one run serves both kinds
DIGITS, CONFIG_DIGITS = 10, 6


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run. ``budget`` is in the unit of its kind; ``cost_budget`` is the problem's, whatever the kind.

    Where values are noisy, ``truths`` are those without noise, by which regret is measured.
    """

    problem: str
    family: str
    method: str
    seed: int
    kind: str
    budget: float | None
    cost_budget: float
    parameters: list[str]
    configs: list[list[Any]]
    values: list[float]
    costs: list[float]
    seconds: float
    commit: str
    versions: dict[str, str]
    truths: list[float] | None = None

    @property
    def key(self) -> tuple[str, int, str]:
        return self.problem, self.seed, self.kind


@dataclass(frozen=True)
class Task:
    """A run to be made."""

    problem: str
    method: str
    seed: int
    kind: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.problem, self.seed, self.kind


@cache
def commit() -> str:
    """The commit of the code; a plus means with later changes."""

    def git(*arguments: str) -> str:
        here = Path(__file__).parents[2]
        return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks/decisions")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


@cache
def versions() -> dict[str, str]:
    """Versions of everything that could change a result."""
    found = dict(rows.versions())
    for library in ("flaml", "coco-experiment"):
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def _short(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def goes_on(kind: str, count: int, spent: float, cost_budget: float) -> bool:
    """Whether another evaluation is made. A run that serves both kinds has at least 80 and at least the whole budget in cost."""
    if kind == "trials":
        return count < TRIALS
    left = spent < cost_budget * (1 - 1e-9)
    return count < CAP and (left or (kind == BOTH and count < TRIALS))


def told(kind: str, cost_budget: float) -> Any:
    """The budget that a study is told."""
    import shoestring as st

    return None if kind == BOTH else st.Budget(trials=TRIALS) if kind == "trials" else st.Budget(cost=cost_budget)


def run(task: Task, folder: Path) -> Run:
    """One run; time is counted inside the optimizer only. An evaluation that crosses the budget is stored, and not counted."""
    problem = problems.load(task.problem)
    budget = problems.yardstick(folder, task.problem).budget
    parameters = [dimension.name for dimension in problem.dimensions]
    configs: list[list[Any]] = []
    values: list[float] = []
    costs: list[float] = []
    truths: list[float] = []
    seconds = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searcher = methods.build(task.method, problem, task.seed, told(task.kind, budget), budget)
        while goes_on(task.kind, len(values), sum(costs), budget):
            start = time.perf_counter()
            config = searcher.suggest()
            seconds += time.perf_counter() - start
            if config is None:
                break
            value, cost = problem.evaluate(config)
            start = time.perf_counter()
            searcher.observe(config, value, cost)
            seconds += time.perf_counter() - start
            configs.append([_short(config.get(name), CONFIG_DIGITS) for name in parameters])
            values.append(_short(float(value), DIGITS))
            costs.append(_short(float(cost), DIGITS))
            if problem.noise_free is not None:
                truths.append(_short(float(problem.noise_free(config)), DIGITS))
    return Run(
        problem=task.problem,
        family=problems.family(task.problem),
        method=task.method,
        seed=task.seed,
        kind=task.kind,
        budget={"trials": float(TRIALS), "cost": budget}.get(task.kind),
        cost_budget=budget,
        parameters=parameters,
        configs=configs,
        values=values,
        costs=costs,
        seconds=round(seconds, 3),
        commit=commit(),
        versions=versions(),
        truths=truths or None,
    )


def read(folder: Path, method: str) -> list[Run]:
    """All rows of a method; unfinished lines are passed over, and a run stored twice counts once."""
    found: dict[tuple[str, int, str], Run] = {}
    for entry in lines.read(folder / f"{method}.jsonl"):
        row = Run(**entry)
        found.setdefault(row.key, row)
    return list(found.values())


def methods_in(folder: Path) -> list[str]:
    """The methods that have left rows in a folder."""
    return [method for method in rows.methods_in(folder) if f"{method}.jsonl" != problems.FILE]


def tasks(names: Iterable[str], labels: Iterable[str], seeds: Iterable[int], kinds: Iterable[str]) -> Iterator[Task]:
    """Seeds outermost, then problems, then methods: balanced whenever it is interrupted."""
    for seed in seeds:
        for name in names:
            for label in labels:
                for kind in (BOTH,) if methods.is_free(label) else kinds:
                    yield Task(name, label, seed, kind)


def run_missing(folder: Path, wanted: Iterable[Task]) -> None:
    """Make and store the runs that the folder does not hold, saying so on stderr.

    A method whose library is not installed and a problem that cannot be loaded are left out.
    """
    stored: dict[str, set[tuple[str, int, str]]] = {}
    left_out: set[str] = set()
    for task in wanted:
        known = stored.setdefault(task.method, {row.key for row in read(folder, task.method)})
        if task.key in known or not left_out.isdisjoint((task.method, task.problem)):
            continue
        try:
            problems.yardstick(folder, task.problem)
        except (ImportError, ValueError) as error:
            left_out.add(task.problem)
            print(f"{task.problem} is left out: {error}", file=sys.stderr, flush=True)
            continue
        try:
            row = run(task, folder)
        except ImportError as error:
            left_out.add(task.method)
            print(f"{task.method} is left out: {error}", file=sys.stderr, flush=True)
            continue
        lines.append(folder / f"{task.method}.jsonl", asdict(row))
        print(
            f"{time.strftime('%H:%M:%S')} seed {task.seed} {task.problem} {task.method} {task.kind}: "
            f"best {min(row.values, default=math.nan):.5g}, "
            f"cost {sum(row.costs) / row.cost_budget:.2f} of the budget in {len(row.values)}, {row.seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
