"""Learning curves of a study: which points they have, what is chosen by evidence, and the model of the target."""

import numpy as np
import pytest

import shoestring as st
from shoestring.surrogate import curves_evidence
from shoestring.surrogate.belief import Belief
from shoestring.surrogate.curves_evidence import PLAIN_LOG_ODDS, beats_plain
from shoestring.surrogate.curves_study import (
    MAX_POINTS,
    CurveMemo,
    ended_trials,
    scheduled,
    study_curves,
)
from shoestring.surrogate.curves_target import CurveSurrogate, fit_sites
from shoestring.surrogate.marginal_likelihood import Layout

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), epochs=st.Fidelity(1, 30))


def loss(config, epochs):
    return 1 + 2 * (config["x"] - 0.3) ** 2 + config["y"] + (0.5 + config["x"]) / epochs**0.7


def reports_of(config, last, first=1, sign=1, value=loss):
    return [{"value": sign * value(config, e), "fidelity": {"epochs": e}, "cost": float(e)} for e in range(first, last + 1)]


def reported(count=10, method=None, direction="minimize", space=SPACE, value=loss, short=8):
    """A study whose trials have reported their learning curves; every second has stopped early."""
    sign = 1 if direction == "minimize" else -1
    study = st.Study(space, method or st.LogEI(), seed=1, initial=4, direction=direction)
    for i in range(count):
        config = {"x": (0.37 + 0.618 * i) % 1, "y": (0.2 + 0.755 * i) % 1, "epochs": 30 if i % 2 else short}
        study.enqueue(config)

    def objective(config, trial):
        for each in reports_of(config, config["epochs"], sign=sign, value=value):
            trial.report(each["value"], **each["fidelity"])
        return sign * value(config, config["epochs"])

    study.minimize(objective, count) if sign > 0 else study.maximize(objective, count)
    return study


@pytest.fixture(scope="module")
def study():
    return reported()


def curves_of(study):
    return study_curves(ended_trials(study.history), study.history, study.context.encoding)


def test_a_curve_has_all_its_reports_and_its_result(study):
    data = curves_of(study)
    assert (data.traced, data.goal, len(data.runs)) == ("epochs", 30.0, 10)
    assert [len(points) for points in data.points] == [8, 30] * 5
    assert data.points[1][1.0] == study.history[1].value
    assert data.at_target.tolist() == [False, True] * 5
    assert data.groups.tolist() == [0, 1]
    np.testing.assert_allclose(data.features(data.U)[3], [study.history[3].config["x"], study.history[3].config["y"]])


def test_a_run_that_went_on_is_one_curve():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 30, resumable=True))
    study = st.Study(space, st.Random())
    for last in (5, 12):
        study.enqueue({"x": 0.25, "epochs": last})

    def objective(config, trial):
        begun = int(trial.resumed_from.fidelity["epochs"]) if trial.resumed_from else 0
        for epochs in range(begun + 1, config["epochs"] + 1):
            trial.report(1 / epochs, epochs=epochs)
        return 1 / config["epochs"]

    study.minimize(objective, 2)
    assert study.history[1].resumed_from.number == 0
    data = curves_of(study)
    assert data.runs == (0,)
    assert [round(30 * t) for t in data.points[0]] == list(range(1, 13))


def test_of_long_curves_an_even_share_and_the_end_are_used():
    study = st.Study(st.Space(x=st.Float(0, 1), steps=st.Fidelity(1, 400)), st.Random())
    study.enqueue({"x": 0.5, "steps": 333})
    study.minimize(lambda config, trial: [trial.report(1 / k, steps=k) for k in range(1, 334)] and 0.001, 1)
    data = curves_of(study)
    times, values = data.thinned(data.points[0])
    assert len(times) == MAX_POINTS
    assert times[-1] == pytest.approx(333 / 400)
    assert values[-1] == 0.001


def test_hyperparameters_depend_on_the_first_trials_alone():
    assert [scheduled(n) for n in (1, 5, 6, 7, 8, 10, 11, 13, 14)] == [1, 5, 6, 6, 8, 10, 10, 10, 14]


def test_reports_without_fidelities_or_of_few_trials_make_no_model(study):
    assert CurveMemo().fit(reported(4).history, study.context.encoding) is None
    plain = st.Study(SPACE, st.Random())
    plain.add({"x": 0.5, "y": 0.5, "epochs": 30}, 1.0)
    assert CurveMemo().fit(plain.history, study.context.encoding) is None


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_curves_predict_how_runs_end_better_than_single_values_and_are_chosen(direction, study):
    study = study if direction == "minimize" else reported(direction="maximize")
    fit = CurveMemo().fit(study.history, study.context.encoding)
    assert fit.chosen
    rows = np.arange(0, 10, 2)
    mean, _ = fit.posterior.mean_and_variance(fit.posterior.started(rows))
    truth = np.array([loss(study.history[int(row)].config, 30) for row in rows])
    np.testing.assert_allclose(fit.output.inverse(mean) * fit.data.sign, truth * fit.data.sign, atol=0.1)


