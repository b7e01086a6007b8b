"""Optuna's TPE as a search method: reproducible, on every kind of space, with failures and running trials."""

import logging
import sys
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws
from scipy.stats import mannwhitneyu

import shoestring as st
from shoestring.search.tpe import distributions, from_unit, optuna_params, to_unit
from tests.problems import bowl, hartmann3, mixed_space, mixed_value, plane, told_study
from tests.search.reproducibility import configs, same_seed_same_trials, stored_and_read_it_goes_on_alike
from tests.spaces import spaces

BOTH = [st.TPE(), st.TPE(multivariate=False)]
both = pytest.mark.parametrize("method", BOTH, ids=["multivariate", "univariate"])


def paid(config):
    return st.Outcome(mixed_value(config), cost=1.0)


@both
def test_the_same_seed_gives_the_same_trials(method):
    same_seed_same_trials(method, paid, 10)


@both
@pytest.mark.parametrize("k", [pytest.param(3, marks=pytest.mark.slow), 9])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(method, k):
    stored_and_read_it_goes_on_alike(method, paid, k, 11)


@given(space=spaces(), together=draws.booleans(), seed=draws.integers(0, 5))
@settings(max_examples=15)
def test_every_space_gets_valid_configs_at_the_target(space, together, seed):
    study = told_study(space, lambda config: float(len(config)), 6, seed, method=st.TPE(together), initial=4)
    for _ in range(2):
        try:
            config = study.ask().config
        except st.SpaceExhausted:
            break
        assert space.check(config) == config
        assert {name: config[name] for name in space.target} == space.target


@given(space=spaces())
@settings(max_examples=25)
def test_what_optuna_sees_comes_back_as_the_same_config(space):
    U = space.snap(space.at_target(np.random.default_rng(0).random((5, len(space)))))
    kinds = distributions(space)
    for u, (params, own) in zip(U, optuna_params(space, U), strict=True):
        assert own.keys() == params.keys() == space.decode(u).keys() - set(space.fidelities)
        for j, name in enumerate(space):
            if name in params:
                assert kinds[name]._contains(kinds[name].to_internal_repr(params[name]))
                assert to_unit(space[name], from_unit(space[name], u[j : j + 1])[0]) == pytest.approx(u[j], abs=1e-12)


def test_a_space_filling_initial_design_and_then_the_sampler():
    study = st.Study(plane(), st.TPE(), initial=4)
    for _ in range(6):
        study.tell(study.ask(), 1.0, cost=1.0)
    whys = [trial.suggestion["why"] for trial in study.history]
    assert ["space-filling" in why for why in whys] == [True] * 4 + [False] * 2
    assert "5 trials" in whys[5]
    assert study.history[5].suggestion["by"] == "TPE"


@both
def test_it_is_the_answer_of_optuna_itself(method):
    """On a linear space, the study that a user would write by hand gives the same config."""
    study = told_study(plane(3), bowl, 20, method=method)
    hand = optuna.create_study(
        sampler=optuna.samplers.TPESampler(
            n_startup_trials=0, multivariate=method.multivariate, seed=int(np.random.default_rng([0, 20]).integers(2**32))
        )
    )
    kinds = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(3)}
    for trial in study.history:
        hand.add_trial(optuna.create_trial(params=trial.config, distributions=kinds, value=trial.value))
    assert study.ask().config == hand.ask(kinds).params


def test_running_trials_are_taken_into_account():
    study = told_study(mixed_space(), mixed_value, 12, method=st.TPE())
    asked = [study.ask().config for _ in range(6)]
    assert len({study.space.key(config) for config in asked}) == 6
    alone, crowded = (told_study(plane(), bowl, 12, method=st.TPE(), initial=4) for _ in range(2))
    for _ in range(6):  # the same number of trials, so the same random numbers: the difference is what the sampler was told
        alone.enqueue({"x0": 0.9, "x1": 0.9})
        alone.ask()
        crowded.enqueue({"x0": 0.3, "x1": 0.3})
        crowded.ask()
    assert alone.ask().config != crowded.ask().config


