"""What learning curves save: methods with and without fidelities on the recorded curves.

    python -m benchmarks.curves.compare [--set tuning|reporting] [--methods a,b] [--tables a,b] [--seeds 20] [--summary-only]

Regret of what is recommended at shares of the budget, which is the mean cost of 60 whole runs. It is normalised: 1 is the median
of the best of ten random configs, 0 the best config. Costs are the recorded seconds; the time of the optimizer is stored beside
them. A row is written as soon as its run ends, and what is stored is not run again.

full        no fidelity: every run is whole; Shoestring's default
ends        epochs are a fidelity, results are told at the end of a run
reports     the same, every epoch is reported and ``should_stop`` is asked
resumable   the same, and a run can go on where it stopped
hyperband   ``st.Hyperband()`` with runs that can go on
optuna_hyperband   Optuna's TPE with its Hyperband pruner, judged at every epoch
optuna_gp   Optuna's GPSampler, whole runs
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.cost_aware import lines
from benchmarks.curves import spaces, tables
from benchmarks.decisions.runs import commit
from benchmarks.peers import RandomSearcher, optuna_distributions, shoestring_space
from benchmarks.problems.core import Config, Problem

RESULTS = Path(__file__).parent.parent / "results" / "curves"
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
WHOLE_RUNS = 60
SAMPLES, SAMPLING_SEED = 1000, 20_001
CAP = 400  # runs, of whatever length


@cache
def scale(name: str) -> tuple[float, float]:
    """The median regret of the best of ten random configs, and the budget."""
    table = tables.load(name)
    sampler = RandomSearcher(Problem(name, table.dimensions, lambda config: 0.0, 0.0), SAMPLING_SEED)
    configs = [sampler.suggest() for _ in range(SAMPLES)]
    found = np.array([(table.regret(config), table.evaluate(config)[1]) for config in configs])
    return float(np.median(found[:, 0].reshape(-1, 10).min(axis=1))), WHOLE_RUNS * float(found[:, 1].mean())


class Ledger:
    """What was paid, and what was recommended when each share of the budget was reached."""

    def __init__(self, name: str, best: Callable[[], Config | None]) -> None:
        self.table, (self.one, self.budget) = tables.load(name), scale(name)
        self.best, self.spent, self.runs = best, 0.0, 0
        self.regrets: list[float | None] = []

    @property
    def over(self) -> bool:
        return self.spent >= self.budget * (1 - 1e-9) or self.runs >= CAP

    def before(self, cost: float) -> None:
        """To be called with what will be paid next: what is recommended now counts for every share that this passes."""
        self._note(sum(self.spent + cost > share * self.budget * (1 + 1e-9) for share in SHARES))
        self.spent += cost
        self.runs += 1

    def rest(self) -> list[float | None]:
        """The regrets at all shares; those that were not reached count as what is recommended at the end."""
        self._note(len(SHARES))
        return self.regrets

    def _note(self, count: int) -> None:
        if len(self.regrets) < count:
            config = self.best()
            regret = None if config is None else self.table.regret(config) / self.one
            self.regrets += [regret] * (count - len(self.regrets))


def space_of(name: str, fidelity: bool, resumable: bool) -> Any:
    import shoestring as st

    table = tables.load(name)
    plain = shoestring_space(Problem(name, table.dimensions, lambda config: 0.0, 0.0))
    if not fidelity:
        return plain
    along = table.fidelities[0]
    return st.Space(**dict(plain.items()), **{along.name: st.Fidelity(along.low, along.high, resumable=resumable or None)})


def ours(name: str, seed: int, *, fidelity: bool, reports: bool = False, resumable: bool = False, method: Any = "auto") -> Ledger:
    import shoestring as st

    table, (_, budget) = tables.load(name), scale(name)
    unit = table.unit
    study = st.Study(
        space_of(name, fidelity, resumable), method, None, seed=seed, budget=st.Budget(cost=budget), name=f"{name} {seed}"
    )

    def best() -> Config | None:
        if not len(study.history):
            return None
        found = study.recommend() if fidelity else None
        config = study.best.config if found is None and study.best is not None else None if found is None else found.config
        return None if config is None else {each.name: config[each.name] for each in table.dimensions}

    ledger = Ledger(name, best)

    def objective(config: Config, trial: Any) -> Any:
        curve = table.curve(config, seed)
        end = float(config.get(unit, table.units[-1]))
        start = float(trial.resumed_from.fidelity[unit]) if trial.resumed_from is not None else 0.0
        before = curve.until(start)[1] if start else 0.0
        value, paid = curve.until(end)
        if reports:
            for step in [*(float(point) for point in table.units if start < point < end), end]:
                value, paid = curve.until(step)
                trial.report(value, cost=paid - before, **{unit: int(step)})
                if trial.should_stop():
                    break
        ledger.before(paid - before)
        return st.Outcome(value, cost=paid - before)

    study.minimize(objective, st.Budget(cost=budget, trials=CAP), progress=False)
    return ledger


def optuna_gp(name: str, seed: int) -> Ledger:
    table = tables.load(name)
    searcher = peers.optuna_gp(Problem(name, table.dimensions, lambda config: 0.0, 0.0), seed)
    seen: list[tuple[float, Config]] = []
    ledger = Ledger(name, lambda: min(seen, key=lambda pair: pair[0])[1] if seen else None)
    while not ledger.over:
        config = searcher.suggest()
        value, cost = table.evaluate(config, seed)
        ledger.before(cost)
        searcher.observe(config, value)
        seen.append((value, config))
    return ledger


def optuna_hyperband(name: str, seed: int) -> Ledger:
    import optuna

    table = tables.load(name)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=len(table.units), reduction_factor=3)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner, study_name=f"seed {seed}")
    distributions = optuna_distributions(Problem(name, table.dimensions, lambda config: 0.0, 0.0))

    def best() -> Config | None:
        done = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished() and trial.last_step is not None]
        return min(done, key=lambda t: (-t.last_step, t.intermediate_values[t.last_step])).params if done else None

    ledger = Ledger(name, best)
    while not ledger.over:
        trial = study.ask(distributions)
        curve, paid, state = table.curve(trial.params, seed), 0.0, optuna.trial.TrialState.COMPLETE
        for number in range(len(table.units)):
            paid = float(curve.seconds[number])
            trial.report(float(curve.valid[number]), number + 1)
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        ledger.before(paid)
        study.tell(trial, float(curve.valid[number]) if state == optuna.trial.TrialState.COMPLETE else None, state=state)
    return ledger


def hyperband(name: str, seed: int) -> Ledger:
    import shoestring as st

    return ours(name, seed, fidelity=True, resumable=True, method=st.Hyperband())


METHODS: dict[str, Callable[[str, int], Ledger]] = {
    "full": lambda name, seed: ours(name, seed, fidelity=False),
    "ends": lambda name, seed: ours(name, seed, fidelity=True),
    "reports": lambda name, seed: ours(name, seed, fidelity=True, reports=True),
    "resumable": lambda name, seed: ours(name, seed, fidelity=True, reports=True, resumable=True),
    "hyperband": hyperband,
    "optuna_hyperband": optuna_hyperband,
    "optuna_gp": optuna_gp,
}


def names(which: str) -> list[str]:
    """Tables of one fidelity; those with two are left to other comparisons."""
    return [name for name in (spaces.TUNING if which == "tuning" else spaces.REPORTING) if len(tables.load(name).fidelities) == 1]


def run_missing(folder: Path, wanted: list[str], methods: list[str], seeds: int) -> None:
    for seed in range(seeds):
        for name in wanted:
            for method in methods:
                path = folder / f"{method}.jsonl"
                if any((row["table"], row["seed"]) == (name, seed) for row in lines.read(path)):
                    continue
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ledger = METHODS[method](name, seed)
                row = {
                    "table": name, "seed": seed, "method": method, "regrets": ledger.rest(), "runs": ledger.runs,
                    "spent": ledger.spent / ledger.budget, "seconds": round(time.process_time() - began, 2), "commit": commit(),
                }  # fmt: skip
                lines.append(path, row)
                shown = " ".join("-" if each is None else f"{each:.3f}" for each in row["regrets"])
                print(f"{time.strftime('%H:%M:%S')} seed {seed} {name} {method}: {shown}, {row['runs']} runs", flush=True)


def summary(folder: Path, wanted: list[str], methods: list[str]) -> Iterator[str]:
    """Means over tables of the means over seeds, on the runs that all methods have; without a recommendation, none."""
    stored = {m: {(r["table"], r["seed"]): r for r in lines.read(folder / f"{m}.jsonl") if r["table"] in wanted} for m in methods}
    stored = {method: rows for method, rows in stored.items() if rows}
    common = sorted(set.intersection(*(set(rows) for rows in stored.values()))) if stored else []
    yield f"{len({name for name, _ in common})} tables, {len(common)} runs of each method; shares of the budget {SHARES}"
    for method, rows in stored.items():
        per_table = []
        for name in sorted({name for name, _ in common}):
            found = [[np.nan if each is None else each for each in rows[pair]["regrets"]] for pair in common if pair[0] == name]
            per_table.append(np.nanmean(np.array(found, dtype=float), axis=0))
        yield f"  {method:<18}" + "".join(f"{each:>9.3f}" for each in np.nanmean(per_table, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves.compare", description=__doc__.split("\n")[0])
    parser.add_argument("--set", choices=("tuning", "reporting"), default="reporting")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--tables")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--summary-only", action="store_true")
    options = parser.parse_args()
    folder = options.results or RESULTS / options.set
    wanted = options.tables.split(",") if options.tables else names(options.set)
    methods = options.methods.split(",")
    if not options.summary_only:
        run_missing(folder, wanted, methods, options.seeds)
    print("\n".join(summary(folder, wanted, methods)))


if __name__ == "__main__":
    main()
