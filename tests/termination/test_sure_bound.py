import pytest

import shoestring as st
from shoestring.termination.regret import BoundModel
from tests.problems import branin, mixed_space, mixed_value, plane, told_study


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_larger_of_its_two_bounds(seed):
    study = told_study(plane(2), branin, 30, seed=seed)
    model = BoundModel.of(study.log, None)
    narrow = model.bound(0.5, 0.1, scale=0.4).regret
    wide = model.bound(1.0, 0.1).regret
    assert st.SureBound(1.0).bound(study.log).regret == max(narrow, wide)
    assert st.SureBound(1.0).bound(study.log).regret >= st.RegretBound(1.0).bound(study.log).regret


def test_early_exits_do_not_change_the_verdict():
    study = told_study(mixed_space(), mixed_value, 40, error_where=lambda config: config["depth"] == 1)
    exact = st.SureBound(1.0).bound(study.log).regret
    for factor in (0.1, 0.9, 1.1, 10.0):
        assert st.SureBound(factor * exact).check(study.log).stop == (factor > 1)


@pytest.mark.slow
def test_it_is_within_its_tolerance_more_often_than_not_stopping_too_early():
    stops = []
    for seed in range(4):
        study = st.Study(plane(2), method=st.EI(), stop=st.SureBound(0.3), seed=seed)
        result = study.minimize(branin, budget=70)
        stops.append(result.stop.kind == "rule")
        if stops[-1]:
            assert result.best.value - 0.397887 <= 0.3
    assert sum(stops) >= 2
