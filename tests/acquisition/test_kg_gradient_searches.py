"""Studies with d-KG and cf-d-KG: with gradients and without, in batches, over fidelities, and in degenerate cases."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition import kg_gradient, knowledge_gradient
from shoestring.acquisition.optimize.optimizer import OptimizerOptions
from tests.gradient_problems import mixed_gradient, study_with_gradients, wave_gradient, waves
from tests.problems import bowl, mixed_space, mixed_value, plane


@pytest.fixture
def little_effort(monkeypatch):
    """For tests in which any sensible point will do."""
    options = OptimizerOptions(raw_samples=48, local_samples=24, restarts=3, rounds=1)
    monkeypatch.setattr(knowledge_gradient, "KG_OPTIMIZER_OPTIONS", options)
    monkeypatch.setattr(knowledge_gradient, "N_REFINED_CANDIDATES", 2)
    monkeypatch.setattr(kg_gradient, "FANTASIES_PER_CANDIDATE", 2)


def reporting(value, gradient):
    return lambda config: st.Outcome(value(config), cost=1.0, gradient=gradient(config))


def bowl_gradient(config):
    return {name: 2 * (x - 0.3) for name, x in config.items()}


@pytest.mark.parametrize("space", [plane(2), mixed_space()], ids=["plane", "mixed"])
@pytest.mark.usefixtures("little_effort")
def test_it_runs_on_numbers_and_on_mixed_conditional_spaces(space):
    problem = (mixed_value, mixed_gradient) if "rate" in space else (waves, wave_gradient)
    history = st.minimize(reporting(*problem), space, 7, method=st.DKG(), seed=0, initial=5, stop=None).history
    assert len({space.key(trial.config) for trial in history}) == 7
    assert all(space.check(trial.config) == trial.config for trial in history)


@pytest.mark.slow
def test_with_gradients_it_finds_a_minimum_in_few_trials():
    result = st.minimize(reporting(bowl, bowl_gradient), plane(3), 7, method=st.DKG(), seed=0, initial=3, stop=None)
    assert bowl(result.recommended.config) < 1e-3


@pytest.mark.parametrize(("derivative", "plain"), [(st.DKG(), st.KG()), (st.CFDKG(), st.CFKG())], ids=["DKG", "CFDKG"])
def test_while_no_gradients_are_reported_it_is_kg(derivative, plain):
    """With few gradients too: one trial in three reports one, so the next is not expected to."""
    for reported_where in (lambda number: False, lambda number: number % 3 == 0):
        studies = [
            study_with_gradients(plane(2), waves, wave_gradient, 12, reported_where=reported_where, method=method)
            for method in (derivative, plain)
        ]
        assert studies[0].ask().config == studies[1].ask().config


def test_where_gradients_are_reported_it_suggests_something_else():
    derivative, plain = (
        study_with_gradients(plane(2), waves, wave_gradient, 6, method=method, initial=5) for method in (st.DKG(), st.KG())
    )
    assert derivative.ask().config != plain.ask().config


@pytest.mark.parametrize("method", [st.DKG(), pytest.param(st.CFDKG(), marks=pytest.mark.slow)], ids=["DKG", "CFDKG"])
@pytest.mark.usefixtures("little_effort")
def test_the_points_of_a_batch_differ(method):
    study = study_with_gradients(plane(2), waves, wave_gradient, 8, method=method)
    points = np.array([list(trial.config.values()) for trial in study.ask_many(2)])
    distances = np.linalg.norm(points[:, None] - points[None, :], axis=2)[np.triu_indices(2, 1)]
    assert (distances > 1e-3).all()
    assert len({tuple(trial.config.values()) for trial in study.history}) == 10


CONSTANT = {"x0": 0.0, "x1": 0.0}
DEGENERATE = {
    "one": [({"x0": 0.4, "x1": 0.6}, 1.0, {"x0": 0.5, "x1": -0.5})],
    "duplicates": [({"x0": 0.4, "x1": 0.6}, 1.0, {"x0": 0.5, "x1": -0.5})] * 5,
    "duplicates that disagree": [({"x0": 0.4, "x1": 0.6}, float(k), {"x0": 0.5 * k, "x1": -0.5}) for k in range(4)],
    "constant": [({"x0": x, "x1": y}, 2.0, CONSTANT) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)],
    "huge": [({"x0": x, "x1": 0.5}, 1e300 * x, {"x0": 1e300, "x1": 0.0}) for x in (0.1, 0.4, 0.9)],
    "steep": [({"x0": x, "x1": 0.5}, x, {"x0": 1e200, "x1": -1e200}) for x in (0.1, 0.4, 0.9)],
    "saturated": [({"x0": x, "x1": y}, bowl({"x0": x, "x1": y}), bowl_gradient({"x0": x, "x1": y}))
                  for x in np.linspace(0, 1, 6) for y in np.linspace(0, 1, 6)],
}


@pytest.mark.parametrize("trials", [
    pytest.param(trials, id=name, marks=[] if name in ("one", "duplicates that disagree", "steep") else [pytest.mark.slow])
    for name, trials in DEGENERATE.items()
])  # fmt: skip
@pytest.mark.parametrize("method", [st.DKG(), pytest.param(st.CFDKG(), marks=pytest.mark.slow)], ids=repr)
@pytest.mark.usefixtures("little_effort")
def test_degenerate_cases_give_a_new_point(trials, method):
    study = st.Study(plane(2), method, seed=0, initial=1)
    for config, value, gradient in trials:
        study.add(config, value, gradient=gradient, cost=1.0)
    trial = study.ask()
    assert all(0 <= x <= 1 for x in trial.config.values())
    assert trial.config not in [config for config, _, _ in trials]
    assert math.isfinite(trial.suggestion["predicted"])
    assert all(math.isfinite(x) for x in trial.suggestion["model"]["theta"])


def test_it_goes_down_the_gradient():
    study = st.Study(plane(1), st.DKG(), seed=0, initial=1)
    for x in (0.5, 0.55):
        study.add({"x0": x}, 1.0 + 0.3 * (x - 0.5), gradient={"x0": 0.3}, cost=1.0)
    assert study.ask().config["x0"] < 0.5


@pytest.mark.usefixtures("little_effort")
def test_failed_and_pending_trials():
    study = study_with_gradients(plane(2), waves, wave_gradient, 12, fails=lambda config: config["x0"] > 0.8, method=st.DKG())
    asked = [study.ask() for _ in range(3)]
    assert len({tuple(trial.config.values()) for trial in asked}) == 3


EPOCHS = st.Space(x0=st.Float(0, 1), x1=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(0.1, 1.0))


def learning(config):
    """A bowl that is displaced at low fidelities; derivatives by the configuration are reported, and none by the fidelities."""
    off = 0.3 / config["epochs"] + 0.1 * (1 - config["rows"])
    place = {name: config[name] - off for name in ("x0", "x1")}
    return st.Outcome(bowl(place) + off, cost=0.2 + config["epochs"] * config["rows"], gradient=bowl_gradient(place))


@pytest.mark.slow
def test_over_fidelities_and_costs():
    result = st.minimize(learning, EPOCHS, 24, method=st.CFDKG(), seed=0, initial=6, stop=None)
    assert all(EPOCHS.check(trial.config) == trial.config for trial in result.history)
    assert len({EPOCHS.key(trial.config) for trial in result.history}) == 24
    assert len({trial.config["epochs"] for trial in result.history}) > 2
    assert result.spent < 0.7 * 24 * 9.2
    best = result.recommended.config
    assert (best["epochs"], best["rows"]) == (9, 1.0)
    assert learning(best).value < 0.04


@pytest.mark.parametrize("space", [EPOCHS, plane(2)], ids=["fidelities", "none"])
@pytest.mark.usefixtures("little_effort")
def test_it_runs_while_no_cost_is_known(space):
    study = st.Study(space, st.CFDKG(), seed=0, initial=3, stop=None)
    for _ in range(4):
        trial = study.ask()
        full = trial.config | {name: trial.config.get(name, 1) for name in ("epochs", "rows")}
        study.tell(trial, learning(full).value, gradient=learning(full).gradient)
    assert len({space.key(trial.config) for trial in study.history}) == 4


@pytest.mark.usefixtures("little_effort")
def test_the_same_seed_gives_the_same_trials_and_so_does_a_study_stored_half_way():
    whole, part = (st.Study(EPOCHS, st.CFDKG(), seed=3, initial=4, stop=None) for _ in range(2))
    whole.minimize(learning, 6)
    part.minimize(learning, 5)
    rest = st.Study.from_json(part.to_json(), st.CFDKG(), stop=None)
    rest.minimize(learning, 6)
    assert [trial.config for trial in rest.history] == [trial.config for trial in whole.history]
    assert [trial.suggestion for trial in rest.history] == [trial.suggestion for trial in whole.history]


@pytest.mark.usefixtures("little_effort")
def test_hyperparameters_may_be_integrated_out():
    model = st.GP(inference="mcmc", sets=2)
    study = study_with_gradients(plane(2), waves, wave_gradient, 9, method=st.DKG(), model=model)
    assert len(study.ask().suggestion["model"]["sets"]) == 2
