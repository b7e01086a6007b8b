"""``confirm=True``: the recommendation is evaluated at the target inside the budget, and is then the one that is kept."""

import pytest

import shoestring as st
from shoestring.search.recommend import CONFIRMS

SPACE = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))


KNOWN = st.KnownCost(lambda config: 0.05 + config["s"])


def shifted(config):
    return st.Outcome((config["x"] - 0.3 - 0.2 * (1 - config["s"])) ** 2 + 0.1, cost=0.05 + config["s"])


@pytest.mark.parametrize("budget", [st.Budget(cost=8.0, unit="u"), 14], ids=["cost", "trials"])
@pytest.mark.parametrize("seed", range(2))
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
    study.minimize(shifted, 12, confirm=True)
    result = study.minimize(shifted, 16, confirm=True)
    assert len(result.history) == 16
    assert study.budget.trials == 16
