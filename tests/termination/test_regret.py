import dataclasses
import math

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from shoestring.surrogate.belief import fit_belief
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from shoestring.termination.regret import BoundModel, best_rows, beta_at, extremes
from tests.problems import bowl, branin, mixed_space, mixed_value, plane, told_study


def believed(study, top=1.0):
    data = to_dataset(study.log)
    return fit_belief(data.select(best_rows(data, top)), Encoding(study.space), st.GP(output="standard"), None)


def told(values, folds=None, direction="minimize", dimensions=1):
    """A study with given values at evenly spaced points."""
    study = st.Study(plane(dimensions), seed=0, direction=direction)
    for i, value in enumerate(values):
        config = {f"x{j}": ((i + 0.5) * (j + 1) / len(values)) % 1 for j in range(dimensions)}
        study.add(config, value, cost=1.0, folds=None if folds is None else folds[i])
    return study


def test_beta_by_hand():
    assert beta_at(20, 3, 0.1) == pytest.approx(0.4 * math.log(3 * 400 * math.pi**2 / 0.6))


def test_the_bound_of_a_gp_on_two_points_by_hand():
    """Squared exponential, length 1/2, variance 1, f(0.2) = -1, f(0.8) = 1, mean 0: everything by the 2 x 2 inverse."""
    study = told([0.0, 1.0])
    kernel, at = Kernel("se", np.array([2.0]), 1.0), np.array([[0.2], [0.8]])
    posterior = Posterior.given(kernel, 0.0, at, np.array([-1.0, 1.0]), mean=0.0)
    belief = dataclasses.replace(believed(study), objective=posterior)
    beta, scale = 4.0, belief.output.scale
    rho = math.exp(-0.5 * (2.0 * 0.6) ** 2)

    def by_hand(x):
        a, b = math.exp(-0.5 * (2.0 * (x - 0.2)) ** 2), math.exp(-0.5 * (2.0 * (x - 0.8)) ** 2)
        mean = ((a - rho * b) * -1.0 + (b - rho * a) * 1.0) / (1.0 - rho**2)
        variance = 1.0 - (a * a - 2.0 * rho * a * b + b * b) / (1.0 - rho**2)
        return mean - 2.0 * math.sqrt(max(variance, 0.0))

    lowest = min(by_hand(x) for x in np.linspace(0.0, 1.0, 20001))
    high, low = extremes(belief, at, to_dataset(study.log), beta, math.inf)
    assert (high - low) / scale == pytest.approx(-1.0 - lowest, abs=1e-4)


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_lcb_is_that_of_a_fine_grid(dimensions, seed):
    study = told_study(plane(dimensions), lambda config: math.sin(9 * config["x0"]) + bowl(config), 24, seed=seed)
    belief = believed(study, 0.5)
    axis = np.linspace(0, 1, 2001 if dimensions == 1 else 121)
    grid = np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)
    mean, variance = belief.objective.mean_and_variance(belief.encoding.features(grid))
    found = BoundModel.of(study.log, None).bound(0.5, 0.1)
    lowest = belief.output.inverse((mean - math.sqrt(found.beta) * np.sqrt(variance)).min())
    assert found.lower <= lowest + 1e-3 * belief.output.scale  # not above the grid's, and below it only between its points
    assert found.lower >= lowest - 0.05 * belief.output.scale


def test_a_glance_that_is_enough_gives_a_bound_that_is_too_low_never_too_high():
    study = told_study(plane(3), bowl, 30)
    model = BoundModel.of(study.log, None)
    exact, quick = model.bound(0.5, 0.1), model.bound(0.5, 0.1, enough=1e-12)
    assert 1e-12 < quick.regret <= exact.regret + 1e-12


@pytest.mark.parametrize(("rule", "direction"), [
    (st.RegretBound, "minimize"), (st.SureBound, "maximize"), pytest.param(st.RegretBound, "maximize", marks=pytest.mark.slow),
    pytest.param(st.SureBound, "minimize", marks=pytest.mark.slow),
])  # fmt: skip
def test_affine_changes_of_the_objective_scale_the_bound(direction, rule):
    sign = 1.0 if direction == "minimize" else -1.0
    plain = told_study(plane(2), branin, 30)
    changed = told_study(plane(2), lambda config: sign * (250.0 * branin(config) - 1e4), 30, direction=direction)
    bounds = [rule(1.0).bound(study.log).regret for study in (plain, changed)]
    assert bounds[1] == pytest.approx(250.0 * bounds[0], rel=1e-3)
    for tolerance in (0.9 * bounds[0], 1.1 * bounds[0]):
        verdicts = [
            rule(factor * tolerance).check(study.log).stop
            for study, factor in ((plain, 1.0), (changed, 250.0))
        ]
        assert verdicts[0] == verdicts[1] == (tolerance > bounds[0])


def test_the_bound_falls_as_the_search_goes_on_and_stops_it():
    study = st.Study(plane(2), method=st.EI(), stop=st.RegretBound(0.5), seed=1)
    result = study.minimize(branin, budget=80)
    assert result.stop.kind == "rule"
    assert 20 <= len(result.history) < 80
    assert result.stop.evidence["bound"] <= 0.5
    assert result.best.value - 0.397887 <= 0.5
    assert "0.5" in result.stop.reason


