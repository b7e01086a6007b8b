"""Stage one: run a searcher to the end without any rule, and store all that happened. One line of JSON a run.

What a model-based suggestion knew is stored too (how values were modelled, and hyperparameters), since a rule starts its own
fit there: a replayed rule is asked what it would have been asked.
"""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cost_aware import lines
from benchmarks.termination import catalog, searchers
from benchmarks.termination.core import TestedProblem, packed, tidy, unpacked


@dataclass(frozen=True)
class Task:
    """A run to be made."""

    method: str
    problem: str
    seed: int
    evaluations: int


@dataclass(frozen=True)
class Recording:
    """One run. ``configs`` as in ``core.packed``; ``tests`` are test errors, or the values of the held-out training seed."""

    problem: str
    method: str
    seed: int
    evaluations: int
    configs: list[list[Any]]
    values: list[float]
    costs: list[float]
    tests: list[float]
    folds: list[list[float]] | None
    fold_sizes: list[int] | None
    models: list[list[Any] | None] | None  # output and hyperparameters, by trial
    seconds: float  # in the optimizer
    versions: dict[str, str]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.problem, self.method, self.seed

    def history(self, problem: TestedProblem) -> Any:
        """What the study's history was at the end; ``first(n)`` of it is what it was after n evaluations."""
        from shoestring import History, State, Trial

        trials = []
        for number, row in enumerate(self.configs):
            known = self.models[number] if self.models else None
            model = {"theta": known[1:], "output": known[0], "trials": number} if known else None
            trials.append(
                Trial(
                    number,
                    unpacked(problem.dimensions, row),
                    State.DONE,
                    value=self.values[number],
                    cost=self.costs[number],
                    folds=tuple(self.folds[number]) if self.folds else None,
                    suggestion={"model": model} if model else {},
                )
            )
        return History(tuple(trials), problem.space())


def _model(suggestion: Any) -> list[Any] | None:
    model = suggestion.get("model")
    return [model.get("output"), *(round(float(x), 3) for x in model["theta"])] if model and model.get("theta") else None


def run(task: Task) -> Recording:
    """Evaluate to the end. Time is counted inside the optimizer only."""
    problem = catalog.load(task.problem, task.seed)
    configs, measured, models, seconds = [], [], [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = searchers.study(task.method, problem, task.seed)
        for _ in range(task.evaluations):
            start = time.perf_counter()
            trial = study.ask()
            seconds += time.perf_counter() - start
            found = problem.evaluate(trial.config)
            study.tell(trial, found.value, cost=found.cost, folds=found.folds)
            configs.append(packed(problem.dimensions, trial.config))
            measured.append(found)
            models.append(_model(trial.suggestion))
    return Recording(
        task.problem,
        task.method,
        task.seed,
        task.evaluations,
        configs,
        values=[tidy(found.value) for found in measured],
        costs=[tidy(found.cost) for found in measured],
        tests=[tidy(found.test) for found in measured],
        folds=[[tidy(fold) for fold in found.folds or ()] for found in measured] if problem.fold_sizes else None,
        fold_sizes=list(problem.fold_sizes) if problem.fold_sizes else None,
        models=models if any(models) else None,
        seconds=round(seconds, 3),
        versions=rows.versions(),
    )


def tasks(names: Sequence[str], methods: Sequence[str], seeds: int, evaluations: int) -> Iterator[Task]:
    """Seeds outermost: an interrupted recording is still balanced."""
    return (Task(method, name, seed, evaluations) for seed in range(seeds) for name in names for method in methods)


def read(folder: Path, method: str, evaluations: int) -> list[Recording]:
    """The recordings of a searcher; unfinished lines and runs of other lengths are passed over, and doubles count once."""
    found: dict[tuple[str, str, int], Recording] = {}
    for entry in lines.read(folder / "runs" / f"{method}.jsonl"):
        recording = Recording(**entry)
        if recording.evaluations == evaluations:
            found.setdefault(recording.key, recording)
    return list(found.values())


def record_missing(folder: Path, wanted: Iterable[Task]) -> None:
    """Make the runs that the folder does not hold; a searcher that cannot be built is passed over."""
    from shoestring import ShoestringError

    stored: dict[str, set[tuple[str, str, int]]] = {}
    broken: set[str] = set()
    for task in wanted:
        known = stored.setdefault(task.method, {found.key for found in read(folder, task.method, task.evaluations)})
        if (task.problem, task.method, task.seed) in known or task.method in broken:
            continue
        try:
            recording = run(task)
        except (AttributeError, ImportError, ShoestringError) as problem:
            broken.add(task.method)
            print(f"{task.method} is left out: {problem}", file=sys.stderr, flush=True)
            continue
        lines.append(folder / "runs" / f"{task.method}.jsonl", asdict(recording))
        print(
            f"{time.strftime('%H:%M:%S')} seed {task.seed} {task.problem} {task.method}: best {min(recording.values):.5g}, "
            f"cost {sum(recording.costs):.4g}, {recording.seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
