"""What MES, ES and PES have in common: spaces, failures, pending trials, degenerate data, and the same seed the same trials."""

import dataclasses
import functools

import numpy as np
import pytest

import shoestring as st
from tests.degenerate import VALUES, assert_a_new_point, assert_duplicates_do_not_matter
from tests.information import line, waves, wavy
from tests.problems import belief_of, mixed_space, mixed_value, plane, told_study

METHODS = pytest.mark.parametrize(
    "method", [st.MES(), pytest.param(st.MES(how="gumbel"), marks=pytest.mark.slow), st.ES(), st.PES()], ids=repr
)
FINITE = st.Space(n=st.Int(1, 9), c=st.Choice("a", "b"))


@METHODS
@pytest.mark.parametrize("space", [mixed_space(), FINITE], ids=["mixed", "finite"])
def test_it_runs_on_mixed_conditional_and_finite_spaces(method, space):
    value = mixed_value if "rate" in space else lambda config: config["n"] + (config["c"] == "a")
    result = st.minimize(value, space, budget=10, method=method, seed=0, initial=7)
    assert len({space.key(trial.config) for trial in result.history}) == 10


@METHODS
def test_a_finite_space_is_searched_to_its_end(method):
    space = st.Space(n=st.Int(1, 7))
    result = st.minimize(lambda config: (config["n"] - 3) ** 2, space, budget=20, method=method, seed=0)
    assert len(result.history) == 7


@METHODS
def test_failed_and_pending_trials(method):
    study = told_study(plane(2), waves, 12, error_where=lambda config: config["x0"] > 0.7, method=method)
    asked = [study.ask() for _ in range(3)]
    assert len({tuple(trial.config.values()) for trial in asked}) == 3
    assert sum(trial.config["x0"] > 0.8 for trial in asked) <= 1


@METHODS
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_degenerate_data_give_a_point_that_is_new(method, values):
    assert_a_new_point(method, values, 1e-3)


@METHODS
def test_duplicates_without_noise(method):
    assert_duplicates_do_not_matter(method)


@METHODS
@pytest.mark.parametrize("count", [30, pytest.param(90, marks=pytest.mark.slow)])
def test_a_saturated_posterior_is_finite_with_a_finite_slope(method, count):
    """Data so dense that nothing is left to learn, with next to no noise and with some."""
    for noise in (1e-10, 1e-6, 0.05):
        belief, optimizer = line(count, noise, 0, length=0.5)
        surface = method.log_information(belief, optimizer)
        value, slope = surface(np.linspace(0, 1, 40)[:, None], True)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        u = optimizer.maximize(surface).u
        mean = belief.objective.mean_at(belief.encoding.features(np.vstack([u[None, :], belief.evaluated])))
        assert mean[0] <= np.median(mean[1:])  # near the minimum, which is all that may be left to learn of


@METHODS
def test_the_same_seed_makes_the_same_trials(method):
    one, other = (st.minimize(waves, plane(2), budget=7, method=method, seed=3, initial=5).history for _ in range(2))
    assert [trial.config for trial in one] == [trial.config for trial in other]


@METHODS
def test_a_surface_is_built_when_it_is_first_evaluated_and_stays(method):
    belief, _ = wavy(2)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    surface = method.surface(belief, rng)
    assert rng.bit_generator.state == before
    U = np.random.default_rng(1).random((5, 2))
    np.testing.assert_array_equal(surface(U, False)[0], surface(U, False)[0])


@functools.cache
def with_failures():
    return belief_of(told_study(plane(2), waves, 20, error_where=lambda config: config["x0"] > 0.7))[0]


@METHODS
def test_a_probability_of_failure_scales_the_information(method):
    belief = with_failures()
    U = np.random.default_rng(1).random((8, 2))
    safe = dataclasses.replace(belief, feasibility=None)
    surface = method.surface(belief, np.random.default_rng(0))
    value, slope = surface(U, True)
    assert belief.feasibility is not None
    chance = belief.feasibility.log_probability(belief.encoding.features(U))
    assert np.isfinite(value).all()
    step = 1e-6 * np.array([1.0, 0.0])
    moved = (surface(U + step, False)[0] - surface(U - step, False)[0]) / 2e-6
    np.testing.assert_allclose(slope[:, 0], moved, rtol=1e-3, atol=1e-3 * np.abs(moved).max())
    if isinstance(method, st.MES):  # its samples do not depend on feasibility, so that the difference is the probability alone
        without = method.surface(safe, np.random.default_rng(0))(U, False)[0]
        np.testing.assert_allclose(value - without, chance, atol=1e-6)


@pytest.mark.slow
@METHODS
def test_it_finds_the_minimum_of_waves(method):
    result = st.minimize(waves, plane(2), budget=15, method=method, seed=0)
    assert waves(result.best.config) < -1.95


@METHODS
def test_it_is_averaged_over_hyperparameter_samples(method):
    study = st.Study(plane(2), method=method, model=st.GP(inference="mcmc", sets=2), initial=4, seed=0)
    result = study.minimize(waves, budget=5)
    assert len(result.history) == 5
