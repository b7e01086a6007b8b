"""One run: the regret of what a searcher would recommend, against what it has spent.

Costs are looked at on a fixed grid of marks, geometric up to the budget, the same for every method: the regret at a mark is that
of the recommendation made from the evaluations that were paid for by then. So curves can be compared at equal cost without
interpolation. A mark before the first evaluation has no regret (None). The evaluations of a batch run side by side: the batch
costs as much as the dearest of them. A run ends with its budget or after ``cap`` evaluations, since a method that takes s = 0
could make thousands; from there on its recommendation stays, and so does its regret.

Seconds of a suggestion are processor time inside ``suggest``, on one thread, because machines are shared. Where costs are seconds
too (real tasks), they are charged; rows of runs that did not charge them have no ``thinking_charged``, and are other runs.
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows
from benchmarks.cost_aware import lines
from benchmarks.decisions.runs import commit
from benchmarks.fidelity.core import BatchSearcher, FidelityProblem
from benchmarks.problems.core import Config

MARKS = 40
FIRST = 1 / 400  # of the budget: the first mark


@dataclass(frozen=True)
class Curve:
    """A finished run; ``ask_seconds`` has an entry for each batch, ``fidelities`` and ``costs`` for each evaluation."""

    problem: str
    method: str
    seed: int
    budget: float
    marks: list[float]
    regrets: list[float | None]
    spent: float
    evaluations: int
    capped: bool
    ask_seconds: list[float]
    fidelities: dict[str, list[float]]
    costs: list[float]
    seconds: float
    versions: dict[str, str]
    thinking_charged: bool = False
    commit: str = ""  # rows up to November 2026 do not have it


def marks_to(budget: float) -> list[float]:
    return [float(f"{mark:.6g}") for mark in budget * np.geomspace(FIRST, 1.0, MARKS)]


@dataclass
class Recorder:
    """Keeps the account of a run. ``pay`` is to be called when a cost is known and before what it bought is told, because the
    marks that this cost goes beyond belong to the recommendation without it.
    """

    problem: FidelityProblem
    recommend: Callable[[], Config | None]
    spent: float = 0.0
    regrets: list[float | None] = field(default_factory=list)
    ask_seconds: list[float] = field(default_factory=list)
    asked: list[Config] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marks = marks_to(self.problem.budget)
        self.began = time.perf_counter()

    @property
    def over(self) -> bool:
        return self.spent >= self.problem.budget or len(self.asked) >= self.problem.cap

    def pay(self, configs: Iterable[Config], costs: list[float], price: float | None = None) -> None:
        """For evaluations side by side; ``price`` is for one that was paid for in pieces."""
        self.spend(max(costs) if price is None else price)
        self.asked.extend(dict(config) for config in configs)
        self.costs.extend(float(f"{cost:.6g}") for cost in costs)

    def think(self, seconds: float) -> None:
        """Seconds of a suggestion: paid where costs are seconds."""
        self.ask_seconds.append(round(seconds, 5))
        if self.problem.charges_thinking:
            self.spend(seconds)

    def spend(self, cost: float) -> None:
        after = self.spent + cost
        self._fill(sum(mark < after * (1 - 1e-9) for mark in self.marks))
        self.spent = after

    def _fill(self, until: int) -> None:
        """One recommendation for all the marks passed: nothing was told between them."""
        if until > len(self.regrets):
            found = self.recommend() if self.asked else None
            regret = None if found is None else float(f"{self.problem.regret(found):.8g}")
            self.regrets.extend([regret] * (until - len(self.regrets)))

    def curve(self, method: str, seed: int) -> Curve:
        self._fill(len(self.marks))
        capped = self.spent < self.problem.budget
        names = [fidelity.name for fidelity in self.problem.fidelities]
        fidelities = {name: [float(f"{config[name]:.4g}") for config in self.asked] for name in names}
        return Curve(
            self.problem.name, method, seed, self.problem.budget, self.marks, self.regrets, round(self.spent, 6),
            len(self.asked), capped, self.ask_seconds, fidelities, self.costs,
            round(time.perf_counter() - self.began, 2), rows.versions(), self.problem.charges_thinking, commit(),
        )  # fmt: skip


def follow(problem: FidelityProblem, searcher: BatchSearcher, method: str, seed: int) -> Curve:
    """Run a searcher to the end of its budget."""
    recorder = Recorder(problem, searcher.recommend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not recorder.over:
            began = time.process_time()
            configs = searcher.suggest()
            recorder.think(time.process_time() - began)
            results = [problem.evaluate(config) for config in configs]
            recorder.pay(configs, [result.cost for result in results])
            searcher.observe(results)
        return recorder.curve(method, seed)


Runner = Callable[[str, FidelityProblem, int], Curve]


def run_missing(
    folder: Path, load: Callable[[str], FidelityProblem], run: Runner, names: Iterable[str], labels: Iterable[str], seeds: int,
    few: dict[str, int] | None = None,
) -> None:  # fmt: skip
    """Make the runs that the folder does not hold; ``few`` has the seeds of methods that are too slow for all of them.

    A method that is not there, or that refuses the problem, is passed over with a note.
    """
    from shoestring import MethodError

    labels, names = list(labels), list(names)
    stored = {label: {run_key(row) for row in read(folder, label)} for label in labels}
    left_out: set[str] = set()
    for seed in range(seeds):
        for name in names:
            for label in labels:
                if label in left_out or seed >= (few or {}).get(label, seeds):
                    continue
                problem = load(name)
                if (name, seed, problem.budget, problem.charges_thinking) in stored[label]:
                    continue
                try:
                    found = run(label, problem, seed)
                except (AttributeError, ImportError, MethodError) as error:
                    left_out.add(label)
                    print(f"{label} is left out: {error}", file=sys.stderr, flush=True)
                    continue
                lines.append(folder / f"{label}.jsonl", asdict(found))
                last = found.regrets[-1]
                print(
                    f"{time.strftime('%H:%M:%S')} seed {seed} {name} {label}: {'none' if last is None else f'{last:.3g}'} after "
                    f"{found.evaluations} for {found.spent:.3g}, {statistics.median(found.ask_seconds):.3f} s an ask, "
                    f"{found.seconds:.0f} s in all",
                    file=sys.stderr,
                    flush=True,
                )


def run_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells runs of one method apart."""
    return row["problem"], row["seed"], row["budget"], row.get("thinking_charged", False)


def read(folder: Path, label: str) -> list[dict[str, Any]]:
    """The stored runs of a method, each once."""
    found: dict[Any, dict[str, Any]] = {}
    for row in lines.read(folder / f"{label}.jsonl"):
        found.setdefault(run_key(row), row)
    return list(found.values())
