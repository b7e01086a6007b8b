"""The state of a study: its settings, its spaces, its trials in order of number, the queue, and which trials run here.

This is the one place where a study's state lives; everything else is computed from it. It is a copy of what the storage holds,
brought up to date by ``refresh``. Everything is written to the storage first.

Several processes may share a study. Each has a state of its own and learns from the storage what the others have written: trials,
settings, a wider space, a request to stop.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .._format import duration
from ..budget import Budget
from ..data.history import History
from ..data.outcome import last_reported_cost
from ..data.persistent_list import PersistentList
from ..data.training_run import RUN_KEYS, begin_trial
from ..data.trial import State, Trial
from ..data.trial_table import ROWS_PER_WRITE, TrialTable
from ..errors import Away, BudgetError, ConfigError, Conflict, StorageError, StudyError
from ..execution.signals import shielded
from ..space.space import Config, Space
from ..storage.base import Changes, Limits, QueuedConfig, Storage, StoredTrial, StudyRecord
from ..storage.heartbeat import Heartbeat, surely_dead
from ..storage.memory import MemoryStorage
from ..storage.transactions import SHORT_WAIT_SECONDS, hold_limit, wait_limit
from ..storage.trial_lifecycle import count_lost_worker
from .forked_study import InUseAtFork, StudyLock, call_after_fork

log = logging.getLogger("shoestring")

Direction = Literal["minimize", "maximize"]
SECONDS_BETWEEN_REPORTS = 1.0  # a trial's reports are stored at most this often
MAX_THREAD_SECONDS = 600.0  # that one thread waits for another one of the same process: many times what a suggestion takes


@dataclass
class StudySettings:
    """What a study was made with, shared by all processes that work on it.

    unit      of the trials' costs;   per_hour  what an hour costs in it, None if that is not known
    budget    that of the last run, or the one that ``ask`` plans with
    code      the texts of method, stop, model, cost_model and subset; None where there is no such text
    id        the identity of the study, see ``persistence.study_id``; empty if it is stored without one
    """

    direction: Direction
    seed: int
    initial: int
    unit: str = "s"
    per_hour: float | None = None
    budget: Budget | None = None
    code: Mapping[str, str | None] = field(default_factory=dict)
    id: str = ""

    @property
    def maximize(self) -> bool:
        return self.direction == "maximize"

    @property
    def price_of_a_second(self) -> float:
        """What a second counts as in the study's unit."""
        return 1.0 if self.per_hour is None else self.per_hour / 3600.0

    @property
    def time_has_a_price(self) -> bool:
        """Whether seconds can be charged in the study's unit."""
        return self.unit == "s" or self.per_hour is not None


class RunStatus:
    """How long a study took so far, and whether a stop was requested, for all processes that work on it.

    halted  why a stop was requested, None if that is over;   halts  how many requests there were,
    heard   and how many of them came before the present run, which they do not concern
    """

    def __init__(self, storage: Storage, study: int) -> None:
        self.storage, self.study = storage, study
        self.halted: str | None = None
        self.halts = self.heard = 0
        self._stored, self._reached = 0.0, 0.0  # seconds as they are stored, and as this process knows them

    def update(self, changes: Changes) -> None:
        """Take over what other processes have written."""
        self.halted, self.halts, self._stored = changes.halted, changes.halts, changes.seconds

    @property
    def seconds(self) -> float:
        """Wall-clock seconds that the study took so far."""
        return max(self._stored, self._reached)

    def set_seconds(self, seconds: float) -> None:
        """The study took so long, or longer if another process says so. Stored once it is a second more than what is stored.

        A storage that does not answer is updated later: this is bookkeeping, and no reason to wait or to fail.
        """
        self._reached = max(self._reached, seconds)
        if self._reached >= self._stored + 1.0:
            with contextlib.suppress(StorageError), wait_limit(SHORT_WAIT_SECONDS):
                self.save_seconds()

    def save_seconds(self) -> None:
        """Store the seconds. Of several processes at work, the one that has counted most is right: so this can be repeated."""
        reached = self._reached
        if reached > self._stored:
            self.storage.revise(self.study, seconds=reached)
            self._stored = reached

    def request_stop(self, reason: str) -> None:
        """Ask all processes that work on the study to stop, this one first."""
        self.storage.revise(self.study, halted=reason)
        self.halted, self.halts = reason, max(self.halts, self.heard + 1)

    def start_run(self) -> None:
        """A run begins: earlier requests are over. Other processes may not have seen them yet, so the count stays."""
        self.heard = self.halts
        if self.halted is not None:
            self.storage.revise(self.study, halted=None)
            self.halted = None

    @property
    def stop_reason(self) -> str | None:
        """Why the present run has to end; None if no stop was requested."""
        return (self.halted or "halted by request") if self.halts > self.heard else None


