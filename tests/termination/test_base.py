"""Rules joined by ``|`` and ``&``, and what is no rule."""

import pytest

import shoestring as st
from shoestring.errors import MethodError
from shoestring.termination.base import StopRule, Verdict
from tests.problems import bowl, plane, told_study


class Constant(StopRule):
    """A rule whose verdict is always the same."""

    def __init__(self, stop, name):
        self.stop, self.name = stop, name

    def check(self, history, belief=None):
        return Verdict(self.stop, self.name, {self.name: 1.0})


class ThreeTrials:
    """A rule from outside the library: it has no base class."""

    def check(self, history, belief=None):
        return Verdict(len(history) >= 3, "three")


HISTORY = told_study(plane(1), bowl, 3).log


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_or_and_and(left, right):
    either = (Constant(left, "left") | Constant(right, "right")).check(HISTORY)
    both = (Constant(left, "left") & Constant(right, "right")).check(HISTORY)
    assert either.stop == (left or right)
    assert both.stop == (left and right)
    if both.stop:
        assert both.reason == "left; and right"
        assert set(both.evidence) == {"left", "right"}
    if either.stop:
        assert either.reason == ("left" if left else "right")


def test_rules_without_the_base_class_can_be_joined_too():
    assert (Constant(False, "never") | ThreeTrials()).check(HISTORY).reason == "three"
    assert (ThreeTrials() & Constant(True, "yes")).check(HISTORY).stop
    joined = st.Patience(5) | st.RegretBound(0.1) & st.EIBelow(1e-6)
    assert not joined.check(HISTORY).stop


def test_what_is_no_rule_is_refused():
    for stop in ("never", 3, st.Patience):
        with pytest.raises(MethodError, match="stop"):
            st.Study(plane(1), stop=stop)