@pytest.mark.slow
@both
def test_it_keeps_away_from_where_trials_fail(method):
    """Values fall towards a region that fails; random search would fail nine times of thirty."""

    def fragile(config):
        if config["x0"] > 0.7:
            raise MemoryError("too large")
        return -config["x0"]

    histories = [st.minimize(fragile, plane(), 30, method=method, seed=seed).history for seed in range(3)]
    counts = [len(history.having(st.State.FAILED)) for history in histories]
    assert np.mean(counts) < 15  # 22, all but the start, if failures were passed over


def test_failed_trials_do_not_stop_it():
    def fragile(config):
        if config["kind"] == "a":
            raise MemoryError("too large")
        return mixed_value(config)

    result = st.minimize(fragile, mixed_space(), 25, method=st.TPE(), seed=3)
    assert len(result.history) == 25
    assert result.best.value < 1.0
    assert len(result.history.having(st.State.FAILED)) < 10
    failing = st.Study(plane(), st.TPE(), initial=3)
    for _ in range(6):
        failing.tell(failing.ask(), error="no", cost=1.0)
    assert "space-filling" in failing.history[-1].suggestion["why"]


@both
def test_a_finite_space_is_never_repeated_and_then_exhausted(method):
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", [1], None), m=st.Int(0, 1, when={"c": "a"}))
    study = st.Study(space, method, initial=4)
    keys = set()
    for _ in range(16):
        trial = study.ask()
        keys.add(space.key(space.check(trial.config)))
        study.tell(trial, float(trial.config["n"]), cost=1.0)
    assert len(keys) == 16
    with pytest.raises(st.SpaceExhausted, match="16"):
        study.ask()


def test_other_fidelities_are_not_compared():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 10))
    asked = []
    for extra in (False, True):
        study = st.Study(space, st.TPE(), initial=2)
        for x in np.linspace(0, 1, 10):
            study.add({"x": float(x)}, float(x), cost=1.0)
        study.add({"x": 0.9, "epochs": 1 if extra else 10}, -5.0 if extra else 2.0, cost=1.0)
        asked.append(study.ask())
    assert "on 10 trials" in asked[1].suggestion["why"]
    assert asked[1].config["epochs"] == 10


def test_maximizing_is_minimizing_the_negative():
    down = st.minimize(bowl, plane(), 20, method=st.TPE(), seed=2)
    up = st.maximize(lambda config: -bowl(config), plane(), 20, method=st.TPE(), seed=2)
    assert configs(down) == configs(up)


def test_optuna_is_silent_and_left_as_it_was(caplog):
    study = told_study(mixed_space(), mixed_value, 12, method=st.TPE(multivariate=True))
    level, filters = optuna.logging.get_verbosity(), list(warnings.filters)
    optuna.logging.enable_propagation()
    try:
        with caplog.at_level(logging.DEBUG):
            study.ask()
    finally:
        optuna.logging.disable_propagation()
    assert caplog.records == []
    assert optuna.logging.get_verbosity() == level
    assert list(warnings.filters) == filters


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(st.MethodError, match=r"shoestring\[optuna\]"):
        st.TPE()


@pytest.mark.parametrize("bad", [{"candidates": 0}, {"candidates": 2.5}, {"candidates": True}, {"multivariate": 3}], ids=str)
def test_bad_input_is_refused_by_name(bad):
    with pytest.raises(st.MethodError, match=next(iter(bad))):
        st.TPE(**bad)


@both
@pytest.mark.slow
def test_better_than_random(method):
    ours = [st.minimize(hartmann3, plane(3), 40, method=method, seed=seed).best.value for seed in range(15)]
    random = [st.minimize(hartmann3, plane(3), 40, method=st.Random(), seed=seed).best.value for seed in range(1000, 1045)]
    assert mannwhitneyu(ours, random, alternative="less").pvalue < 0.01
