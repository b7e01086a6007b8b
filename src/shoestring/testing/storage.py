"""The contract of a storage, as ``shoestring.storage.base`` states it in prose."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..data.trial import State, Trial
from ..errors import Conflict, OverBudget, StorageError, TrialError
from ..storage import Limits, Storage, StudyRecord, open_storage
from .trials import abandoned, done, failed, lease, running


@contextmanager
def raises(error: type[BaseException], match: str = "") -> Iterator[None]:
    """Check that the block raises this error, with this text in its message."""
    try:
        yield
    except error as raised:
        message = str(raised)
    else:
        raise AssertionError(f"{error.__name__} was not raised")
    assert match in message, f"{match!r} is not in the message {message!r}"


def record_of(storage: Storage, name: str = "study") -> StudyRecord:
    """The record of a study that must exist."""
    found = storage.find(name)
    assert found is not None
    return found


def best_of(storage: Storage, study: int, maximize: bool) -> Trial:
    """The best trial of a study that must have one."""
    found = storage.best(study, maximize)
    assert found is not None
    return found


def run_threads(*targets: Callable[[], None]) -> None:
    """Call functions at the same time, each in a thread, and wait for all of them."""
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class StorageContract:
    """The checks that every storage must pass: derive a test class and define ``open``.

    Use it to test a storage of your own with pytest, call by call. Within one test, each call of ``open`` returns a storage on
    the same data, as another process would open it. Each test starts without data: use ``setup_method`` and ``teardown_method``,
    or a fixture, to make a new place and to remove it. Errors have the messages of ``storage.trial_lifecycle``, which has a
    function for each of them. In three checks, leases of ``lease_seconds`` expire while ``wait`` sleeps. If the clock of the
    storage can be replaced, define ``use_fake_clock`` and ``wait``: then these checks take no time.

    >>> from shoestring.testing import StorageContract
    >>> class TestMine(StorageContract):
    ...     def setup_method(self):
    ...         self.storage = st.open_storage("memory")
    ...     def open(self):
    ...         return self.storage
    >>> test = TestMine()
    >>> test.setup_method()
    >>> test.test_it_is_a_storage()
    """

    lease_seconds = 2.0

    def open(self) -> Storage:
        raise NotImplementedError("return the storage to test")

    def use_fake_clock(self) -> None:
        """Called before ``open`` by the checks that call ``wait``."""

    def wait(self, seconds: float) -> None:
        """Let time pass by the clock of the storage."""
        time.sleep(seconds)

    def with_study(self) -> tuple[Storage, int]:
        """A storage, and the id of a new study in it."""
        storage = self.open()
        return storage, storage.begin("study", {"seed": 0})[0].id

    def test_it_is_a_storage(self) -> None:
        storage = self.open()
        assert isinstance(storage, Storage)
        assert open_storage(storage) is storage

    # -- studies -----------------------------------------------------------------------------------------------------

    def test_a_study_is_begun_once(self) -> None:
        first, made = self.open().begin("xgb", {"seed": 3, "space": {"x": [0.1, None, "é"]}})
        again, made_again = self.open().begin("xgb", {"seed": 4})
        assert (made, made_again) == (True, False)
        assert again == first
        assert again.settings == {"seed": 3, "space": {"x": [0.1, None, "é"]}}
        assert (again.trials, again.waiting, again.clock, again.halted, again.halts, again.seconds) == (0, 0, 0, None, 0, 0.0)

    def test_studies_are_found_and_listed_in_order(self) -> None:
        storage = self.open()
        assert storage.find("a") is None
        assert storage.studies() == []
        made = [storage.begin(name, {})[0] for name in ("b", "a", "ü\n' OR 1=1 --")]
        assert storage.studies() == made
        assert storage.find("a") == made[1]
        assert storage.find("ü\n' OR 1=1 --") == made[2]

    def test_a_study_is_revised(self) -> None:
        storage, study = self.with_study()
        storage.revise(study, seconds=2.5)
        storage.revise(study, {"seed": 1}, halted="enough", seconds=3.0)
        record = record_of(storage)
        assert (record.settings, record.halted, record.halts, record.seconds, record.clock) == ({"seed": 1}, "enough", 1, 3.0, 2)
        changes = storage.changes_since(study, 0)
        assert (changes.halted, changes.halts, changes.seconds, changes.clock) == ("enough", 1, 3.0, 2)
        storage.revise(study, halted=None)
        assert record_of(storage).halted is None
        assert record_of(storage).settings == {"seed": 1}

    def test_a_deleted_study_is_gone_and_its_number_with_it(self) -> None:
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease())
        storage.enqueue(study, {"x": 1}, {})
        storage.delete(study)
        storage.delete(study)
        assert storage.find("study") is None
        again, made = storage.begin("study", {})
        assert made
        assert again.id != study
        assert storage.changes_since(again.id, 0).trials == []

    def test_a_study_or_trial_that_does_not_exist_is_an_error(self) -> None:
        storage, study = self.with_study()
        calls: tuple[Callable[[], object], ...] = (
            lambda: storage.changes_since(99, 0),
            lambda: storage.write(99, running(0), lease=lease()),
            lambda: storage.close(99, done(0)),
            lambda: storage.enqueue(99, {}, {}),
            lambda: storage.revise(99, seconds=1.0),
            lambda: storage.best(99, False),
        )
        for call in calls:
            with raises(StorageError, match="no study 99"):
                call()
        assert storage.renew(99, {0: "token"}, 1.0) == {0}
        assert storage.reap(99, None) == []
        assert storage.holders(99) == {}
        assert not storage.report(99, 0, "token", [])
        with raises(TrialError, match="no trial 7"):
            storage.close(study, done(7))
        with raises(TrialError, match="still runs"):
            storage.close(study, running(0))

    # -- trials ------------------------------------------------------------------------------------------------------

    def test_a_trial_is_opened_and_closed(self) -> None:
        storage, study = self.with_study()
        opened = storage.write(study, running(0), lease=lease())
        assert (opened.trial, opened.clocks) == (running(0), (1, None, None))
        report = {"value": 1.0, "fidelity": {}, "cost": None}
        closed = storage.close(study, done(0, -0.25, folds=(0.5, -1.0), reports=(report,)))
        assert closed.clocks == (1, None, 2)
        assert storage.changes_since(study, 0).trials == [closed]
        assert closed.trial.folds == (0.5, -1.0)
        assert record_of(storage).trials == 1

    def test_changes_since_returns_what_is_new(self) -> None:
        storage, study = self.with_study()
        assert storage.changes_since(study, 0) == storage.changes_since(study, 5)
        for number in range(3):
            storage.write(study, running(number), lease=lease())
        assert [each.trial.number for each in storage.changes_since(study, 0).trials] == [0, 1, 2]
        seen = storage.changes_since(study, 0).clock
        assert seen == 3
        assert storage.changes_since(study, seen).trials == []
        storage.close(study, failed(2))
        storage.close(study, done(0))
        news = storage.changes_since(study, seen)
        assert [(each.trial.number, each.trial.state) for each in news.trials] == [(0, State.DONE), (2, State.FAILED)]
        assert news.clock == 5
        assert [each.trial.number for each in storage.changes_since(study, 4).trials] == [0]

    def test_numbers_are_given_once(self) -> None:
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease())
        for number in (0, 2, -1):
            with raises(Conflict):
                storage.write(study, running(number), lease=lease())
        assert record_of(storage).clock == 1
        assert len(storage.changes_since(study, 0).trials) == 1

    def test_a_trial_from_elsewhere_is_closed_when_it_is_written(self) -> None:
        storage, study = self.with_study()
        assert storage.write(study, done(0, 3.0, cost=9.0)).clocks == (1, None, 1)
        assert storage.write(study, failed(1)).clocks == (2, None, 2)
        assert storage.write(study, abandoned(2)).clocks == (3, 3, None)
        assert storage.close(study, done(0, 4.0)).trial.value == 3.0

    def test_the_same_lease_writes_once(self) -> None:
        storage, study = self.with_study()
        mine = lease()
        first = storage.write(study, running(0), lease=mine)
        assert storage.write(study, running(0), lease=mine) == first
        closed = storage.close(study, done(0))
        assert storage.write(study, running(0), lease=mine) == closed
        assert record_of(storage).trials == 1
        with raises(Conflict):
            storage.write(study, running(0), lease=lease())

    def test_a_result_is_written_once(self) -> None:
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease())
        first = storage.close(study, done(0, 1.0))
        clock = record_of(storage).clock
        assert storage.close(study, done(0, 1.0)) == first
        assert storage.close(study, done(0, 2.0)) == first
        assert storage.close(study, failed(0), again=True) == first
        assert storage.close(study, abandoned(0), again=True) == first
        assert record_of(storage).clock == clock
        assert storage.changes_since(study, 0).queue == []

    def test_an_abandoned_trial_keeps_its_late_result(self) -> None:
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease())
        gone = storage.close(study, abandoned(0, cost=2.0), again=True)
        assert gone.clocks == (1, 2, None)
        assert storage.close(study, abandoned(0, cost=5.0), again=True) == gone
        assert len(storage.changes_since(study, 0).queue) == 1
        late = storage.close(study, done(0, 7.0))
        assert late.clocks == (1, 2, 3)
        assert late.trial.state is State.DONE
        assert storage.close(study, abandoned(0)) == late

    def test_reports_belong_to_the_worker_that_holds_the_trial(self) -> None:
        storage, study = self.with_study()
        mine = lease()
        storage.write(study, running(0), lease=mine)
        report = {"value": 0.5, "fidelity": {"epochs": 3}, "cost": None}
        seen = storage.changes_since(study, 0).clock
        assert storage.report(study, 0, mine.token, [report])
        assert [each.trial.reports for each in storage.changes_since(study, seen).trials] == [(report,)]
        assert not storage.report(study, 0, "another", [])
        assert not storage.report(study, 1, mine.token, [])
        assert storage.changes_since(study, 0).trials[0].clocks == (1, None, None)
        storage.close(study, done(0))
        assert not storage.report(study, 0, mine.token, [])

    def test_what_comes_back_is_a_copy(self) -> None:
        storage, study = self.with_study()
        config: dict[str, Any] = {"x": [1, 2]}
        suggestion = {"by": "me"}
        storage.write(study, Trial(0, config, suggestion=suggestion), lease=lease())
        storage.enqueue(study, config, suggestion)
        config["x"].append(3)
        suggestion["by"] = "you"
        changes = storage.changes_since(study, 0)
        assert changes.trials[0].trial.config == changes.queue[0].config == {"x": [1, 2]}
        assert changes.trials[0].trial.suggestion == changes.queue[0].suggestion == {"by": "me"}
        returned: tuple[Any, ...] = changes.trials[0].trial.config, changes.queue[0].config, record_of(storage).settings
        returned[0]["x"].clear()
        returned[1]["x"] = None
        returned[2]["seed"] = 99
        again = storage.changes_since(study, 0)
        assert again.trials[0].trial.config == again.queue[0].config == {"x": [1, 2]}
        assert record_of(storage).settings == {"seed": 0}

    # -- the queue ---------------------------------------------------------------------------------------------------

    def test_the_queue_keeps_its_order(self) -> None:
        storage, study = self.with_study()
        for number in (1, 2):
            storage.enqueue(study, {"x": number}, {"by": "you"})
        storage.enqueue(study, {"x": 0}, {}, first=True)
        storage.write(study, running(0), lease=lease())
        storage.close(study, abandoned(0), again=True)
        queue = storage.changes_since(study, 0).queue
        assert [entry.config["x"] for entry in queue] == [0.0, 0, 1, 2]
        assert queue[0].suggestion == {"by": "random"}
        assert queue[2].suggestion == {"by": "you"}
        assert record_of(storage).waiting == 4
        assert storage.changes_since(study, 99).queue == queue

    def test_a_waiting_config_is_taken_once(self) -> None:
        storage, study = self.with_study()
        storage.enqueue(study, {"x": 1}, {})
        (entry,) = storage.changes_since(study, 0).queue
        storage.write(study, running(0), lease=lease(), queued=entry.id)
        assert storage.changes_since(study, 0).queue == []
        with raises(Conflict, match="taken"):
            storage.write(study, running(1), lease=lease(), queued=entry.id)
        other = storage.begin("other", {})[0].id
        storage.enqueue(other, {"x": 1}, {})
        with raises(Conflict):
            storage.write(study, running(1), lease=lease(), queued=storage.changes_since(other, 0).queue[0].id)
        assert record_of(storage).trials == 1
        assert record_of(storage, "other").waiting == 1

    def test_a_trial_that_is_refused_leaves_the_queue_alone(self) -> None:
        storage, study = self.with_study()
        storage.enqueue(study, {"x": 1}, {})
        (entry,) = storage.changes_since(study, 0).queue
        with raises(OverBudget):
            storage.write(study, running(0), lease=lease(), queued=entry.id, limits=Limits(trials=0))
        with raises(Conflict):
            storage.write(study, running(5), lease=lease(), queued=entry.id)
        assert storage.changes_since(study, 0).queue == [entry]

    # -- limits ------------------------------------------------------------------------------------------------------

    def test_a_limit_of_trials_counts_those_that_are_not_abandoned(self) -> None:
        storage, study = self.with_study()
        two = Limits(trials=2)
        storage.write(study, running(0), lease=lease(), limits=two)
        storage.write(study, running(1), lease=lease(), limits=two)
        with raises(OverBudget, match="2 of 2"):
            storage.write(study, running(2), lease=lease(), limits=two)
        storage.close(study, abandoned(1))
        storage.write(study, running(2), lease=lease(), limits=two)
        storage.close(study, done(1))  # a late result is a trial more than the limit
        with raises(OverBudget, match="3 of 2"):
            storage.write(study, running(3), lease=lease(), limits=two)

    def test_a_limit_of_cost_counts_what_runs_with_what_is_expected(self) -> None:
        storage, study = self.with_study()
        ten = Limits(cost=10.0)
        storage.write(study, running(0), lease=lease(), limits=ten, expected=4.0)
        storage.write(study, running(1), lease=lease(), limits=ten, expected=6.0)
        with raises(OverBudget, match="expected"):
            storage.write(study, running(2), lease=lease(), limits=ten)
        storage.close(study, done(0, cost=1.5))
        storage.write(study, running(2), lease=lease(), limits=ten, expected=2.5)
        with raises(OverBudget):
            storage.write(study, running(3), lease=lease(), limits=ten)
        storage.close(study, abandoned(1, cost=2.0))
        storage.close(study, done(2, cost=2.5))
        storage.write(study, running(3), lease=lease(), limits=ten)
        storage.close(study, done(1, cost=8.0))  # instead of the 2 that it was charged with
        with raises(OverBudget, match="spent 12 of 10"):
            storage.write(study, running(4), lease=lease(), limits=ten)
        storage.write(study, running(4), lease=lease(), limits=Limits(cost=12.25))

    def test_an_expected_cost_that_is_no_number_is_ignored(self) -> None:
        storage, study = self.with_study()
        for number, guess in enumerate((float("inf"), float("nan"), -1.0, None)):
            storage.write(study, running(number), lease=lease(), expected=guess, limits=Limits(cost=1.0))

    def test_an_infinite_cost_is_refused(self) -> None:
        self.check_that_a_cost_is_refused(float("inf"))

    def test_a_cost_that_is_no_number_is_refused(self) -> None:
        self.check_that_a_cost_is_refused(float("nan"))

    def test_a_negative_cost_is_refused(self) -> None:
        self.check_that_a_cost_is_refused(-1.0)

    def check_that_a_cost_is_refused(self, cost: float) -> None:
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease())
        with raises(StorageError):
            storage.close(study, done(0, cost=cost))
        assert storage.changes_since(study, 0).trials[0].trial == running(0)

    # -- the best ----------------------------------------------------------------------------------------------------

    def test_the_best_is_the_first_of_the_best_at_the_target(self) -> None:
        storage, study = self.with_study()
        assert storage.best(study, False) is None
        values = [(3.0, False), (5.0, True), (-0.0, True), (0.0, True), (5.0, True), (9.0, False)]
        for number, (value, at_target) in enumerate(values):
            storage.write(study, running(number), lease=lease())
            storage.close(study, done(number, value), at_target=at_target)
        storage.write(study, failed(6))
        storage.write(study, running(7), lease=lease())
        assert best_of(storage, study, False).number == 2
        assert best_of(storage, study, True).number == 1

    def test_without_one_at_the_target_any_may_be_the_best(self) -> None:
        storage, study = self.with_study()
        for number, value in enumerate((3.0, 1.0, 2.0)):
            storage.write(study, done(number, value), at_target=False)
        assert storage.best(study, False) == done(1, 1.0)
        assert storage.best(study, True) == done(0, 3.0)

    # -- leases ------------------------------------------------------------------------------------------------------

    def test_the_workers_of_running_trials_are_known(self) -> None:
        storage, study = self.with_study()
        mine = lease(10.0)
        storage.write(study, running(0), lease=mine)
        storage.write(study, running(1))
        storage.write(study, running(2), lease=lease(10.0))
        assert storage.holders(study) == {0: mine.worker, 2: mine.worker}
        storage.close(study, done(0))
        assert storage.holders(study) == {2: mine.worker}

    def test_a_lease_that_is_renewed_lasts(self) -> None:
        self.use_fake_clock()
        storage, study = self.with_study()
        seconds = self.lease_seconds
        mine, theirs = lease(seconds), lease(seconds)
        storage.write(study, running(0), lease=mine)
        storage.write(study, running(1), lease=theirs)
        self.wait(0.6 * seconds)
        assert storage.renew(study, {0: mine.token}, seconds) == set()
        assert storage.reap(study, None) == []
        self.wait(0.6 * seconds)
        assert [trial.number for trial in storage.reap(study, None)] == [1]
        assert storage.renew(study, {0: mine.token, 1: theirs.token, 5: "never"}, seconds) == {1, 5}
        assert storage.renew(study, {0: theirs.token}, seconds) == {0}
        storage.close(study, done(0))
        assert storage.renew(study, {0: mine.token}, seconds) == {0}
        assert storage.renew(study, {}, seconds) == set()

    def test_reaping_charges_the_time_as_a_lower_bound(self) -> None:
        self.use_fake_clock()
        storage, study = self.with_study()
        for number in range(3):
            storage.write(study, running(number), lease=lease(self.lease_seconds), expected=100.0)
        storage.enqueue(study, {"x": "waiting"}, {})
        seen = storage.changes_since(study, 0).clock
        self.wait(1.6 * self.lease_seconds)
        price = 5.0 / self.lease_seconds
        gone = storage.reap(study, price)
        assert [(trial.number, trial.state, trial.censored) for trial in gone] == [(n, State.ABANDONED, True) for n in range(3)]
        for trial in gone:  # the length of the lease, not the time until the call
            assert math.isclose(trial.seconds or 0.0, self.lease_seconds, rel_tol=1e-3)
            assert math.isclose(trial.cost or 0.0, 5.0, rel_tol=1e-3)
        changes = storage.changes_since(study, seen)
        assert [each.trial for each in changes.trials] == gone
        assert [each.clocks for each in changes.trials] == [(1, 5, None), (2, 5, None), (3, 5, None)]
        assert [entry.config["x"] for entry in changes.queue] == [0.0, 0.125, 0.25, "waiting"]
        assert storage.reap(study, price) == []
        storage.write(study, running(3), lease=lease(), limits=Limits(trials=1, cost=15.5))
        storage.close(study, done(1, cost=1.0))
        with raises(OverBudget, match="spent 11"):
            storage.write(study, running(4), lease=lease(), limits=Limits(cost=10.9))

    def test_without_a_price_the_time_is_kept_and_nothing_charged(self) -> None:
        self.use_fake_clock()
        storage, study = self.with_study()
        storage.write(study, running(0), lease=lease(self.lease_seconds))
        storage.write(study, running(1))  # under no lease
        self.wait(1.6 * self.lease_seconds)
        (gone,) = storage.reap(study, None)
        assert (gone.number, gone.cost, gone.censored) == (0, None, False)
        assert math.isclose(gone.seconds or 0.0, self.lease_seconds, rel_tol=1e-3)

    # -- the ask lock ------------------------------------------------------------------------------------------------

    def test_suggestions_are_made_one_at_a_time(self) -> None:
        study = self.open().begin("study", {})[0].id
        inside: list[int] = []
        most: list[int] = []

        def asking(storage: Storage) -> Callable[[], None]:
            def ask() -> None:
                for _ in range(5):
                    with storage.ask_lock(study):
                        inside.append(1)
                        most.append(len(inside))
                        inside.pop()

            return ask

        run_threads(*(asking(self.open()) for _ in range(4)))
        assert max(most) == 1
        assert len(most) == 20

    def test_the_ask_locks_of_two_studies_do_not_wait_for_each_other(self) -> None:
        storage = self.open()
        with storage.ask_lock(1), storage.ask_lock(2):
            pass

    def test_an_ask_lock_ends_with_an_error(self) -> None:
        storage = self.open()
        with raises(KeyError), storage.ask_lock(1):
            raise KeyError
        with storage.ask_lock(1):
            pass

    # -- threads and connections -------------------------------------------------------------------------------------

    def test_threads_share_a_storage(self) -> None:
        storage, study = self.with_study()

        def work() -> None:
            for _ in range(5):
                while True:
                    number = record_of(storage).trials
                    try:
                        storage.write(study, running(number), lease=lease())
                        break
                    except Conflict:
                        continue
                storage.close(study, done(number, number))

        run_threads(work, work, work, work)
        stored = storage.changes_since(study, 0).trials
        assert [each.trial.value for each in stored] == [float(number) for number in range(20)]
        clocks = sorted(clock for each in stored for clock in (each.opened, each.closed) if clock is not None)
        assert clocks == list(range(1, 41))

    def test_connections_are_opened_again_when_needed(self) -> None:
        storage, study = self.with_study()
        storage.write(study, done(0))
        storage.close_connections()
        storage.close_connections()
        assert len(storage.changes_since(study, 0).trials) == 1
