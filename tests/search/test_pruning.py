"""Pruning: when a trial is stopped early, what is then recorded, and that only trials that ask are stopped."""

import dataclasses
import time

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.search.pruning import PRUNING_PROBABILITY, PruningForecast, pruning_forecast
from shoestring.surrogate.curves_posterior import RunForecaster
from tests.problems import abandon, branin

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 48, log=True))


def loss(x, epochs):
    return (x - 0.3) ** 2 + 0.5 / epochs


def learned(count=12, direction="minimize", method=None):
    """A study that has seen some trials at the target and at lower fidelities, the last of them chosen by a model."""
    sign = 1 if direction == "minimize" else -1
    study = st.Study(SPACE, method or st.LogEI(), seed=1, initial=4, direction=direction)
    for i in range(count):
        config = {"x": (0.37 + 0.61803 * i) % 1.0, "epochs": 48 if i % 2 else 12}
        study.add(config, sign * loss(**config), cost=config["epochs"])
    trial = study.ask()
    study.tell(trial, sign * loss(**trial.config), cost=trial.config["epochs"])
    return study


def reports_of(x, last, sign=1):
    return [
        {"value": sign * loss(x, epochs), "fidelity": {"epochs": epochs}, "cost": float(epochs)} for epochs in range(1, last + 1)
    ]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_bad_configuration_is_pruned_and_a_good_one_is_not(direction):
    study, sign = learned(direction=direction), 1 if direction == "minimize" else -1
    study.enqueue({"x": 0.95})
    bad = study.ask()
    found = study.pruning_forecast(bad, reports_of(0.95, 16, sign))
    assert found.should_prune
    assert found.probability < PRUNING_PROBABILITY
    assert "below 0.025" in found.reason
    study.enqueue({"x": 0.31})
    good = study.ask()
    found = study.pruning_forecast(good, reports_of(0.31, 16, sign))
    assert not found.should_prune
    assert "not below" in found.reason


def test_the_chance_is_that_of_draws_from_the_posterior():
    """Refitted by hand with the reports as trials of their own, and counted over draws of the value at the target."""
    study = learned()
    study.enqueue({"x": 0.31})
    trial = study.ask()
    reports = reports_of(0.31, 14)[-4:]
    found = study.pruning_forecast(trial, reports)
    context = study.context
    by_hand = st.Study.from_json(study.to_json(), method=st.LogEI())
    abandon(by_hand, trial.number)
    for each in reports:
        by_hand.add({"x": 0.31} | each["fidelity"], each["value"])
    seen = to_dataset(by_hand.log)
    known = {**context.warm_start, "trials": len(seen.y)}
    belief = context.with_data(seen, warm_start=known).belief(costs=False)
    tried = SPACE.at_target(seen.U[:13])
    best = belief.objective.mean_at(belief.encoding.features(tried)).min()
    at = belief.encoding.features(SPACE.encode({"x": 0.31, "epochs": 48})[None, :])
    draws = belief.objective.sample(at, 40_000, np.random.default_rng(0))
    assert 0.05 < found.probability < 0.95
    assert found.probability == pytest.approx(float((draws < best).mean()), abs=0.01)


def test_without_a_model_or_data_at_the_target_or_a_fidelity_there_is_no_forecast():
    study = learned()
    study.enqueue({"x": 0.95})
    trial = study.ask()
    context, reports = study.context, reports_of(0.95, 16)
    assert pruning_forecast(context, trial, reports) is not None
    assert pruning_forecast(context.with_data(context.data, warm_start=None), trial, reports) is None
    assert pruning_forecast(context, trial, []) is None
    assert pruning_forecast(context, trial, [{"value": 0.9, "fidelity": {}, "cost": None}]) is None
    low = dataclasses.replace(context.data, at_target=np.zeros(len(context.data.y), bool))
    assert pruning_forecast(context.with_data(low), trial, reports) is None
    assert pruning_forecast(context, trial, reports_of(0.95, 11)) is None  # no trial was seen that early
    few = context.data.select(np.arange(9))  # of these five were asked at 12 epochs
    assert pruning_forecast(context.with_data(few), trial, reports) is not None
    fewer = context.data.select(np.arange(8))
    assert pruning_forecast(context.with_data(fewer), trial, reports) is None


