"""How fast a study is kept in a SQLite file: tells by eight processes, asking and telling beside Optuna, and large studies.

Ours are durable: WAL, flushed (fdatasync) before each call returns, one transaction a call. Optuna's RDBStorage is as it comes
(rollback journal, synchronous=FULL), and once more with its file set to WAL; it is given a minute to wait for a lock.
"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import shoestring as st
from benchmarks.reliability import large
from benchmarks.reliability.suite import ROOT
from benchmarks.reliability.team import Failed, failures, together

PROCESSES = 8
TRIALS, QUICK_TRIALS = 100_000, 2_000
TELLS, QUICK_TELLS = 1_000, 25  # by each process
SECONDS, QUICK_SECONDS = 10.0, 1.0  # of asking and telling
PEER_TRIALS, QUICK_PEER_TRIALS = 1_000, 50
OURS, PEERS = "shoestring", ("optuna", "optuna_wal")


def settings(address: str) -> dict[str, Any]:
    """As they are in a connection of the storage's own."""
    from shoestring.storage import open_storage

    storage = open_storage(address)
    with storage._database.engine.connect() as connection:  # type: ignore[attr-defined]
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")}
    storage.close_connections()
    return found | {"synchronous": {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}[found["synchronous"]]}


def syncs(folder: Path, count: int = 50) -> float:
    """Writes of a page a second that the disk itself can take, each waited for."""
    path = folder / "sync"
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(count):
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())
        return count / (time.perf_counter() - began)


def rate(answers: Sequence[Any]) -> dict[str, Any]:
    """Of (began, ended, how many) by a clock that all processes share."""
    spans = [answer for answer in answers if not isinstance(answer, Failed)]
    found: dict[str, Any] = {"trials": sum(span[2] for span in spans)}
    if spans:
        found["per_second"] = round(found["trials"] / (max(span[1] for span in spans) - min(span[0] for span in spans)), 1)
        found |= {"errors": errors} if (errors := sum(span[3] for span in spans)) else {}
    return found | ({"failures": why} if (why := failures(answers)) else {})


# -- telling ---------------------------------------------------------------------------------------------------------


def _tell(gate: Any, address: str, numbers: range) -> tuple[float, float, int, int]:
    study = st.Study.load(address, large.NAME)
    study.refresh()
    gate.wait()
    began = time.monotonic()
    for number in numbers:
        study.tell(number, 0.5, cost=1.0)
    ended = time.monotonic()
    study.storage.close_connections()
    return began, ended, len(numbers), 0


def tells(folder: Path, quick: bool) -> dict[str, Any]:
    done, each = (QUICK_TRIALS, QUICK_TELLS) if quick else (TRIALS, TELLS)
    address = f"sqlite:///{folder}/tells.db"
    large.fill(address, done, PROCESSES * each)
    numbers = range(done, done + PROCESSES * each)
    answers = together(_tell, [(address, numbers[first::PROCESSES]) for first in range(PROCESSES)])
    found = {"trials_before": done, "processes": PROCESSES, **settings(address), "syncs_per_second": round(syncs(folder))}
    return found | rate(answers)


# -- asking and telling, beside Optuna -------------------------------------------------------------------------------


def _ask_and_tell(gate: Any, who: str, path: str, seconds: float) -> tuple[float, float, int, int]:
    study: Any = _optuna(path) if who in PEERS else st.Study.load(path, large.NAME)
    distributions = (_distributions(),) if who in PEERS else ()
    if who not in PEERS:
        study.refresh()
    gate.wait()
    began, count, errors = time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        try:
            study.tell(study.ask(*distributions), 0.5)
            count += 1
        except Exception:
            if who not in PEERS:
                raise
            errors += 1  # Optuna gives up on a lock that it does not get
    return began, time.monotonic(), count, errors


def _distributions() -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    return {
        "lr": FloatDistribution(1e-5, 1e-1, log=True), "depth": IntDistribution(2, 12), "momentum": FloatDistribution(0, 1),
        "width": IntDistribution(8, 1024, log=True), "act": CategoricalDistribution(("relu", "tanh", "gelu")),
    }  # fmt: skip


def _optuna(path: str) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})
    sampler = optuna.samplers.RandomSampler()
    return optuna.create_study(storage=storage, study_name=large.NAME, sampler=sampler, load_if_exists=True)


def prepare(who: str, path: Path, trials: int) -> None:
    if who == OURS:
        large.fill(str(path), trials)
        return
    from optuna.trial import create_trial

    if who == "optuna_wal":  # a property of the file
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    study, distributions = _optuna(str(path)), _distributions()
    config = {"lr": 0.01, "depth": 4, "momentum": 0.5, "width": 64, "act": "relu"}
    study.add_trials([create_trial(params=config, distributions=distributions, value=0.5) for _ in range(trials)])


def beside_optuna(folder: Path, quick: bool) -> dict[str, Any]:
    """trials/s; ratios are ours over theirs. Ours has a large study too, which would take Optuna hours to make."""
    seconds, many = (QUICK_SECONDS, QUICK_PEER_TRIALS) if quick else (SECONDS, PEER_TRIALS)
    found: dict[str, Any] = {"seconds": seconds}
    for trials in (0, many, QUICK_TRIALS if quick else TRIALS):
        for who in (OURS, *PEERS) if trials <= many else (OURS,):
            made = folder / f"{who}-{trials}.db"
            prepare(who, made, trials)
            for processes in (1, PROCESSES):
                path = folder / f"{who}-{trials}-{processes}.db"
                with closing(sqlite3.connect(made)) as source, closing(sqlite3.connect(path)) as target:
                    source.backup(target)  # what is still in a write-ahead log too
                answers = together(_ask_and_tell, [(who, str(path), seconds)] * processes)
                found.setdefault(f"{trials} trials before, {processes} at once", {})[who] = rate(answers)
    for name, rates in found.items():
        if name != "seconds":
            ours = rates[OURS].get("per_second", 0.0)
            theirs = {who: rates[who].get("per_second") for who in PEERS if who in rates}
            rates["ratios"] = {who: round(ours / rate_, 1) for who, rate_ in theirs.items() if rate_}
    return found


# -- large studies ---------------------------------------------------------------------------------------------------


def large_studies(folder: Path, quick: bool) -> dict[str, Any]:
    """Seconds and MB, in a fresh process each."""
    found = {}
    for trials in (1_000, QUICK_TRIALS if quick else TRIALS):
        address = f"sqlite:///{folder}/large-{trials}.db"
        large.fill(address, trials)
        words = [sys.executable, "-m", "benchmarks.reliability.large", address]
        ended = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        found[str(trials)] = {name: round(value, 4) for name, value in json.loads(ended.stdout).items()}
    return found


MEASURES = {"tells": tells, "ask_and_tell": beside_optuna, "large": large_studies}
