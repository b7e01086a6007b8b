"""Anchors: the default evaluates at the target what is recommended, so that there is something to compare with there."""

import pytest

import shoestring as st
from shoestring.search.anchor import ANCHORS

SPACE = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))


def value(config):
    return (config["x"] - 0.3 - 0.2 * (1 - config["s"])) ** 2 + 0.1


def cheap_trials(count, priced=True):
    """A study with many trials at s = 0.5, and none at the target."""
    model = {"cost_model": st.KnownCost(lambda config: 0.05 + config["s"])} if priced else {}
    study = st.Study(SPACE, seed=0, stop=None, **model)
    for i in range(count):
        config = {"x": (i + 0.5) / count, "s": 0.5}
        study.add(config, value(config), **({"cost": 0.55} if priced else {}))
    return study


@pytest.mark.parametrize("priced", [True, False], ids=["costs", "no costs"])
def test_what_is_recommended_is_evaluated_at_the_target_when_enough_was_paid_elsewhere(priced):
    study = cheap_trials(14, priced)
    anchor = study.ask()
    assert anchor.suggestion["why"] == ANCHORS
    assert anchor.config["s"] == 1.0
    study.tell(anchor, value(anchor.config), **({"cost": 1.05} if priced else {}))
    assert study.recommend().evaluated
    assert study.ask().suggestion["why"] != ANCHORS


def test_it_waits_until_that_is_a_small_part_of_what_was_paid():
    assert cheap_trials(9).ask().suggestion["why"] != ANCHORS


def test_an_anchor_that_does_not_fit_into_the_budget_is_not_asked():
    study = cheap_trials(14)
    study.state.settings.budget = st.Budget(cost=study.history.spent + 0.9)
    assert study.ask().suggestion["why"] != ANCHORS


def test_other_methods_have_none():
    study = cheap_trials(14)
    same = st.Study.from_json(study.to_json(), st.CFKG(), stop=None, cost_model=st.KnownCost(lambda config: 0.05 + config["s"]))
    assert same.ask().suggestion["why"] != ANCHORS
