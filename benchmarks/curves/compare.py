"""What learning curves save: methods with and without fidelities on the recorded curves.

    python -m benchmarks.curves.compare [--set tuning|reporting] [--methods a,b] [--tables a,b] [--seeds 20] [--summary-only]

Regret of what is recommended at shares of the budget, which is the mean cost of 60 whole runs. It is normalised: 1 is the median
of the best of ten random configs, 0 the best config. Costs are the recorded seconds; the time of the optimizer is stored beside
them. A row is written as soon as its run ends, and what is stored is not run again.

full        no fidelity: every run is whole; Shoestring's default, judged by what it recommends as the others are
ends        epochs are a fidelity, results are told at the end of a run
reports     the same, every epoch is reported and ``should_stop`` is asked
resumable   the same, and a run can go on where it stopped
hyperband   ``st.Hyperband()`` with runs that can go on
hyperband_observed   the same as published: judged by the lowest value at the highest fidelity, not by our recommendation
asha        ``st.Hyperband(asynchronous=True, brackets=1)``, likewise
boca        ``st.BOCA()`` with runs that can go on; its results are told at the end of a run
optuna_hyperband   Optuna's TPE with its Hyperband pruner, judged at every epoch
optuna_asha        Optuna's TPE with its pruner of successive halving, judged at every epoch
smac        SMAC's multi-fidelity facade: Hyperband with a random forest; a config that is promoted goes on
optuna_gp   Optuna's GPSampler, whole runs
"""

import argparse
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import lines
from benchmarks.curves import peers_fidelity, spaces, tables
from benchmarks.curves.ledger import CAP, FINE_SHARES, SHARES, Ledger, scale
from benchmarks.decisions.runs import commit
from benchmarks.peers import shoestring_space
from benchmarks.problems.core import Config, Integer, Problem

RESULTS = Path(__file__).parent.parent / "results" / "curves"
ROUNDED = 1e-4  # regrets along the budget are stored with five digits


def space_of(name: str, fidelity: bool, resumable: bool) -> Any:
    """The space in Shoestring's terms; the points of the curve are the fidelity that may be resumable, the size never is."""
    import shoestring as st

    table = tables.load(name)
    plain = shoestring_space(Problem(name, table.dimensions, lambda config: 0.0, 0.0))
    if not fidelity:
        return plain
    along, *sizes = table.fidelities
    found = {along.name: st.Fidelity(along.low, along.high, resumable=resumable or None)}
    found |= {size.name: st.Fidelity(size.low, size.high, log=size.log) for size in sizes}
    return st.Space(**dict(plain.items()), **found)


def observed_best(trials: Iterable[Any], fidelities: Sequence[Integer]) -> Config | None:
    """The config of the lowest value at the highest fidelity seen, which is how Hyperband is published."""
    done = [trial for trial in trials if trial.value is not None]
    grown = [math.prod(trial.config[each.name] / each.high for each in fidelities) for trial in done]
    order = sorted(zip(done, grown, strict=True), key=lambda pair: (-pair[1], pair[0].value))
    return order[0][0].config if order else None


def ours(
    name: str, seed: int, *, fidelity: bool, reports: bool = False, resumable: bool = False, method: Any = "auto",
    observed: bool = False, shares: Sequence[float] = SHARES,
) -> Ledger:  # fmt: skip
    """A study of ours; ``observed``: it is judged by the lowest value at the highest fidelity, not by what it recommends."""
    import shoestring as st

    table, (_, budget) = tables.load(name), scale(name)
    unit, sizes = table.unit, [each.name for each in table.fidelities[1:]]
    study = st.Study(
        space_of(name, fidelity, resumable), method, None, seed=seed, budget=st.Budget(cost=budget), name=f"{name} {seed}"
    )

    def best() -> Config | None:
        if not len(study.history):
            return None
        if observed:
            lowest = observed_best(study.log, table.fidelities)
            return None if lowest is None else {each.name: lowest[each.name] for each in table.dimensions}
        found = study.recommend()  # without fidelities too: values are noisy, and the lowest one is a lucky one
        config = study.best.config if found is None and study.best is not None else None if found is None else found.config
        return None if config is None else {each.name: config[each.name] for each in table.dimensions}

    ledger = Ledger(name, best, shares)

    def objective(config: Config, trial: Any) -> Any:
        curve = table.curve(config, seed, *(config[size] for size in sizes if fidelity))
        end = float(config.get(unit, table.units[-1]))
        start = float(trial.resumed_from.fidelity[unit]) if trial.resumed_from is not None else 0.0
        before = curve.until(start)[1] if start else 0.0
        value, paid = curve.until(end)
        if reports:
            for step in [*(float(point) for point in table.units if start < point < end), end]:
                value, paid = curve.until(step)
                if not math.isfinite(value):  # a run that diverged ends there
                    break
                trial.report(value, cost=paid - before, **{unit: int(step)})
                if trial.should_stop():
                    break
        ledger.before(paid - before)
        return st.Outcome(value, cost=paid - before)

    study.minimize(objective, st.Budget(cost=budget, trials=CAP), progress=False)
    return ledger


