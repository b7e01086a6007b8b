import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.improvement import LogEI
from shoestring.cost.base import expected_log_cost
from shoestring.errors import MethodError
from shoestring.termination.base import StopRule, Verdict, belief_of
from shoestring.termination.no_improvement import since_best
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study


class Says(StopRule):
    def __init__(self, stop, name):
        self.stop, self.name = stop, name

    def check(self, history, belief=None):
        return Verdict(self.stop, self.name, {self.name: 1.0})


class Stranger:
    """A rule that knows nothing of this library but what it is asked."""

    def check(self, history, belief=None):
        return Verdict(len(history) >= 3, "three")


HISTORY = told_study(plane(1), bowl, 3).log


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_or_and_and(left, right):
    either = (Says(left, "left") | Says(right, "right")).check(HISTORY)
    both = (Says(left, "left") & Says(right, "right")).check(HISTORY)
    assert either.stop == (left or right)
    assert both.stop == (left and right)
    if both.stop:
        assert both.reason == "left; and right"
        assert set(both.evidence) == {"left", "right"}
    if either.stop:
        assert either.reason == ("left" if left else "right")


def test_rules_of_strangers_can_be_joined_too():
    assert (Says(False, "never") | Stranger()).check(HISTORY).reason == "three"
    assert (Stranger() & Says(True, "yes")).check(HISTORY).stop
    joined = st.Patience(5) | st.RegretBound(0.1) & st.EIBelow(1e-6)
    assert not joined.check(HISTORY).stop


def told(values, **options):
    study = st.Study(plane(1), seed=0, **options)
    for i, value in enumerate(values):
        config = {"x0": (i + 0.5) / len(values)}
        if value is None:
            study.add(config, error="out of memory", cost=1.0)
        else:
            study.add(config, value, cost=1.0)
    return study


@pytest.mark.parametrize(
    ("values", "waited"),
    [([], 0), ([None, None], 0), ([3.0], 0), ([3.0, 3.0, 3.0], 2), ([3.0, 2.0, 5.0], 1), ([3.0, None, None, 4.0], 3),
     ([5, 4, 3], 0)],
)
def test_patience_counts_trials_since_the_best_changed(values, waited):
    study = told(values)
    assert since_best(study.log) == waited
    assert st.Patience(2).check(study.log).stop == (waited >= 2)


def test_patience_when_maximizing():
    assert since_best(told([1.0, 2.0, 0.5, 0.7], direction="maximize").log) == 2


def test_patience_stops_a_study():
    result = st.minimize(lambda config: 1.0, plane(1), budget=50, stop=st.Patience(6), method=st.Random())
    assert len(result.history) == 7
    assert "6 trials" in result.stop.reason


@pytest.mark.parametrize("space", [plane(2), mixed_space()], ids=["plane", "mixed"])
def test_ei_below_is_the_highest_ei_over_the_space(space):
    study = told_study(space, bowl if len(space) == 2 else mixed_value, 25)
    verdict = st.EIBelow(1e-9).check(study.log)
    belief = belief_of(study.log, st.GP(output="standard"))
    U = space.snap(np.random.default_rng(1).random((4000, len(space))))
    sampled = math.exp(LogEI().surface(belief, np.random.default_rng(0))(U, False)[0].max()) * belief.output.scale
    found = verdict.evidence["expected improvement"]
    assert found >= 0.95 * sampled
    assert st.EIBelow(1.01 * found).check(study.log).stop
    assert not st.EIBelow(0.99 * found).check(study.log).stop


def test_ei_scales_with_the_objective_and_pi_does_not():
    plain = told_study(plane(2), bowl, 25)
    scaled = told_study(plane(2), lambda config: 1000 * bowl(config) + 5, 25)
    ei = [st.EIBelow(1.0).check(s.log).evidence["expected improvement"] for s in (plain, scaled)]
    pi = [st.PIBelow(0.5).check(s.log).evidence["probability of improvement"] for s in (plain, scaled)]
    assert ei[1] == pytest.approx(1000 * ei[0], rel=0.05)
    assert pi[1] == pytest.approx(pi[0], rel=0.05)
    assert 0 < pi[0] <= 1


def test_an_exhausted_space_is_a_reason_to_stop():
    space = st.Space(n=st.Int(1, 20))
    study = st.Study(space, seed=0)
    for n in range(1, 21):
        study.add({"n": n}, float(n), cost=1.0)
    for rule in (st.EIBelow(1e-9), st.PIBelow(1e-9), st.WorthIt(1e-9)):
        verdict = rule.check(study.log, space)
        assert verdict.stop
        assert "have been tried" in verdict.reason


def priced(count=30):
    study = st.Study(plane(2), seed=0)
    for u in np.random.default_rng(0).random((count, 2)):
        config = {"x0": float(u[0]), "x1": float(u[1])}
        study.add(config, bowl(config), cost=math.exp(3 * u[0]))
    return study


def test_worth_it_is_ei_against_cost_over_the_whole_space():
    study = priced()
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
    study = priced()
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


def test_auto_takes_the_price_of_the_method():
    study = st.Study(plane(1), method=st.Gittins(price=0.5))
    assert study.rule == st.AutoStop(price=0.5)
    assert not st.Study(plane(1)).rule.check(HISTORY).stop


def test_auto_stops_by_the_folds():
    def noisy(config):
        rng = np.random.default_rng(int(1e6 * config["x0"]))
        folds = bowl(config) + rng.normal(0, 0.05, 5)
        return st.Outcome(float(folds.mean()), folds=[float(fold) for fold in folds])

    result = st.minimize(noisy, plane(2), budget=100, seed=0)
    assert result.stop.kind == "rule"
    assert len(result.history) < 100
    assert "cross-validation error" in result.stop.reason
    assert st.minimize(noisy, plane(2), budget=25, seed=0, stop=None).stop.kind == "budget"


def test_a_rule_that_is_none():
    for stop in ("never", 3, st.Patience):
        with pytest.raises(MethodError, match="stop="):
            st.Study(plane(1), stop=stop)


@pytest.mark.parametrize(
    "make",
    [lambda: st.Patience(0), lambda: st.Patience(True), lambda: st.EIBelow(-1), lambda: st.PIBelow(2.0), lambda: st.WorthIt(0),
     lambda: st.EIBelow(math.nan), lambda: st.WorthIt(1.0, after=0), lambda: st.AutoStop(price=-1)],
)
def test_bad_input(make):
    with pytest.raises(MethodError, match="must be"):
        make()
