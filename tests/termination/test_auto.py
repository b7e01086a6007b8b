"""``AutoStop``: by the folds where there are some, by the price where there is one."""

import numpy as np
import pytest

import shoestring as st
from shoestring.errors import MethodError
from tests.problems import bowl, plane, told_study


def test_auto_takes_the_price_of_the_method():
    study = st.Study(plane(1), method=st.Gittins(price=0.5))
    assert study.rule == st.AutoStop(price=0.5)
    assert not st.Study(plane(1)).rule.check(told_study(plane(1), bowl, 3).log).stop


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


def test_bad_input():
    with pytest.raises(MethodError, match="must be"):
        st.AutoStop(price=-1)