def hyperband(name: str, seed: int, observed: bool = False) -> Ledger:
    import shoestring as st

    return ours(name, seed, fidelity=True, resumable=True, method=st.Hyperband(), observed=observed)


def asha(name: str, seed: int) -> Ledger:
    import shoestring as st

    return ours(name, seed, fidelity=True, resumable=True, method=st.Hyperband(asynchronous=True, brackets=1), observed=True)


def boca(name: str, seed: int) -> Ledger:
    import shoestring as st

    return ours(name, seed, fidelity=True, resumable=True, method=st.BOCA())


METHODS: dict[str, Callable[[str, int], Ledger]] = {
    "full": lambda name, seed: ours(name, seed, fidelity=False),
    "ends": lambda name, seed: ours(name, seed, fidelity=True),
    "reports": lambda name, seed: ours(name, seed, fidelity=True, reports=True),
    "resumable": lambda name, seed: ours(name, seed, fidelity=True, reports=True, resumable=True),
    "hyperband": hyperband,
    "hyperband_observed": lambda name, seed: hyperband(name, seed, observed=True),
    "asha": asha,
    "boca": boca,
    "optuna_hyperband": peers_fidelity.optuna_hyperband,
    "optuna_asha": peers_fidelity.optuna_asha,
    "optuna_gp": peers_fidelity.optuna_gp,
    "smac": peers_fidelity.smac,
}


def names(which: str) -> list[str]:
    """Tables of one fidelity; those with two are left to other comparisons."""
    return [name for name in (spaces.TUNING if which == "tuning" else spaces.REPORTING) if len(tables.load(name).fidelities) == 1]


def run_missing(folder: Path, wanted: list[str], methods: list[str], seeds: int) -> None:
    logging.getLogger("shoestring").setLevel(logging.WARNING)  # a line for each run is enough
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
                    "fine": [None if each is None else float(f"{each:.5g}") for each in ledger.rest(FINE_SHARES)],
                }  # fmt: skip
                lines.append(path, row)
                shown = " ".join("-" if each is None else f"{each:.3f}" for each in row["regrets"])
                print(f"{time.strftime('%H:%M:%S')} seed {seed} {name} {method}: {shown}, {row['runs']} runs", flush=True)


def judge(folder: Path, wanted: list[str], methods: list[str], baseline: str = "full") -> dict[str, Any]:
    """Means over tables of the means over seeds, on the runs that all methods have; without a recommendation, none.

    ``reached`` are shares of the budget at which a method has what the baseline has at the end, on means over seeds: the median
    and the worst of the tables, infinite where it is never reached. ``seconds`` are of a run: the time of the optimizer.
    """
    stored = {m: {(r["table"], r["seed"]): r for r in lines.read(folder / f"{m}.jsonl") if r["table"] in wanted} for m in methods}
    stored = {method: rows for method, rows in stored.items() if rows}
    common = sorted(set.intersection(*(set(rows) for rows in stored.values()))) if stored else []
    kept, found = sorted({name for name, _ in common}), {}
    for method, rows in stored.items() if common else ():
        reached = []
        for name in kept:
            fine = mean_over_seeds(rows, common, name, "fine")
            if baseline in stored and fine is not None:
                goal = mean_over_seeds(stored[baseline], common, name, "regrets")[-1]
                hit = np.flatnonzero(fine <= goal * (1 + ROUNDED))
                reached.append(FINE_SHARES[hit[0]] if len(hit) else math.inf)
        found[method] = {
            "regrets": list(known_mean([mean_over_seeds(rows, common, name, "regrets") for name in kept])),
            "reached": (float(np.median(reached)), max(reached)) if reached else None,
            "seconds": float(np.mean([rows[pair]["seconds"] for pair in common])),
        }
    return {"tables": len(kept), "runs": len(common), "methods": found}


def summary(folder: Path, wanted: list[str], methods: list[str], baseline: str = "full") -> Iterator[str]:
    """What ``judge`` finds, as lines."""
    found = judge(folder, wanted, methods, baseline)
    head = f"{found['tables']} tables, {found['runs']} runs of each method"
    yield f"{head}; at shares {SHARES} | cost to reach {baseline}, median and worst | seconds"
    for method, each in found["methods"].items():
        shown = "".join(f"{regret:>9.3f}" for regret in each["regrets"])
        ends = "".join("        -" if math.isinf(share) else f"{share:>9.3g}" for share in each["reached"] or ())
        yield f"  {method:<18}{shown} |{ends} |{each['seconds']:>7.0f}"


def mean_over_seeds(rows: dict[tuple[str, int], Any], common: list[tuple[str, int]], name: str, key: str) -> Any:
    """Of one table; None where rows of an earlier version do not have the key."""
    found = [rows[pair].get(key) for pair in common if pair[0] == name]
    if any(each is None for each in found):
        return None
    return known_mean([[np.nan if each is None else each for each in row] for row in found])


def known_mean(rows: Any) -> Any:
    """Of the columns, of what is not NaN; NaN where all are."""
    values = np.array(rows, dtype=float)
    count = np.isfinite(values).sum(axis=0)
    return np.where(count > 0, np.nansum(values, axis=0) / np.maximum(count, 1), np.nan)


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
