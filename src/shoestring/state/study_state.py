"""A study's book: its trials in order of number, what waits to be asked, and since when the open ones run.

The one place where a study's state lives; everything else is computed from it. It is a copy of what the storage holds, brought up
to date by ``refresh``, and everything is written to the storage first.

How a study goes on as a whole, for all that work on it: how long it took, and whether somebody wants it to end.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..data.history import History
from ..data.persistent_list import PersistentList
from ..data.trial import State, Trial
from ..data.trial_table import ROWS_PER_WRITE, TrialTable
from ..errors import Away, ConfigError, Conflict, StorageError, StudyError
from ..execution.signals import shielded
from ..space.space import Config, Space
from ..storage.base import Changes, Limits, Storage, Stored, Waiting
from ..storage.codec import many_at_once
from ..storage.heartbeat import Heartbeat, surely_dead
from ..storage.memory import MemoryStorage
from ..storage.patience import SHORT, patience
from ..storage.trial_lifecycle import lost

log = logging.getLogger("shoestring")


class StudyState:
    """Trials are written when they are opened and once more when they are closed."""

    def __init__(self, space: Space, storage: Storage, study: int, lease: float, look_again: Callable[[], object]) -> None:
        """``look_again`` is called before trials are read if somebody has revised the study's settings, its space perhaps."""
        self.space, self.storage, self.study = space, storage, study
        self.look_again = look_again
        self._seal: int | None = None  # of the settings as they were looked at last
        self.trials: PersistentList[Trial] = PersistentList()
        self.table = TrialTable(space)
        self.queue: list[Waiting] = []
        self.clock = 0
        self.run_status = RunStatus(storage, study)
        self.heart = None if isinstance(storage, MemoryStorage) else Heartbeat(storage, study, lease)
        self._reported: dict[int, float] = {}  # when a trial's reports were kept last
        self._unsure: tuple[Trial, str | None] | None = None  # a trial that may have been opened, and the token of its lease
        self._here: dict[int, float] = {}  # trials opened by this process that run -> when, by its steady clock

    def __len__(self) -> int:
        return len(self.trials)

    # -- reading -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Learn what others have written."""
        changes = self.storage.since(self.study, self.clock)
        if changes.seal != self._seal:
            self.look_again()
            self._seal = changes.seal
        self._take_all(changes.trials)
        self.clock, self.queue = changes.clock, list(changes.queue)
        self.run_status.take(changes)

    def widen(self, space: Space) -> None:
        """Go on in a space that holds the present one."""
        self.space, self.table = space, TrialTable.of(self.trials, space)

    def _take_all(self, found: Sequence[Stored]) -> None:
        with many_at_once() if len(found) > ROWS_PER_WRITE else contextlib.nullcontext():
            for start in range(0, len(found), ROWS_PER_WRITE):
                self._take_together(found[start : start + ROWS_PER_WRITE])

    def _take_together(self, found: Sequence[Stored]) -> None:
        """At once where they are the next ones, as when a study is opened; else one after the other."""
        trials, known = [stored.trial for stored in found], len(self.trials)
        if len(found) > 1 and [trial.number for trial in trials] == list(range(known, known + len(found))):
            with contextlib.suppress(ConfigError):  # one after the other tells which does not fit
                self.table.put_all(known, trials)
                self.trials.extend(trials)
                return
        for stored in found:
            self._take(stored)

    def _take(self, stored: Stored) -> Trial:
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
        if trial.finished:
            self.let_go(trial.number)
        return trial

    def _own(self, stored: Stored, written: Trial) -> Trial:
        """What this process has just written: where nobody else has written since, there is no need to read it again."""
        if max(filter(None, stored.clocks)) == self.clock + 1 and stored.trial.state is written.state:
            self.clock += 1
        return self._take(stored)

    def history(self, maximize: bool) -> History:
        """A view for the optimizer's own use: it shares the records' dicts."""
        return History(PersistentList(self.trials), self.space, maximize, self.table, self.table.version)

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
        seconds: float | None = None,
    ) -> Trial:
        """Raises Behind when somebody else was quicker. ``seconds``: the lease, if it is not the usual one."""
        trial = self.draft(config, suggestion, basis)
        lease = None if self.heart is None else self.heart.lease(seconds)
        token = None if lease is None or seconds is not None else lease.token  # of a lease that this process renews
        with shielded():  # an interruption in between would leave a trial that nobody knows to be his
            rest: dict[str, Any] = {"queued": queued, "at_target": self.at_target(trial), "expected": suggestion.get("cost")}
            try:
                stored = self.storage.write(self.study, trial, lease=lease, limits=limits, **rest)
            except Away:
                self._unsure = trial, token
                raise
            self._hold(trial, token)
            self.queue = [each for each in self.queue if each.id != queued]
            return self._own(stored, trial)

    def _hold(self, trial: Trial, token: str | None) -> None:
        if self.heart is not None and token is not None:
            self.heart.hold(trial.number, token)
        self._here[trial.number] = time.perf_counter()

    def found_again(self) -> list[Trial]:
        """The trial that this process wanted to open when the storage went away, if it was written after all; call once."""
        if self._unsure is None:
            return []
        (trial, token), self._unsure = self._unsure, None
        there = self.trials[trial.number] if trial.number < len(self.trials) else None
        if there is None or there.state is not State.RUNNING or there.asked_at != trial.asked_at:
            return []
        self._hold(there, token)
        return [there]

    def write(self, trial: Trial) -> Trial:
        """A trial that was not asked here: finished elsewhere, or read from a file. It gets the next number."""
        while True:
            try:
                numbered = replace(trial, number=len(self.trials))
                return self._own(self.storage.write(self.study, numbered, at_target=self.at_target(trial)), numbered)
            except Conflict:
                self.refresh()

    def close(self, trial: Trial, again: bool = False) -> Trial:
        """The trial as it is kept: if another result was there before, that one. ``again``: have its config asked first."""
        token = None if self.heart is None else self.heart.let_go(trial.number)
        try:
            stored = self.storage.close(self.study, trial, at_target=self.at_target(trial), again=again)
        except BaseException:
            if self.heart is not None and token is not None:
                self.heart.hold(trial.number, token)  # until it can be written, it is still ours
            raise
        kept = self._own(stored, trial)
        if again:
            self.refresh()
        return kept

    def enqueue(self, config: Config, suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        self.storage.enqueue(self.study, config, suggestion, first=first)
        self.refresh()

    def give_back(self, trial: Trial, cost: float | None, reports: Sequence[Mapping[str, Any]] = (), died: bool = False) -> None:
        """Abandon an open trial and have its config asked first, unless too many workers ``died`` of it."""
        seconds, kept = self.seconds_open(trial), tuple(reports) or trial.reports
        ended = trial.finish(State.ABANDONED, seconds=seconds, cost=cost, reports=kept)
        ended = lost(ended) if died else ended
        self.close(ended, again=ended.state is State.ABANDONED)

    def report(self, number: int, reports: Sequence[Mapping[str, Any]]) -> None:
        """Keep what a trial of this process says along the way, should it be lost; once a second at most.

        It is kept again with the result, so that a storage that is away for a moment is no reason for the trial to fail.
        """
        token = None if self.heart is None else self.heart.token(number)
        if token is not None and time.perf_counter() - self._reported.get(number, -1.0) >= 1.0:
            self._reported[number] = time.perf_counter()
            try:
                with patience(SHORT):
                    self.storage.report(self.study, number, token, reports)
            except StorageError as error:
                say = log.debug if isinstance(error, Away) else log.warning  # of an outage the run speaks as a whole
                say("what trial %d reports could not be kept for now: %s", number, error)

    def reap(self, price: float | None) -> None:
        """Abandon the trials of workers that are gone."""
        if self.heart is not None and not self.heart.forgives:
            self.heart.catch_up()
            self.storage.reap(self.study, price)

    def after_outage(self, seconds: float) -> None:
        """The storage answers again: leases may have ended since nobody could renew them."""
        if self.heart is not None:
            self.heart.after_outage(seconds)

    # -- what runs ---------------------------------------------------------------------------------------------------

    def at_target(self, trial: Trial) -> bool:
        return all(trial.config[name] == goal for name, goal in self.space.target.items())

    def let_go(self, number: int) -> None:
        """It is no longer in this process's hands."""
        self._here.pop(number, None)
        self._reported.pop(number, None)
        if self.heart is not None:
            self.heart.let_go(number)

    def seconds_open(self, trial: Trial) -> float | None:
        """How long ago it was asked: by this process's steady clock, or else by the time of day."""
        if trial.number in self._here:
            return time.perf_counter() - self._here[trial.number]
        return None if trial.asked_at is None else max(0.0, time.time() - trial.asked_at)

    @property
    def here(self) -> set[int]:
        """The trials that run and were opened by this process."""
        return set(self._here)

    def orphans(self) -> list[Trial]:
        """Open trials that nobody is evaluating: of a worker that has died here, or under no lease and not of this process."""
        running = [trial for trial in self.trials if trial.state is State.RUNNING and trial.number not in self._here]
        if self.heart is None:
            return running
        holders = self.storage.holders(self.study)
        return [trial for trial in running if surely_dead(holders.get(trial.number, ""))]


class RunStatus:
    """Of one study, as this process knows it.

    halted  why an end was asked for, None if that is over;   halts  how often that was,
    heard   and how often before the present run, which these do not concern
    """

    def __init__(self, storage: Storage, study: int) -> None:
        self.storage, self.study = storage, study
        self.halted: str | None = None
        self.halts = self.heard = 0
        self._stored, self._reached = 0.0, 0.0  # seconds as they are stored, and as this process knows them

    def take(self, changes: Changes) -> None:
        """What others have written."""
        self.halted, self.halts, self._stored = changes.halted, changes.halts, changes.seconds

    @property
    def seconds(self) -> float:
        """Of wall-clock time that the study took so far."""
        return max(self._stored, self._reached)

    def took(self, seconds: float) -> None:
        """The study took so long, or longer if others say so. Written down once it is a second more than what is stored.

        A storage that does not answer is told later: this is bookkeeping, and no reason to wait or to fail.
        """
        self._reached = max(self._reached, seconds)
        if self._reached >= self._stored + 1.0:
            with contextlib.suppress(StorageError), patience(SHORT):
                self.save_seconds()

    def save_seconds(self) -> None:
        """Of several that work at the same time, the one that has counted most is right: so this can be done twice."""
        reached = self._reached
        if reached > self._stored:
            self.storage.revise(self.study, seconds=reached)
            self._stored = reached

    def halt(self, reason: str) -> None:
        """Have all that work on the study stop, the run of this process first."""
        self.storage.revise(self.study, halted=reason)
        self.halted, self.halts = reason, max(self.halts, self.heard + 1)

    def begin_to_listen(self) -> None:
        """A run begins: stops that were asked for before are over. Others may have to hear of them yet, so the count stays."""
        self.heard = self.halts
        if self.halted is not None:
            self.storage.revise(self.study, halted=None)
            self.halted = None

    @property
    def called_off(self) -> str | None:
        """Why the present run is to end; None if nobody wants that."""
        return (self.halted or "halted by request") if self.halts > self.heard else None