def test_it_works_on_mixed_spaces_with_failures_and_pending_trials():
    study = told_study(mixed_space(), mixed_value, 40, error_where=lambda config: config["depth"] == 1)
    for _ in range(3):
        study.ask()
    verdict = st.RegretBound(1e-9).check(study.log)
    assert not verdict.stop
    assert 0 < verdict.evidence["bound"] < 100


def test_fewer_evaluations_than_asked_for():
    study = told_study(plane(2), bowl, 19)
    verdict = st.RegretBound(1e9).check(study.log)
    assert not verdict.stop
    assert "19 of the 20" in verdict.reason
    assert st.RegretBound(1e9, after=19).check(study.log).stop


def test_values_that_are_all_equal_say_nothing():
    """Every early config at chance level is no reason to stop."""
    study = told_study(plane(2), lambda config: 3.0, 25)
    for rule in (st.RegretBound(1e-6), st.SureBound(1e6)):
        verdict = rule.check(study.log)
        assert not verdict.stop
        assert "equal" in verdict.reason


def test_sizes_that_do_not_match_the_folds_do_not_end_a_run():
    study = told([0.6 + i / 100 for i in range(25)], [[0.5 + i / 100, 0.7 + i / 100] for i in range(25)])
    verdict = st.RegretBound(fold_sizes=(10, 20, 30)).check(study.log)
    assert not verdict.stop
    assert "fold_sizes" in verdict.reason


def test_training_rows_where_folds_overlap():
    study = told([0.6 + i / 100 for i in range(25)], [[0.5 + i / 100, 0.7 + i / 100] for i in range(25)])
    rule = st.RegretBound(fold_sizes=(10, 10), train_sizes=(90, 90))
    assert rule.check(study.log).evidence["threshold"] == pytest.approx(math.sqrt((1 / 2 + 1 / 9) * 0.01))


def test_the_threshold_is_the_incumbents_cross_validation_error():
    folds = [[0.5 + i / 100, 0.7 + i / 100, 0.6 + i / 100] for i in range(25)]
    study = told([0.6 + i / 100 for i in range(25)], folds)
    verdict = st.RegretBound().check(study.log)
    assert verdict.evidence["threshold"] == pytest.approx(math.sqrt((1 / 3 + 1 / 2) * 0.02 / 3))
    sized = st.RegretBound(fold_sizes=(10, 20, 30)).check(study.log)
    ratio = (10 / 50 + 20 / 40 + 30 / 30) / 3
    assert sized.evidence["threshold"] == pytest.approx(math.sqrt((1 / 3 + ratio) * 0.02 / 3))


def test_the_factor_of_the_folds_and_the_scale_of_beta_are_options():
    """Ours_0.5 of the paper's table 3, and the beta of its figure 9."""
    study = told([0.6 + i / 100 for i in range(25)], [[0.5 + i / 100, 0.7 + i / 100, 0.6 + i / 100] for i in range(25)])
    assert st.RegretBound(fold_factor=0.5).threshold(study.log)[0] == pytest.approx(math.sqrt(0.5 * 0.02 / 3))
    assert st.RegretBound(1.0, beta_scale=1.0).bound(study.log).beta == pytest.approx(5.0 * beta_at(25, 1, 0.1))
    assert st.SureBound(1.0, beta_scale=1.0).bound(study.log).regret > st.SureBound(1.0).bound(study.log).regret


def test_later_options_change_what_is_stored_only_where_they_are_used():
    assert repr(st.SureBound(0.1)) == "SureBound(tolerance=0.1, top=0.5, delta=0.1, after=20, fold_sizes=None, train_sizes=None)"
    assert repr(st.RegretBound(fold_factor=0.5)).endswith("train_sizes=None, fold_factor=0.5)")
    assert repr(st.AutoStop()) == "AutoStop(price=None, tolerance=None, fold_sizes=None, train_sizes=None, cost_model=None)"
    assert repr(st.AutoStop(share=0.01)).endswith("cost_model=None, share=0.01)")


@pytest.mark.parametrize("folds", [None, [0.5, float("nan")]])
def test_without_folds_there_is_no_threshold(folds):
    study = told([0.6 + i / 100 for i in range(25)], None if folds is None else [folds] * 25)
    verdict = st.RegretBound().check(study.log)
    assert not verdict.stop
    assert "folds" in verdict.reason


def test_a_bare_history_will_do():
    study = told_study(plane(2), bowl, 30)
    history = st.History(tuple(study.history), study.space)
    assert st.RegretBound(0.1).check(history) == st.RegretBound(0.1).check(study.log)


@pytest.mark.parametrize(
    "options",
    [{"tolerance": 0}, {"tolerance": -1.0}, {"tolerance": math.nan}, {"top": 0.0}, {"top": 1.5}, {"delta": 0}, {"after": 1},
     {"after": 2.5}, {"fold_sizes": (3,)}, {"tolerance": "small"}, {"beta_scale": 0}, {"fold_factor": -1}],
)
def test_bad_input(options):
    with pytest.raises(MethodError, match="RegretBound"):
        st.RegretBound(**options)


def test_the_best_part_is_the_best_half():
    study = told([5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 9.0, 8.0, 7.0])
    data = to_dataset(study.log)
    assert sorted(data.y[best_rows(data, 0.5)]) == [0.0, 1.0, 2.0, 3.0, 4.0]
