"""What one call decides: regret by trials and by cost, and the cost to a given quality, against EI and against peers.

    python -m benchmarks.decisions [--set reporting|tuning] [--methods a,b] [--problems a,b] [--seeds 20] [--kind trials|cost]
                                   [--quick] [--json] [--results DIR] [--summary-only]

Runs whatever is not stored yet, then summarises what is stored; the summary of everything goes to ``report.json`` too. Seeds are
the outermost loop, then problems, then methods, so that an interrupted benchmark is still balanced.
"""

import argparse
import json
from pathlib import Path

from benchmarks.decisions import measures, methods, problems, runs, summary, text
from benchmarks.machine import facts


def _listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__.split("\n")[0])
    parser.add_argument("--set", choices=problems.SETS, default="reporting")
    parser.add_argument("--methods", help="comma-separated; all by default")
    parser.add_argument("--problems", help="comma-separated; the whole set by default")
    parser.add_argument("--seeds", type=int, default=20, help="how many, starting at 0")
    parser.add_argument("--kind", choices=runs.KINDS, help="what the budget is in; both by default")
    parser.add_argument("--quick", action="store_true", help="a third of the problems, of each family some")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--results", type=Path, help="folder of the rows; one for each set by default")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    folder = options.results or runs.RESULTS / options.set
    names = _listed(options.problems) or problems.names(options.set, options.quick)
    kinds = runs.KINDS if options.kind is None else (options.kind,)
    labels = _listed(options.methods)
    if not options.summary_only:
        wanted = labels or list(methods.DEFAULT)
        methods.check(wanted)
        runs.run_missing(folder, runs.tasks(names, wanted, range(options.seeds), kinds))
    everything = [row for method in runs.methods_in(folder) for row in runs.read(folder, method)]
    yardsticks = problems.yardsticks(folder)
    compared = labels or [method for method in methods.DEFAULT if method in runs.methods_in(folder)]
    chosen = [row for row in everything if row.problem in set(names) and row.seed < options.seeds]
    report = summary.summarise(chosen, compared, kinds, yardsticks, measures.best_known(everything, yardsticks))
    print(text.whole(report))
    commits = sorted({row.commit for row in chosen if row.method in compared})
    report = {"set": options.set, **report, "commits": commits, "machine": facts()}
    if labels is None and options.problems is None and options.kind is None and not options.quick and chosen:
        (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    if options.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