def test_curves_whose_beginnings_say_nothing_are_not_chosen():
    rng = np.random.default_rng(0)
    noise = {}

    def value(config, epochs):
        if epochs < 24:
            return 1 + noise.setdefault((config["x"], epochs // 3), rng.random())
        return 1 + 2 * (config["x"] - 0.3) ** 2

    study = reported(12, value=value, short=30)
    fit = CurveMemo().fit(study.history, study.context.encoding)
    assert not fit.chosen
    assert not isinstance(study.context.belief(costs=False).model, CurveSurrogate)


@pytest.mark.parametrize(("odds", "chosen"), [(PLAIN_LOG_ODDS - 0.05, True), (PLAIN_LOG_ODDS + 0.05, False)])
def test_the_plain_kernel_is_preferred_only_if_it_is_clearly_better(odds, chosen, study, monkeypatch):
    fit = CurveMemo().fit(study.history, study.context.encoding)
    posterior, groups = fit.posterior, fit.data.groups
    monkeypatch.setattr(curves_evidence, "left_out_density", lambda *args: 0.0)
    for_curves: list[float] = []
    density = curves_evidence.log_density
    monkeypatch.setattr(curves_evidence, "log_density", lambda *args: for_curves.append(density(*args)) or for_curves[-1])
    beats_plain(posterior, groups, ())
    own, runs = sum(for_curves), len(for_curves)
    monkeypatch.setattr(curves_evidence, "left_out_density", lambda *args: own + odds * runs)
    assert beats_plain(posterior, groups, ()) is chosen


def test_a_history_is_looked_up_once(study, monkeypatch):
    memo, encoding = CurveMemo(), study.context.encoding
    history = study.history
    found = memo.fit(history, encoding)
    monkeypatch.setattr(CurveMemo, "_look_up", lambda *args: None)
    assert memo.fit(history, encoding) is found
    assert memo.fit(study.history.head(5), encoding) is None  # another history is looked up anew


def test_the_belief_of_a_method_at_the_target_learns_from_whole_curves(study):
    belief = study.context.belief(costs=False)
    assert isinstance(belief, Belief)
    assert isinstance(belief.model, CurveSurrogate)
    rows = np.arange(0, 10, 2)  # trials that were stopped at 8 of 30 epochs
    at = belief.encoding.features(SPACE.at_target(study.context.data.U[rows]))
    predicted = belief.output.inverse(belief.moments(at)[0])
    truth = [loss(study.history[int(row)].config, 30) for row in rows]
    np.testing.assert_allclose(predicted, truth, atol=0.12)


def test_the_model_of_the_target_is_near_the_exact_posterior(study):
    fit = CurveMemo().fit(study.history, study.context.encoding)
    X = np.random.default_rng(0).random((20, 2))
    exact, spread = fit.posterior.mean_and_variance(fit.posterior.new(X))
    U = np.column_stack([X, np.ones(20)])
    mean, variance = CurveSurrogate(fit).fit(U, U[:, 0]).posterior.mean_and_variance(study.context.encoding.features(U))
    np.testing.assert_allclose(mean, exact, atol=0.1 + 0.25 * np.sqrt(spread.max()))
    assert np.all(variance < 1.5 * spread + 0.05)


def test_runs_that_were_stopped_early_say_how_much_values_differ():
    """Only good runs reach the target. A model of these alone takes the rest of the space to be as good as they are."""
    x = np.linspace(0, 1, 31)[:, None]
    far = np.abs(x[:, 0] - 0.3)
    ended, values = far < 0.15, -1.0 + 12.0 * np.maximum(far - 0.15, 0.0)  # those that went on are alike, the others are worse
    variances = np.where(ended, 1e-4, 0.25)
    layout = Layout(np.arange(1))
    every, alone = (fit_sites(x[rows], values[rows], variances[rows], layout).theta[1] for rows in (slice(None), ended))
    assert np.exp(every) > 5 * np.exp(alone)


def test_a_study_with_curves_continues_as_if_it_had_not_been_interrupted(study):
    again = st.Study.from_json(study.to_json(), method=st.LogEI())
    assert again.ask().config == st.Study.from_json(study.to_json(), method=st.LogEI()).ask().config
    trial = again.history[-1]
    assert trial.suggestion["by"] == "LogEI"
    assert again.replay().first_difference is None


def test_without_reports_nothing_changes():
    study = st.Study(SPACE, st.LogEI(), seed=1, initial=4)
    for i in range(6):
        config = {"x": (0.37 + 0.618 * i) % 1, "y": (0.2 + 0.755 * i) % 1, "epochs": 30}
        study.add(config, loss(config, 30))
    assert study.context.fits.curves is None
    assert not isinstance(study.context.belief(costs=False).model, CurveSurrogate)
