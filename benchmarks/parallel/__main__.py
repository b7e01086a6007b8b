"""Eight asynchronous workers in simulated time, on the FCNet tables: how much sooner they find what one finds.

    python -m benchmarks.parallel [--quick] [--json] [--seeds N] [--methods auto@8,optuna_tpe@8] [--problems a,b]
                                  [--reference auto@1] [--results DIR] [--summary-only]

Runs what is not stored yet, and summarises what is. A label is a method (auto, ei, kg, optuna_tpe, optuna_gp, random) and its
number of workers. Several processes may run at once if they share no method.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.cost_aware import tables
from benchmarks.machine import facts
from benchmarks.parallel import measures, methods, run

RESULTS = Path(__file__).parent.parent / "results" / "parallel"
SEEDS, QUICK_SEEDS = 10, 2
QUICK_PROBLEMS = ("fcnet_naval", "fcnet_protein")


def listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, two tables, 30 evaluations in turn, 72 by eight workers")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--seeds", type=int, help=f"how many, starting at 0; {SEEDS} by default")
    parser.add_argument("--methods", help=f"comma-separated; by default {','.join(methods.LABELS)}")
    parser.add_argument("--problems", help="comma-separated; the four FCNet tables by default")
    parser.add_argument("--reference", default=methods.REFERENCE, help="the sequential run that is compared with")
    parser.add_argument("--results", type=Path, help="folder of rows and report")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    folder = options.results or (RESULTS / "quick" if options.quick else RESULTS)
    names = listed(options.problems) or list(QUICK_PROBLEMS if options.quick else tables.REPORTING)
    labels = listed(options.methods) or list(methods.LABELS)
    for label in (options.reference, *labels):
        methods.parsed(label)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    with threadpool_limits(1):
        rows = run.runs(folder, names, options.reference, labels, seeds, options.quick, missing=not options.summary_only)
    report: dict[str, Any] = measures.summarise(rows, options.reference, labels)
    path = folder / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report | {"machine": facts()}, indent=1) + "\n")
    print(measures.text(report))
    if options.json:
        print(json.dumps({"quick": options.quick, **measures.key(report)}))


if __name__ == "__main__":
    main()
