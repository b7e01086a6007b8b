"""The workers that are killed and suspended: a short life each, in which every call says when it has begun and ended.

A worker opens the study, evaluates one to six trials, closes the study and ends. There are two kinds, which do the same:

shoestring   ``ask``, a checkpoint in ``study.checkpoint_dir`` with a report, ``tell``; at the end the log is merged, as after a
             run, and the study is closed.
optuna       RDBStorage as strong as its documentation makes it: a heartbeat every second, a grace period of one lease, and
             RetryHeartbeatStaleTrialCallback without a limit. SQLite is in WAL mode, and a minute is allowed for a lock. Its
             heartbeat works in ``study.optimize`` alone, so that is used: "ask" lasts from there, or from the end of the trial
             before, until the parameters are suggested; "tell" from the end of the objective until the callback. There are no
             checkpoints: it reports, and writes a file of its own.
"""

import contextlib
import importlib
import json
import logging
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import shoestring as st

MOMENTS = ("elsewhere", "start", "ask", "checkpoint", "tell", "close")  # by their numbers in the shared memory
LIBRARIES = ("shoestring", "optuna")
SPACE = st.Space(x=st.Float(0, 1), y=st.Float(1e-4, 1, log=True), depth=st.Int(1, 100), kind=st.Choice("a", "b", "c"))
MAX_TRIALS = 6  # of one worker
SHORTEST, LONGEST = 0.05, 0.5  # seconds of an evaluation: shorter ones would keep two cores busy, and show little but that
OPTUNA_HEARTBEAT = 1  # seconds; it takes whole ones
MODULES = "modules.json"
CELLS = 2  # of the shared memory for each worker: its moment, and since when


@dataclass
class Worker:
    """What a worker knows of its drill.

    cells   shared memory: CELLS numbers for each worker, then how long each kind of moment took last
    """

    address: str
    study: str
    folder: Path
    lease: float
    slot: int
    workers: int
    journal: int
    cells: Any
    luck: random.Random
    queued: float = 0.0

    def note(self, **line: Any) -> None:
        """One line, which the system keeps when this process is killed."""
        known = {"by": os.getpid(), "study": self.study, "at": time.monotonic()}
        os.write(self.journal, (json.dumps(known | line) + "\n").encode())

    def enter(self, moment: str) -> None:
        """The moment before is over, and this one begins."""
        now, place, queued = time.monotonic(), CELLS * self.slot, seconds_queued()
        before = MOMENTS[int(self.cells[place])]
        if before != "elsewhere":
            began = self.cells[place + 1]
            self.note(moment=before, began=began, queued=queued - self.queued)
            self.cells[CELLS * self.workers + MOMENTS.index(before)] = now - began
        self.queued, self.cells[place + 1] = queued, now
        self.cells[place] = MOMENTS.index(moment)

    @contextlib.contextmanager
    def at(self, moment: str) -> Iterator[None]:
        self.enter(moment)
        yield
        self.enter("elsewhere")

    def evaluate(self, number: int) -> float:
        time.sleep(self.luck.uniform(SHORTEST, LONGEST))
        value = random.SystemRandom().random()  # another one each time: a result can only come from its own evaluation
        self.note(evaluated=number, value=value)
        return value

    def save(self, path: Path, config: dict[str, Any]) -> None:
        """A checkpoint; what was there before must be of the same config."""
        with contextlib.suppress(FileNotFoundError):
            if json.loads(path.read_text()) != config:
                self.note(strange=str(path))
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(config))
        os.replace(unfinished, path)


