"""Hyperband as a search method: promotions, failures, running trials, interruptions, and every kind of space."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws

import shoestring as st
from tests.problems import mixed_space, mixed_value
from tests.search.reproducibility import configs, same_seed_same_trials, stored_and_read_it_goes_on_alike

SMALL = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
MIXED = st.Space({**mixed_space(), "epochs": st.Fidelity(1, 9)})
ONE_PASS = 9 + 3 + 1 + 5 + 1 + 3  # trials of the three brackets from 1 to 9
BOTH = [st.Hyperband(), st.Hyperband(asynchronous=True)]
both = pytest.mark.parametrize("method", BOTH, ids=["synchronous", "asynchronous"])


def learning(config):
    """The fewer epochs, the worse the value."""
    return st.Outcome(config["x"] + 1 / config["epochs"], cost=float(config["epochs"]))


def mixed_learning(config):
    return st.Outcome(mixed_value(config) + 1 / config["epochs"], cost=1.0)


def plans(history):
    return [(plan["bracket"], plan["rung"], plan["config"]) for plan in (trial.suggestion["plan"] for trial in history)]


def by_rung(history):
    """Trials by (bracket, rung)."""
    found = defaultdict(list)
    for trial in history:
        plan = trial.suggestion["plan"]
        found[plan["bracket"], plan["rung"]].append(trial)
    return found


def bare(trial):
    return {name: value for name, value in trial.config.items() if name != "epochs"}


def test_bracket_after_bracket_and_then_again_with_new_configurations():
    history = st.minimize(learning, SMALL, 2 * ONE_PASS, method=st.Hyperband()).history
    one = {(0, 1): 9, (0, 3): 3, (0, 9): 1, (1, 3): 5, (1, 9): 1, (2, 9): 3}
    wanted = one | {(bracket + 3, epochs): count for (bracket, epochs), count in one.items()}
    assert Counter((trial.suggestion["plan"]["bracket"], trial.config["epochs"]) for trial in history) == wanted
    assert [trial.config["epochs"] for trial in history[:14]] == [1] * 9 + [3] * 3 + [9] + [3]
    begun = [trial.config["x"] for trial in history if trial.suggestion["plan"]["rung"] == 0]
    assert len(set(begun)) == len(begun) == 2 * (9 + 5 + 3)


@pytest.mark.parametrize("maximize", [False, True])
def test_exactly_the_best_are_promoted(maximize):
    study = st.Study(SMALL, st.Hyperband(), direction="maximize" if maximize else "minimize", seed=3)
    noise = np.random.default_rng(0)
    for _ in range(ONE_PASS):
        study.tell(study.ask(), float(noise.random()))  # ranks change from rung to rung
    rungs = by_rung(study.history)
    for (bracket, rung), above in rungs.items():
        if rung > 0:
            below = sorted(rungs[bracket, rung - 1], key=lambda trial: trial.value, reverse=maximize)
            assert [bare(trial) for trial in above] == [bare(trial) for trial in below[: len(above)]]
    why = rungs[0, 1][1].suggestion["why"]
    assert why == "bracket 1, rung 2 of 3: promoted from epochs = 1 to 3, as number 2 of 9 there"


@both
def test_failed_trials_are_never_promoted_but_fill_a_place(method):
    study = st.Study(SMALL, method)
    for number in range(60):
        trial = study.ask()
        study.tell(trial, *([] if number % 3 else [float(number)]), **({"error": "no"} if number % 3 else {}))
    rungs = by_rung(study.history)
    assert max(rung for _, rung in rungs) == 2
    for (bracket, rung), above in rungs.items():
        if rung > 0:
            done = [bare(trial) for trial in rungs[bracket, rung - 1] if trial.state == "done"]
            assert all(bare(trial) in done for trial in above)
    if not method.asynchronous:
        assert len(rungs[0, 0]) == 9
        assert len(rungs[0, 1]) == 3


@both
def test_it_goes_on_when_nothing_succeeds(method):
    def broken(config):
        raise MemoryError

    history = st.minimize(broken, SMALL, 40, method=method, fail_fast=False).history
    assert {trial.suggestion["plan"]["rung"] for trial in history} == {0}
    assert len({trial.config["x"] for trial in history}) == 40


def test_while_a_rung_waits_the_next_bracket_goes_on():
    study = st.Study(SMALL, st.Hyperband())
    asked = [study.ask() for _ in range(9)]
    for trial in asked[:8]:
        study.tell(trial, trial.config["x"])
    assert plans([study.ask(), study.ask()]) == [(1, 0, 0), (1, 0, 1)]  # the ninth is still running
    study.tell(asked[8], asked[8].config["x"])
    best = min(asked, key=lambda trial: trial.config["x"])
    back = study.ask()
    assert plans([back]) == [(0, 1, best.number)]
    assert back.config == best.config | {"epochs": 3}


@both
def test_several_at_once_are_those_that_one_by_one_would_be(method):
    single, many = (st.Study(SMALL, method, seed=2) for _ in range(2))
    for _ in range(12):
        batch, alone = many.ask_many(5), [single.ask() for _ in range(5)]
        assert [(trial.config, trial.suggestion) for trial in batch] == [(trial.config, trial.suggestion) for trial in alone]
        for trial in batch:
            many.tell(trial, trial.config["x"])
            single.tell(trial.number, trial.config["x"])
    assert {trial.config["epochs"] for trial in many.history} == {1, 3, 9}


@both
def test_trials_that_the_user_adds_have_no_place_on_the_rungs(method):
    alone, crowded = (st.Study(SMALL, method, seed=1) for _ in range(2))
    for step in range(30):
        if step % 5 == 0:
            for _ in range(2):  # (seed, number of the trial) is the same again after two brought ones and two random ones
                crowded.add({"x": 0.001 * step, "epochs": 1}, -1.0)
                crowded.enqueue({"x": 0.9 + 0.001 * step, "epochs": 9})
                crowded.tell(crowded.ask(), -2.0)
        for study in (alone, crowded):
            trial = study.ask()
            study.tell(trial, float(np.random.default_rng([trial.suggestion["plan"]["config"], step]).random()))
    planned = [trial for trial in crowded.history if "plan" in trial.suggestion]
    assert plans(planned) == plans(alone.history)


@both
def test_the_same_seed_gives_the_same_trials(method):
    same_seed_same_trials(method, mixed_learning, 30, MIXED)


@both
@pytest.mark.parametrize("k", [pytest.param(4, marks=pytest.mark.slow), 11])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(method, k):
    stored_and_read_it_goes_on_alike(method, mixed_learning, k, 30, MIXED)


@both
def test_an_interrupted_trial_keeps_its_place(method):
    calls = []

    def interrupted(config):
        calls.append(config)
        if len(calls) in (5, 12, 13):  # at the bottom, and while something is promoted
            raise KeyboardInterrupt
        return learning(config)

    whole = st.minimize(learning, SMALL, 30, method=method, seed=4).history
    study = st.Study(SMALL, method, seed=4)
    for _ in range(3):
        study.minimize(interrupted, 30, on_interrupt="return")
        study = st.Study.from_json(study.to_json(), method)
    study.minimize(interrupted, 30, on_interrupt="return")
    kept = [trial for trial in study.history if trial.state != "abandoned"]
    assert len(study.history) == 33
    assert [(trial.config, trial.suggestion) for trial in kept] == [(trial.config, trial.suggestion) for trial in whole]


def test_other_fidelities_stay_at_their_target():
    space = st.Space({**SMALL, "rows": st.Fidelity(0, 1, target=0.5)})
    history = st.minimize(learning, space, 25, method=st.Hyperband(resource="epochs")).history
    assert {trial.config["epochs"] for trial in history} == {1, 3, 9}
    assert {trial.config["rows"] for trial in history} == {0.5}
    history = st.minimize(lambda config: config["x"], space, 122, method=st.Hyperband(resource="rows")).history
    assert sorted({trial.config["rows"] for trial in history}) == pytest.approx([0.5 / 3**i for i in (4, 3, 2, 1, 0)])
    assert {trial.config["epochs"] for trial in history} == {9}


@both
def test_a_finite_space_is_repeated_by_promotions_only_and_then_exhausted(method):
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", [1], None), m=st.Int(0, 1, when={"c": "a"}), epochs=st.Fidelity(1, 81))
    result = st.minimize(lambda config: st.Outcome(config["n"] + 1 / config["epochs"], cost=1.0), space, 500, method=method)
    assert result.stop.kind == "exhausted"
    assert len({space.key(trial.config) for trial in result.history}) == len(result.history)
    assert len({space.key(bare(trial)) for trial in result.history}) == 16
    assert result.best.config["epochs"] == 81  # the best have gone all the way up
    assert result.best.config["n"] == 1
    waiting = st.Study(space, method)
    for _ in range(16):
        waiting.ask()
    with pytest.raises(st.SpaceExhausted, match="depends on 16 running trials"):
        waiting.ask()


@given(seed=draws.integers(0, 5), method=draws.sampled_from(BOTH), fail=draws.integers(2, 9))
@settings(max_examples=8)
def test_promoted_configs_of_a_conditional_space_are_valid_and_the_same_but_for_the_resource(seed, method, fail):
    study = st.Study(MIXED, method, seed=seed)
    for number in range(30):
        trial = study.ask()
        assert study.space.check(trial.config) == trial.config
        study.tell(trial, float("nan") if number % fail == 0 else mixed_value(trial.config))
    first = {plan[::2]: bare(trial) for plan, trial in zip(plans(study.history), study.history, strict=True) if plan[1] == 0}
    assert all(first[plan[::2]] == bare(trial) for plan, trial in zip(plans(study.history), study.history, strict=True))


def test_what_does_not_fit_into_the_budget_leaves_its_place_to_be_filled():
    def price(config):  # the upper half of x, which is the better one, costs ten times as much
        return config["epochs"] * (10.0 if config["x"] > 0.5 else 1.0)

    result = st.minimize(
        lambda config: st.Outcome(-config["x"], cost=price(config)), SMALL, st.Budget(cost=155.0), method=st.Hyperband(),
        cost_model=st.KnownCost(price),
    )  # fmt: skip
    assert result.spent <= 155.0
    stray = [trial for trial in result.history if "plan" not in trial.suggestion]
    assert stray
    assert all("fits" in trial.suggestion["why"] for trial in stray)


def test_maximizing_is_minimizing_the_negative():
    down = st.minimize(lambda config: config["x"], SMALL, 30, method=st.Hyperband(), seed=2)
    up = st.maximize(lambda config: -config["x"], SMALL, 30, method=st.Hyperband(), seed=2)
    assert configs(down) == configs(up)
