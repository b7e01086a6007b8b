"""The checks of what a storage keeps: studies, trials and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..data.trial import State, Trial
from ..errors import Conflict, StorageError, TrialError
from .storage_checks import StorageChecks, best_of, raises, record_of
from .trials import abandoned, done, failed, lease, running


class StorageRecordChecks(StorageChecks):
    """Studies are begun, revised and deleted; trials are opened and closed, each once; the best is found."""

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
