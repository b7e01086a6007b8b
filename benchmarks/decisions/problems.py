"""The problems of both sets with their costs, and what random search finds on each.

"reporting" holds the reporting problems of the regret benchmark (functions cost 1 an evaluation, FCNet tables their stored
training time) and the surrogates of recorded XGBoost runs. The HPOBench tables are left out: earlier choices about costs were
made on them. "tuning" holds the problems of ``benchmarks.problems.with_costs``. Decisions are made on "tuning" alone.
"""

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution

from benchmarks import problems as regret_problems
from benchmarks.cost_aware import lines
from benchmarks.cost_aware.core import CostProblem, Measured, at
from benchmarks.peers import RandomSearcher
from benchmarks.problems.core import Config, Problem

SETS = ("reporting", "tuning")
SAMPLES, TENS = 2000, 200  # random evaluations, and how many tens they make
EVALUATIONS_IN_BUDGET = 60  # the budget in cost is what so many random evaluations cost on average
SAMPLING_SEED = 20_001  # far from the seeds of runs: the yardstick must not be a run that is measured with it
FILE = "yardsticks.jsonl"


def names(which: str, quick: bool = False) -> list[str]:
    """The problems of a set; ``quick``: about a third of them, of each family some."""
    if which == "tuning":
        from benchmarks.problems import with_costs

        return list(with_costs.QUICK if quick else with_costs.TUNING)
    if which == "reporting":
        from benchmarks.cost_aware import surrogates

        found = [name for name in (*regret_problems.REPORTING, *surrogates.NAMES) if not name.startswith("hpobench_")]
        return found[::3] if quick else found
    raise ValueError(f"no set is called {which!r}; there are {', '.join(SETS)}")


@cache
def load(name: str) -> CostProblem:
    """The problem of that name, kept: reading a table takes a second, fitting a surrogate several."""
    from benchmarks.cost_aware import surrogates, tables

    if name.startswith(surrogates.PREFIX) and name in surrogates.NAMES:
        return surrogates.load(name)
    if name in (*tables.REPORTING, *tables.TUNING):
        return tables.load(name)
    if name in regret_problems.REPORTING:
        return with_constant_cost(regret_problems.load(name))
    from benchmarks.problems import with_costs

    return with_costs.load(name)


def with_constant_cost(problem: Problem) -> CostProblem:
    """A problem without costs, every evaluation of which costs 1."""

    def evaluate(config: Config) -> Measured:
        return problem.evaluate(config), 1.0

    return CostProblem(problem.name, problem.dimensions, evaluate, problem.optimum)


def has_estimated_optimum(name: str) -> bool:
    """Whether the optimum of a problem is the best of a sample only, so that a search may go well below it."""
    from benchmarks.cost_aware import surrogates

    return name in surrogates.NAMES


def family(name: str) -> str:
    """What kind of problem it is, for tables of results."""
    from benchmarks.cost_aware import surrogates

    if name in surrogates.NAMES:
        return "XGBoost"
    for prefix, label in (("fcnet_", "FCNet"), ("hpobench_", "HPOBench")):
        if name.startswith(prefix):
            return label
    if name in regret_problems.REPORTING:
        return "functions"
    from benchmarks.problems import with_costs

    return with_costs.family(name)


@dataclass(frozen=True)
class Yardstick:
    """What random search does on a problem: normalised regret is 0 at the best value known and 1 at ``best_of_ten``.

    budget       the mean cost of 60 random evaluations
    first        the median value of one random evaluation
    best_of_ten  the median over 200 tens of random evaluations of the best of ten
    lowest       the best value known before any run: the problem's optimum, the best of the random evaluations and, for a
                 surrogate, which has no known optimum, the best of a long search by differential evolution
    probe        value and cost of the first random config: they tell whether the problem is still the same
    """

    problem: str
    budget: float
    first: float
    best_of_ten: float
    lowest: float
    costs_differ: bool
    samples: int = SAMPLES
    probe: list[float] | None = None

    def normalised(self, value: float, best_known: float) -> float:
        """The normalised regret of a value; where ten random evaluations find the best known, anything above it counts as 1."""
        scale = self.best_of_ten - best_known
        regret = max(value - best_known, 0.0)
        return regret / scale if scale > 0 else float(regret > 0)


def searched(problem: CostProblem) -> float:
    """The lowest value that differential evolution finds in some 10,000 evaluations; integers and options by position."""

    def value(positions: NDArray[np.float64]) -> float:
        inside = np.clip(positions, 0.0, np.nextafter(1.0, 0.0))
        return problem.evaluate({d.name: at(d, float(u)) for d, u in zip(problem.dimensions, inside, strict=True)})[0]

    bounds = Bounds(np.zeros(len(problem.dimensions)), np.ones(len(problem.dimensions)))
    found = differential_evolution(value, bounds, maxiter=90, tol=0.0, polish=False, init="sobol", rng=0)
    return float(found.fun)


def measure(problem: CostProblem, samples: int = SAMPLES, tens: int = TENS, search: bool = False) -> Yardstick:
    """Random evaluations of a problem, in tens; ``search`` where the problem's optimum is only an estimate."""
    sampler = RandomSearcher(problem.without_costs(), SAMPLING_SEED)
    configs = [sampler.suggest() for _ in range(samples)]
    measured = np.array([problem.evaluate(config) for config in configs], dtype=float)
    seen, costs = np.nan_to_num(measured[:, 0], nan=np.inf), measured[:, 1]
    values = seen if problem.noise_free is None else np.array([problem.noise_free(config) for config in configs])
    # The best of ten is the one that looks best; with noise its true value counts.
    chosen = seen.reshape(tens, -1).argmin(axis=1)
    best = values.reshape(tens, -1)[np.arange(tens), chosen]
    return Yardstick(
        problem=problem.name,
        budget=float(EVALUATIONS_IN_BUDGET * costs.mean()),
        first=float(np.median(values)),
        best_of_ten=float(np.median(best)),
        lowest=float(min(values.min(), problem.optimum, searched(problem) if search else np.inf)),
        costs_differ=bool(costs.std() > 1e-6 * costs.mean()),
        samples=samples,
        probe=measured[0].tolist(),
    )


def yardsticks(folder: Path) -> dict[str, Yardstick]:
    """Those that a folder holds, by problem; the first one stored counts."""
    found: dict[str, Yardstick] = {}
    for entry in lines.read(folder / FILE):
        found.setdefault(entry["problem"], Yardstick(**entry))
    return found


def yardstick(folder: Path, name: str) -> Yardstick:
    """The stored yardstick of a problem, or a new one, which is stored; an error if the problem has changed since."""
    if (known := yardsticks(folder).get(name)) is not None:
        problem = load(name)
        now = problem.evaluate(RandomSearcher(problem.without_costs(), SAMPLING_SEED).suggest())
        if known.probe is not None and not np.allclose(now, known.probe, rtol=1e-6):
            raise ValueError(
                f"{name} has other values or costs than when its budget was stored in {folder / FILE}: delete its line there and "
                f"its rows in {folder}, then run again"
            )
        return known
    made = measure(load(name), search=has_estimated_optimum(name))
    lines.append(folder / FILE, asdict(made))
    return made
