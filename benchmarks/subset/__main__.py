"""Subsets of the trials for long searches: quality, optimizer time, alpha, real tuning, and growth with the trials.

    python -m benchmarks.subset [--quick] [--json] [--part table1|table3|table4|growth] [--methods a,b] [--seeds N]
                                [--functions a,b] [--dims 4,6,10] [--evaluations FACTOR] [--shifted] [--no-peers]
                                [--tables DIR] [--results DIR] [--summary-only]

``table1`` is tables 1 and 2 of the paper, 15 cases; ``table3`` has d = 10 alone, as there. Runs what is not stored yet (runs of
another length are other runs) and summarises what is stored, in benchmarks/results/subset, a file a method. Several processes
may run at once if they share no method. See ``methods`` for labels.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.cost_aware import datasets
from benchmarks.machine import facts
from benchmarks.subset import functions, growth, methods, run, tables, tasks

RESULTS = Path(__file__).parent.parent / "results" / "subset"
PARTS = ("table1", "table3", "table4", "growth")
SEEDS = {"table1": 20, "table3": 20, "table4": 5, "growth": growth.REPEATS}
QUICK_SEEDS = {"table1": 3, "table3": 3, "table4": 1, "growth": growth.QUICK_REPEATS}
QUICK_FACTOR = 40  # evaluations a dimension: subsets begin at 30
QUICK_FUNCTIONS, QUICK_DIMENSION, QUICK_TASKS, QUICK_ALPHAS = ("ackley", "rastrigin"), 4, ("svm_balance_scale",), (5, 20)


def listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def _names(part: str, options: argparse.Namespace) -> list[str]:
    """Of problems or tasks; tasks without a table are passed over with a note."""
    given = listed(options.functions)
    if part == "table4":
        found = [name for name in given or (QUICK_TASKS if options.quick else tasks.NAMES) if name in tasks.NAMES]
        if absent := [name for name in found if not tasks.exists(name, options.tables)]:
            print(f"no table for {', '.join(absent)}", file=sys.stderr, flush=True)
        return [name for name in found if name not in absent]
    every = QUICK_FUNCTIONS if options.quick else functions.FUNCTIONS
    chosen = [name for name in given or every if name in functions.FUNCTIONS]
    usual = functions.DIMENSIONS if part == "table1" else functions.DIMENSIONS[-1:]
    dimensions = [int(d) for d in listed(options.dims) or ((QUICK_DIMENSION,) if options.quick else usual)]
    return functions.names(chosen, dimensions, options.shifted)


def _labels(part: str, options: argparse.Namespace) -> list[str]:
    chosen = listed(options.methods)
    if part == "growth":
        usual = [tables.OURS, tables.EXACT, *(() if options.no_peers else growth.PEERS)]
        return chosen or usual
    if part == "table3":
        alphas = QUICK_ALPHAS if options.quick else methods.ALPHAS
        every = [methods.of_alpha(name, alpha) for name in methods.SUBSETS for alpha in alphas]
        return [label for label in chosen or every if methods.parsed(label)[0] in methods.SUBSETS]
    return chosen or list(methods.LABELS)


def do(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run what is missing, and summarise."""
    labels, seeds = _labels(part, options), options.seeds or (QUICK_SEEDS if options.quick else SEEDS)[part]
    if part == "growth":
        asks = growth.QUICK_ASKS if options.quick else growth.ASKS
        return growth.measure(labels, seeds, asks, list(growth.SIZES))
    names, factor = _names(part, options), options.evaluations or (QUICK_FACTOR if options.quick else run.FACTOR)
    load = partial(tasks.load, folder=options.tables) if part == "table4" else functions.load
    if not options.summary_only:
        run.run_missing(options.results, load, names, labels, seeds, factor)
    order = [*labels, *(label for label in methods.LABELS if label not in labels)]
    stored = tables.collect(options.results, names, order, factor)
    return tables.alphas(stored) if part == "table3" else tables.tables(stored)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subset", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="d = 4, two functions, three seeds, 40 d evaluations")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--part", choices=PARTS, action="append", help="may be repeated; all by default")
    parser.add_argument("--methods", help=f"comma-separated: {', '.join(methods.LABELS)}, SCS@5, RS+paper, ...")
    parser.add_argument("--seeds", type=int, help="how many, starting at 0")
    parser.add_argument("--functions", help="comma-separated: functions, or tasks such as svm_kr_vs_kp")
    parser.add_argument("--dims", help="comma-separated, of the functions")
    parser.add_argument("--evaluations", type=int, metavar="FACTOR", help="of a run, a dimension; 100 by default")
    parser.add_argument("--shifted", action="store_true", help="boxes whose centre is not the optimum")
    parser.add_argument("--no-peers", action="store_true", help="without Optuna and BoTorch")
    parser.add_argument("--tables", type=Path, default=datasets.FOLDER, help="folder of the tasks' tables")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of rows and report")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    path = options.results / ("report_quick.json" if options.quick else "report.json")
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    keys: dict[str, Any] = {"quick": options.quick}
    path.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        for part in options.part or PARTS:
            if part == "growth":  # it is measured, not stored: what was measured before stays beside it
                report[part] = report.get(part, {}) | ({} if options.summary_only else do(part, options))
                keys |= growth.key(report[part])
                print(json.dumps(report[part], indent=1), flush=True)
            else:
                report[part] = do(part, options)
                keys[part] = tables.alphas_key(report[part]) if part == "table3" else tables.key(report[part])
                print(json.dumps(report[part], indent=1) if part == "table3" else tables.text(report[part]), flush=True)
            path.write_text(json.dumps(report | {"machine": facts()}, indent=1) + "\n")  # a part may take hours
    if options.json:
        print(json.dumps(keys))


if __name__ == "__main__":
    main()
