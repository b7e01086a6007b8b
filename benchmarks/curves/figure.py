"""The paper's figure 2 from runs of this library: a convolutional network on CIFAR-10, and kernel learning with gradients.

    python -m benchmarks.curves.figure [--panel cnn|kernel] [--methods a,b] [--seeds N] [--results DIR] [--draw-only]

Runs what is not stored yet, prints the numbers and draws docs/images/figure2.png.

Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), prints curves and no table. It says:
6 runs on CIFAR-10, where cfKG finds a good solution much faster than KG and Hyperband; two fidelities, the size of the training
set (40,000 images) and the number of iterations (50 epochs); Hyperband over the size of the training set; about 12 % test error
when what was found is trained for 200 epochs on all images. 10 runs of kernel learning with 1,000,000 points, 1,000 inducing
points and batches of 8, where cf-d-KG finds a good solution more quickly than d-KG. SVHN was not recorded here.

Here the network is the table cnn_cifar10 (8,000 images, 50 epochs), so one thousand images is the smallest training set, and the
cost is in whole runs. Kernel learning has 100,000 points and 200 inducing points (``benchmarks.fidelity.kernel_learning``), and a
run is shortened to ``BATCHES`` batches: a suggestion of eight with gradients takes seconds.
"""

import argparse
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_aware import lines
from benchmarks.curves import compare, tables
from benchmarks.curves.ledger import WHOLE_RUNS, Ledger, scale
from benchmarks.decisions.runs import commit
from benchmarks.fidelity import curves, kernel_learning
from benchmarks.fidelity import methods as fidelity_methods

TABLE = "cnn_cifar10"
RESULTS = compare.RESULTS / "figure2"
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "figure2.png"
SHARES = tuple(float(f"{share:.3g}") for share in np.geomspace(0.02, 1.0, 12))  # of the budget
BATCHES, BATCH = 8, 8
KERNEL_METHODS = ("cf-d-KG_q8", "d-KG_q8")
SEEDS = {"cnn": 20, "kernel": 5}
LABELS = {
    "cfKG": "cfKG", "default": "default: curves reported, runs go on", "full": "default, whole runs", "KG": "KG, whole runs",
    "Hyperband": "Hyperband over images", "BOCA": "BOCA", "cf-d-KG_q8": "cf-d-KG, batches of 8", "d-KG_q8": "d-KG, batches of 8",
}  # fmt: skip


def cnn_methods() -> dict[str, Callable[[int], Ledger]]:
    """By label; the methods of the paper are told a result at the end of a run, and a run cannot go on."""
    import shoestring as st

    run = partial(compare.ours, TABLE, shares=SHARES)
    return {
        "cfKG": lambda seed: run(seed, fidelity=True, method=st.CFKG()),
        "default": lambda seed: run(seed, fidelity=True, reports=True, resumable=True),
        "full": lambda seed: run(seed, fidelity=False),
        "KG": lambda seed: run(seed, fidelity=False, method=st.KG()),
        "Hyperband": lambda seed: run(seed, fidelity=True, method=st.Hyperband(resource="images"), observed=True),
        "BOCA": lambda seed: run(seed, fidelity=True, method=st.BOCA()),
    }


def run_cnn(folder: Path, wanted: list[str], seeds: int) -> None:
    """Regrets are in shares of wrong classes, not normalised."""
    known, one = cnn_methods(), scale(TABLE)[0]
    for seed in range(seeds):
        for method in wanted:
            path = folder / f"{method}.jsonl"
            if any(row["seed"] == seed for row in lines.read(path)):
                continue
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ledger = known[method](seed)
                regrets = [None if each is None else each * one for each in ledger.rest()]
            taken, last = round(time.process_time() - began, 2), ledger.best()
            row = {
                "table": TABLE, "seed": seed, "method": method, "shares": SHARES, "regrets": regrets, "runs": ledger.runs,
                "spent": ledger.spent / ledger.budget, "seconds": taken, "commit": commit(),
                "test_error": None if last is None else float(tables.load(TABLE).mean_curve(last).test[-1]),
            }  # fmt: skip
            lines.append(path, row)
            print(f"{time.strftime('%H:%M:%S')} seed {seed} {method}: {regrets[-1]}, {ledger.runs} runs, {taken} s", flush=True)


def run_kernel(folder: Path, wanted: list[str], seeds: int) -> None:
    """Runs of ``benchmarks.fidelity``, shortened."""
    lowest = kernel_learning.optimum(folder.parent.parent.parent / "fidelity" / "kernel" / "optimum.json")
    full = kernel_learning.load(lowest)
    price = kernel_learning.cost({each.name: each.high for each in full.fidelities})
    short = replace(full, budget=round(BATCHES * price, 6), cap=BATCHES * BATCH)
    curves.run_missing(folder, lambda name: short, fidelity_methods.run, [full.name], wanted, seeds)


