"""Studies with fidelities from end to end: what is asked, what it costs, what is recommended, and what is refused."""

import math

import numpy as np
import pytest

import shoestring as st

ONE = st.Space(x=st.Float(0, 1), y=st.Float(-1, 1), epochs=st.Fidelity(1, 50))
TWO = st.Space(x=st.Float(0, 1), y=st.Float(-1, 1), epochs=st.Fidelity(1, 50, target=30), rows=st.Fidelity(0.1, 1.0))
slow_two = pytest.param(TWO, id="two", marks=pytest.mark.slow)
two_are_slow = pytest.mark.parametrize("space", [pytest.param(ONE, id="one"), slow_two])
quick = {"seed": 0, "initial": 5, "stop": None}


def price(config):
    return 0.5 + config["epochs"] * config.get("rows", 1.0)


def loss(config):
    """Lowest, 0 at the target, near x = 0.3 and y = 0.2; few epochs see it elsewhere."""
    off = 1 / config["epochs"] - 1 / 50 + 0.2 * (1 - config.get("rows", 1.0))
    return 3 * (config["x"] - 0.3 - 0.3 * off) ** 2 + (config["y"] - 0.2) ** 2 + 0.2 * off


def paid(config):
    return st.Outcome(loss(config), cost=price(config))


def configs(result):
    return [trial.config for trial in result.history]


@two_are_slow
def test_auto_is_cfkg_in_a_space_with_fidelities(space):
    first, second = (st.minimize(paid, space, 7, method=method, **quick) for method in ("auto", st.CFKG()))
    assert configs(first) == configs(second)
    without = [{name: part for name, part in trial.suggestion.items() if name != "decision"} for trial in first.history]
    assert without == [trial.suggestion for trial in second.history]
    assert "fidelities" in first.history[-1].suggestion["decision"]["why"]


@pytest.mark.slow
@two_are_slow
def test_the_answer_is_at_the_target_and_most_of_the_search_is_not(space):
    whole = price(space.target)
    result = st.minimize(paid, space, st.Budget(cost=8 * whole, trials=60), **quick)
    assert len({space.key(config) for config in configs(result)}) == len(result.history) > 12
    assert all(space.check(config) == config for config in configs(result))
    assert all(type(config["epochs"]) is int for config in configs(result))
    assert all(config["epochs"] < space.target["epochs"] for config in configs(result)[:5])
    best = result.recommended.config
    assert {name: best[name] for name in space.fidelities} == space.target
    assert loss(best) - loss({"x": 0.3, "y": 0.2} | space.target) < 0.03
    assert np.mean([result.history.at_target(trial) for trial in result.history]) < 0.5


def test_trials_say_at_which_fidelity_they_are():
    history = st.minimize(paid, TWO, 7, method=st.CFKG(), **quick).history
    assert all(trial.fidelity == {name: trial.config[name] for name in TWO.fidelities} for trial in history)
    assert history[0].suggestion["why"].endswith("at a low fidelity")
    assert history[6].suggestion["by"] == "CFKG"
    assert history[6].suggestion["cost"] > 0


def test_maximizing_is_minimizing_the_negative():
    model = st.GP(output="standard")
    down = st.minimize(paid, ONE, 8, model=model, **quick)
    up = st.maximize(lambda config: st.Outcome(-loss(config), cost=price(config)), ONE, 8, model=model, **quick)
    assert configs(down) == configs(up)
    assert up.recommended.config == down.recommended.config
    assert up.recommended.value == pytest.approx(-down.recommended.value)


def test_failed_trials_are_avoided_and_the_study_goes_on():
    def fails(config):
        return st.Outcome(math.nan if config["x"] > 0.7 else loss(config), cost=price(config))

    result = st.minimize(fails, ONE, 14, **quick)
    failed = [trial.number for trial in result.history.having(st.State.FAILED)]
    assert failed
    assert sum(number >= 8 for number in failed) <= 2
    assert result.recommended.config["x"] < 0.7
    assert result.recommended.config["epochs"] == 50


def test_while_everything_fails_nothing_is_recommended_and_the_first_success_is_enough():
    study = st.Study(ONE, st.CFKG(), seed=0, initial=3)
    study.minimize(lambda config: math.inf, 5, fail_fast=False)
    assert study.recommend() is None
    study.minimize(paid, 6)
    assert study.recommend().config["epochs"] == 50
    assert study.ask().config["epochs"] <= 50


def test_the_same_seed_gives_the_same_trials():
    first, again = (st.minimize(paid, TWO, 7, **quick) for _ in range(2))
    other = st.minimize(paid, TWO, 5, **(quick | {"seed": 1}))
    assert configs(first) == configs(again)
    assert configs(first)[:5] != configs(other)


