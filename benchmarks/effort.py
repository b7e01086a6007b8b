"""Does less effort pay, where the optimizer's own time counts?

    python -m benchmarks.effort [--part worth|levels|time] [--seeds 3] [--json]

worth   how many random trials are needed to be as good as expected improvement after 40 trials (tuning problems: the constant
        WORTH_IN_TRIALS of ``state/effort.py`` is read off here)
levels  the regret after 3 s of wall-clock time, with an objective that takes 0 or 1 ms: always with one level of effort (tuning
        problems: the rule of ``state/effort.py`` is read off here)
time    the same with full effort, with the effort that the library chooses, and by random search (reporting problems)

Rows are stored as they come; what is stored is not run again. One row a run, with its configuration and commit.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shoestring as st
from benchmarks import machine, problems
from benchmarks.peers import shoestring_space

RESULTS = Path(__file__).parent / "results" / "effort"
EI_TRIALS, MOST_RANDOM = 40, 4000
SECONDS = 3.0
PAUSES = (0.0, 0.001)
MODES = {"levels": ("full", "reduced", "random"), "time": ("full", "chosen", "random")}


def made_up(names: tuple[str, ...]) -> list[str]:
    """Problems that are functions: tables take longer to look up than a suggestion takes."""
    return [name for name in names if name in problems._MADE_UP]


def worth(name: str, seed: int) -> dict[str, Any]:
    """Random trials until the best value of EI after EI_TRIALS is reached."""
    problem = problems.load(name)
    space = shoestring_space(problem)
    goal = st.minimize(problem.evaluate, space, EI_TRIALS, method=st.EI(), seed=seed, stop=None, progress=False).best.value
    rng, count = np.random.default_rng(seed), 0
    while count < MOST_RANDOM:
        count += 1
        if problem.evaluate(space.decode(rng.random(len(space)))) <= goal:
            break
    return {"goal": goal, "random_trials": count, "reached": count < MOST_RANDOM}


def with_pause(evaluate: Callable[[Any], float], pause: float) -> Callable[[Any], float]:
    def objective(config: Any) -> float:
        until = time.perf_counter() + pause
        value = evaluate(config)
        while time.perf_counter() < until:
            pass
        return value

    return objective


def in_time(name: str, seed: int, mode: str, pause: float) -> dict[str, Any]:
    """The regret after SECONDS."""
    problem = problems.load(name)
    method = st.Random() if mode == "random" else "auto"
    study = st.Study(shoestring_space(problem), method, None, seed)
    if mode in ("full", "reduced"):
        study.suggester.effort.choose = lambda history, workers, **how: mode  # type: ignore[method-assign]
    result = study.minimize(with_pause(problem.evaluate, pause), st.Budget(seconds=SECONDS), progress=False)
    levels = [trial.basis.get("effort", "full") for trial in result.history]
    return {
        "regret": result.best.value - problem.optimum, "trials": len(levels), "seconds": study.seconds,
        "levels": {level: levels.count(level) for level in ("full", "reduced", "random")},
        "own_ms": {level: 1000 * seconds for level, seconds in study.suggester.effort.seconds.items()},
    }  # fmt: skip


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()


def run_missing(part: str, seeds: int) -> list[dict[str, Any]]:
    path = RESULTS / f"{part}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    stored = {json.dumps(row["config"], sort_keys=True) for row in rows}
    for seed in range(seeds):
        names = made_up(problems.REPORTING if part == "time" else problems.TUNING)
        wanted = [{"problem": name, "seed": seed} for name in names]
        if part != "worth":
            wanted = [each | {"pause": pause, "mode": mode} for each in wanted for pause in PAUSES for mode in MODES[part]]
        for config in wanted:
            if json.dumps(config, sort_keys=True) in stored:
                continue
            if part == "worth":
                found = worth(config["problem"], seed)
            else:
                found = in_time(config["problem"], seed, config["mode"], config["pause"])
            row = {"config": config, "commit": commit(), **found, "machine": machine.facts()}
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            rows.append(row)
            print(config, {key: row[key] for key in found}, file=sys.stderr, flush=True)
    return rows


def summary(part: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if part == "worth":
        names = sorted({row["config"]["problem"] for row in rows})
        found = {name: [row["random_trials"] for row in rows if row["config"]["problem"] == name] for name in names}
        every = [count for counts in found.values() for count in counts]
        return {
            "median_by_problem": {name: statistics.median(counts) for name, counts in found.items()},
            "median": statistics.median(every),
            "at_least_ten_times": f"{sum(count >= 10 * EI_TRIALS for count in every)} of {len(every)}",
        }  # fmt: skip
    text: dict[str, Any] = {}
    modes = MODES[part]
    for pause in PAUSES:
        cells = {}
        for mode in modes:
            mine = [row for row in rows if row["config"]["pause"] == pause and row["config"]["mode"] == mode]
            key = [(row["config"]["problem"], row["config"]["seed"]) for row in mine]
            cells[mode] = dict(zip(key, mine, strict=True))
        shared = set.intersection(*(set(cell) for cell in cells.values()))
        ranks = dict.fromkeys(modes, 0.0)
        for run in shared:
            values = {mode: cells[mode][run]["regret"] for mode in modes}
            for mode in modes:
                ranks[mode] += 1 + sum(values[other] < values[mode] for other in modes)
        text[f"{1000 * pause:g} ms"] = {
            "runs": len(shared),
            "mean_rank": {mode: round(ranks[mode] / max(len(shared), 1), 2) for mode in modes},
            "median_trials": {mode: statistics.median(row["trials"] for row in cells[mode].values()) for mode in modes},
            "longest_seconds": {mode: round(max(row["seconds"] for row in cells[mode].values()), 2) for mode in modes},
        }
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["worth", "levels", "time"], action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    st.set_verbosity("warning")
    for part in given.part or ["worth", "levels", "time"]:
        found = summary(part, run_missing(part, given.seeds))
        print(json.dumps(found) if given.json else f"{part}\n{json.dumps(found, indent=2)}")


if __name__ == "__main__":
    main()
