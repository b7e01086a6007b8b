"""The contract of a storage, as ``shoestring.storage.base`` states it in prose."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..data.trial import State
from ..errors import Conflict, OverBudget, StorageError
from ..storage import Limits, Storage, open_storage
from .storage_checks import raises, record_of, run_threads
from .storage_records import StorageRecordChecks
from .trials import abandoned, done, lease, running


class StorageContract(StorageRecordChecks):
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

    def test_it_is_a_storage(self) -> None:
        storage = self.open()
        assert isinstance(storage, Storage)
        assert open_storage(storage) is storage

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
