"""BOCA as a search method: planted bias, budgets, failures, open trials, interruptions, and every kind of space."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws

import shoestring as st
from shoestring.search.boca import FACTOR_KEY, FidelityCandidates, confidence
from shoestring.surrogate.belief import fit_cost
from tests.problems import belief_of, mixed_space, mixed_value
from tests.search.boca_problem import SMALL, learning, price, study_and_belief
from tests.search.reproducibility import configs, same_seed_same_trials, stored_and_read_it_goes_on_alike

MIXED = st.Space({**mixed_space(), "epochs": st.Fidelity(1, 9)})
START = st.study.INITIAL_TRIALS


def mixed_learning(config):
    return st.Outcome(mixed_value(config) + 1 / config["epochs"], cost=0.2 + config["epochs"])


def own(history):
    """The trials that the model has chosen."""
    return [trial for trial in history if FACTOR_KEY in trial.suggestion.get("model", {})]


def ask_often(study):
    for _ in range(100):
        study.ask()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_neither_always_cheapest_nor_always_at_the_target_and_the_bias_does_not_mislead(seed):
    cheapest = min((learning({"x": x, "y": 0.2, "epochs": 1}).value, x) for x in np.linspace(0, 1, 1001))[1]
    best = min(learning({"x": x, "y": 0.2, "epochs": 27}).value for x in np.linspace(0, 1, 1001))
    assert learning({"x": cheapest, "y": 0.2, "epochs": 27}).value > best + 0.1  # the lowest point of one epoch is misleading
    result = st.minimize(learning, SMALL, 40, method=st.BOCA(), seed=seed, stop=None)
    epochs = [trial.config["epochs"] for trial in own(result.history)]
    assert len(epochs) == 40 - START
    assert 3 <= epochs.count(27) <= len(epochs) - 3
    assert min(epochs) < 14
    assert len(set(epochs)) > 2
    assert result.spent < 0.85 * sum(price(trial.config | {"epochs": 27}) for trial in result.history)
    assert learning(result.recommended.config | {"epochs": 27}).value < best + 0.02


def test_where_nothing_is_saved_it_is_the_target():
    def flat(config):
        return st.Outcome(learning(config).value, cost=10 + config["epochs"] / 27)

    result = st.minimize(flat, SMALL, 14, method=st.BOCA(), cost_model=st.KnownCost(lambda c: 10 + c["epochs"] / 27), stop=None)
    assert {trial.config["epochs"] for trial in own(result.history)} == {27}
    assert "saves 10%" in result.history[-1].suggestion["why"]


@pytest.mark.slow
def test_several_fidelities_with_targets_inside_their_range():
    space = st.Space({**SMALL, "rows": st.Fidelity(0, 1, target=0.5)})

    def noisier(config):
        seen = learning(config)
        return st.Outcome(seen.value + 0.4 * abs(0.5 - config["rows"]), cost=seen.cost * (0.02 + config["rows"]))

    history = st.minimize(noisier, space, 40, method=st.BOCA(), seed=1, stop=None).history
    chosen = [(trial.config["epochs"], trial.config["rows"]) for trial in own(history)]
    assert (27, 0.5) in chosen
    low = [each for each in chosen if each != (27, 0.5)]
    assert len(low) > 3
    assert all(epochs / 27 * rows / 0.5 < 1.2 for epochs, rows in low)
    assert any(epochs < 27 for epochs, _ in low)
    assert any(rows < 0.5 for _, rows in low)


def test_a_space_without_fidelities_is_refused_at_once():
    with pytest.raises(st.MethodError, match=r"Fidelity\(1, 81\).*LCB"):
        st.Study(mixed_space(), st.BOCA()).ask()


def test_the_same_seed_gives_the_same_trials():
    same_seed_same_trials(st.BOCA(), mixed_learning, 10, MIXED)


@pytest.mark.parametrize("k", [pytest.param(3, marks=pytest.mark.slow), 8])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(k):
    stored_and_read_it_goes_on_alike(st.BOCA(), mixed_learning, k, 11, MIXED)


def test_an_interruption_changes_nothing():
    calls = []

    def interrupted(config):
        calls.append(config)
        if len(calls) in (3, 9, 10):
            raise KeyboardInterrupt
        return learning(config)

    whole = st.minimize(learning, SMALL, 14, method=st.BOCA(), seed=4, initial=5, stop=None).history
    study = st.Study(SMALL, st.BOCA(), seed=4, initial=5, stop=None)
    for _ in range(3):
        study.minimize(interrupted, 14, on_interrupt="return")
        study = st.Study.from_json(study.to_json(), st.BOCA(), stop=None)
    study.minimize(interrupted, 14, on_interrupt="return")
    kept = [trial for trial in study.history if trial.state != "abandoned"]
    assert len(study.history) == 17
    assert [(trial.config, trial.suggestion) for trial in kept] == [(trial.config, trial.suggestion) for trial in whole]
    assert len({trial.suggestion["model"][FACTOR_KEY] for trial in own(whole)}) > 1


def test_maximizing_is_minimizing_the_negative():
    def negative(config):
        return st.Outcome(-learning(config).value, cost=price(config))

    down = st.minimize(learning, SMALL, 14, method=st.BOCA(), model=st.GP(output="standard"), stop=None)
    up = st.maximize(negative, SMALL, 14, method=st.BOCA(), model=st.GP(output="standard"), stop=None)
    assert configs(down) == configs(up)


def test_running_trials_are_taken_into_account():
    study, _ = study_and_belief(12)
    single, _ = study_and_belief(12)
    batch, alone = study.ask_many(5), [single.ask() for _ in range(5)]
    assert [(trial.config, trial.suggestion) for trial in batch] == [(trial.config, trial.suggestion) for trial in alone]
    points = np.array([[trial.config["x"], trial.config["y"]] for trial in batch])
    apart = np.abs(points[:, None] - points[None, :]).max(axis=2) + np.eye(5)
    assert apart.min() > 1e-3


def test_where_low_fidelities_fail_a_success_there_is_expensive():
    def fails(config):
        return st.Outcome(float("nan") if config["epochs"] < 6 else learning(config).value, cost=price(config))

    study = st.Study(SMALL, st.BOCA(), seed=0, stop=None)
    study.minimize(fails, 30)
    states = [trial.state for trial in study.history]
    assert states[-12:].count("failed") <= 1
    belief, encoding, seen = belief_of(study)
    belief = dataclasses.replace(belief, cost=fit_cost(seen, encoding, st.KnownCost(price)))
    candidates = FidelityCandidates.at(SMALL.at_target(np.full((1, 3), 0.5))[0], belief, np.random.default_rng(0))
    chance = belief.feasibility.log_probability(encoding.features(candidates.U))
    assert chance[0] < chance[-1] - 1
    expected = candidates.log_cost - chance
    np.testing.assert_allclose(candidates.log_share, expected - expected[-1])


def test_a_budget_in_cost_is_kept_and_its_rest_buys_the_best_fidelity_that_it_can():
    known_cost = st.KnownCost(price)
    total = 200.0
    result = st.minimize(learning, SMALL, st.Budget(cost=total), method=st.BOCA(), cost_model=known_cost, seed=0, stop=None)
    assert result.stop.kind == "budget"
    assert total - 3.0 <= result.spent <= total
    bought = [trial for trial in result.history if "fits into the budget" in trial.suggestion["why"]]
    assert bought
    for trial in bought:
        left = total - sum(before.cost for before in result.history[: trial.number])
        more = price(trial.config | {"epochs": trial.config["epochs"] + 1})
        assert trial.config["epochs"] < 27
        assert price(trial.config) <= left * (1 + 1e-9) < more * (1 + 1e-6)


def test_where_the_config_is_too_expensive_at_any_fidelity_another_one_is_found():
    def expensive(config):  # the good side costs more at one epoch than the other at all of them
        return config["epochs"] * (1000.0 if config["x"] < 0.5 else 1.0)

    study = st.Study(SMALL, st.BOCA(), budget=st.Budget(cost=30_000.0), cost_model=st.KnownCost(expensive), initial=4, stop=None)
    for u in SMALL.snap(np.random.default_rng(0).random((12, 3))):
        config = SMALL.decode(u)
        study.enqueue(config)
        study.tell(study.ask(), learning(config).value, cost=2499.0)
    belief, encoding, _ = belief_of(study)
    trial = study.ask()
    assert trial.config["x"] >= 0.5
    assert expensive(trial.config) <= 12  # which is left: not enough for the target
    assert "of what fits into the budget" in trial.suggestion["why"]
    U = np.vstack([SMALL.encode(trial.config), np.random.default_rng(0).uniform([0.5, 0, 0], 1, (2000, 3))])
    mean, variance = belief.objective.mean_and_variance(encoding.features(SMALL.at_target(U)))
    bound = mean - np.sqrt(confidence(belief, 13) * variance)
    assert bound[0] <= bound.min() + 0.02


def test_the_expected_cost_of_running_trials_is_not_spent_again():
    study = st.Study(SMALL, st.BOCA(), budget=st.Budget(cost=400.0), cost_model=st.KnownCost(price), initial=4, stop=None)
    for u in SMALL.snap(np.random.default_rng(0).random((14, 3))):
        config = SMALL.decode(u)
        study.enqueue(config)
        study.tell(study.ask(), learning(config).value, cost=25.0)
    with pytest.raises(st.NothingFits):
        ask_often(study)
    asked = study.history.having(st.State.RUNNING)
    assert 1 < len(asked) < 100
    assert "nearest to the target that fits" in asked[-1].suggestion["why"]
    assert sum(price(trial.config) for trial in asked) <= 50 * (1 + 1e-9)


def test_a_finite_space_is_searched_without_repeats_until_all_is_known_at_the_target():
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", [1], None), m=st.Int(0, 1, when={"c": "a"}), epochs=st.Fidelity(1, 9))

    def value(config):
        return st.Outcome(config["n"] + len(config) + 1 / config["epochs"], cost=config["epochs"])

    result = st.minimize(value, space, 300, method=st.BOCA(), stop=None, initial=5)
    assert result.stop.kind == "exhausted"
    assert len({space.key(trial.config) for trial in result.history}) == len(result.history)
    assert sum(trial.config["epochs"] == 9 for trial in result.history) == 16


@given(seed=draws.integers(0, 5), fail=draws.integers(2, 9))
@settings(max_examples=settings().max_examples // 12)
def test_every_suggestion_on_a_mixed_conditional_space_is_valid_and_new(seed, fail):
    study = st.Study(MIXED, st.BOCA(), seed=seed, initial=4, stop=None)
    for number in range(11):
        trial = study.ask()
        assert study.space.check(trial.config) == trial.config
        cost = 1.0 + trial.config["epochs"]
        study.tell(trial, float("nan") if number % fail == 0 else mixed_learning(trial.config).value, cost=cost)
    assert len({MIXED.key(trial.config) for trial in study.history}) == 11
