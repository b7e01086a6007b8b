"""Look-ahead and information methods: speed against BoTorch, whose choice is better, and quality under noise.

    python -m benchmarks.lookahead [--quick] [--json] [--part speed|quality] [--seeds N] [--methods a,b] [--no-peers]

Runs what is not stored yet, and summarises what is. Results lie in benchmarks/results/lookahead.
"""

import argparse
import json
import statistics
import warnings
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.lookahead import judge, quality, speed
from benchmarks.machine import facts

RESULTS = Path(__file__).parent.parent / "results" / "lookahead"
SIZES = (25, 100)


def key(report: dict[str, Any]) -> dict[str, Any]:
    """The figures that the targets speak of."""
    ms = report.get("speed", {}).get("ms", {})
    if not {"EI", "KG"} <= set(ms):
        return {}
    largest = list(ms["EI"])[-1]  # a quick run has n = 25 alone
    ratio = {name: round(ms[name][largest] / ms["EI"][largest], 2) for name in ("KG", "ES", "PES", "MES") if name in ms}
    found: dict[str, Any] = {"kg_ms": ms["KG"], **{f"{name.lower()}_vs_ei": value for name, value in ratio.items()}}
    for name in ("KG", "MES", "PES"):
        if f"botorch {name}" in ms and name in ms:
            peer = ms[f"botorch {name}"]
            found[f"{name.lower()}_vs_botorch"] = {n: round(peer[n] / ms[name][n], 1) for n in peer}
    ratios: dict[str, list[float]] = {}
    for entry in report["speed"].get("judged", []):
        ratios.setdefault(str(entry["n"]), []).append(entry["ratio"])
    found["kg_value_ratio"] = {n: round(statistics.fmean(values), 3) for n, values in ratios.items()}
    found["paired"] = {name: each.get("50") for name, each in report.get("quality", {}).get("paired", {}).items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lookahead", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and seeds, and BoTorch at n = 25 alone")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--part", choices=("speed", "quality"), action="append", help="both by default")
    parser.add_argument("--seeds", type=int, help="of quality; 20 by default, 3 with --quick")
    parser.add_argument("--methods", help="of quality; comma-separated")
    parser.add_argument("--no-peers", action="store_true", help="without BoTorch")
    options = parser.parse_args()
    path = RESULTS / ("quick.json" if options.quick else "report.json")
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not options.part or "speed" in options.part:
            if not options.no_peers:
                import torch

                torch.set_num_threads(1)
            sizes = SIZES[:1] if options.quick and not options.no_peers else SIZES
            report["speed"] = speed.measure(sizes, 2 if options.quick else 5, not options.no_peers)
            report["speed"]["judged"] = [
                {"n": each["n"], **judge.compare(each["n"], each["seed"], each["config"])}
                for each in report["speed"]["suggested"]
                if each["which"] == "KG"
            ]
        if not options.part or "quality" in options.part:
            labels = options.methods.split(",") if options.methods else list(quality.METHODS)
            quality.run_missing(RESULTS / "quality", labels, options.seeds or (3 if options.quick else 20))
            report["quality"] = quality.summarise(RESULTS / "quality", labels)
    report["machine"] = facts()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({name: value for name, value in report.items() if name != "machine"}, indent=1))
    if options.json:
        print(json.dumps(key(report)))


if __name__ == "__main__":
    main()
