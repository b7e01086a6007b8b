"""``WorthIt``: the expected improvement against the cost of an evaluation."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.cost.base import expected_log_cost
from shoestring.errors import MethodError
from shoestring.termination.base import belief_of
from tests.problems import bowl, plane


def study_with_costs(count=30):
    study = st.Study(plane(2), seed=0)
    for u in np.random.default_rng(0).random((count, 2)):
        config = {"x0": float(u[0]), "x1": float(u[1])}
        study.add(config, bowl(config), cost=math.exp(3 * u[0]))
    return study


def test_worth_it_is_ei_against_cost_over_the_whole_space():
    study = study_with_costs()
    verdict = st.WorthIt(1e-12).check(study.log)
    assert not verdict.stop
    worth = verdict.evidence["worth"]
    belief = belief_of(study.log, st.GP(), st.AutoCost())
    U = np.random.default_rng(1).random((500, 2))
    mean, variance = belief.objective.mean_and_variance(belief.encoding.features(U))
    cost = np.exp(expected_log_cost(belief.cost, U))
    sampled = [belief.output.gain(m, math.sqrt(v), belief.incumbent) / c for m, v, c in zip(mean, variance, cost, strict=True)]
    assert worth >= 0.9 * max(sampled)
    assert st.WorthIt(1.05 * worth).check(study.log).stop
    assert not st.WorthIt(0.95 * worth).check(study.log).stop


def test_running_trials_leave_less_to_gain():
    study = study_with_costs()
    before = st.WorthIt(1e-12).check(study.log).evidence
    study.suggester.method = st.Study(plane(2), method=st.EIpu()).method
    for _ in range(4):
        study.ask()
    after = st.WorthIt(1e-12).check(study.log).evidence
    assert after["worth"] < before["worth"]
    assert before["pending_cost"] == 0.0
    assert after["pending_cost"] > 0.0


def test_worth_it_without_costs_does_not_stop():
    study = st.Study(plane(1), seed=0)
    for i in range(12):
        study.tell(study.ask(), float(i))
    history = st.History(tuple(t.finish(t.state, cost=None) for t in study.history), study.space)
    assert not st.WorthIt(1e9).check(history).stop


@pytest.mark.parametrize("make", [lambda: st.WorthIt(0), lambda: st.WorthIt(1.0, after=0)])
def test_bad_input(make):
    with pytest.raises(MethodError, match="must be"):
        make()
