"""``EIBelow`` and ``PIBelow``: the highest acquisition value over the space against a threshold."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.improvement import LogEI
from shoestring.errors import MethodError
from shoestring.termination.base import belief_of
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study


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
        verdict = rule.check(study.log)
        assert verdict.stop
        assert "have been tried" in verdict.reason


@pytest.mark.parametrize("make", [lambda: st.EIBelow(-1), lambda: st.PIBelow(2.0), lambda: st.EIBelow(math.nan)])
def test_bad_input(make):
    with pytest.raises(MethodError, match="must be"):
        make()
