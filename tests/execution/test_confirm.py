"""``confirm=True``: the recommendation is evaluated at the target inside the budget, and is then the one that is kept."""

import numpy as np
import pytest

import shoestring as st
from shoestring.execution.confirm import MAX_COST_MARGIN, config_to_confirm, confirmation_price
from shoestring.search.pruning import PruningForecast
from shoestring.search.recommend import CONFIRMS, recommend
from shoestring.state.suggester import Suggester

SPACE = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))


KNOWN = st.KnownCost(lambda config: 0.05 + config["s"])


def shifted(config):
    return st.Outcome((config["x"] - 0.3 - 0.2 * (1 - config["s"])) ** 2 + 0.1, cost=0.05 + config["s"])


@pytest.mark.parametrize("budget", [
    pytest.param(st.Budget(cost=5.0, unit="u"), id="cost", marks=pytest.mark.slow), pytest.param(12, id="trials"),
])  # fmt: skip
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_is_recommended_was_evaluated_at_the_target_inside_the_budget(budget, seed):
    result = st.minimize(shifted, SPACE, budget, confirm=True, seed=seed, stop=None, cost_model=KNOWN)
    last = result.history[-1]
    assert last.suggestion["why"] == "confirms what is recommended"
    assert last.fidelity == {"s": 1.0}
    assert result.recommended.evaluated
    assert result.recommended.number == last.number
    assert "was then evaluated" in result.stop.reason
    if isinstance(budget, int):
        assert len(result.history) == budget
    else:
        assert result.spent <= budget.cost


def test_nothing_is_evaluated_twice_to_confirm_it():
    space = st.Space(c=st.Choice("a", "b"))
    result = st.minimize(lambda config: float(config["c"] == "a"), space, 6, confirm=True, stop=None)
    assert len(result.history) == 2  # both were tried: there is nothing to confirm


def test_without_it_the_whole_budget_is_for_the_search():
    result = st.minimize(shifted, SPACE, 12, seed=0, stop=None)
    assert all(trial.suggestion["why"] != "confirms what is recommended" for trial in result.history)


def test_a_confirmation_that_disappoints_is_not_kept():
    study = st.Study(SPACE, seed=0, stop=None)
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        study.add({"x": x, "s": 0.0}, (x - 0.3) ** 2, cost=0.05)
        study.add({"x": x, "s": 1.0}, (x - 0.7) ** 2 + 0.5, cost=1.0)
    config = study.recommend().config
    study.state.enqueue(config, {"by": "you", "why": CONFIRMS})
    trial = study.ask()
    study.tell(trial, 50.0, cost=1.0)
    assert study.recommend().config != config


def test_the_study_goes_on_after_a_confirmation():
    study = st.Study(SPACE, seed=0, stop=None)
    study.minimize(shifted, 10, confirm=True)
    result = study.minimize(shifted, 12, confirm=True)
    assert len(result.history) == 12
    assert study.budget.trials == 12


def unequal(config):
    """At low fidelities everything left of 0.4 looks best, and is expensive; at the target the cheap 0.7 is better."""
    return (1 - config["s"]) * (0.4 + config["x"]) + config["s"] * (1 + 4 * (config["x"] - 0.7) ** 2)


def unequal_cost(config):
    return (0.1 + config["s"]) * (10.0 if config["x"] < 0.5 else 1.0)


def unequal_study():
    study = st.Study(SPACE, seed=0, stop=None, cost_model=st.KnownCost(unequal_cost), model=st.GP(output="standard"))
    for x in (0.05, 0.15, 0.25, 0.35, 0.55, 0.65, 0.75, 0.85, 0.95):
        for s in (0.0, 0.3, 0.6):
            config = {"x": x, "s": s}
            study.add(config, unequal(config), cost=unequal_cost(config))
    return study


