"""Planted traps: is a method that uses learning curves ever much worse than one that does not?

    python -m benchmarks.curves.traps [--methods a,b] [--traps a,b] [--seeds 20] [--results DIR] [--summary-only]

The problems are in ``planted``, the methods and the rules those of ``compare``: the budget is the cost of 60 whole runs, regret
is normalised (1 is the median of the best of ten random configs), rows are written as they come and are not run again.

A method passes a trap if its mean regret is at most twice that of ``full``, which makes whole runs only, at a quarter and at the
end of the budget. Where both regrets are below ``NEGLIGIBLE`` it passes too: the noise of one run is as large.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.cost_aware import lines
from benchmarks.curves import compare, planted

METHODS = ("full", "reports", "resumable", "hyperband")
BASELINE = "full"
JUDGED = (0.25, 1.0)  # shares of the budget
FACTOR = 2.0  # how much worse than the baseline a method may be
NEGLIGIBLE = 0.02  # normalised regret


def mean_regrets(folder: Path, method: str, trap: str, seeds: set[int]) -> list[float]:
    """At each share; a run that recommends nothing yet counts as 1, like a config of average luck."""
    rows = [row["regrets"] for row in lines.read(folder / f"{method}.jsonl") if row["table"] == trap and row["seed"] in seeds]
    return list(np.mean([[1.0 if each is None else each for each in row] for row in rows], axis=0))


def passes(regret: float, baseline: float) -> bool:
    """The rule, at one share of the budget."""
    return regret <= max(FACTOR * baseline, NEGLIGIBLE)


def judge(folder: Path, trap: str, methods: list[str]) -> tuple[int, dict[str, list[float]]]:
    """Seeds that all methods have, and the mean regrets on them; methods without rows are left out."""
    kept = {m: {r["seed"] for r in lines.read(folder / f"{m}.jsonl") if r["table"] == trap} for m in methods}
    present = [method for method in methods if kept[method]]
    common = set.intersection(*(kept[method] for method in present)) if present else set()
    return len(common), {method: mean_regrets(folder, method, trap, common) for method in present if common}


def failures(trap: str, found: dict[str, list[float]]) -> Iterator[str]:
    """Where a method is worse than the rule allows."""
    for method, own in found.items() if BASELINE in found else ():
        for share in JUDGED:
            place = compare.SHARES.index(share)
            allowed = found[BASELINE][place]
            if method != BASELINE and not passes(own[place], allowed):
                times = own[place] / max(allowed, 1e-12)
                yield f"{method} on {trap} at {share:g} of the budget: {own[place]:.3f}, {times:.1f} times {BASELINE}"


def summary(folder: Path, traps: list[str], methods: list[str]) -> Iterator[str]:
    """Mean regrets on the seeds that all methods have, and where a method fails."""
    failed: list[str] = []
    for trap in traps:
        count, found = judge(folder, trap, methods)
        if count:
            yield f"{f'{trap}, {count} seeds':<26}" + "".join(f"{share:>9g}" for share in compare.SHARES)
            yield from (f"  {method:<24}" + "".join(f"{each:>9.3f}" for each in own) for method, own in found.items())
            failed += failures(trap, found)
    yield f"worse than {FACTOR:g} times {BASELINE}: " + ("; ".join(failed) if failed else "none")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves.traps", description=__doc__.split("\n")[0])
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated, those of benchmarks.curves.compare")
    parser.add_argument("--traps", default=",".join(planted.PROBLEMS), help="comma-separated")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--results", type=Path, default=compare.RESULTS / "traps")
    parser.add_argument("--summary-only", action="store_true")
    options = parser.parse_args(arguments)
    traps, methods = options.traps.split(","), options.methods.split(",")
    if not options.summary_only:
        compare.run_missing(options.results, traps, methods, options.seeds)
    print("\n".join(summary(options.results, traps, methods)))


if __name__ == "__main__":
    main()