def lines_of(panel: str, folder: Path, method: str) -> tuple[Any, Any]:
    """Costs (whole runs, or batches of whole evaluations) and regrets, (seeds, costs); None where nothing is stored."""
    rows = lines.read(folder / f"{method}.jsonl")
    if not rows:
        return None, None
    if panel == "cnn":
        costs = np.array(rows[0]["shares"]) * WHOLE_RUNS
    else:
        costs = np.array(rows[0]["marks"]) / (rows[0]["budget"] / BATCHES)
    found = np.array([[np.nan if each is None else each for each in row["regrets"]] for row in rows], dtype=float)
    return costs, found


def text(panel: str, folder: Path, wanted: list[str]) -> Iterator[str]:
    """Median regrets along the cost."""
    for method in wanted:
        costs, found = lines_of(panel, folder, method)
        if costs is None:
            continue
        kept = np.unique(np.linspace(0, len(costs) - 1, 8).round().astype(int))
        shown = ", ".join(f"{costs[k]:.3g}: {np.nanmedian(found[:, k]):.3g}" for k in kept if np.isfinite(found[:, k]).any())
        tests = [row.get("test_error") for row in lines.read(folder / f"{method}.jsonl")]
        tests = [each for each in tests if each is not None]
        last = f"; test error {np.median(tests):.3f}" if tests else ""
        yield f"  {method}, {len(found)} runs: {shown}{last}"


def row_text(panel: str, method: str, costs: Any, found: Any) -> str:
    """A row of a table: medians at a twentieth, a fifth and all of the budget."""
    at = [int(np.argmin(np.abs(np.log(costs / (share * costs[-1]))))) for share in (0.05, 0.2, 1.0)]
    cells = [f"{np.nanmedian(found[:, k]):.2g}" if np.isfinite(found[:, k]).any() else "none yet" for k in at]
    return f"| {'CNN' if panel == 'cnn' else 'kernel'} | {LABELS[method]} | {len(found)} | {', '.join(cells)} |"


def draw(results: Path, path: Path = PICTURE) -> None:
    """Medians, with the range between the quartiles; nothing is drawn of a panel without rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = {
        "cnn": (list(cnn_methods()), "CNN on CIFAR-10", "cost, in whole runs", "error above the best config's"),
        "kernel": (list(KERNEL_METHODS), "Kernel learning", "cost, in batches of whole evaluations", "regret per point"),
    }
    shown = [panel for panel in panels if any((results / panel / f"{m}.jsonl").exists() for m in panels[panel][0])]
    figure, axes = pyplot.subplots(1, max(len(shown), 1), figsize=(5.2 * max(len(shown), 1), 3.8), squeeze=False)
    for axis, panel in zip(axes[0], shown, strict=False):
        wanted, title, x, y = panels[panel]
        for method in wanted:
            costs, found = lines_of(panel, results / panel, method)
            if costs is None:
                continue
            known = np.isfinite(found).all(axis=0)
            middle, low, high = (np.quantile(found[:, known], q, axis=0) for q in (0.5, 0.25, 0.75))
            (line,) = axis.plot(costs[known], middle, label=LABELS[method], lw=2)
            axis.fill_between(costs[known], low, high, color=line.get_color(), alpha=0.12)
        runs = {len(lines.read(results / panel / f"{m}.jsonl")) for m in wanted} - {0}
        count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        axis.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=f"{title}, {count} runs")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves.figure", description=__doc__.split("\n")[0])
    parser.add_argument("--panel", choices=("cnn", "kernel"), action="append", help="may be repeated; both by default")
    parser.add_argument("--methods", help="comma-separated")
    parser.add_argument("--seeds", type=int, help="how many, starting at 0")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--draw-only", action="store_true")
    options = parser.parse_args(arguments)
    logging.getLogger("shoestring").setLevel(logging.WARNING)
    for panel in options.panel or ("cnn", "kernel"):
        every = list(cnn_methods()) if panel == "cnn" else list(KERNEL_METHODS)
        wanted = [each for each in (options.methods.split(",") if options.methods else every) if each in every]
        run = run_cnn if panel == "cnn" else run_kernel
        if not options.draw_only:
            run(options.results / panel, wanted, options.seeds or SEEDS[panel])
        print("\n".join([panel, *text(panel, options.results / panel, wanted)]), flush=True)
    draw(options.results)


if __name__ == "__main__":
    main()
