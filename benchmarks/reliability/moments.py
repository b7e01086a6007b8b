"""kill -9, or a suspension (SIGSTOP, later SIGCONT), of workers at chosen moments: start, ask, checkpoint, tell and close.

Eight workers, forked from this process, work on one study, and one that ends is replaced (see ``attacked``). In shared memory
each says in which moment it is. The attacker chooses a moment, waits until a worker is in it and for a random part of the time
that it takes, and sends the signal. What counts is where the worker really was: a signal that came too late is listed as
"elsewhere", and is one more than was asked for. A suspension lasts 0.1 to 3 leases, for at most three workers at once.

Each 50 attacks have a study of their own. At its end fresh workers go on for two leases; then nothing may be open any more.
With "none" nobody is attacked, for half a minute: how long the calls take then shows how busy the machine is.

    python -m benchmarks.reliability.moments LIBRARY ATTACK ADDRESS FOLDER COUNT SEED SECONDS    # leaves its lines in the folder

RELIABILITY_KEEP names a folder to which the lines of a drill are copied.
"""

import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.reliability import attacked, moment_accounts
from benchmarks.reliability.attacked import CELLS, MOMENTS
from benchmarks.reliability.suite import ROOT, Row, row

COUNT, QUICK_COUNT = 500, 10
SIGNALS = {"kill": signal.SIGKILL, "suspend": signal.SIGSTOP}
ATTACKS = {"kill": "kill -9", "suspend": "suspension", "none": "no attack"}
SECONDS_WITHOUT_ATTACKS = 30.0
WORKERS, LEASE, MAX_STOPPED = 8, 2.0, 3
SHORTEST_STOP, LONGEST_STOP = 0.1, 3.0  # leases
ATTACKS_PER_STUDY = 50
GAP = 0.1  # seconds between two attacks, on average
MAX_WAIT_FOR_MOMENT = 3.0  # seconds; then another moment is chosen
MAX_WAIT_FOR_END = 30.0  # seconds that the last workers may take
MAX_SECONDS = 1200.0  # of one drill; then it ends with fewer attacks
POLL = 0.0005
WAL_WRITE_BYTE = 120  # of the -shm file: who has it locked is in the middle of a write


@dataclass
class Slot:
    """A worker, and until when it is suspended: 0.0 if it is not."""

    pid: int
    until: float = 0.0
    line: dict[str, Any] = field(default_factory=dict)


