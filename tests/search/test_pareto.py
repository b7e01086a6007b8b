"""The front of expected improvement against cost: its points, and where each method lands on it."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.search.pareto import nondominated
from tests.search.cost_problem import SPACE, study_with_costs


def test_the_front_rises_with_cost_and_holds_where_each_method_lands():
    front = study_with_costs().pareto_front()
    cost, ei = np.array([(point.cost, point.ei) for point in front.points]).T
    assert (np.diff(cost) > 0).all()
    assert (np.diff(ei) > 0).all()
    assert front.unit == "USD"
    assert {"EI", "EIpu", "EIAlpha(0.1)", "CEI(0.1)", "Gittins()"} <= set(front.landings)
    top = front.landings["EI"]
    assert top.ei == pytest.approx(ei.max(), rel=0.02)
    for name, point in front.landings.items():
        assert point.ei <= top.ei * 1.02
        if name.startswith(("EI", "CEI")):  # on the front: nothing is cheaper with as much EI
            assert point.cost <= cost[ei >= point.ei * 1.001].min(initial=np.inf) * 1.05, name
    for lam in (0.05, 0.1, 0.3, 0.5):
        assert front.landings[f"CEI({lam:g})"].ei >= (1 - lam) * top.ei * 0.98
    assert set(front.alphas) == set(front.landings)


def test_points_that_are_dominated_are_not_on_the_front():
    log_ei, log_cost = np.array([0.0, 1.0, 0.5, 2.0, 2.0]), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert nondominated(log_ei, log_cost).tolist() == [0, 1, 3]


def test_a_front_without_costs_or_results_is_an_error_that_says_why():
    with pytest.raises(st.StudyError, match="result"):
        st.Study(SPACE).pareto_front()
    study = st.Study(SPACE)
    study.add({"rounds": 5, "depth": 3, "rate": 0.1, "kind": "a"}, 0.5)
    with pytest.raises(st.StudyError, match="cost"):
        study.pareto_front()


def test_a_suggestion_keeps_a_short_form_of_the_front():
    study = study_with_costs(method=st.EIAlpha(0.5))
    kept = study.history[-1].suggestion["front"]
    assert 1 <= len(kept["front"]) <= 8
    assert 0 <= kept["chosen"][0] <= 1
    assert kept["chosen"][1] > 0
    assert kept["alpha"] is None or kept["alpha"] >= 0


def test_the_alpha_of_a_landing_is_the_alpha_that_landed_there():
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), z=st.Float(0, 1))
    study = st.Study(space, seed=2, cost_model=st.KnownCost(lambda config: math.exp(2 * config["x"] + config["y"] ** 2)))
    study.minimize(lambda config: st.Outcome(sum((value - 0.6) ** 2 for value in config.values()) + 0.1, cost=1.0), 14)
    front = study.pareto_front()
    known = [(0.0, "EI"), *((alpha, f"EIAlpha({alpha:g})") for alpha in (0.1, 0.2, 0.5)), (1.0, "EIpu")]
    inside = [
        (alpha, front.alphas[name]) for alpha, name in known if all(0.01 < v < 0.99 for v in front.landings[name].config.values())
    ]
    assert len(inside) >= 3
    for alpha, found in inside:
        assert found == pytest.approx(alpha, abs=0.06)
    ordered = [front.alphas[f"CEI({lam:g})"] for lam in (0.05, 0.1, 0.3, 0.5)]
    assert ordered == sorted(ordered)
