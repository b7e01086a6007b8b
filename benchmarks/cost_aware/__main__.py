"""Cost-aware search: cost models, what is saved against EI, what is found within a budget.

    python -m benchmarks.cost_aware [--quick] [--json] [--part costmodels|transfer|biopt|plugged|allocation]
                                    [--set reporting|tuning|xgboost] [--seeds N] [--methods a,b] [--problems a,b]
                                    [--results DIR] [--cap N] [--summary-only]

Runs whatever is not stored yet, then summarises what is stored. ``plugged`` is figure 9. The budgets of ``allocation`` come
from stored ``biopt`` runs, so those have to be there first.
"""

import argparse
import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.cost_aware import allocation, biopt, catalog, costmodels, key, methods, pictures, runs, text, transfer
from benchmarks.machine import facts


def _listed(given: str | None) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def _costmodels(options: argparse.Namespace, folder: Path, names: list[str]) -> dict[str, Any]:
    if not options.summary_only:
        seeds = options.seeds or (costmodels.SEEDS_QUICK if options.quick else costmodels.SEEDS)
        costmodels.run_missing(folder / "costmodels", names, seeds)
    report = costmodels.summarise(folder / "costmodels", names)
    pictures.costmodels(report, folder / "figure2_cost_models.png")
    print(text.errors(report["rmse_of_log_cost"], "RMSE of log cost by evaluations seen, mean [95 %]"))
    return report | {"key": key.costmodels(report)}


def _transfer(options: argparse.Namespace, folder: Path, names: list[str]) -> dict[str, Any]:
    names = transfer.eligible(names)
    if not options.summary_only:
        transfer.run_missing(folder / "transfer", names)
    report = transfer.summarise(folder / "transfer", folder / "costmodels", names)
    if report["rmse_of_log_cost"]:
        pictures.transfer(report, folder / "figure8_transfer.png")
    for kind, table in report["rmse_of_log_cost"].items():
        print(text.errors(table, f"RMSE of log cost, {kind}: transferred, and online (evaluations seen)"))
    return report


def _biopt(options: argparse.Namespace, folder: Path, names: list[str]) -> dict[str, Any]:
    labels = _listed(options.methods) or list(methods.BIOPT_QUICK if options.quick else methods.BIOPT)
    if not options.summary_only:
        runs.run_missing(folder / "biopt", biopt.tasks(names, labels, options.seeds, options.quick))
    report = biopt.summarise(folder / "biopt", labels, names)
    pictures.biopt(report, folder / "figure3_figure5_biopt.png")
    pictures.alphas(report, folder / "figure5_alphas.png")
    print(text.biopt(report, "Bi-optimization"))
    return report | {"key": key.biopt(report)}


def _plugged(options: argparse.Namespace, folder: Path, names: list[str]) -> dict[str, Any]:
    labels = _listed(options.methods) or list(methods.PLUGGED)
    if any("+transfer" in label for label in labels):
        names = transfer.eligible(names)
    if not options.summary_only:
        runs.run_missing(folder / "biopt", biopt.tasks(names, [methods.BASELINE, *labels], options.seeds, options.quick))
    report = biopt.summarise(folder / "biopt", [*methods.ALPHA_FAMILY, *labels], names)
    pictures.plugged(report, folder / "figure9_plugged.png")
    print(text.biopt(report, "EI_alpha with different cost models"))
    return report


def _allocation(options: argparse.Namespace, folder: Path, names: list[str]) -> dict[str, Any]:
    labels = _listed(options.methods) or [*methods.FREE, *methods.BUDGETED]
    cap = options.cap or (allocation.CAP_QUICK if options.quick else allocation.CAP)
    place = folder / f"allocation_{cap}"  # other caps, other runs
    least = allocation.least_budgets(folder / "biopt", place / "least_budgets.json", names)
    if missing := [name for name in names if name not in least]:
        print(f"no least budget, for want of bi-optimization runs of {', '.join(methods.ALPHA_FAMILY)}: {', '.join(missing)}")
    if not options.summary_only:
        runs.run_missing(place, allocation.tasks(least, labels, cap, options.seeds, options.quick))
    report = allocation.summarise(place, least, labels, cap)
    curves = {str(m): entry for m in allocation.MULTIPLES if (entry := allocation.rank_curves(place, least, labels, m))}
    pictures.allocation(curves, folder / "figure4_figure6_allocation.png")
    print(text.allocation(report))
    return report | {"cap": cap, "key": key.allocation(report)}


PARTS: dict[str, Callable[[argparse.Namespace, Path, list[str]], dict[str, Any]]] = {
    "costmodels": _costmodels,
    "transfer": _transfer,
    "biopt": _biopt,
    "plugged": _plugged,
    "allocation": _allocation,
}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_aware", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three seeds, fewer problems and methods")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--part", choices=sorted(PARTS), action="append", help="may be repeated; all by default")
    parser.add_argument("--set", choices=sorted(catalog.SETS), default="reporting")
    parser.add_argument("--seeds", type=int, help="how many, starting at 0; 10 on tables and 3 on XGBoost by default")
    parser.add_argument("--methods", help="comma-separated; those of the part by default")
    parser.add_argument("--problems", help="comma-separated; the whole set by default")
    parser.add_argument("--results", type=Path, help="folder of rows, JSON and pictures")
    parser.add_argument("--cap", type=int, help="most evaluations of an allocation run; 300, or 150 with --quick")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    folder = options.results or runs.RESULTS / options.set
    names = _listed(options.problems) or list((catalog.QUICK if options.quick else catalog.SETS)[options.set])
    path = folder / ("report_quick.json" if options.quick else "report.json")
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    keys: dict[str, Any] = {"set": options.set, "quick": options.quick}
    for part in options.part or list(PARTS):
        report[part] = PARTS[part](options, folder, names) | {"families": sorted({catalog.family(name) for name in names})}
        keys[part] = report[part].get("key", {})
    report["machine"] = facts() | {library: metadata.version(library) for library in ("xgboost-cpu", "scikit-learn")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    if options.json:
        print(json.dumps(keys))


if __name__ == "__main__":
    main()