def test_what_is_kept_is_the_price_of_what_would_be_confirmed():
    """And not that of the lowest values, which were seen at low fidelities and would cost ten times as much."""
    study = unequal_study()
    budget = st.Budget(cost=study.history.spent + 3.0)
    assert confirmation_price(study.suggester, budget) == pytest.approx(1.1, rel=1e-3)  # costs are known: next to no margin
    config = config_to_confirm(study.suggester, budget).config
    assert config["s"] == 1.0
    assert config["x"] == pytest.approx(0.7, abs=0.1)


def test_the_margin_is_a_standard_deviation_of_the_predicted_cost_and_bounded():
    study = st.Study(SPACE, seed=0, stop=None)
    noise = iter(np.random.default_rng(0).normal(size=12))
    for x in np.linspace(0.05, 0.95, 12):
        study.add({"x": x, "s": 0.5}, (x - 0.3) ** 2, cost=float(np.exp(0.05 * next(noise))))
    budget = st.Budget(cost=study.history.spent + 9.0)
    context = study.suggester.context(budget=budget)
    log_mean, variance = context.cost.log_cost(recommend(context, to_confirm=True).u[None, :])
    price = confirmation_price(study.suggester, budget)
    assert price == pytest.approx(np.exp(log_mean[0] + min(np.sqrt(variance[0]), np.log(MAX_COST_MARGIN))))
    assert np.exp(log_mean[0]) < price <= MAX_COST_MARGIN * np.exp(log_mean[0]) * (1 + 1e-9)


def test_after_a_confirmation_the_search_goes_on_while_another_one_fits():
    """Else a few more cheap trials would make another config look best, which could not be evaluated any more."""
    study = unequal_study()
    config = config_to_confirm(study.suggester, st.Budget(cost=study.history.spent + 3.0)).config
    study.state.enqueue(config, {"by": "you", "why": CONFIRMS})
    study.tell(study.ask(), unequal(config), cost=unequal_cost(config))
    assert study.recommend().evaluated
    for left, goes_on in ((3.0, True), (0.5, False)):
        found = config_to_confirm(study.suggester, st.Budget(cost=study.history.spent + left))
        assert found.config is None
        assert found.search_on is goes_on


def test_what_does_not_fit_is_replaced_by_the_next_best_that_does():
    """The best is expensive: 0.4 and less, with ten times the cost of the rest."""
    study = st.Study(SPACE, seed=0, stop=None, cost_model=st.KnownCost(unequal_cost), model=st.GP(output="standard"))
    for x in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95):
        study.add({"x": x, "s": 0.5}, 4 * (x - 0.3) ** 2, cost=unequal_cost({"x": x, "s": 0.5}))
    found = config_to_confirm(study.suggester, st.Budget(cost=study.history.spent + 2.0))
    assert found.config["x"] >= 0.5
    assert found.config["s"] == 1.0
    none = config_to_confirm(study.suggester, st.Budget(cost=study.history.spent + 0.5))
    assert none.config is None
    assert "was not evaluated at the target: it is expected to cost 11 s, and 0.5 s" in none.why_not.replace("500 ms", "0.5 s")


def test_where_there_is_nothing_to_confirm_the_search_uses_what_was_kept_and_says_so():
    result = st.minimize(lambda config: config["n"] ** 2, st.Space(n=st.Int(0, 20)), 12, confirm=True, seed=0, stop=None)
    assert len(result.history) == 12
    assert result.stop.reason == "the budget of 12 trials is used up; what is recommended was evaluated before (trial 8)"


def test_a_confirmation_runs_to_the_end(monkeypatch):
    monkeypatch.setattr(Suggester, "forecast", lambda *args, **more: PruningForecast(0.0))

    def trains(config, trial):
        for s in (0.2, 0.5):
            if s < config["s"]:
                trial.report(1.0, s=s)
                if trial.should_stop():
                    return shifted(config | {"s": s})
        return shifted(config)

    result = st.minimize(trains, SPACE, 8, confirm=True, seed=0, stop=None, cost_model=KNOWN)
    assert result.history[-1].suggestion["why"] == CONFIRMS
    assert result.history[-1].state is st.State.DONE
    assert result.history[-1].config["s"] == 1.0