class StudyState:
    """One study as this process knows it. Trials are written when they are opened, and once more when they are closed.

    lock         held while the state changes or a suggestion is computed
    spaces       all spaces that the study had, one after the other: it may have been extended; the last is that of today
    heartbeat    renews the leases of this process's trials; None in memory, where no other process can take them
    """

    def __init__(self, storage: Storage, study: int, name: str, space: Space, settings: StudySettings, *, lease: float) -> None:
        self.storage, self.study, self.name = storage, study, name
        self.settings, self.spaces = settings, [space]
        self.lock: StudyLock = threading.RLock()
        self.trials: PersistentList[Trial] = PersistentList()
        self.table = TrialTable(space)
        self.queue: list[QueuedConfig] = []
        self._fitting: dict[int, tuple[Space, bool]] = {}  # queued configs that were compared with a space, by id
        self.clock = 0  # of the storage: the last change that this process knows
        self.run_status = RunStatus(storage, study)
        self.heartbeat = None if isinstance(storage, MemoryStorage) else Heartbeat(storage, study, lease)
        self._settings_version: int | None = None  # of the settings that were read last
        self._asking = 0  # depth of ``asking``
        self._asks = 0  # how many times it was entered
        self._reported: dict[int, float] = {}  # when a trial's reports were stored last
        self.lent: dict[int, str] = {}  # tokens of leases that outlive this process, for the client that renews them
        self._unconfirmed: tuple[Trial, str | None] | None = None  # a trial that may have been opened, and its lease's token
        self._changes = 0  # raised after each change of trials and table: a reader without the lock keeps no half of one
        self._history: History | None = None  # the last view, and what it is a view of
        self._history_key: tuple[int, Space, bool] | None = None
        self.max_retries: int | None = None  # of configs whose workers are lost, as the present run says; None: the default
        self.holds_checkpoint: Callable[[Trial], bool] = lambda trial: True  # whether a trial's files are still there
        self._own: dict[int, float] = {}  # running trials that this process opened -> when, by its steady clock
        call_after_fork(self)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def space(self) -> Space:
        return self.spaces[-1]

    # -- reading -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Learn what other processes have written."""
        changes = self.storage.changes_since(self.study, self.clock)
        if changes.settings_hash != self._settings_version:
            self.reload_settings()
            self._settings_version = changes.settings_hash
        for start in range(0, len(changes.trials), ROWS_PER_WRITE):
            self._insert(changes.trials[start : start + ROWS_PER_WRITE])
        self.clock, self.queue = changes.clock, [each for each in changes.queue if self._fits(each)]
        self.run_status.update(changes)

    def _fits(self, queued: QueuedConfig) -> bool:
        """Whether a queued config is one of this space. One that is not, as from another program, stays in the queue unused.

        As a trial it could not be read again: the whole study could not be opened any more.
        """
        space, known = self._fitting.get(queued.id, (None, False))
        if space is self.space:
            return known
        try:
            if queued.suggestion.get("partial"):
                self.space.complete(queued.config, self.space.decode(np.full(len(self.space), 0.5)))
            else:
                self.space.check(queued.config)
            fits = True
        except ConfigError as error:
            fits = False
            unfit = "queued config %d of study %r does not fit its space, and is not evaluated: %s"
            log.warning(unfit, queued.id, self.name, error)
        self._fitting[queued.id] = self.space, fits
        return fits

    def reload_settings(self) -> None:
        """Take over settings that another process has changed, and its space if that was extended."""
        found = self.storage.find(self.name)
        if found is None:
            return
        self.settings.unit, self.settings.per_hour = found.settings["unit"], found.settings["per_hour"]
        if found.trials:
            self.settings.direction = found.settings["direction"]
        *earlier, latest = spaces_of(found)
        if list(latest.items()) == list(self.space.items()):  # another order of the parameters would give other suggestions
            self.spaces = [*earlier, self.space]
            return
        if dict(latest) != dict(self.space):
            log.info("the space of study %r was extended by another process; this one goes on in it", self.name)
        self.spaces, self.table = [*earlier, latest], TrialTable.of(self.trials, latest)
        self._changes += 1

    def _insert(self, found: Sequence[StoredTrial]) -> None:
        """All at once where they are the next ones, as when a study is opened; else one after the other."""
        trials, known = [stored.trial for stored in found], len(self.trials)
        if len(found) > 1 and [trial.number for trial in trials] == list(range(known, known + len(found))):
            with contextlib.suppress(ConfigError):  # one after the other shows which does not fit
                self.table.put_all(known, trials)
                self.trials.extend(trials)
                self._changes += 1
                return
        for stored in found:
            self._insert_one(stored)

    def _insert_one(self, stored: StoredTrial) -> Trial:
        trial = stored.trial
        try:
            self.table.put(trial.number, trial)  # first, so that nothing is known of a trial that does not fit
        except ConfigError as error:
            wider = f"trial {trial.number} is of a wider space ({error})"
            raise StudyError(f"{wider}: the study was extended; open it again") from None
        if trial.number == len(self.trials):
            self.trials.append(trial)
        else:
            self.trials[trial.number] = trial
        self._changes += 1
        if trial.finished:
            self.release(trial.number)
        return trial

    def _written(self, stored: StoredTrial, written: Trial) -> Trial:
        """A trial that this process has just written: read again only if another process has written since."""
        last = max(stored.opened, stored.abandoned or 0, stored.closed or 0)
        if last == self.clock + 1 and stored.trial.state is written.state:
            self.clock += 1
        return self._insert_one(stored)

    @property
    def history(self) -> History:
        """The trials that this process knows of, shared with the study: to look at, not to change."""
        key = self._changes, self.space, self.settings.maximize
        if self._history is None or self._history_key != key:
            view = History(PersistentList(self.trials), self.space, self.settings.maximize, self.table, self.table.version)
            self._history, self._history_key = view, key
        return self._history

    def detached_history(self) -> History:
        """A copy of the trials that this process knows of."""
        return History(tuple(trial.detached() for trial in self.trials), self.space, self.settings.maximize)

    def at_target(self, trial: Trial) -> bool:
        """Whether a trial is at the target fidelity."""
        return all(trial.config[name] == goal for name, goal in self.space.target.items())

    # -- writing -----------------------------------------------------------------------------------------------------

    def draft(self, config: Config, suggestion: Mapping[str, Any], basis: Mapping[str, Any] | None = None) -> Trial:
        """The next trial, not yet written."""
        fidelity = {name: config[name] for name in self.space.fidelities}
        number, now = len(self.trials), time.time()
        return Trial(number, config, fidelity=fidelity, suggestion=suggestion, asked_at=now, basis=basis or {})

    def open(
        self,
        config: Config,
        suggestion: Mapping[str, Any],
        *,
        basis: Mapping[str, Any] | None = None,
        queued: int | None = None,
        limits: Limits | None = None,
        lease: float | None = None,
    ) -> Trial:
        """Write a new running trial. Raises Conflict when another process was faster. ``lease``: if it is not the usual one."""
        if suggestion.get("max_retries") != self.max_retries:  # kept with the trial, for whichever process finds its worker lost
            suggestion = {name: value for name, value in suggestion.items() if name != "max_retries"}
            suggestion |= {} if self.max_retries is None else {"max_retries": self.max_retries}
        if self.space.resumable:
            config, suggestion = self._in_run(config, suggestion)
        trial = self.draft(config, suggestion, basis)
        granted = None if self.heartbeat is None else self.heartbeat.lease(lease)
        token = None if granted is None or lease is not None else granted.token  # of a lease that this process renews
        if limits is not None and limits.trials is not None and self.history.trials_added:
            limits = replace(limits, trials=limits.trials + self.history.trials_added)  # the storage counts all trials
        with shielded():  # an interruption in between would leave a trial that no process knows as its own
            rest: dict[str, Any] = {"queued": queued, "at_target": self.at_target(trial), "expected": suggestion.get("cost")}
            try:
                stored = self.storage.write(self.study, trial, lease=granted, limits=limits, **rest)
            except Away:
                self._unconfirmed = trial, token
                raise
            self._hold(trial, token)
            if granted is not None and token is None:
                self.lent[trial.number] = granted.token
            self.queue = [each for each in self.queue if each.id != queued]
            return self._written(stored, trial)

    def _in_run(self, config: Config, suggestion: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
        """The config and the suggestion of the next trial, which says what the trial goes on from (see ``training_run``).

        It is decided under the lock for asking, from all trials: so of two workers, one goes on with a run.
        """
        lost = len(self.table.lost)
        config, facts = begin_trial(config, len(self.trials), self.trials, self.table, self.holds_checkpoint)
        if len(self.table.lost) > lost:
            gone = "the checkpoint of this config is gone, so trial %d begins from the start and pays in full"
            log.warning(gone, len(self.trials))
        return config, {name: value for name, value in suggestion.items() if name not in RUN_KEYS} | facts

    def forget_checkpoints(self, rows: Sequence[int]) -> None:
        """The files of these trials are gone: no trial can go on from them."""
        if not self.table.lost.issuperset(rows):
            self.table.lost.update(rows)
            self.table.version += 1
            self._changes += 1

    def _hold(self, trial: Trial, token: str | None) -> None:
        if self.heartbeat is not None and token is not None:
            self.heartbeat.hold(trial.number, token)
        self._own[trial.number] = time.perf_counter()

    def recover_unconfirmed(self) -> list[Trial]:
        """The trial that this process was opening when the storage went away, if it was written after all; call once."""
        if self._unconfirmed is None:
            return []
        (trial, token), self._unconfirmed = self._unconfirmed, None
        there = self.trials[trial.number] if trial.number < len(self.trials) else None
        if there is None or there.state is not State.RUNNING or there.asked_at != trial.asked_at:
            return []
        self._hold(there, token)
        return [there]

    def add(self, trial: Trial) -> Trial:
        """Write a trial that was not asked here: finished elsewhere, or read from a file. It gets the next number."""
        while True:
            try:
                numbered = replace(trial, number=len(self.trials))
                return self._written(self.storage.write(self.study, numbered, at_target=self.at_target(trial)), numbered)
            except Conflict:
                self.refresh()

    def close(self, trial: Trial, again: bool = False) -> Trial:
        """Write a trial's result; returns what is stored: if another result was there before, that one.

        ``again``: have its config asked first.
        """
        token = None if self.heartbeat is None else self.heartbeat.let_go(trial.number)
        try:
            stored = self.storage.close(self.study, trial, at_target=self.at_target(trial), again=again)
        except BaseException:
            if self.heartbeat is not None and token is not None:
                self.heartbeat.hold(trial.number, token)  # until it can be written, it is still ours
            raise
        kept = self._written(stored, trial)
        if again:
            self.refresh()
        return kept

    def enqueue(self, config: Config, suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        """Have a config asked after those that wait, or before them."""
        self.storage.enqueue(self.study, config, suggestion, first=first)
        self.refresh()

    def give_back(self, trial: Trial, reports: Sequence[Mapping[str, Any]] = (), died: bool = False) -> None:
        """Abandon a running trial, charge it, and have its config asked first, unless too many workers ``died`` of it.

        It has cost what its last report says, or else its seconds.
        """
        seconds, kept = self.seconds_open(trial), tuple(reports) or trial.reports
        cost = last_reported_cost(kept)
        if cost is None and seconds is not None and self.settings.time_has_a_price:
            cost = min(seconds * self.settings.price_of_a_second, sys.float_info.max)
        ended = trial.finish(State.ABANDONED, seconds=seconds, cost=cost, reports=kept)
        ended = count_lost_worker(ended, self.max_retries) if died else ended
        self.close(ended, again=ended.state is State.ABANDONED)

    def report(self, number: int, reports: Sequence[Mapping[str, Any]]) -> None:
        """Store the intermediate values of a trial of this process, should the trial be lost; once a second at most.

        They are stored again with the result, so a storage that is away for a moment is no reason for the trial to fail.
        """
        token = None if self.heartbeat is None else self.heartbeat.token(number)
        if token is None or time.perf_counter() - self._reported.get(number, -SECONDS_BETWEEN_REPORTS) < SECONDS_BETWEEN_REPORTS:
            return
        self._reported[number] = time.perf_counter()
        try:
            with wait_limit(SHORT_WAIT_SECONDS):
                self.storage.report(self.study, number, token, reports)
        except StorageError as error:
            say = log.debug if isinstance(error, Away) else log.warning  # the run itself speaks of an outage
            say("what trial %d reports could not be stored for now: %s", number, error)

    def save_settings(self, settings: Mapping[str, Any]) -> None:
        """Store settings that have changed; what other processes keep beside them stays."""
        self.storage.revise(self.study, dict(settings))

    def settle_unit(self, budget: Budget) -> None:
        """The budget's unit becomes the study's, unless costs in another one are there already."""
        settings = self.settings
        settings.per_hour = budget.per_hour if budget.per_hour is not None else settings.per_hour
        if budget.unit is None or budget.unit == settings.unit:
            return
        if settings.unit != "s" or any(trial.cost is not None for trial in self.trials):
            raise BudgetError(
                f"this study counts cost in {settings.unit}, not in {budget.unit}; "
                f'give st.Budget(cost=..., unit="{settings.unit}"), or st.Budget(seconds=...) for wall-clock time, '
                f"or begin the study with Study(unit={budget.unit!r})"
            )
        settings.unit = budget.unit

    # -- leases ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """For one thread and process at a time: the state is up to date, trials of lost workers are back in the queue.

        Inside, each suggestion sees those before it. Nested use costs nothing and does not read again.
        """
        self._wait_for_other_threads()
        try:
            if self._asking:
                yield
                return
            self._asks += 1
            lease = contextlib.nullcontext() if self.heartbeat is None else hold_limit(self.heartbeat.seconds)
            with lease, self.storage.ask_lock(self.study):
                self.reap()
                self.refresh()
                self._asking += 1
                try:
                    yield
                finally:
                    self._asking -= 1
        finally:
            self.lock.release()

    def _wait_for_other_threads(self) -> None:
        """Take the lock. A StudyError if one other thread has kept it for too long: the study cannot go on without it."""
        seen = None
        while not self.lock.acquire(timeout=MAX_THREAD_SECONDS):
            if seen == self._asks:
                since = f"for {duration(MAX_THREAD_SECONDS)}"
                long = f"another thread of this process has been at work on study {self.name!r} {since}"
                raise StudyError(f"{long}; end what it does, perhaps a model or a storage of your own, or start a new process")
            seen = self._asks

    def reap(self) -> None:
        """Abandon the trials of lost workers, charge them, and have them asked again."""
        if self.heartbeat is not None and not self.heartbeat.in_grace_period:
            self.heartbeat.renew_if_overdue()
            price = self.settings.price_of_a_second if self.settings.time_has_a_price else None
            self.storage.reap(self.study, price)

    def merge_log(self) -> None:
        """At the end of a run: a SQLite file is complete without its log. Other storages have no such method, and need none."""
        merge = getattr(self.storage, "merge_log", None)
        if merge is not None:
            with contextlib.suppress(StorageError):  # what was told is on the disk; the log is merged later
                merge()

    def after_outage(self, seconds: float) -> None:
        """The storage answers again: leases may have ended since they could not be renewed."""
        if self.heartbeat is not None:
            self.heartbeat.after_outage(seconds)

    def close_leases(self) -> None:
        """Renew no lease any more: the trials of this process are asked again when theirs end."""
        if self.heartbeat is not None:
            self.heartbeat.close()

    def release(self, number: int) -> None:
        """This process no longer works on the trial."""
        self._own.pop(number, None)
        self._reported.pop(number, None)
        if self.heartbeat is not None:
            self.heartbeat.let_go(number)

    def hand_out(self, number: int) -> None:
        """A trial of a batch can begin now, and not when the batch was asked."""
        if number in self._own:
            self._own[number] = time.perf_counter()

    def seconds_open(self, trial: Trial) -> float | None:
        """How long ago it was asked: by this process's steady clock, or else by the time of day."""
        if trial.number in self._own:
            return time.perf_counter() - self._own[trial.number]
        return None if trial.asked_at is None else max(0.0, time.time() - trial.asked_at)

    @property
    def own_running(self) -> set[int]:
        """The running trials that this process opened."""
        return set(self._own)

    def orphans(self) -> list[Trial]:
        """Running trials without a worker: of one that has died on this machine, or under no lease and not of this process."""
        running = [trial for trial in self.trials if trial.state is State.RUNNING and trial.number not in self._own]
        if self.heartbeat is None:
            return running
        holders = self.storage.holders(self.study)
        return [trial for trial in running if surely_dead(holders.get(trial.number, ""))]

    def after_fork(self) -> None:
        """In the child of a fork: a lock that another thread held would stay locked, and what it was changing half changed."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock = InUseAtFork(self.name)
        if self.heartbeat is not None:
            self._own = {}  # they are the parent's


def spaces_of(record: StudyRecord) -> list[Space]:
    """All spaces of a study, in order: the last is the present one."""
    return [Space.from_json(each) for each in (*record.settings.get("earlier", []), record.settings["space"])]