@pytest.mark.parametrize(("method", "k"), [(st.CFKG(), 3), pytest.param("auto", 6, marks=pytest.mark.slow)], ids=["CFKG", "auto"])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(method, k):
    whole, part = (st.Study(TWO, method, **quick) for _ in range(2))
    whole.minimize(paid, 7)
    part.minimize(paid, k)
    rest = st.Study.from_json(part.to_json(), method, stop=None)
    rest.minimize(paid, 7)
    assert configs(rest) == configs(whole)
    assert [trial.suggestion for trial in rest.history] == [trial.suggestion for trial in whole.history]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "cost_model"), [
    pytest.param("auto", "auto", id="auto"), pytest.param(st.CFKG(), st.KnownCost(price), id="known", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_budget_in_cost_is_kept(method, cost_model):
    limit = 150.0 if cost_model == "auto" else 100.0
    result = st.minimize(paid, ONE, st.Budget(cost=limit), method=method, cost_model=cost_model, **quick)
    assert result.stop.kind == "budget"
    assert 0.8 * limit < result.spent <= limit + (10.0 if cost_model == "auto" else 0.0)
    assert result.recommended.config["epochs"] == 50


def test_a_budget_below_the_price_of_the_target_buys_low_fidelities():
    result = st.minimize(paid, ONE, st.Budget(cost=20.0), method=st.CFKG(), cost_model=st.KnownCost(price), **quick)
    assert 0 < result.spent <= 20.0
    assert all(config["epochs"] < 20 for config in configs(result))
    assert len(result.history) >= 5


@two_are_slow
def test_trials_asked_together_take_each_other_into_account(space):
    study = st.Study(space, st.CFKG(), **quick)
    study.minimize(paid, 6)
    batch = study.ask_many(2)
    assert len({space.key(trial.config) for trial in study.history}) == 8
    assert all(trial.state is st.State.RUNNING for trial in study.history[6:])
    later = study.ask()
    assert space.key(later.config) not in {space.key(trial.config) for trial in batch}
    again = st.Study.from_json(study.to_json(), st.CFKG(), stop=None)
    assert again.ask().config == study.ask().config
    assert study.tell(batch[1], loss(batch[1].config), cost=1.0).state is st.State.DONE


def test_a_recommendation_says_whether_it_was_evaluated_at_the_target():
    study = st.Study(st.Space(n=st.Int(1, 6), epochs=st.Fidelity(1, 9)), st.CFKG(), **quick)
    for n in range(1, 7):
        study.add({"n": n, "epochs": 2}, (n - 4) ** 2 + 0.1, cost=2.0)
    early = study.recommend()
    assert (early.config, early.evaluated, early.number) == ({"n": 4, "epochs": 9}, False, None)
    study.add({"n": 4, "epochs": 9}, 0.0, cost=9.0)
    late = study.recommend()
    assert (late.config, late.evaluated, late.number) == ({"n": 4, "epochs": 9}, True, 6)
    assert study.result.recommended == late
    assert study.recommend(study.history.head(6)) == early


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        ({"z": 1.0}, "'z', which is not in this trial's config"),
        ({"x": [1.0, 2.0]}, "one number for 'x'"),
        ([1.0, 2.0], "dict"),
        ({"x": math.nan}, "nan for 'x'"),
        ({"x": math.inf}, "inf for 'x'"),
        ({"x": "steep"}, "one number for 'x'"),
    ],
    ids=["unknown", "long", "list", "nan", "inf", "text"],
)
def test_a_bad_gradient_is_refused_at_the_call_and_the_trial_stays_open(gradient, said):
    study = st.Study(ONE, st.CFKG(), **quick)
    trial = study.ask()
    with pytest.raises(st.OutcomeError, match=said):
        study.tell(trial, 1.0, cost=2.0, gradient=gradient)
    with pytest.raises(st.OutcomeError, match=said):
        study.add({"x": 0.5, "y": 0.0}, 1.0, gradient=gradient)
    assert len(study.history) == 1
    assert study.history[0].state is st.State.RUNNING
    kept = study.tell(trial, 1.0, cost=2.0, gradient={"x": 1.0, "epochs": -0.1})
    assert (kept.state, kept.value, kept.gradient) == (st.State.DONE, 1.0, {"x": 1.0, "epochs": -0.1})


@pytest.mark.slow
def test_a_slope_by_a_fidelity_is_one_too():
    def told(config):
        slopes = {"y": 2 * (config["y"] - 0.2), "epochs": -0.2 / config["epochs"] ** 2}
        return st.Outcome(loss(config), cost=price(config), gradient=slopes)

    result = st.minimize(told, ONE, 8, method=st.CFDKG(), **quick)
    assert all(trial.state is st.State.DONE for trial in result.history)
    assert result.recommended.config["epochs"] == 50


def test_reports_that_go_backwards_or_too_far_are_errors():
    said = []

    def reporting(config, trial):
        for epochs in (1, 3, 2) if config["epochs"] > 2 else (51, config["epochs"] + 1):
            try:
                trial.report(loss(config | {"epochs": epochs}), epochs=epochs)
            except st.ShoestringError as error:
                said.append(type(error))
                if epochs == 2:
                    raise
        return paid(config)

    result = st.minimize(reporting, ONE, 6, method=st.CFKG(), fail_fast=False, **quick)
    deep = [trial for trial in result.history if trial.config["epochs"] > 2]
    assert deep
    assert all("goes backwards" in trial.error for trial in deep)
    assert all(trial.state is st.State.FAILED and len(trial.reports) == 2 for trial in deep)
    assert st.OutcomeError in said


@pytest.mark.parametrize("epochs", [0, 51, 2.5, math.nan, "all", None], ids=str)
def test_a_fidelity_outside_its_range_is_refused(epochs):
    study = st.Study(ONE, st.CFKG(), **quick)
    for call in (study.enqueue, lambda config: study.add(config, 1.0)):
        with pytest.raises(st.ConfigError, match="epochs"):
            call({"x": 0.5, "y": 0.0, "epochs": epochs})
    assert len(study.history) == 0
    study.enqueue({"x": 0.5, "y": 0.0})
    assert study.ask().config["epochs"] == 50  # left out: the target
