"""What do log lines, metrics and attributes cost?

    python -m benchmarks.recording [--trials 1000] [--rounds 7] [--json]

Random search with an objective that takes no time, through ``minimize``: without anything, and with a line a trial logged to a
file, a metric and an attribute with each trial. In memory and on SQLite, in turns; trials a second, the median of the rounds, and
the ratio of the two within each round.
"""

import argparse
import json
import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import shoestring as st
from benchmarks import machine

RESULTS = Path(__file__).parent / "results" / "recording.json"
SPACE = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), act=st.Choice("relu", "tanh"), drop=st.Float(0, 1))


def plain(config: dict[str, Any]) -> float:
    return float(config["drop"])


def recorded(config: dict[str, Any], trial: Any) -> st.Outcome:
    trial.set_attr("host", "gpu3")
    return st.Outcome(config["drop"], metrics={"accuracy": 1.0 - config["drop"]})


def trials_a_second(count: int, folder: Path, *, stored: bool, rich: bool) -> float:
    log = logging.getLogger("shoestring")
    handler = logging.FileHandler(folder / "log.txt")
    log.addHandler(handler)
    log.setLevel(logging.INFO if rich else logging.WARNING)
    study = st.Study(SPACE, st.Random(), storage=folder / f"{time.time_ns()}.db" if stored else None)
    try:
        began = time.perf_counter()
        study.minimize(recorded if rich else plain, count, progress=False)
        return count / (time.perf_counter() - began)
    finally:
        log.removeHandler(handler)
        handler.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        trials_a_second(50, Path(name), stored=True, rich=True)  # imports
        for stored in (False, True):
            rounds = [
                {rich: trials_a_second(given.trials, Path(name), stored=stored, rich=rich) for rich in (False, True)}
                for _ in range(given.rounds)
            ]
            found["sqlite" if stored else "memory"] = {
                "plain": round(statistics.median(each[False] for each in rounds)),
                "recorded": round(statistics.median(each[True] for each in rounds)),
                "ratio": round(statistics.median(each[True] / each[False] for each in rounds), 3),
                "ratios": [round(each[True] / each[False], 3) for each in rounds],
            }
    RESULTS.write_text(json.dumps({"trials": given.trials, "found": found, "machine": machine.facts()}, indent=1) + "\n")
    print(json.dumps(found) if given.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