def eager(asked):
    """An objective that reports every epoch and goes on until it is told to stop."""

    def objective(config, trial):
        for epochs in range(1, config["epochs"] + 1):
            trial.report(loss(config["x"], epochs), epochs=epochs, cost=float(epochs))
            asked.append((trial.number, epochs))
            if trial.should_stop():
                return loss(config["x"], epochs)
        return loss(config["x"], config["epochs"])

    return objective


def stopped_study(**options):
    study, asked = learned(**options), []
    study.enqueue({"x": 0.95})
    study.minimize(eager(asked), 2)
    return study, asked


def test_a_trial_that_was_stopped_is_one_of_the_fidelity_that_it_reached():
    study, asked = stopped_study()
    trial = study.history[13]
    reached = asked[-1][1]
    assert reached == 16  # the first doubling at which there is something to compare with
    assert trial.state is st.State.DONE
    assert trial.config == {"x": 0.95, "epochs": reached}
    assert trial.fidelity == {"epochs": reached}
    assert trial.value == pytest.approx(loss(0.95, reached))
    assert trial.cost == reached
    assert len(trial.reports) == reached
    assert trial.suggestion["asked"] == {"epochs": 48}
    assert trial.suggestion["stopped"]["kind"] == "hopeless"
    assert "chance" in trial.suggestion["stopped"]["reason"]
    assert study.best.number != 13
    seen = to_dataset(study.log)
    assert SPACE.decode(seen.U[seen.finished - 1]) == pytest.approx(trial.config)
    np.testing.assert_allclose(seen.pruned, SPACE.encode({"x": 0.95, "epochs": 48})[None, :])
    assert (np.abs(seen.visited - seen.pruned) < 1e-12).all(axis=1).any()  # it need not be asked again


