"""kill -9 at random: workers, and the coordinator itself, which is then started again, until there were enough.

The study is given a goal of so many trials, and another one whenever it has reached it, so that the kills fall into beginnings
and ends too. What the journal says must then be what the storage holds (see ``accounts``).
"""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.reliability import accounts, coordinator, processes
from benchmarks.reliability.suite import ROOT, Row, row
from shoestring.data.trial import State
from shoestring.storage import open_storage

KILLS, QUICK_KILLS = 200, 10
STRETCH, QUICK_STRETCH = 100, 30  # trials from one goal to the next
WORKERS, LEASE = 8, 2.0
COORDINATOR, STARTING = 1 / 6, 1 / 20  # chances that it is the coordinator; while it starts there is nobody else
AT_WORK = 0.75  # of the kills wait for evaluations, and of the workers are those that have made one: the others mostly start
GAP = 0.6  # seconds between two kills, on average
BETWEEN, PATIENCE = 8, 10.0  # evaluations before the next kill, at most, in as many seconds at most: else all would only start
EACH = 30.0  # seconds a kill may take, all in all, before it is given up
CRASHES = 5  # ends of the coordinator that nobody has caused


@dataclass
class Run:
    """A study under fire, and what has happened to it so far."""

    address: str
    folder: Path
    kills: int
    stretch: int
    luck: random.Random
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    killed: Counter[str] = field(default_factory=Counter)
    early: int = 0  # ends with trials left under the leases of a coordinator that was killed
    crashes: list[str] = field(default_factory=list)
    goal: int = 0

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def start(self) -> subprocess.Popen[bytes]:
        words = [self.address, str(self.journal), str(self.goal), str(WORKERS), str(LEASE)]
        with (self.folder / "errors").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "benchmarks.reliability.coordinator", *words], cwd=ROOT,
                env=os.environ | {processes.MARK: self.mark}, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
            )  # fmt: skip

    def shoot(self, process: subprocess.Popen[bytes]) -> None:
        """One of them, at this moment."""
        workers = [pid for pid in processes.children(process.pid) if processes.is_worker(pid)]
        if self.luck.random() < (COORDINATOR if workers else STARTING):
            self.killed["coordinator"] += processes.kill(process.pid, self.mark)
            process.wait()
        elif workers:
            busy = {line["by"] for line in accounts.read(self.journal) if "evaluated" in line}
            at_work = [pid for pid in workers if pid in busy]
            chosen = at_work if at_work and self.luck.random() < AT_WORK else workers
            self.killed["worker"] += processes.kill(self.luck.choice(chosen), self.mark)

    def ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether it has ended, perhaps by a shot, before the next one."""
        shooting = self.killed.total() < self.kills
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.luck.expovariate(1 / GAP) if shooting else EACH)
            return True
        wanted = self.evaluated() + self.luck.randint(0, BETWEEN) if shooting and self.luck.random() < AT_WORK else 0
        until = time.monotonic() + PATIENCE
        while self.evaluated() < wanted and process.poll() is None and time.monotonic() < until:
            time.sleep(self.luck.uniform(0.0, 0.1))
        return process.poll() is not None

    def evaluated(self) -> int:
        return sum("evaluated" in line for line in accounts.read(self.journal))

    def open_trials(self) -> int:
        storage = open_storage(self.address)
        record = storage.find(coordinator.NAME)
        trials = storage.changes_since(record.id, 0).trials if record is not None else []
        storage.close_connections()
        return sum(each.trial.state is State.RUNNING for each in trials)

    def to_the_goal(self, until: float) -> None:
        """Start it, shoot, start it again, until it ends by itself with nothing left open."""
        while time.monotonic() < until and len(self.crashes) < CRASHES:
            process = self.start()
            try:
                while not self.ended(process) and time.monotonic() < until:
                    if self.killed.total() < self.kills:
                        self.shoot(process)
            finally:
                processes.kill(process.pid, self.mark)
                process.wait()
            if process.returncode == 0 and not self.open_trials():
                return
            if process.returncode == 0:
                self.early += 1
                time.sleep(LEASE / 4)
            elif process.returncode != -9:
                self.crashes.append((self.folder / "errors").read_text(errors="replace")[-1000:])

    def whole(self) -> None:
        until = time.monotonic() + EACH * max(10, self.kills)
        try:
            while self.killed.total() < self.kills and time.monotonic() < until and len(self.crashes) < CRASHES:
                self.goal += self.stretch
                self.to_the_goal(until)
        finally:
            self.left_behind = processes.leave_none(self.mark, 10.0)


def report(run: Run) -> dict[str, Any]:
    storage = open_storage(run.address)
    record = storage.find(coordinator.NAME)
    found = storage.changes_since(record.id, 0) if record is not None else None
    lines = accounts.read(run.journal)
    judged = accounts.judge(found.trials, len(found.queue), lines, run.goal) if found is not None else {"wrong": {"lost": 1}}
    judged["wrong"] |= {"damage": len(storage.check()), "crashes": len(run.crashes), "left_behind": run.left_behind}
    storage.close_connections()
    starts = sum("begun" in line for line in lines)
    return {"killed": dict(run.killed), "coordinators": starts, "early_ends": run.early, "crashes": run.crashes, **judged}


def kills(address: str, storage: str, quick: bool, seed: int | None = None, count: int | None = None) -> Row:
    """``tried`` counts kills; ``lost`` what is wrong in the end, of whatever kind."""
    began = time.perf_counter()
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="shoestring-kills-") as folder:
        stretch = QUICK_STRETCH if quick else STRETCH
        run = Run(address, Path(folder), count or (QUICK_KILLS if quick else KILLS), stretch, random.Random(seed))
        run.whole()
        found = report(run)
    total, wrong = run.killed.total(), sum(found["wrong"].values())
    what = f"kill -9 of {WORKERS} workers and their coordinator"
    line = row("kills", what, storage, total, max(0, total - wrong), time.perf_counter() - began, lease=LEASE, seed=seed, **found)
    return line | {"lost": wrong, "wanted": run.kills}
