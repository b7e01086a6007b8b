"""``Patience``: how many trials since the best one."""

import pytest

import shoestring as st
from shoestring.errors import MethodError
from shoestring.termination.no_improvement import since_best
from tests.problems import plane


def study_of(values, **options):
    """A study with such results, one after the other; None is a failure."""
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
    study = study_of(values)
    assert since_best(study.log) == waited
    assert st.Patience(2).check(study.log).stop == (waited >= 2)


def test_patience_when_maximizing():
    assert since_best(study_of([1.0, 2.0, 0.5, 0.7], direction="maximize").log) == 2


def test_patience_stops_a_study():
    result = st.minimize(lambda config: 1.0, plane(1), budget=50, stop=st.Patience(6), method=st.Random())
    assert len(result.history) == 7
    assert "6 trials" in result.stop.reason


@pytest.mark.parametrize("make", [lambda: st.Patience(0), lambda: st.Patience(True)])
def test_bad_input(make):
    with pytest.raises(MethodError, match="must be"):
        make()
