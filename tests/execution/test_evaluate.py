import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.execution.evaluate import LiveTrial, call

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))


def run(objective, budget=1, **options):
    return st.Study(SPACE, st.Random()).minimize(objective, budget, **options)


@pytest.mark.parametrize(
    ("objective", "wanted"),
    [
        (lambda config: (config,), False),
        (lambda config, trial: (config, trial), True),
        (lambda config, live: (config, live), True),
        (lambda config, trial=None: (config, trial), True),
        (lambda config, *, trial: (config, trial), True),
        (lambda config, verbose=False: (config, verbose), False),
        (lambda config, *rest: (config, *rest), False),
    ],
)
def test_a_second_parameter_gets_the_live_trial(objective, wanted):
    given = []
    run(lambda config, trial: given.extend(call(objective, config, trial)) or 0.0)
    assert isinstance(given[0], dict)
    assert any(isinstance(item, LiveTrial) for item in given) is wanted


def test_reports_are_kept_with_the_trial():
    def objective(config, trial):
        assert trial.number == 0
        assert trial.config == config
        assert trial.fidelity == {"epochs": 9}
        trial.report(0.9, epochs=1, cost=2.0)
        trial.report(0.5, epochs=5, cost=4.0)
        return 0.4

    trial = run(objective).history[0]
    assert [report["value"] for report in trial.reports] == [0.9, 0.5]
    assert [report["fidelity"] for report in trial.reports] == [{"epochs": 1}, {"epochs": 5}]
    assert [report["cost"] for report in trial.reports] == [2.0, 4.0]
    assert trial.state is st.State.DONE


def test_reports_of_numpy_numbers_can_be_stored():
    def objective(config, trial):
        trial.report(np.float32(0.5), epochs=np.int64(3), cost=np.float32(2))
        return 0.5

    stored = st.Study.from_json(run(objective).study.to_json())
    assert stored.history[0].reports[0] == {"value": 0.5, "fidelity": {"epochs": 3}, "cost": 2.0}


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (lambda trial: trial.report(float("nan")), "finite"),
        (lambda trial: trial.report("low"), "low"),
        (lambda trial: trial.report(0.5, steps=3), "steps"),
        (lambda trial: trial.report(0.5, epochs=10), "epochs"),
        (lambda trial: (trial.report(0.5, epochs=5), trial.report(0.5, epochs=4)), "backwards"),
        (lambda trial: (trial.report(0.5, cost=5.0), trial.report(0.5, cost=4.0)), "whole trial so far"),
        (lambda trial: trial.report(0.5, cost=-1.0), "cost"),
        (lambda trial: trial.report(0.5, epochs=2.5), "grid"),
    ],
)
def test_a_report_that_cannot_be_fails_its_trial_and_says_why(report, said):
    def objective(config, trial):
        report(trial)
        return 0.4

    trial = run(objective).history[0]
    assert trial.state is st.State.FAILED
    assert said in trial.error


def test_should_stop_once_the_budget_is_spent():
    answers = []

    def objective(config, trial):
        for epochs in range(1, 10):
            trial.report(1 / epochs, epochs=epochs, cost=3.0 * epochs)
            answers.append(trial.should_stop())
            if answers[-1]:
                return st.Outcome(1 / epochs, cost=3.0 * epochs)
        return 0.0

    result = run(objective, st.Budget(cost=10.0))
    assert answers == [False, False, False, True]
    assert result.spent == 12.0


def test_the_checkpoint_folder_is_one_place_for_each_trial():
    folders = []

    def objective(config, trial):
        (trial.checkpoint_dir / "weights").write_text("1")
        folders.append(trial.checkpoint_dir)
        assert trial.checkpoint_dir == folders[-1]
        return 0.5

    run(objective, 2)
    assert len(set(folders)) == 2
    for folder in folders:
        assert (folder / "weights").read_text() == "1"
        (folder / "weights").unlink()
        folder.rmdir()


