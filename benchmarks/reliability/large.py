"""A study with very many trials: how to come by one, and what opening it takes, in a process that has done nothing else.

    python -m benchmarks.reliability.large ADDRESS     # prints JSON
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import shoestring as st
from shoestring.data.trial import State, Trial
from shoestring.storage import codec, open_storage, rows, schema, trial_lifecycle

SPACE = st.Space(
    lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), momentum=st.Float(0, 1), width=st.Int(8, 1024, log=True),
    act=st.Choice("relu", "tanh", "gelu"),
)  # fmt: skip
NAME, PART = "large", 5_000


def fill(address: str, done: int, running: int = 0) -> None:
    """Finished trials, then running ones without a lease; in one transaction, since so many would take too long."""
    study = st.Study(SPACE, st.Random(), stop=None, storage=address, name=NAME)
    key, storage = study.state.study, study.storage
    rng, options = np.random.default_rng(0), ("relu", "tanh", "gelu")

    def trial(number: int) -> Trial:
        lr, momentum, value = (float(part) for part in rng.random(3))
        config = {"lr": 10 ** (-5 + 4 * lr), "depth": 2 + number % 11, "momentum": momentum, "width": 8 + number % 1017}
        config["act"] = options[number % 3]
        suggestion = {"by": "Random", "why": "random search"}
        found = Trial(number, config, suggestion=suggestion, asked_at=1.7e9 + number, basis={"seen": number})
        return found.finish(State.DONE, value=value, cost=1.0, seconds=1.0) if number < done else found

    def trial_rows(numbers: range) -> Iterator[dict[str, Any]]:
        for number in numbers:
            made, clock = trial(number), number + 1
            row = {"study": key, "number": number, "at_target": True, "token": f"large-{number}", "asked": 1.7e9 + number}
            yield row | rows.trial_columns(made, codec.encode_trial(made), (clock, None, clock if number < done else None), clock)

    count = done + running
    sums = trial_lifecycle.Totals(count, count, running, float(done), 0.0)

    def work(connection: Any) -> None:
        for first in range(0, count, PART):
            connection.execute(schema.trials.insert(), list(trial_rows(range(first, min(first + PART, count)))))
        where = schema.studies.c.id == key
        connection.execute(schema.studies.update().where(where).values(clock=count, **rows.totals_columns(sums)))

    storage._database.write(work)  # type: ignore[attr-defined]
    storage.close_connections()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def peak() -> float:
    """MB of memory at most so far. (Not by getrusage: that begins with what the parent had.)"""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def measure(address: str) -> dict[str, Any]:
    before = peak()
    opened, study = timed(lambda: st.Study.load(address, NAME))
    best, found = timed(lambda: study.best)
    first, trial = timed(study.ask)  # reads all trials
    told, _ = timed(lambda: study.tell(trial, 0.5))
    asks = []
    for _ in range(20):
        took, trial = timed(study.ask)
        asks.append(took)
        study.tell(trial, 0.5)
    again, _ = timed(lambda: study.best)
    assert found is not None
    assert open_storage(address).check() == []
    return {
        "open_seconds": opened, "best_seconds": best, "first_ask_seconds": first, "ask_seconds": float(np.median(asks)),
        "tell_seconds": told, "best_of_all_read_seconds": again, "peak_mb": peak(), "peak_mb_before": before,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
