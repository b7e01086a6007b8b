"""How long a suggestion and a check of ``trial.should_stop()`` take, with 100 learning curves of 50 points.

    python -m benchmarks.curves.timing [--curves 100] [--rounds 10]

The study knows the curves of a reporting table, all of them whole. Then ``rounds`` trials follow, each of which reports every
epoch and asks whether it should stop. A suggestion is all that such a trial takes outside its objective. The method is
``st.EQI()``, which is what "auto" uses where runs end early. Processor time on one thread, since machines are shared. The result
is in benchmarks/results/curves/timing.json.
"""

import argparse
import json
import logging
import statistics
import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.curves import compare, tables
from benchmarks.decisions.runs import commit
from benchmarks.machine import facts

TABLE = "mlp_phoneme"
RESULTS = compare.RESULTS / "timing.json"


def measure(count: int, rounds: int) -> dict[str, Any]:
    """Seconds of each suggestion and of each check."""
    import shoestring as st

    table = tables.load(TABLE)
    study = st.Study(compare.space_of(TABLE, True, False), st.EQI(1.0), stop=None, seed=0)
    epochs = [int(unit) for unit in table.units]
    rng = np.random.default_rng(0)
    for row in rng.choice(len(table.configs), count, replace=False):
        study.enqueue({**table.configs[row], table.unit: epochs[-1]})
    checks: list[float] = []
    suggestions: list[float] = []
    inside = 0.0  # seconds of the objective, checks included

    def train(config: Any, trial: Any) -> Any:
        nonlocal inside
        entered = time.process_time()
        curve = table.curve(config, 0)
        for epoch in epochs[: int(config[table.unit])]:
            value, cost = curve.until(epoch)
            trial.report(value, cost=cost, **{table.unit: epoch})
            if trial.number >= count:
                began = time.process_time()
                trial.should_stop()
                checks.append(time.process_time() - began)
        inside += time.process_time() - entered
        return st.Outcome(value, cost=cost)

    study.minimize(train, st.Budget(cost=1e9, trials=count), progress=False)
    for number in range(rounds):
        inside, began = 0.0, time.process_time()
        study.minimize(train, st.Budget(cost=1e9, trials=count + number + 1), progress=False)
        suggestions.append(time.process_time() - began - inside)
    return {"suggestions": suggestions, "checks": checks}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves.timing", description=__doc__.split("\n")[0])
    parser.add_argument("--curves", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(arguments)
    logging.getLogger("shoestring").setLevel(logging.WARNING)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure(options.curves, options.rounds)
    entry = {
        "curves": options.curves, "points": len(tables.load(TABLE).units), "rounds": options.rounds, "commit": commit(),
        "machine": facts(),
        **{
            name: {"median": statistics.median(each), "highest": max(each), "count": len(each)}
            for name, each in found.items()
        },
    }  # fmt: skip
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(entry, indent=1) + "\n")
    print(timing_text())


def timing_text() -> str:
    """In words."""
    if not RESULTS.exists():
        return ""
    entry = json.loads(RESULTS.read_text())
    asked, checked = entry["suggestions"], entry["checks"]
    return (
        f"With {entry['curves']} curves of {entry['points']} points a suggestion takes {asked['median']:.2f} s (at most "
        f"{asked['highest']:.2f} s of {asked['count']}), and a check {1e3 * checked['median']:.2f} ms (at most "
        f"{1e3 * checked['highest']:.2f} ms of {checked['count']}): processor time on one thread."
    )


if __name__ == "__main__":
    main()
