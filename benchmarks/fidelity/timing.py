"""How long a suggestion takes: cfKG with 200 evaluations of 6 parameters and 2 fidelities, cf-d-KG with 60 of 3 and 2.

As in ``benchmarks.timing``: warm asks, each after telling the result of the one before, on one thread. The function is a smooth
bowl with ripples whose low fidelities are shifted; costs grow with both fidelities.
"""

import math
import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks.fidelity.methods import FACTORIES, GRADIENTS

CASES = {"cfKG": (200, 6), "cf-d-KG": (60, 3), "BOCA": (200, 6), "KG": (200, 6)}
WARM = 5


def smooth(config: dict[str, float], dimensions: int) -> tuple[float, dict[str, float]]:
    """The value and its slopes along the parameters."""
    shift = 0.1 * (1 - config["s0"]) + 0.05 * (1 - config["s1"])
    total, slopes = 0.0, {}
    for i in range(dimensions):
        x, centre = config[f"x{i}"], 0.3 + 0.04 * i + shift
        total += (x - centre) ** 2 + 0.1 * math.sin((4 + i) * x)
        slopes[f"x{i}"] = 2 * (x - centre) + 0.1 * (4 + i) * math.cos((4 + i) * x)
    return total, slopes


def cost(config: dict[str, float]) -> float:
    return (0.01 + config["s0"]) * (0.01 + config["s1"])


def asks(label: str, n: int, dimensions: int, seed: int, warm: int) -> list[float]:
    """Seconds of each warm ask."""
    import shoestring as st

    parameters = {f"x{i}": st.Float(0.0, 1.0) for i in range(dimensions)}
    space = st.Space(**parameters, s0=st.Fidelity(0.0, 1.0), s1=st.Fidelity(0.0, 1.0))
    study = st.Study(space, method=FACTORIES[label](st), seed=seed, stop=None)
    rng = np.random.default_rng([n, seed])

    def results(config: dict[str, Any]) -> dict[str, Any]:
        value, slopes = smooth(config, dimensions)
        return {"value": value, "cost": cost(config)} | ({"gradient": slopes} if label in GRADIENTS else {})

    for point in rng.random((n, dimensions + 2)):
        config = {name: float(x) for name, x in zip(space, point, strict=True)}
        study.add(config, **results(config))
    trial, times = study.ask(), []
    for _ in range(warm):
        study.tell(trial, **results(dict(trial.config)))
        began = time.perf_counter()
        trial = study.ask()
        times.append(time.perf_counter() - began)
    return times


def measure(labels: list[str], seeds: int) -> dict[str, Any]:
    """Median and extremes by method, those that do not exist left out."""
    report: dict[str, Any] = {}
    for label in labels:
        n, dimensions = CASES[label]
        try:
            times = [seconds for seed in range(seeds) for seconds in asks(label, n, dimensions, seed, WARM)]
        except AttributeError as error:
            print(f"{label} is left out: {error}", file=sys.stderr, flush=True)
            continue
        report[label] = {
            "n": n, "parameters": dimensions, "fidelities": 2, "median": round(statistics.median(times), 4),
            "lowest": round(min(times), 4), "highest": round(max(times), 4), "asks": len(times),
        }  # fmt: skip
        print(f"{time.strftime('%H:%M:%S')} {label}: {report[label]['median']} s", file=sys.stderr, flush=True)
    return report