def test_it_is_the_same_after_writing_and_reading():
    study, _ = stopped_study()
    again = st.Study.from_json(study.to_json(), method=st.LogEI())
    assert again.history[13] == study.history[13]
    for one, other in zip(dataclasses.astuple(to_dataset(again.log)), dataclasses.astuple(to_dataset(study.log)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.ask().config == study.ask().config


def test_a_value_that_was_not_reported_does_not_pass_for_one_of_the_target():
    def objective(config, trial):
        for epochs in range(1, 49):
            trial.report(loss(config["x"], epochs), epochs=epochs)
            if trial.should_stop():
                break
        return -5.0

    study = learned()
    study.enqueue({"x": 0.95})
    study.minimize(objective, 2)
    trial = study.history[13]
    assert trial.config["epochs"] < 48
    assert trial.value == trial.reports[-1]["value"]


def test_a_trial_that_does_not_ask_or_has_no_model_is_not_stopped():
    def objective(config, trial):
        for epochs in range(1, 49):
            trial.report(loss(config["x"], epochs), epochs=epochs, cost=float(epochs))
        return loss(config["x"], 48)

    study = learned()
    study.enqueue({"x": 0.95})
    study.minimize(objective, 2)
    assert study.history[13].config["epochs"] == 48
    study = learned(method=st.Random())
    study.enqueue({"x": 0.95})
    study.minimize(eager([]), 2)
    assert study.history[13].config["epochs"] == 48
    assert "stopped" not in study.history[13].suggestion


def test_a_model_is_asked_when_the_fidelity_has_doubled(monkeypatch):
    calls = []

    def counted(context, trial, reports, **options):
        calls.append(reports[-1]["fidelity"]["epochs"])

    monkeypatch.setattr("shoestring.state.suggester.pruning_forecast", counted)
    study = learned()
    study.enqueue({"x": 0.95})
    study.minimize(eager([]), 2)
    assert calls == [1, 2, 4, 8, 16, 32]


def test_one_fit_a_time(monkeypatch):
    fits = []
    fit = st.GP.fit
    study = learned()
    study.enqueue({"x": 0.42})
    trial = study.ask()
    monkeypatch.setattr(st.GP, "fit", lambda *args, **options: fits.append(1) or fit(*args, **options))
    study.suggester.model = st.GP(inference="mcmc")
    study.pruning_forecast(trial, reports_of(0.42, 16))
    assert len(fits) == 1


def test_what_the_model_takes_is_not_charged_to_the_objective(monkeypatch):
    def slow(context, trial, reports, **options):
        time.sleep(0.05)

    monkeypatch.setattr("shoestring.state.suggester.pruning_forecast", slow)

    def objective(config, trial):
        for epochs in (1, 2, 4):
            trial.report(1.0, epochs=epochs)
            assert not trial.should_stop()
        return 1.0

    study = st.Study(SPACE, st.Random())
    study.minimize(objective, 2)
    assert study.history[0].seconds < 0.05
    assert study.optimizer_seconds > 0.14


def test_a_trial_that_ran_out_of_budget_has_its_fidelity_too_but_may_be_asked_again():
    study = learned()
    study.enqueue({"x": 0.3})
    spent = study.history.spent
    study.minimize(eager([]), st.Budget(cost=spent + 10, unit="s"))
    trial = study.history[13]
    assert trial.config["epochs"] == 10
    assert trial.suggestion["stopped"]["kind"] == "budget"
    assert not len(to_dataset(study.log).pruned)


def training(stopping):
    """Branin reached along learning curves that differ in height and pace."""

    def objective(config, trial):
        value = 0.0
        for epochs in range(1, 51):
            value = branin(config) + 30 * (0.5 + config["x1"]) * epochs ** -(0.6 + 0.5 * config["x0"])
            trial.report(value, epochs=epochs, cost=float(epochs))
            if stopping and trial.should_stop():
                break
        return value

    return objective


@pytest.mark.slow
@pytest.mark.parametrize("log", [True, False])
def test_stopping_early_saves_much_and_finds_as_good_a_place(log):
    space = st.Space(x0=st.Float(0, 1), x1=st.Float(0, 1), epochs=st.Fidelity(1, 50, log=log))
    found, wrong, stops = [], 0, 0
    for seed in range(3):
        result = st.minimize(training(True), space, 20, method=st.LogEI(), seed=seed)
        assert result.spent < 0.8 * 20 * 50
        found.append(branin(result.recommended.config))
        stopped = [trial for trial in result.history if "stopped" in trial.suggestion]
        best = min(trial.value for trial in result.history if "stopped" not in trial.suggestion)
        ends = [
            branin(trial.config) + 30 * (0.5 + trial.config["x1"]) * 50 ** -(0.6 + 0.5 * trial.config["x0"]) for trial in stopped
        ]
        wrong, stops = wrong + sum(end < best for end in ends), stops + len(stopped)
    assert sorted(found)[1] < 0.5  # 0.398 at best, and 300 at worst
    assert wrong <= 0.1 * stops  # those that would have become the best
    others = st.minimize(training(False), space, 3, method=st.Random(), seed=0)
    assert others.spent == 3 * 50


# -- by learning curves -------------------------------------------------------------------------------------------------


def curve(config, epochs):
    return 1 + 2 * (config["x"] - 0.3) ** 2 + (0.5 + config["x"]) / epochs**0.7


def reporting(config, trial):
    for epochs in range(1, config["epochs"] + 1):
        trial.report(curve(config, epochs), epochs=epochs, cost=float(epochs))
        if trial.should_stop():
            break
    return curve(config, epochs)


def curve_study(method, count=9, **options):
    study = st.Study(SPACE, method, seed=1, initial=4, **options)
    for i in range(count):
        study.enqueue({"x": (0.37 + 0.61803 * i) % 1.0, "epochs": 48})
    study.suggester.prune, prune = False, study.suggester.prune
    study.minimize(reporting, count)
    study.suggester.prune = prune
    return study


def curve_reports(config, last):
    return [{"value": curve(config, e), "fidelity": {"epochs": e}, "cost": float(e)} for e in range(1, last + 1)]


def test_with_learning_curves_a_check_needs_no_fit(monkeypatch):
    study = curve_study(st.LogEI())
    study.tell(study.ask(), 1.2)  # chosen by a model
    study.enqueue({"x": 0.95})
    trial = study.ask()
    assert study.pruning_forecast(trial, curve_reports({"x": 0.95}, 1)) is not None  # once a trial: after the last one has ended
    monkeypatch.setattr("shoestring.surrogate.curves_study.fit_theta", None)
    monkeypatch.setattr(st.GP, "fit", None)
    seconds = []
    for last in range(2, 40):
        began = time.perf_counter()
        found = study.suggester.forecast(trial, curve_reports({"x": 0.95}, last), live=True)
        seconds.append(time.perf_counter() - began)
    assert found.should_prune
    assert min(seconds) < 0.002
    assert sorted(seconds)[len(seconds) // 2] < 0.01  # 0.5 ms on an idle machine


def test_prune_true_prunes_by_learning_curves_with_every_method():
    for prune, stopped in ((True, True), (None, False), (False, False)):
        study = curve_study(st.Random(), prune=prune)
        study.enqueue({"x": 0.95})
        study.minimize(reporting, 10)
        assert ("stopped" in study.history[9].suggestion) is stopped
    study = curve_study(st.Random(), prune=True)
    study.enqueue({"x": 0.31})
    study.minimize(reporting, 10)
    assert study.history[9].config["epochs"] == 48  # as good as the best


def test_prune_false_leaves_a_trial_alone_with_a_model_too():
    study, asked = learned(), []
    study.suggester.prune = False
    study.enqueue({"x": 0.95})
    study.minimize(eager(asked), 2)
    assert study.history[13].config["epochs"] == 48


def test_prune_is_true_false_or_none():
    with pytest.raises(st.MethodError, match="True, False or None"):
        st.Study(SPACE, prune="median")


def test_a_run_that_goes_on_is_judged_by_its_earlier_points_too(monkeypatch):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 48, resumable=True))
    study = st.Study(space, st.Random(), prune=True)
    for i in range(8):
        study.enqueue({"x": (0.37 + 0.61803 * i) % 1.0, "epochs": 48})
    study.enqueue({"x": 0.6, "epochs": 3})
    study.enqueue({"x": 0.6, "epochs": 48})
    study.suggester.prune = False

    def resuming(config, trial):
        begun = int(trial.resumed_from.fidelity["epochs"]) if trial.resumed_from else 0
        for epochs in range(begun + 1, config["epochs"] + 1):
            trial.report(curve(config, epochs), epochs=epochs)
        return curve(config, config["epochs"])

    study.minimize(resuming, 9)
    study.suggester.prune = True
    trial = study.ask()
    assert trial.resumed_from.number == 8
    asked = []
    at = RunForecaster.at
    monkeypatch.setattr(RunForecaster, "at", lambda self, times, *rest: asked.append(times) or at(self, times, *rest))
    found = study.pruning_forecast(trial, curve_reports({"x": 0.6}, 4)[-1:])
    assert 0.0 <= found.probability <= 1.0
    np.testing.assert_allclose([times for times in asked if len(times)][-1], np.arange(1, 5) / 48)


def test_what_the_curves_gave_no_chance_from_the_start_is_pruned_by_its_own_values_alone():
    """The model of the search asked for it: without this rule it would ask for the same place again and again."""
    assert PruningForecast(0.01, before=0.4).should_prune
    assert not PruningForecast(0.004, before=0.005).should_prune
    assert PruningForecast(0.0001, before=0.005).should_prune
    assert not PruningForecast(0.0001, before=0.005, seeks_information=True).should_prune
