"""ShoestringPruner in Optuna studies."""

import math
import pickle

import optuna
import pytest
from optuna.distributions import FloatDistribution

import shoestring as st
from shoestring.integrations.optuna import ShoestringPruner
from shoestring.search import pruning

STEPS = 8


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def curve(x):
    return {step: x + 0.5 * math.exp(-step / 2) for step in range(STEPS)}


def study_of(count=6, pruner=None, direction="minimize", steps=curve):
    """A study with some finished curves; the best ends at 0.1."""
    study = optuna.create_study(pruner=pruner or ShoestringPruner(), direction=direction)
    sign = -1 if direction == "maximize" else 1
    for k in range(count):
        values = {step: sign * value for step, value in steps(0.1 * (k + 1)).items()}
        known = {"x": FloatDistribution(0, 1)}
        study.add_trial(
            optuna.create_trial(
                params={"x": 0.1 * (k + 1)}, distributions=known, value=values[max(values)], intermediate_values=values
            )
        )
    return study


def running(study, x, until, sign=1):
    """A trial that has come to this step."""
    study.enqueue_trial({"x": x})
    trial = study.ask({"x": FloatDistribution(0, 1)})
    for step, value in list(curve(x).items())[: until + 1]:
        trial.report(sign * value, step)
    return trial


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_run_without_a_chance_is_pruned_and_a_promising_one_is_not(direction):
    study, sign = study_of(direction=direction), -1 if direction == "maximize" else 1
    assert running(study, 0.95, 3, sign).should_prune()
    assert not running(study, 0.05, 3, sign).should_prune()


def test_nothing_is_pruned_while_there_are_few_curves():
    assert not running(study_of(count=3), 0.95, 3).should_prune()
    assert not running(optuna.create_study(pruner=ShoestringPruner()), 0.95, 3).should_prune()


def test_the_last_step_is_not_pruned_since_it_saves_nothing():
    assert not running(study_of(), 0.95, STEPS - 1).should_prune()


def test_warmup_steps_and_every_spare_checks():
    assert not running(study_of(pruner=ShoestringPruner(warmup_steps=4)), 0.95, 3).should_prune()
    assert not running(study_of(pruner=ShoestringPruner(every=2)), 0.95, 3).should_prune()
    assert running(study_of(pruner=ShoestringPruner(every=3)), 0.95, 3).should_prune()


def test_the_forecast_says_how_likely_a_trial_becomes_the_best():
    study = study_of()
    trial = running(study, 0.95, 3)
    forecast = study.pruner.forecast(study, study.trials[trial.number])
    assert forecast.probability < 0.025


@pytest.mark.parametrize(
    ("now", "before", "limit", "pruned"),
    [
        (0.01, 0.4, 0.025, True),
        (0.004, 0.005, 0.025, False),  # it had no chance before its first report: the reports did not take it away
        (0.0001, 0.005, 0.025, True),
        (0.05, 0.4, 0.1, True),
        (0.05, 0.06, 0.1, False),
    ],
)
def test_the_rule_is_the_one_of_should_stop_with_the_probability_of_the_pruner(monkeypatch, now, before, limit, pruned):
    study = study_of(pruner=ShoestringPruner(probability=limit))
    chances = iter([now, before])
    monkeypatch.setattr(pruning, "chance_below", lambda *given: next(chances))
    assert running(study, 0.95, 3).should_prune() is pruned


def test_a_trial_that_reports_no_number_is_left_alone():
    study = study_of()
    trial = study.ask({"x": FloatDistribution(0, 1)})
    assert not trial.should_prune()
    trial.report(math.nan, 0)
    assert not trial.should_prune()


def test_a_pruner_travels_to_other_processes():
    study = study_of(pruner=pickle.loads(pickle.dumps(ShoestringPruner(probability=0.1))))
    assert study.pruner.probability == 0.1
    assert running(study, 0.95, 3).should_prune()


def test_wrong_arguments_are_refused():
    with pytest.raises(st.MethodError, match="probability"):
        ShoestringPruner(probability=2.0)
    with pytest.raises(st.MethodError, match="warmup_steps"):
        ShoestringPruner(warmup_steps=-1)
