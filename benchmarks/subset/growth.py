"""How a suggestion's time and memory grow with the trials: 100, 1,000 and 10,000 of a smooth function in ten dimensions.

    python -m benchmarks.subset.growth LABEL TRIALS SEED ASKS

measures one case and prints it as JSON; ``measure`` runs each case so, in a process of its own, so that memory is that of the
case. Labels are those of ``methods``, with the search method that a study has by default, and ``optuna`` (GPSampler) and
``botorch``, as in ``benchmarks.timing``, on the same data, taking turns with ours.

Times are of warm suggestions: telling the result of the one before, and asking. Sixty of them, because subsets are picked anew
every fifty trials here: the median is the usual suggestion, the highest is the one that had to pick and fit from scratch. Times
are by the clock on the wall, ``processor_ms`` is the processor's: where they differ much, the machine was not idle.
Memory is the most that was ever resident, less what is resident after the import; so it counts modules that are imported later.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = (100, 1000, 10_000)
EXACT_UNTIL = 1000  # the exact one needs minutes a suggestion and gigabytes after that
PEERS = ("optuna", "botorch")
PEERS_AT = 1000
ASKS, REPEATS = 60, 3
QUICK_ASKS, QUICK_REPEATS = 10, 1
PEER_ASKS = 2
ASK_MS, RSS_MB = {"1000": 100.0, "10000": 200.0}, {"10000": 150.0}
TIMES_FASTER = {"optuna": 25.0, "botorch": 100.0}
ROOT = Path(__file__).parent.parent.parent


def memory(which: str) -> float:
    """In MB: resident now (VmRSS), or at most so far (VmHWM). ``getrusage`` would tell of the process that started this one."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    raise OSError(f"the system does not tell {which}")


def ours(label: str, n: int, seed: int, asks: int) -> dict[str, Any]:
    """Filled trial by trial: a list of them would be counted as the study's."""
    import numpy as np

    import shoestring  # noqa: F401
    from benchmarks.peers import shoestring_space
    from benchmarks.subset import methods
    from benchmarks.timing import PROBLEM, smooth

    imported = memory("VmRSS")
    study = methods.study(label, shoestring_space(PROBLEM), seed, method="auto")
    names = [dimension.name for dimension in PROBLEM.dimensions]
    began = time.perf_counter()
    for point in np.random.default_rng([n, seed]).random((n, len(names))):
        config = dict(zip(names, point.tolist(), strict=True))
        study.add(config, smooth(config), cost=1.0)
    filled = time.perf_counter()
    trial = study.ask()
    cold = time.perf_counter() - filled
    warm, processor = [], []
    for _ in range(asks):
        value = smooth(trial.config)
        start, start_processor = time.perf_counter(), time.process_time()
        study.tell(trial, value, cost=1.0)
        trial = study.ask()
        warm.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    found = {"warm": warm, "processor": processor, "cold": cold, "fill": filled - began}
    return found | {"rss_mb": round(memory("VmHWM") - imported, 1), "imported_mb": round(imported, 1)}


def peer(label: str, n: int, seed: int, asks: int) -> dict[str, Any]:
    import torch

    from benchmarks.timing import TIMERS

    torch.set_num_threads(1)
    imported = memory("VmRSS")
    times = TIMERS[label](n, seed, min(asks, PEER_ASKS))
    return {"warm": times.warm, "cold": times.cold[0], "rss_mb": round(memory("VmHWM") - imported, 1)}


def in_a_process(label: str, n: int, seed: int, asks: int) -> dict[str, Any] | None:
    """One case; None, with a note, if it failed."""
    command = [sys.executable, "-m", "benchmarks.subset.growth", label, str(n), str(seed), str(asks)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        print(f"{label} at {n} is left out: {(done.stderr.strip() or '?').splitlines()[-1]}", file=sys.stderr, flush=True)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    middle = statistics.median(found["warm"])
    print(f"{time.strftime('%H:%M:%S')} {label} at {n}: {1e3 * middle:.1f} ms, {found['rss_mb']} MB", file=sys.stderr, flush=True)
    return found


Measure = Callable[[str, int, int, int], dict[str, Any] | None]


def measure(labels: list[str], repeats: int, asks: int, sizes: list[int], one: Measure = in_a_process) -> dict[str, Any]:
    """By label and number of trials: milliseconds over all repeats, and the most memory."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for seed in range(repeats):
        for n in sizes:
            for label in labels:
                if (label in PEERS and n != PEERS_AT) or (label == "exact" and n > EXACT_UNTIL):
                    continue
                if (case := one(label, n, seed, asks)) is not None:
                    found.setdefault(label, {}).setdefault(str(n), []).append(case)
    return {label: {n: _merged(cases) for n, cases in by.items()} for label, by in found.items()}


def _merged(cases: list[dict[str, Any]]) -> dict[str, Any]:
    warm = sorted(1e3 * seconds for case in cases for seconds in case["warm"])
    merged = {
        "ask_ms": statistics.median(warm), "nine_tenths_ms": warm[int(0.9 * (len(warm) - 1))], "highest_ms": warm[-1],
        "cold_ms": 1e3 * statistics.median(case["cold"] for case in cases), "rss_mb": max(case["rss_mb"] for case in cases),
    }  # fmt: skip
    if processor := [1e3 * seconds for case in cases for seconds in case.get("processor", [])]:
        merged["processor_ms"] = statistics.median(processor)
    return {name: round(value, 2) for name, value in merged.items()} | {"asks": len(warm)}


def key(report: dict[str, Any], label: str = "default") -> dict[str, Any]:
    """The figures that the targets speak of; ``met`` has those that were measured."""
    by = report.get(label, {})
    found: dict[str, Any] = {name: {n: case[name] for n, case in by.items()} for name in ("ask_ms", "rss_mb")}
    met = {f"ask_ms_{n}": found["ask_ms"][n] < most for n, most in ASK_MS.items() if n in by}
    met |= {f"rss_mb_{n}": found["rss_mb"][n] < most for n, most in RSS_MB.items() if n in by}
    at = str(PEERS_AT)
    for other in (*PEERS, "exact"):
        if at in by and at in report.get(other, {}):
            ratio = round(report[other][at]["ask_ms"] / by[at]["ask_ms"], 1)
            found[f"vs_{other}_{at}"] = ratio
            if other in TIMES_FASTER:
                met[f"vs_{other}_{at}"] = ratio >= TIMES_FASTER[other]
    return found | {"met": met}


def main() -> None:
    from threadpoolctl import threadpool_limits

    label, n, seed, asks = sys.argv[1], *map(int, sys.argv[2:5])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps((peer if label in PEERS else ours)(label, n, seed, asks)))


if __name__ == "__main__":
    main()
