import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.cost.base import expected_log_cost, expected_log_cost_with_gradient
from shoestring.cost.linear import LinearCost, LinearPosterior, Ridge, penalties, with_intercept
from shoestring.cost.log_gp import LogGPCost
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from tests.cost.laws import (
    boosting_space,
    check_gradients,
    draw,
    every_kind,
    inner_points,
    observed,
    points,
    product_law,
    rmse,
)
from tests.spaces import spaces

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
TEST = points(SPACE, 400, 99)


def test_the_planted_hyperparameters_are_found_and_the_law_with_them():
    posterior = LinearCost(3).fit(draw(SPACE, 30, noise=0.05), ENCODING)
    assert {SPACE.names[j] for j in posterior.parameters} == {"rounds", "depth", "share"}
    assert posterior.name.startswith("linear in rounds")
    assert rmse(posterior, TEST, product_law(SPACE, TEST)) < 0.1


@pytest.mark.parametrize("n", [5, 10])
def test_with_few_evaluations_it_predicts_better_than_a_gp(n):
    errors = []
    for seed in range(8):
        costs = draw(SPACE, n, seed)
        fits = [model.fit(costs, ENCODING) for model in (LinearCost(), LogGPCost())]
        errors.append([rmse(fit, TEST, product_law(SPACE, TEST)) for fit in fits])
    linear, process = np.mean(errors, axis=0)
    assert linear < process


@pytest.mark.parametrize("features", [1, 2])
def test_no_more_hyperparameters_than_asked_for(features):
    assert len(LinearCost(features).fit(draw(SPACE, 30), ENCODING).parameters) == features


@pytest.mark.parametrize("features", [0, -1, 1.5, True, "all"])
def test_a_number_of_features_that_cannot_be_is_refused(features):
    with pytest.raises(MethodError, match=r"features .* whole number of 1 or more"):
        LinearCost(features)


def test_costs_that_depend_on_nothing_are_constant():
    U = points(SPACE, 12)
    posterior = LinearCost().fit(observed(U, np.full(12, 3.0)), ENCODING)
    assert posterior.name == "constant"
    np.testing.assert_allclose(posterior.log_cost(TEST)[0], 3.0)


@pytest.mark.parametrize("seed", range(3))
def test_gradients(seed):
    space = every_kind()
    U, rng = points(space, 30, seed), np.random.default_rng(seed)
    gamma = product_law(space, U) + 2.0 * (U[:, 6] < 1 / 3) + rng.normal(size=30) * 0.1
    posterior = LinearCost(4).fit(observed(U, gamma), Encoding(space))
    d_mean = check_gradients(posterior, inner_points(space, 12, seed))
    assert np.abs(d_mean).max() > 0.1


@pytest.mark.parametrize("n", [2, 3, 4, 12])
def test_leave_one_out_is_what_a_refit_without_the_row_predicts(n):
    costs = draw(SPACE, n, noise=0.5)
    posterior = LinearCost().fit(costs, ENCODING)
    mean, variance = posterior.leave_one_out()
    F = posterior.features(costs.U)
    for i in range(n):
        rest = np.arange(n) != i
        chosen = list(posterior.parameters)
        refit = LinearPosterior.given(posterior.features, chosen, posterior.strength, F[rest], costs.log_cost[rest])
        there, spread = refit.log_cost(costs.U[i : i + 1])
        assert mean[i] == pytest.approx(there[0], abs=1e-8)
        assert variance[i] == pytest.approx(spread[0], rel=1e-7)


def test_press_is_the_sum_of_squared_leave_one_out_errors():
    rng = np.random.default_rng(0)
    X, y, penalty = with_intercept(rng.normal(size=(9, 3))), rng.normal(size=9), penalties(0.3, 3)
    by_refit = 0.0
    for i in range(9):
        rest = np.arange(9) != i
        by_refit += float((y[i] - X[i] @ Ridge.solve(X[rest], y[rest], penalty).weights) ** 2)
    assert Ridge.solve(X, y, penalty).press == pytest.approx(by_refit)


@given(spaces(), draws.integers(1, 12), draws.sampled_from([1e-9, 1e-3, 1.0, 1e9]), draws.booleans(), draws.integers(0, 99))
def test_any_costs_give_a_finite_and_not_too_sure_prediction(space, n, scale, twins, seed):
    rng = np.random.default_rng(seed)
    U = space.snap(rng.random((n, len(space))))
    if twins:
        U[:] = U[0]
    gamma = np.log(scale * np.exp(rng.normal(size=n)))
    posterior = LinearCost().fit(observed(U, gamma), Encoding(space))
    queries = space.snap(rng.random((5, len(space))))
    for array in (*posterior.log_cost_with_gradient(queries), *posterior.leave_one_out()):
        assert np.isfinite(array).all()
    assert (posterior.log_cost(queries)[1] > 0.9 / n).all()
    assert (posterior.leave_one_out()[1] > 0).all()


def test_one_observation_is_believed_within_a_factor_of_three_or_so():
    posterior = LinearCost().fit(observed(TEST[:1], [5.0]), ENCODING)
    mean, variance = posterior.log_cost(TEST)
    np.testing.assert_allclose(mean, 5.0)
    assert (variance > 1.0).all()


def test_collinear_columns_do_no_harm():
    space = st.Space(a=st.Float(1, 10), b=st.Float(1, 10), c=st.Choice("x", "y", "z"))
    u = np.random.default_rng(1).random(10)
    U = np.column_stack([u, u, np.full(10, 0.5)])
    posterior = LinearCost().fit(observed(U, 3 * np.log1p(9 * u)), Encoding(space))
    assert 2 not in posterior.parameters  # it was never varied
    assert rmse(posterior, U, 3 * np.log1p(9 * u)) < 0.05


def test_unknown_cost_is_never_rewarded():
    space = st.Space(a=st.Float(1, 100, log=True))
    u = np.linspace(0.0, 0.2, 8)[:, None]  # nothing has been tried beyond
    posterior = LinearCost().fit(observed(u, 2 * u[:, 0] + 0.1 * np.cos(9 * u[:, 0])), Encoding(space))
    U = np.linspace(0, 1, 11)[:, None]
    mean, variance = posterior.log_cost(U)
    assert variance[-1] > 2 * variance[1]
    np.testing.assert_allclose(expected_log_cost(posterior, U), mean + variance / 2)
    assert (expected_log_cost(posterior, U) > mean).all()
    np.testing.assert_allclose(expected_log_cost_with_gradient(posterior, U)[0], expected_log_cost(posterior, U))
