"""How good is the best configuration found after 20, 40 and 80 evaluations?

    python -m benchmarks.regret [--quick] [--json] [--methods a,b] [--problems a,b] [--seeds 20]
                                [--set reporting|tuning] [--results DIR] [--summary-only]

Runs whatever is not stored yet, then summarises what is stored. Seeds are the outermost loop, then problems,
then methods, so that an interrupted benchmark is still balanced: every method has seen the same problems.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

from benchmarks import problems, report, rows, summary
from benchmarks.peers import DEFAULT, build

EVALUATIONS = 80
RESULTS = Path(__file__).parent / "results"
FOLDERS = {"reporting": RESULTS / "regret", "tuning": RESULTS / "regret_tuning"}


def run(method: str, name: str, seed: int, evaluations: int = EVALUATIONS) -> rows.Row:
    """One run. Time is counted inside the optimizer only: not the objective, nor imports at construction."""
    problem = problems.load(name)
    values: list[float] = []
    seconds = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searcher = build(method, problem, seed)
        for _ in range(evaluations):
            start = time.perf_counter()
            config = searcher.suggest()
            seconds += time.perf_counter() - start
            value = problem.evaluate(config)
            start = time.perf_counter()
            searcher.observe(config, value)
            seconds += time.perf_counter() - start
            values.append(value)
    return rows.Row(name, method, seed, evaluations, values, round(seconds, 3), rows.versions())


def run_missing(folder: Path, methods: list[str], names: list[str], seeds: range) -> None:
    """Run and store everything that the folder does not hold yet, saying so on stderr."""
    stored = {(row.method, row.problem, row.seed) for method in methods for row in rows.read(folder, method)}
    for seed in seeds:
        for name in names:
            for method in methods:
                if (method, name, seed) in stored:
                    continue
                row = run(method, name, seed)
                rows.append(folder, row)
                gap = min(row.values) - problems.load(name).optimum
                stamp = time.strftime("%H:%M:%S")
                print(
                    f"{stamp} seed {seed} {name} {method}: regret {gap:.4g}, {row.seconds:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="five seeds")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--methods", help="comma-separated; all by default")
    parser.add_argument("--problems", help="comma-separated; the whole set by default")
    parser.add_argument("--seeds", type=int, default=20, help="how many, starting at 0")
    parser.add_argument("--set", choices=sorted(problems.SETS), default="reporting")
    parser.add_argument("--results", type=Path, help="folder of the rows; one for each set by default")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    folder = options.results or FOLDERS[options.set]
    names = _listed(options.problems) or list(problems.SETS[options.set])
    seeds = range(5 if options.quick else options.seeds)
    methods = _listed(options.methods)
    if not options.summary_only:
        run_missing(folder, methods or list(DEFAULT), names, seeds)
    compared = methods or rows.methods_in(folder)
    stored = [row for method in {*compared, "random"} for row in rows.read(folder, method)]
    stored = [row for row in stored if row.problem in names and row.seed in seeds]
    outcome = summary.summarise(stored, {name: problems.load(name).optimum for name in names}, compared)
    print(report.as_text(outcome))
    if options.json:
        print(json.dumps(outcome))


if __name__ == "__main__":
    main()
