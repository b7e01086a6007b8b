"""Random sequences of all calls, in memory and in a file, against a model that is too simple to be wrong."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shoestring.data.trial import State, Trial
from shoestring.errors import Conflict, OverBudget
from shoestring.storage import Lease, Limits, StoredTrial, trial_lifecycle
from tests.storage.places import Place

costs = st.integers(1, 40).map(lambda quarters: quarters / 4)  # sums of these are exact
numbers = st.integers(0, 8)
LEASE_SECONDS = 10.0
MAX_LOST_WORKERS = 2  # so that it happens in a short sequence


@dataclass
class Entry:
    trial: Trial
    opened: int
    abandoned: int | None = None
    closed: int | None = None
    token: str | None = None
    until: float | None = None
    asked: float = 0.0
    expected: float = 0.0


@dataclass
class Model:
    now: float
    clock: int = 0
    entries: list[Entry] = field(default_factory=list)
    queue: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)  # config, suggestion

    def runs(self, number: int) -> bool:
        return number < len(self.entries) and self.entries[number].trial.state is State.RUNNING

    def room(self, limits: Limits) -> bool:
        alive = [entry for entry in self.entries if entry.trial.state is not State.ABANDONED]
        spent = sum(entry.trial.cost or 0.0 for entry in self.entries)
        reserved = sum(entry.expected for entry in self.entries if entry.trial.state is State.RUNNING)
        return (limits.trials is None or len(alive) < limits.trials) and (limits.cost is None or spent + reserved < limits.cost)

    def close(self, trial: Trial) -> bool:
        entry = self.entries[trial.number]
        workers_lost = entry.trial.state is State.FAILED and entry.trial.suggestion.get("lost", 0) >= MAX_LOST_WORKERS
        if entry.trial.state in (State.DONE, State.FAILED) and not (workers_lost and entry.abandoned is None):
            return False
        if entry.trial.state is not State.RUNNING and trial.state is State.ABANDONED:
            return False
        if workers_lost:
            entry.abandoned = entry.closed
        entry.trial = trial
        if trial.state is State.ABANDONED:
            entry.abandoned = self.clock + 1
        else:
            entry.closed = self.clock + 1
        return True


class LifeCycle(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(trial_lifecycle, "MAX_LOST_WORKERS", MAX_LOST_WORKERS)
        self.places = [Place("memory", "memory://"), Place("sqlite", f"sqlite:///{self.folder}/tune.db")]
        for place in self.places:
            place.use_fake_clock(self.patch)
        self.storages = [place.open() for place in self.places]
        self.model = Model(self.places[0].now)
        self.tokens = 0
        self.views = [{} for _ in self.storages]  # what a process knows that reads the changes now and then
        self.seen = [0 for _ in self.storages]
        for storage in self.storages:
            assert storage.begin("study", {})[1]

    def teardown(self):
        self.patch.undo()
        self.places[1].close()
        shutil.rmtree(self.folder)

    def both(self, call):
        """The same answer, or the same kind of error, from both."""
        answers = []
        for storage in self.storages:
            try:
                answers.append(call(storage))
            except (Conflict, OverBudget) as error:
                answers.append(type(error))
        assert answers[0] == answers[1]
        return answers[0]

    @rule(first=st.booleans(), x=st.integers(0, 9))
    def enqueue(self, first, x):
        self.both(lambda storage: storage.enqueue(1, {"x": x}, {"by": "you"}, first=first))
        self.model.queue.insert(0 if first else len(self.model.queue), ({"x": x}, {"by": "you"}))
        self.model.clock += 1

    @rule(
        ahead=st.sampled_from([0, 0, 0, 0, 1, -1]),
        queued=st.booleans(),
        leased=st.booleans(),
        expected=st.none() | costs,
        limits=st.builds(Limits, st.none() | st.integers(0, 6), st.none() | costs.map(lambda cost: 4 * cost)),
    )
    def write(self, ahead, queued, leased, expected, limits):
        model, number = self.model, len(self.model.entries) + ahead
        self.tokens += 1
        mine = Lease("me", f"token {self.tokens}", LEASE_SECONDS) if leased else None
        queue = self.storages[0].changes_since(1, 0).queue
        entry = queue[0].id if queued and queue else None
        config, suggestion = (dict(queue[0].config), dict(queue[0].suggestion)) if entry else ({"x": -1}, {})
        trial = Trial(number, config, suggestion=suggestion)
        answer = self.both(
            lambda storage: storage.write(1, trial, lease=mine, queued=entry, expected=expected, limits=limits)
        )
        if ahead:
            assert answer is Conflict
        elif not model.room(limits):
            assert answer is OverBudget
        else:
            model.clock += 1
            until = model.now + LEASE_SECONDS if mine else None
            token = mine.token if mine else None
            model.entries.append(Entry(trial, model.clock, None, None, token, until, model.now, expected or 0.0))
            del model.queue[: entry is not None]
            assert answer == StoredTrial(trial, model.clock)

    @rule(state=st.sampled_from([State.DONE, State.FAILED, State.ABANDONED]), cost=costs)
    def write_what_ended_elsewhere(self, state, cost):
        trial = Trial(len(self.model.entries), {"x": 0}).finish(state, cost=cost, value=cost if state is State.DONE else None)
        self.both(lambda storage: storage.write(1, trial))
        self.model.clock += 1
        entry = Entry(trial, self.model.clock, asked=self.model.now)
        setattr(entry, "abandoned" if state is State.ABANDONED else "closed", self.model.clock)
        self.model.entries.append(entry)

    @precondition(lambda self: self.model.entries)
    @rule(
        number=numbers,
        state=st.sampled_from([State.DONE, State.DONE, State.FAILED, State.ABANDONED]),
        cost=st.none() | costs,
        value=st.sampled_from([-1.5, 0.0, -0.0, 5e-324, 3.25]),
        again=st.booleans(),
    )
    def close(self, number, state, cost, value, again):
        before = self.model.entries[number % len(self.model.entries)].trial
        trial = Trial(before.number, before.config, suggestion=before.suggestion)
        trial = trial.finish(state, cost=cost, value=value if state is State.DONE else None)
        answer = self.both(lambda storage: storage.close(1, trial, again=again))
        if self.model.close(trial):
            self.model.clock += 1
            if again:
                self.model.queue.insert(0, (trial.config, trial.suggestion))
        assert answer.trial == self.model.entries[trial.number].trial

    @rule(number=numbers, right=st.booleans(), value=costs)
    def report(self, number, right, value):
        owns = right and self.model.runs(number) and self.model.entries[number].token is not None
        token = self.model.entries[number].token if owns else "wrong"
        reports = [{"value": value, "fidelity": {}, "cost": None}]
        assert self.both(lambda storage: storage.report(1, number, token, reports)) == owns
        if owns:
            entry = self.model.entries[number]
            entry.trial = Trial(number, entry.trial.config, suggestion=entry.trial.suggestion, reports=tuple(reports))
            self.model.clock += 1

    @rule(chosen=st.sets(numbers, max_size=4), wrong=st.sets(numbers, max_size=1))
    def renew(self, chosen, wrong):
        entries = self.model.entries
        held = {n: entries[n].token if n < len(entries) and n not in wrong and entries[n].token else "wrong" for n in chosen}
        kept = {n for n, token in held.items() if token != "wrong" and self.model.runs(n)}
        assert self.both(lambda storage: storage.renew(1, held, LEASE_SECONDS)) == chosen - kept
        for number in kept:
            entries[number].until = self.model.now + LEASE_SECONDS

    @rule(seconds=st.sampled_from([0.25, 4.0, 10.5]))
    def wait(self, seconds):
        for place in self.places:
            place.wait(seconds)
        self.model.now += seconds

    @rule(price=st.sampled_from([None, 0.5]))
    def reap(self, price):
        model = self.model
        late = [entry for entry in model.entries if model.runs(entry.trial.number) and (entry.until or model.now) < model.now]
        answer = self.both(lambda storage: storage.reap(1, price))
        for entry in late:
            seconds = entry.until - entry.asked  # the length of the lease, not the time until the call
            cost = None if price is None else seconds * price
            lost = entry.trial.suggestion.get("lost", 0) + 1
            suggestion = {**entry.trial.suggestion, "lost": lost}
            gone = entry.trial.finish(
                State.ABANDONED, seconds=seconds, cost=cost, censored=cost is not None, suggestion=suggestion
            )
            if lost >= MAX_LOST_WORKERS:
                gone = gone.finish(State.FAILED, error=f"its worker was lost {lost} times; perhaps this config is the cause")
            assert model.close(gone)
        again = [entry.trial for entry in late if entry.trial.state is State.ABANDONED]
        model.queue[:0] = [(trial.config, trial.suggestion) for trial in again]
        model.clock += bool(late)
        assert answer == [entry.trial for entry in late]

    @rule(which=st.integers(0, 1))
    def look(self, which):
        """What is new, added to what was known before, is all there is."""
        changes = self.storages[which].changes_since(1, self.seen[which])
        self.views[which].update({each.trial.number: each for each in changes.trials})
        self.seen[which] = changes.clock
        everything = self.storages[which].changes_since(1, 0)
        assert [self.views[which][number] for number in sorted(self.views[which])] == list(everything.trials)

    @invariant()
    def both_are_as_the_model(self):
        expected = [StoredTrial(entry.trial, entry.opened, entry.abandoned, entry.closed) for entry in self.model.entries]
        for storage in self.storages:
            changes = storage.changes_since(1, 0)
            assert list(changes.trials) == expected
            assert [str(each.trial.value) for each in changes.trials] == [str(each.trial.value) for each in expected]  # -0.0
            assert [(entry.config, entry.suggestion) for entry in changes.queue] == self.model.queue
            assert changes.clock == self.model.clock
        found = self.both(lambda storage: storage.best(1, False))
        finished = [entry.trial for entry in self.model.entries if entry.trial.state is State.DONE]
        assert found == min(finished, key=lambda trial: trial.value, default=None)

    @invariant()
    def the_sums_are_right(self):
        assert self.storages[1].check() == []


LifeCycle.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
TestLifeCycle = LifeCycle.TestCase


@pytest.mark.slow
class TestLongLives(LifeCycle.TestCase):
    settings = settings(max_examples=60, stateful_step_count=50)
