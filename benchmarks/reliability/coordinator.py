"""The program that is killed: a study with eight workers, whose journal says what was evaluated and what was acknowledged.

    python -m benchmarks.reliability.coordinator ADDRESS JOURNAL GOAL WORKERS LEASE
"""

import json
import os
import random
import sys
import threading
import time
from typing import Any

import shoestring as st

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(1e-4, 1, log=True), depth=st.Int(1, 100), kind=st.Choice("a", "b", "c"))
NAME = "killed"
SHORTEST, LONGEST = 0.02, 0.2  # seconds of an evaluation


def note(journal: str, line: dict[str, Any]) -> None:
    """One line, which is on the disk when this returns; many processes write to the same file."""
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def end_with(parent: int) -> None:
    """Should the supervisor be killed itself, nothing of this goes on."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main(address: str, journal: str, goal: int, workers: int, lease: float) -> None:
    def objective(config: dict[str, Any], trial: Any) -> float:
        time.sleep(random.uniform(SHORTEST, LONGEST))
        value = random.SystemRandom().random()  # another one each time: a result can only come from its own evaluation
        note(journal, {"evaluated": trial.number, "config": config, "value": value, "by": os.getpid()})
        return value

    def told(study: st.Study, trial: st.Trial) -> None:
        note(journal, {"acknowledged": trial.number, "state": str(trial.state), "value": trial.value, "config": trial.config})

    study = st.Study(SPACE, st.Random(), stop=None, storage=address, name=NAME, lease=lease)
    note(journal, {"begun": os.getpid(), "goal": goal})
    result = study.minimize(objective, goal, workers=workers, callbacks=told, progress=False)
    note(journal, {"ended": os.getpid(), "kind": result.stop.kind, "reason": result.stop.reason})


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
