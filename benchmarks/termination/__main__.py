"""When to stop: what each rule saves and loses on recorded runs.

    python -m benchmarks.termination [--quick] [--json] [--set reporting|tuning] [--part fcnet|nas201|hpobench|rf|xgb]
                                     [--stage record|replay] [--seeds N] [--methods gp,random,tpe,bore]
                                     [--variants paper,optuna] [--problems a,b] [--evaluations N] [--results DIR]
                                     [--summary-only]

Records whatever is not stored yet, replays the rules on it, then summarises what is stored.
"""

import argparse
import json
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from benchmarks.termination import (
    cases,
    catalog,
    equal,
    key,
    optuna_peer,
    pictures,
    quality,
    recordings,
    replay,
    rules,
    searchers,
    summary,
    text,
    variants,
)  # fmt: skip

RESULTS = Path(__file__).parent.parent / "results" / "termination"


def _listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def names_of(options: argparse.Namespace, suite: str) -> list[str]:
    if asked := _listed(options.problems):
        return [name for name in catalog.SETS[options.set][suite] if name in asked]
    return list((catalog.QUICK if options.quick else catalog.SETS)[options.set][suite])


def make(options: argparse.Namespace, folder: Path, suite: str, length: int) -> None:
    """Both stages, as far as they are wanted and not stored yet."""
    names = names_of(options, suite)
    methods = _listed(options.methods) or searchers.wanted(suite, options.quick)
    seeds = options.seeds or catalog.seeds(options.set, suite, options.quick)
    stages = options.stage or ["record", "replay"]
    if "record" in stages:
        recordings.record_missing(folder, recordings.tasks(names, methods, seeds, length))
    if "replay" in stages:
        stored = [run for method in methods for run in recordings.read(folder, method, length)]
        wanted = [run for run in stored if run.problem in names and run.seed < seeds]
        replay.replay_missing(folder, wanted, _listed(options.variants) or list(variants.VARIANTS), catalog.every(suite))


def draw(found: Sequence[cases.Case], report: dict[str, Any], asked: Sequence[rules.Rule], suite: str, folder: Path) -> None:
    pictures.scatter(report, catalog.TITLES[suite], folder / pictures.name_of(suite))
    if (which := quality.shown(found)) is None:
        return
    title = " ".join(which)
    shares = [rule for rule in asked if rule.variant in quality.SHARES]
    for name, titles, number, boxes in (("top", quality.SHARES, 2, shares), ("beta", quality.BETAS, 9, [])):
        curves = quality.differences(found, which, list(titles))
        changes = quality.changes(found, which, boxes)
        pictures.gaps(curves, titles, title, folder / f"figure{number}_{name}_{suite}.png", changes or None)
    for variant in variants.OURS:
        chosen = [rule for rule in asked if rule.variant == variant]
        path = folder / f"figure5d_{variant}_{suite}.png"
        pictures.left(quality.left(found, chosen), report["rules"]["all"], path)


def summarise(options: argparse.Namespace, folder: Path, suite: str, length: int) -> dict[str, Any]:
    """The report of a suite; {} where nothing is stored."""
    crossval, asked = suite in catalog.CROSSVAL, rules.all_rules(suite in catalog.CROSSVAL)
    methods = _listed(options.methods) or list(searchers.SEARCHERS)
    found = cases.gather(folder / suite, suite, names_of(options, suite), methods, length)
    if not found:
        return {}
    report: dict[str, Any] = {"evaluations": length, **summary.summarise(found, asked)}
    report["against_patience"] = equal.against_patience(found, asked)
    report["against_optuna"] = equal.against_optuna(found, asked, crossval)
    bounds = [name for name, variant in variants.VARIANTS.items() if variant.bound]
    if (which := quality.shown(found)) is not None:
        report["bound_less_regret"] = {" ".join(which): quality.differences(found, which, bounds)}
    report["targets"] = key.targets(suite, report)
    draw(found, report, asked, suite, folder)
    print(text.overview(suite, report), text.table(suite, report), sep="\n\n", end="\n\n")
    if not crossval:
        print(text.stops(report), text.adjusted(report), sep="\n\n", end="\n\n")
    print(text.equal(report), text.targets(suite, report["targets"]), sep="\n\n", end="\n\n")
    return report


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.termination", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, one problem of each table suite, two searchers")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--set", choices=sorted(catalog.SETS), default="reporting")
    parser.add_argument("--part", choices=sorted(catalog.TITLES), action="append", help="a suite; may be repeated")
    parser.add_argument("--stage", choices=("record", "replay"), action="append", help="both by default")
    parser.add_argument("--seeds", type=int, help="how many, starting at 0; 50 on tables, 10 for tuning, 3 by cross-validation")
    parser.add_argument("--methods", help="searchers, comma-separated")
    parser.add_argument("--variants", help="what is computed along the runs, comma-separated; everything by default")
    parser.add_argument("--problems", help="comma-separated; the whole set by default")
    parser.add_argument("--evaluations", type=int, help="T, if not 200 on tables and 100 by cross-validation")
    parser.add_argument("--results", type=Path, help="folder of rows, JSON and pictures")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    whole = catalog.SETS[options.set]
    tables = [suite for suite in whole if suite not in catalog.CROSSVAL]
    parts = [suite for suite in options.part or (tables if options.quick else whole) if suite in whole]
    length = options.evaluations
    folder = options.results or RESULTS / (options.set if length is None else f"{options.set}_{length}")
    path = folder / ("report_quick.json" if options.quick else "report.json")
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for suite in parts if not options.summary_only else ():
        make(options, folder / suite, suite, length or catalog.evaluations(suite))
    for suite in parts:
        if found := summarise(options, folder, suite, length or catalog.evaluations(suite)):
            report[suite] = found
    report["optuna_terminator"] = optuna_peer.exists() or f"Optuna {metadata.version('optuna')}"
    report["machine"] = facts() | {library: metadata.version(library) for library in ("xgboost-cpu", "scikit-learn")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    if options.json:
        keys = {suite: report[suite]["targets"] for suite in parts if suite in report}
        print(json.dumps({"set": options.set, "quick": options.quick, **keys}))


if __name__ == "__main__":
    main()
