"""Why the model's defaults are what they are: variants compared on the tuning set, and on nothing else.

    python -m benchmarks.defaults [--variants a,b] [--seeds 10] [--summary-only]

Each variant changes one thing. Forty evaluations a run, rows stored one by one, so that it can be resumed.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import shoestring as st
from benchmarks import problems, rows
from benchmarks.peers import shoestring_space
from benchmarks.summary import SCALE_AT
from shoestring.surrogate.marginal_likelihood import Layout

FOLDER = Path(__file__).parent / "results" / "defaults"
RANDOM = Path(__file__).parent / "results" / "regret_tuning"
EVALUATIONS = 40
CHECKPOINTS = (10, 20, 40)
# What is set on the prior (class attributes of Layout), and what is given to Study.
VARIANTS: dict[str, tuple[dict[str, float], dict[str, Any]]] = {
    "default": ({}, {}),
    "length-0.35": ({"LENGTH_CENTRE": 0.35}, {}),
    "length-0.8": ({"LENGTH_CENTRE": 0.8}, {}),
    "length-1-width-0.6": ({"LENGTH_CENTRE": 1.0, "LENGTH_WIDTH": 0.6}, {}),
    "width-0.4": ({"LENGTH_WIDTH": 0.4}, {}),
    "width-0.6": ({"LENGTH_WIDTH": 0.6}, {}),
    "width-1.5": ({"LENGTH_WIDTH": 1.5}, {}),
    "noise-1e-3": ({"NOISE_CENTRE": 1e-3}, {}),
    "noise-1e-6": ({"NOISE_CENTRE": 1e-6}, {}),
    "variance-width-2": ({"VARIANCE_WIDTH": 2.0}, {}),
    "initial-5": ({}, {"initial": 5}),
    "initial-6": ({}, {"initial": 6}),
    "initial-10": ({}, {"initial": 10}),
    "output-standard": ({}, {"model": st.GP(output="standard")}),
    "output-bent": ({}, {"model": st.GP(output="yeo-johnson")}),
    "warp": ({}, {"model": st.GP(warp=True)}),
    "squared-exponential": ({}, {"model": st.GP(kernel="se")}),
}


def run(variant: str, name: str, seed: int) -> rows.Row:
    prior, options = VARIANTS[variant]
    kept = {key: getattr(Layout, key) for key in prior}
    problem = problems.load(name)
    for key, value in prior.items():
        setattr(Layout, key, value)
    try:
        study = st.Study(shoestring_space(problem), seed=seed, stop=None, **options)
        values = []
        for _ in range(EVALUATIONS):
            trial = study.ask()
            values.append(problem.evaluate(trial.config))
            study.tell(trial, values[-1], cost=1.0)
    finally:
        for key, value in kept.items():
            setattr(Layout, key, value)
    return rows.Row(name, variant, seed, EVALUATIONS, values, round(study.optimizer_seconds, 3), rows.versions())


def summarise(seeds: range) -> str:
    """Regret after 10, 20, 40 evaluations; 0 is the optimum, 1 is random search after ten; standard errors over seeds."""
    names, baseline = problems.SETS["tuning"], rows.read(RANDOM, "random")
    optima = {name: problems.load(name).optimum for name in names}
    scale = {
        name: float(np.median([min(row.values[:SCALE_AT]) - optima[name] for row in baseline if row.problem == name]))
        for name in names
    }
    lines = [f"{'variant':<24}" + "".join(f"{f'after {c}':>18}" for c in CHECKPOINTS) + f"{'runs':>7}"]
    for variant in rows.methods_in(FOLDER):
        stored = [row for row in rows.read(FOLDER, variant) if row.seed in seeds]
        cells = ""
        for checkpoint in CHECKPOINTS:
            by_seed: dict[int, list[float]] = {}
            for row in stored:
                gap = min(row.values[:checkpoint]) - optima[row.problem]
                by_seed.setdefault(row.seed, []).append(gap / scale[row.problem])
            means = [float(np.mean(gaps)) for gaps in by_seed.values() if len(gaps) == len(names)]
            error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
            cells += f"{f'{np.mean(means):.3f} +- {error:.3f}' if means else '-':>18}"
        lines.append(f"{variant:<24}{cells}{len(stored):>7}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__.split("\n")[0])
    parser.add_argument("--variants", help="comma-separated; all by default")
    parser.add_argument("--seeds", type=int, default=10, help="how many, starting at 0")
    parser.add_argument("--summary-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    chosen = options.variants.split(",") if options.variants else list(VARIANTS)
    for variant in [] if options.summary_only else chosen:
        stored = {(row.problem, row.seed) for row in rows.read(FOLDER, variant)}
        for seed in range(options.seeds):
            for name in problems.SETS["tuning"]:
                if (name, seed) not in stored:
                    rows.append(FOLDER, run(variant, name, seed))
        print(time.strftime("%H:%M:%S"), variant, flush=True)
    print(summarise(range(options.seeds)))


if __name__ == "__main__":
    main()