def test_the_error_names_the_place_in_the_code_of_the_user():
    def objective(config):
        raise ValueError("the disk is full")

    error = run(objective).history[0].error
    line = objective.__code__.co_firstlineno + 1
    assert error == f"ValueError: the disk is full (test_evaluate.py, line {line})"


NESTED = st.Space(x=st.Float(0, 1), layers=st.Choice([64, 64], [32]))


def test_what_an_objective_does_to_its_config_stays_with_it():
    def objective(config):
        config["layers"].append(1)
        config["x"] = 7.0
        del config["layers"]
        return 0.5

    for trial in st.Study(NESTED, st.Random()).minimize(objective, 4).history:
        assert NESTED.check(trial.config) == trial.config


def test_what_an_objective_does_to_the_config_of_its_live_trial_stays_with_it():
    def objective(config, trial):
        trial.config["layers"].append(1)
        trial.config["x"] = 7.0
        return 0.5

    for trial in st.Study(NESTED, st.Random()).minimize(objective, 4).history:
        assert NESTED.check(trial.config) == trial.config


def test_the_cost_reported_last_is_the_cost_unless_one_is_returned():
    def objective(config, trial):
        trial.report(0.9, epochs=1, cost=2.0)
        trial.report(0.5, epochs=5, cost=12.0)
        if config["x"] > 0.5:
            raise MemoryError
        return st.Outcome(0.5, cost=20.0) if config["x"] < 0.25 else 0.5

    for trial in run(objective, 12).history:
        assert trial.cost == (20.0 if trial.config["x"] < 0.25 else 12.0)


@pytest.mark.parametrize(
    "outcome",
    [float("nan"), st.Outcome(0.5, cost=-1), st.Outcome(None, folds=3), st.Outcome(0.5, gradient=[1, 2]), st.Outcome(None)],
)
def test_what_cannot_be_recorded_fails_the_trial_alone_or_is_raised_for_debugging(outcome):
    result = run(lambda config: outcome, 2)
    assert [trial.state for trial in result.history] == [st.State.FAILED] * 2
    with pytest.raises(st.OutcomeError):
        run(lambda config: outcome, 2, raise_errors=True)


def test_a_report_beyond_what_was_asked_is_refused():
    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5, "epochs": 4})
    study.minimize(lambda config, trial: trial.report(0.5, epochs=5), 1)
    assert "a report at epochs = 5, but the trial was asked at epochs = 4" in study.history[0].error


def test_the_reports_of_failed_and_interrupted_trials_are_kept():
    def objective(config, trial):
        trial.report(0.9, epochs=2, cost=2.0)
        raise KeyboardInterrupt if trial.number else MemoryError

    study = st.Study(SPACE, st.Random())
    result = study.minimize(objective, 3, on_interrupt="return")
    assert result.stop.kind == "interrupted"
    assert [trial.state for trial in study.history] == [st.State.FAILED, st.State.ABANDONED]
    again = st.Study.from_json(study.to_json(), method=st.Random())
    for trial in again.history:
        assert trial.reports == ({"value": 0.9, "fidelity": {"epochs": 2}, "cost": 2.0},)
    assert to_dataset(again.log).intermediate == 2


def test_an_interruption_on_the_way_changes_nothing_that_comes_after():
    def run_to(count, interrupted):
        raised = []

        def objective(config, trial):
            for epochs in (2, 4, 6, 9):
                trial.report((config["x"] - 0.3) ** 2 + 1 / epochs, epochs=epochs)
                if interrupted and trial.number == 6 and epochs == 4 and not raised:
                    raised.append(True)
                    raise KeyboardInterrupt
            return (config["x"] - 0.3) ** 2 + 1 / 9

        study = st.Study(SPACE, st.LogEI(), seed=2, initial=4)
        while study.log.trials_used < count:
            study.minimize(objective, count, on_interrupt="return")
        return [trial.config for trial in study.history if trial.state is st.State.DONE]

    assert run_to(9, True) == run_to(9, False)
