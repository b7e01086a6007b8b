"""How long does one suggestion take, in ten dimensions, with 25, 100, 300 and 1000 observations?

    python -m benchmarks.latency [--quick] [--json] [--libraries a,b] [--results FILE]

All libraries run in one process on one thread, taking turns, so that a change in the machine's load meets all
of them. Ratios are the peer's time over Shoestring's: how many times faster Shoestring is.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits

from benchmarks import machine
from benchmarks.timing import DIMENSIONS, TIMERS, Times, time_checks, time_method

SIZES = (25, 100, 300, 1000)
REPEATS = {25: 9, 100: 9, 300: 5, 1000: 3}
QUICK_REPEATS = {25: 3, 100: 3, 300: 2, 1000: 1}
WARM = {25: 4, 100: 4, 300: 3, 1000: 2}
MANY = 2000
RESULTS = Path(__file__).parent / "results" / "latency.json"
Measured = dict[str, dict[int, Times]]


def measure(libraries: list[str], repeats: dict[int, int]) -> Measured:
    """All times, libraries interleaved; every library makes some suggestions first that are not counted."""
    for library in libraries:
        TIMERS[library](25, 0, 2)
    measured: Measured = {library: {n: Times() for n in SIZES} for library in libraries}
    for n in SIZES:
        for repeat in range(repeats[n]):
            for library in libraries:
                times = TIMERS[library](n, repeat + 1, WARM[n])
                measured[library][n].cold += times.cold
                measured[library][n].warm += times.warm
                print(f"{library} n={n} repeat {repeat}: {times}", file=sys.stderr, flush=True)
    return measured


def fit_with_count(n: int, seed: int = 0) -> tuple[float, int]:
    """Seconds that one cold fit of the surrogate takes at n observations, and its evidence evaluations."""
    from shoestring.surrogate.gp import GP

    rng = np.random.default_rng([n, seed])
    inputs = rng.random((n, DIMENSIONS))
    targets = np.sin(3 * inputs).sum(axis=1) + 0.1 * rng.standard_normal(n)
    targets = (targets - targets.mean()) / targets.std()
    start = time.perf_counter()
    fit = GP().fit(inputs, targets)
    return time.perf_counter() - start, fit.evaluations


def lapack_seconds(n: int, repeats: int) -> float:
    """Median time of the two calls that every evidence gradient needs: a Cholesky factor and the inverse."""
    points = np.random.default_rng(n).random((n, DIMENSIONS))
    squared = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    matrix = np.asfortranarray(np.exp(-squared) + 0.01 * np.eye(n))
    times = []
    for _ in range(repeats + 1):
        copy = matrix.copy(order="F")
        start = time.perf_counter()
        factor, _ = dpotrf(copy, lower=1, clean=0, overwrite_a=1)
        dpotri(factor, lower=1, overwrite_c=1)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def lapack_share(n: int, repeats: int) -> float:
    """The share of a fit that goes into LAPACK and could not be saved by better Python."""
    fit_with_count(n)
    shares = []
    for seed in range(repeats):
        seconds, evaluations = fit_with_count(n, seed)
        shares.append(evaluations * lapack_seconds(n, 5) / seconds)
    return statistics.median(shares)


def against_ei(n: int, repeats: int) -> dict[str, float]:
    """What cost-aware suggestions take, as a multiple of EI's, taking turns on the same data."""
    import shoestring as st

    methods = {
        "ei": st.EI(), "ei_alpha": st.EIAlpha(0.5), "cei": st.CEI(0.2), "gittins": st.Gittins(), "auto": "auto",
        "kg": st.KG(), "mes": st.MES(), "es": st.ES(), "pes": st.PES(),
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(repeats):
        for name, method in methods.items():
            times[name] += time_method(method, n, seed, 5)
    base = statistics.median(times["ei"])
    return {name: round(statistics.median(found) / base, 2) for name, found in times.items() if name != "ei"}


def checks_against_ask(n: int, repeats: int) -> dict[str, float]:
    """What a stopping rule's check takes, as a multiple of an EI suggestion, taking turns on the same data."""
    times: dict[str, list[float]] = {}
    for seed in range(repeats):
        for name, found in time_checks(n, seed, 5).items():
            times.setdefault(name, []).extend(found)
    base = statistics.median(times.pop("ask"))
    return {name: round(statistics.median(found) / base, 2) for name, found in times.items()}


def checks_of_many(repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a stopping rule's check at MANY trials, with the study's belief at hand, by model and subset."""
    import shoestring as st

    cases = {"default": {}, "VFE": {"model": st.VFE()}, "KMeansSubset": {"subset": st.KMeansSubset()}}
    found = {name: [time_checks(MANY, seed, 3, **options) for seed in range(repeats)] for name, options in cases.items()}
    return {
        name: {each: _median_ms([seconds for run in runs for seconds in run[each]]) for each in runs[0]}
        for name, runs in found.items()
    }


def _median_ms(seconds: list[float]) -> float:
    return round(1e3 * statistics.median(seconds), 3)


def report_of(measured: Measured) -> dict[str, Any]:
    """Medians in milliseconds, and ratios where Shoestring was among the libraries."""
    warm = {name: {str(n): _median_ms(t.warm) for n, t in by.items()} for name, by in measured.items()}
    cold = {name: {str(n): _median_ms(t.cold) for n, t in by.items()} for name, by in measured.items()}
    report: dict[str, Any] = {}
    if "shoestring" in measured:
        report |= {"ask_ms": warm["shoestring"], "ask_ms_cold": cold["shoestring"]}
        for peer in [name for name in measured if name != "shoestring"]:
            for key, times in ((f"vs_{peer}", warm), (f"vs_{peer}_cold", cold)):
                report[key] = {n: round(times[peer][n] / times["shoestring"][n], 2) for n in times[peer]}
    return report | {"median_ms": {"warm": warm, "cold": cold}}


def as_text(report: dict[str, Any]) -> str:
    """One line a library and temperature, sizes across."""
    sizes = [str(n) for n in SIZES]
    lines = [f"{'milliseconds a suggestion':<32}" + "".join(f"{'n = ' + n:>12}" for n in sizes)]
    for state, libraries in report["median_ms"].items():
        for library, times in libraries.items():
            lines.append(f"{library + ', ' + state:<32}" + "".join(f"{times[n]:>12.1f}" for n in sizes))
    shares = {key: report[key] for key in sorted(report) if key.startswith(("vs_", "lapack")) and sizes[0] in report[key]}
    for key, ratios in shares.items():
        lines.append(f"{key:<32}" + "".join(f"{ratios[n]:>12.3f}" for n in sizes))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--libraries", default=",".join(TIMERS), help="comma-separated; all by default")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file that keeps the report")
    options = parser.parse_args()
    libraries = [part.strip() for part in options.libraries.split(",") if part.strip()]
    if {"optuna", "botorch"} & set(libraries):
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = report_of(measure(libraries, QUICK_REPEATS if options.quick else REPEATS))
        if "shoestring" in libraries:
            report["vs_ei_100"] = against_ei(100, 2 if options.quick else 5)
            report["checks_100"] = checks_against_ask(100, 2 if options.quick else 5)
            report["checks_2000_ms"] = checks_of_many(1 if options.quick else 2)
            report["lapack_share"] = {str(n): lapack_share(n, 1 if options.quick else 3) for n in SIZES}
    report["machine"] = machine.facts()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(report, indent=2) + "\n")
    print(as_text(report))
    if options.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