class Attacker:
    """Workers on one study after the other, and the signals that they get."""

    def __init__(self, library: str, attack: str, address: str, folder: Path, count: int, seed: int, seconds: float) -> None:
        self.library, self.attack, self.address, self.folder, self.count = library, attack, address, folder, count
        self.luck, self.until = random.Random(seed), time.monotonic() + seconds
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.journal = os.open(folder / "journal.jsonl", flags, 0o600)
        self.attacks = os.open(folder / "attacks.jsonl", flags, 0o600)
        self.cells: Any = memoryview(mmap.mmap(-1, 8 * (CELLS * WORKERS + len(MOMENTS)))).cast("d")
        self.slots: dict[int, Slot] = {}
        self.study, self.done, self.replacing = "", 0, True

    def note(self, **line: Any) -> None:
        os.write(self.attacks, (json.dumps({"at": time.monotonic(), "study": self.study} | line) + "\n").encode())

    # -- workers -----------------------------------------------------------------------------------------------------

    def start(self, slot: int) -> None:
        place = CELLS * slot
        self.cells[place], self.cells[place + 1] = 0, time.monotonic()
        worker = attacked.Worker(
            self.address, self.study, self.folder, LEASE, slot, WORKERS, self.journal, self.cells,
            random.Random(self.luck.random()),
        )  # fmt: skip
        self.slots[slot] = Slot(attacked.in_child(attacked.live, worker, self.library))

    def look_after(self) -> None:
        """Replace those that have ended, and let those go on whose suspension is over."""
        now = time.monotonic()
        for place, slot in list(self.slots.items()):
            if slot.until and now >= slot.until:
                self.resume(slot)
            if not slot.until:
                pid, status = os.waitpid(slot.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    if code not in (0, 1):  # 1: it has said why
                        self.note(crashed=pid, code=code)
                    del self.slots[place]
        if self.replacing:
            for place in range(WORKERS):
                if place not in self.slots:
                    self.start(place)

    def resume(self, slot: Slot) -> None:
        os.kill(slot.pid, signal.SIGCONT)
        self.note(**slot.line, until=time.monotonic())
        slot.until = 0.0

    # -- attacks -----------------------------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.look_after()
            time.sleep(POLL)

    def find(self, moment: str) -> int | None:
        """The place of a worker that is in this moment now."""
        code, until = MOMENTS.index(moment), time.monotonic() + MAX_WAIT_FOR_MOMENT
        while time.monotonic() < until:
            self.look_after()
            there = [place for place, slot in self.slots.items() if not slot.until and self.cells[CELLS * place] == code]
            if there:
                return self.luck.choice(there)
            time.sleep(POLL)
        return None

    def attack_one(self) -> None:
        moment = self.luck.choice(MOMENTS[1:])
        place = self.find(moment)
        if place is None:
            return
        slot = self.slots[place]
        time.sleep(self.luck.random() * self.cells[CELLS * WORKERS + MOMENTS.index(moment)])
        os.kill(slot.pid, SIGNALS[self.attack])  # it is a child that nobody has waited for: the number is still its own
        at = time.monotonic()
        _, status = os.waitpid(slot.pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        really = MOMENTS[int(self.cells[CELLS * place])]
        line = {"by": slot.pid, "at": at, "moment": really, "began": self.cells[CELLS * place + 1]}
        self.done += really != "elsewhere"
        if stopped:
            slot.until = at + LEASE * self.luck.uniform(SHORTEST_STOP, LONGEST_STOP)
            slot.line = {"stopped": slot.pid, **line, "locks": write_locks(slot.pid, self.address)}
            return
        del self.slots[place]
        if os.WIFSIGNALED(status):
            self.note(killed=slot.pid, **line)
        else:  # it has ended by itself at this moment
            self.done -= really != "elsewhere"

    def round(self, number: int, goal: int) -> None:
        """A study of its own, attacked until there were so many attacks in all."""
        self.study, self.replacing = f"round-{number}", True
        self.wait_for(attacked.prepare, self.study)
        self.note(begun=number)
        try:
            if self.attack == "none":
                self.pause(min(SECONDS_WITHOUT_ATTACKS, self.until - time.monotonic()))
            while self.attack != "none" and self.done < goal and time.monotonic() < self.until:
                self.pause(self.luck.expovariate(1 / GAP))
                while sum(bool(slot.until) for slot in self.slots.values()) >= MAX_STOPPED:
                    self.pause(POLL)
                self.attack_one()
            while any(slot.until for slot in self.slots.values()):
                self.pause(POLL)
            self.pause(2 * LEASE)
            self.replacing, until = False, time.monotonic() + MAX_WAIT_FOR_END
            while self.slots and time.monotonic() < until:
                self.pause(POLL)
            for place, slot in self.slots.items():
                moment, began = MOMENTS[int(self.cells[CELLS * place])], self.cells[CELLS * place + 1]
                self.note(stuck=slot.pid, by=slot.pid, moment=moment, began=began)
        finally:
            for slot in self.slots.values():
                os.kill(slot.pid, signal.SIGKILL)
                os.waitpid(slot.pid, 0)
            self.slots.clear()
        self.note(over=number)

    def wait_for(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Have it done in a process of its own."""
        os.waitpid(attacked.in_child(work, self.library, self.address, *arguments, self.folder, LEASE), 0)

    def run(self) -> None:
        self.wait_for(attacked.prepare, "unattacked")
        self.wait_for(attacked.write_modules)
        attacked.import_modules(self.folder)
        goals = [*range(ATTACKS_PER_STUDY, self.count, ATTACKS_PER_STUDY), self.count] if self.attack != "none" else [0]
        for number, goal in enumerate(goals):
            if time.monotonic() < self.until:
                self.round(number, goal)


def write_locks(pid: int, address: str) -> list[int]:
    """The exclusive locks of a process on a SQLite database, by their first bytes; main file: -1."""
    if not address.startswith("sqlite:///"):
        return []
    path, found = address.removeprefix("sqlite:///"), list[int]()
    files = {os.stat(name).st_ino: name for name in (path, f"{path}-shm") if os.path.exists(name)}
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.replace("->", "").split()
        if words[1] == "POSIX" and words[3] == "WRITE" and int(words[4]) == pid:
            file = files.get(int(words[5].rpartition(":")[2]))
            if file is not None:
                last = int(words[7]) if words[7] != "EOF" else int(words[6])
                found += [-1] if file == path else range(int(words[6]), last + 1)
    return found


def drill(
    library: str,
    attack: str,
    address: str,
    storage: str,
    *,
    quick: bool = False,
    seed: int | None = None,
    count: int | None = None,
    seconds: float = MAX_SECONDS,
) -> Row:
    """``tried`` counts attacks that fell into one of the moments; ``lost`` what is wrong in the end, of whatever kind."""
    began, count = time.perf_counter(), 0 if attack == "none" else count or (QUICK_COUNT if quick else COUNT)
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="shoestring-moments-") as folder:
        words = [library, attack, address, folder, str(count), str(seed), str(seconds)]
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.reliability.moments", *words], cwd=ROOT, stdin=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True,
        )  # fmt: skip
        attacks, lines = (attacked.read_lines(Path(folder) / f"{name}.jsonl") for name in ("attacks", "journal"))
        found = moment_accounts.judge_all(attacks, lines, lambda study: attacked.STORED[library](address, study), LEASE)
        if kept := os.environ.get("RELIABILITY_KEEP"):
            shutil.copytree(folder, Path(kept) / f"{library}-{storage}-{attack}", dirs_exist_ok=True)
    if ended.returncode:
        found["wrong"]["attacker"], found["said_at_the_end"] = 1, ended.stderr[-1000:]
    at = Counter(line["moment"] for line in attacks if "killed" in line or "stopped" in line)
    total, wrong = sum(at.values()) - at["elsewhere"], sum(found["wrong"].values())
    what = f"{library}: {ATTACKS[attack]}, {WORKERS} workers at start, ask, checkpoint, tell and close"
    figures = {"library": library, "attack": attack, "lease": LEASE, "seed": seed, "at": dict(at), **found}
    figures["load"] = round(os.getloadavg()[1], 1)  # of the machine, in the last five minutes
    line = row("moments", what, storage, total, max(0, total - wrong), time.perf_counter() - began, **figures)
    return line | {"lost": wrong, "wanted": count, "most_seconds": seconds}


if __name__ == "__main__":
    library, attack, address, folder, *numbers = sys.argv[1:]
    Attacker(library, attack, address, Path(folder), int(numbers[0]), int(numbers[1]), float(numbers[2])).run()
