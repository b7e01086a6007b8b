"""Continuous fidelities: cost to reach a regret on augmented functions, real tuning in seconds, kernel learning, suggestion time.

    python -m benchmarks.fidelity [--quick] [--json] [--part functions|biased|real|kernel|timing] [--methods a,b] [--seeds N]
                                  [--functions a,b] [--budget COST] [--no-peers] [--results DIR] [--summary-only]

``functions`` has the paper's constants, ``biased`` 0.1 in their place. Runs what is not stored yet (runs of another budget are
other runs), then summarises what is stored, in benchmarks/results/fidelity. A part may be run by several processes at once if
they share no method.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.fidelity import curves, functions, kernel_learning, methods, real, summary, timing, versus
from benchmarks.fidelity.core import FidelityProblem
from benchmarks.machine import facts

RESULTS = Path(__file__).parent.parent / "results" / "fidelity"
PARTS = ("functions", "biased", "real", "kernel", "timing")
SEEDS = {"functions": 20, "biased": 20, "real": 3, "kernel": 10, "timing": 3}
BOTORCH_SEEDS = 3
QUICK_SEEDS = {"functions": 3, "biased": 3, "real": 1, "kernel": 1, "timing": 1}
QUICK_SHARE = 0.25  # of the budget
QUICK_NAMES = {"functions": ("branin", "hartmann3"), "biased": ("branin",), "real": ("xgboost_pendigits",)}


def listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def _names(part: str, options: argparse.Namespace) -> list[str]:
    every = {"real": real.NAMES, "kernel": ("kernel_learning",)}.get(part, functions.NAMES)
    usual = QUICK_NAMES.get(part, every) if options.quick else every
    found = [name for name in listed(options.functions) or usual if name in every]
    if part == "real" and (absent := [name for name in found if not real.exists(name)]):
        print(f"no table for {', '.join(absent)}", file=sys.stderr, flush=True)
        found = [name for name in found if name not in absent]
    return found


def _labels(part: str, options: argparse.Namespace) -> list[str]:
    usual = {"real": methods.REAL, "kernel": methods.KERNEL, "timing": tuple(timing.CASES)}.get(part, methods.FUNCTIONS)
    if options.quick and part in functions.SETS:
        usual = methods.FUNCTIONS_QUICK
    chosen = listed(options.methods) or list(usual)
    return [label for label in chosen if not (options.no_peers and label in methods.PEERS)]


def _loader(part: str, options: argparse.Namespace, folder: Path) -> Callable[[str], FidelityProblem]:
    """By name, each once, at the budget asked for."""

    def budget(usual: float) -> float:
        return float(options.budget or usual * (QUICK_SHARE if options.quick else 1.0))

    @cache
    def load(name: str) -> FidelityProblem:
        if part == "real":
            return real.load(name, budget(real.load(name).budget))
        if part == "kernel":
            return kernel_learning.load(kernel_learning.optimum(folder / "optimum.json"), budget(kernel_learning.BUDGET))
        return functions.load(name, functions.SETS[part][name], budget(functions.BUDGETS[name]))

    return load


def do(part: str, options: argparse.Namespace, results: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Run what is missing, and summarise."""
    labels, seeds = _labels(part, options), options.seeds or (QUICK_SEEDS if options.quick else SEEDS)[part]
    if part == "timing":
        known: dict[str, Any] = report.get(part, {})
        return known if options.summary_only else known | timing.measure([n for n in labels if n in timing.CASES], seeds)
    folder, names = results / part, _names(part, options)
    load = _loader(part, options, folder)
    if not options.summary_only:
        curves.run_missing(folder, load, methods.run, names, labels, seeds, {"botorch_qMFKG": BOTORCH_SEEDS})
    stored = sorted(path.stem for path in folder.glob("*.jsonl"))
    order = [*(label for label in labels if label in stored), *(label for label in stored if label not in labels)]
    subjects = [label for label in order if methods.split(label)[0] in ("cfKG", "cf-d-KG", "auto")]
    found = {name: summary.problem(folder, load(name), order, subjects) for name in names}
    for name in names if part in functions.SETS else ():
        found[name]["regret_of_the_cheapest_minimum"] = versus.tidy(functions.misled(name, functions.SETS[part][name]))
    return found


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds, problems and methods, a quarter of the budget")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--part", choices=PARTS, action="append", help="may be repeated; all by default")
    parser.add_argument("--methods", help="comma-separated; NAME_q4: batches of 4, NAME+known: told the cost; see methods")
    parser.add_argument("--seeds", type=int, help="how many, starting at 0; BoTorch has 3 at most")
    parser.add_argument("--functions", help="comma-separated: functions, or real tasks such as mlp_pendigits")
    parser.add_argument("--budget", type=float, help="of a run, in the part's unit of cost")
    parser.add_argument("--no-peers", action="store_true", help="without BoTorch, Optuna and SMAC")
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
            report[part] = do(part, options, options.results, report)
            keys[part] = summary.KEYS[part](report[part])
            print(summary.text(part, report[part]), flush=True)
            path.write_text(json.dumps(report | {"machine": facts()}, indent=1) + "\n")  # a part may take hours
    if options.json:
        print(json.dumps(keys))


if __name__ == "__main__":
    main()