def seconds_queued() -> float:
    """For how long this thread was ready to run and the machine had no core for it, since its start (Linux)."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


# -- shoestring --------------------------------------------------------------------------------------------------------


def open_ours(worker: Worker) -> st.Study:
    return st.Study(
        SPACE, st.Random(), stop=None, storage=worker.address, name=worker.study, lease=worker.lease,
        checkpoints=worker.folder / "checkpoints",
    )  # fmt: skip


def shoestring_worker(worker: Worker) -> None:
    with worker.at("start"):
        study = open_ours(worker)
    for _ in range(worker.luck.randint(1, MAX_TRIALS)):
        with worker.at("ask"):
            trial = study.ask()
        worker.note(asked=trial.number, config=dict(trial.config))
        value = worker.evaluate(trial.number)
        with worker.at("checkpoint"):
            worker.save(study.checkpoint_dir(trial) / "state", dict(trial.config))
            study.state.report(trial.number, [{"value": value, "fidelity": {}}])
        with worker.at("tell"):
            told = study.tell(trial, value)
        worker.note(told=trial.number, value=told.value)
    with worker.at("close"):
        study.state.merge_log()
        study.close()


def shoestring_trials(address: str, study: str) -> tuple[list[dict[str, Any]], int, list[str]]:
    """The stored trials, the length of the queue, and the damage that is found."""
    storage = st.open_storage(address)
    record = storage.find(study)
    found = storage.changes_since(record.id, 0) if record is not None else None
    damage = storage.check()  # type: ignore[attr-defined]
    storage.close_connections()
    if found is None:
        return [], 0, [*damage, f"there is no study {study!r}"]
    trials = [
        {
            "number": each.trial.number, "state": str(each.trial.state), "value": each.trial.value,
            "config": dict(each.trial.config), "asked_at": each.trial.asked_at,
            "given_up": each.abandoned is not None or (each.trial.error or "").startswith("its worker was lost"),
            "for_good": (each.trial.error or "").startswith("its worker was lost"),
        }
        for each in found.trials
    ]  # fmt: skip
    return trials, len(found.queue), damage


# -- Optuna ------------------------------------------------------------------------------------------------------------


def open_optuna(worker: Worker) -> Any:
    import optuna

    return optuna.create_study(
        storage=optuna_storage(worker.address, round(worker.lease)), study_name=worker.study,
        sampler=optuna.samplers.RandomSampler(), load_if_exists=True,
    )  # fmt: skip


def optuna_storage(address: str, grace: int = 60) -> Any:
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback

    lite = address.startswith("sqlite:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental
        return RDBStorage(
            address if lite else address.replace("postgresql://", "postgresql+psycopg://", 1),
            engine_kwargs={"connect_args": {"timeout": 60}} if lite else {},
            heartbeat_interval=OPTUNA_HEARTBEAT, grace_period=grace,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
        )  # fmt: skip


def optuna_worker(worker: Worker) -> None:
    with worker.at("start"):
        study = open_optuna(worker)

    def objective(trial: Any) -> float:
        config = {
            "x": trial.suggest_float("x", 0, 1), "y": trial.suggest_float("y", 1e-4, 1, log=True),
            "depth": trial.suggest_int("depth", 1, 100), "kind": trial.suggest_categorical("kind", ("a", "b", "c")),
        }  # fmt: skip
        worker.enter("elsewhere")
        worker.note(asked=trial.number, config=config)
        value = worker.evaluate(trial.number)
        with worker.at("checkpoint"):
            worker.save(worker.folder / "checkpoints" / f"{worker.study}-{trial.number}-{os.getpid()}", config)
            trial.report(value, 1)
        worker.enter("tell")
        return value

    def told(study: Any, trial: Any) -> None:
        worker.enter("ask")
        worker.note(told=trial.number, value=trial.value)

    worker.enter("ask")
    study.optimize(objective, n_trials=worker.luck.randint(1, MAX_TRIALS), callbacks=[told])
    with worker.at("close"):
        study._storage.remove_session()
        _engine(study).dispose()


def optuna_trials(address: str, study: str) -> tuple[list[dict[str, Any]], int, list[str]]:
    """Like ``shoestring_trials``. A trial that was given up is FAIL there, and another one names it as its origin."""
    import optuna

    found = optuna.load_study(storage=optuna_storage(address), study_name=study)
    states = {"COMPLETE": "done", "FAIL": "failed", "RUNNING": "running", "WAITING": "waiting", "PRUNED": "pruned"}
    trials = [
        {
            "number": trial.number, "state": states[trial.state.name], "value": trial.value, "config": dict(trial.params),
            "asked_at": trial.datetime_start.timestamp() if isinstance(trial.datetime_start, datetime) else None,
            "given_up": trial.state.name == "FAIL", "origin": (trial.system_attrs.get("retry_history") or [None])[-1],
        }
        for trial in found.get_trials(deepcopy=False)
    ]  # fmt: skip
    _engine(found).dispose()
    return trials, sum(trial["state"] == "waiting" for trial in trials), []


def _engine(study: Any) -> Any:
    return getattr(study._storage, "_backend", study._storage).engine


# -- both --------------------------------------------------------------------------------------------------------------

WORKERS: dict[str, Callable[[Worker], None]] = {"shoestring": shoestring_worker, "optuna": optuna_worker}
OPENING: dict[str, Callable[[Worker], Any]] = {"shoestring": open_ours, "optuna": open_optuna}
STORED: dict[str, Callable[[str, str], tuple[list[dict[str, Any]], int, list[str]]]] = {
    "shoestring": shoestring_trials, "optuna": optuna_trials,
}  # fmt: skip


class Said(logging.Handler):
    """What a library logs as a warning, in the journal."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(logging.WARNING)
        self.worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        self.worker.note(said=record.getMessage()[:300])


def live(worker: Worker, library: str) -> int:
    """The whole life of a worker; its exit code. What a library raises is noted with the moment of it."""
    warnings.simplefilter("ignore")
    for name in LIBRARIES:
        log = logging.getLogger(name)
        log.handlers, log.propagate = [Said(worker)], False
    try:
        WORKERS[library](worker)
    except BaseException as error:
        moment = MOMENTS[int(worker.cells[CELLS * worker.slot])]
        worker.note(error=f"{type(error).__name__}: {error}"[:600], cause=repr(error.__cause__)[:300], during=moment)
        return 1
    return 0


def prepare(library: str, address: str, study: str, folder: Path, lease: float) -> None:
    """Make the study, in a process of its own: a connection must not be there at a fork."""
    if library == "optuna" and address.startswith("sqlite:///"):
        import sqlite3

        with contextlib.closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    (folder / "checkpoints").mkdir(exist_ok=True)
    OPENING[library](_unattacked(address, study, folder, lease))


def write_modules(library: str, address: str, folder: Path, lease: float) -> None:
    """Live a worker's life on a study of its own, and write down what it has imported."""
    live(_unattacked(address, "unattacked", folder, lease), library)
    (folder / MODULES).write_text(json.dumps(sorted(sys.modules)))


def import_modules(folder: Path) -> None:
    """Import what a worker needs, before the forks: else its start would be a time of importing."""
    for name in json.loads((folder / MODULES).read_text()):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _unattacked(address: str, study: str, folder: Path, lease: float) -> Worker:
    cells = [0.0] * (CELLS + len(MOMENTS))
    return Worker(address, study, folder, lease, 0, 1, os.open(os.devnull, os.O_WRONLY), cells, random.Random(0))


def in_child(work: Callable[..., Any], *arguments: Any) -> int:
    """Start a forked process that does this and nothing else; its number. It dies with this process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _die_with_parent()
        code = work(*arguments) or 0
    finally:
        os._exit(code)


def _die_with_parent() -> None:
    """Also if it is suspended then (Linux)."""
    import ctypes
    import signal

    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def read_lines(path: Path) -> Sequence[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
