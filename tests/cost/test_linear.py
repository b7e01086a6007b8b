import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws
from scipy.stats import multivariate_t

import shoestring as st
from shoestring.cost.base import expected_log_cost, expected_log_cost_with_gradient
from shoestring.cost.linear import LinearCost, LinearPosterior, Ridge, penalties, with_intercept
from shoestring.cost.log_gp import LogGPCost, ResidualGPCost
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from shoestring.state.registry import read_code
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


@pytest.mark.parametrize("model", [LinearCost, LogGPCost, ResidualGPCost])
def test_named_features_are_the_ones_that_are_used(model):
    posterior = model(features=["depth", "rounds"]).fit(draw(SPACE, 5), ENCODING)
    assert "depth, rounds" in posterior.name
    linear = getattr(posterior, "linear", posterior)
    if isinstance(linear, LinearPosterior):
        assert [SPACE.names[j] for j in linear.parameters] == ["depth", "rounds"]
        d_mean = linear.log_cost_with_gradient(TEST)[2]
        assert (d_mean[:, SPACE.names.index("depth")] != 0).all()
        assert (d_mean[:, SPACE.names.index("share")] == 0).all()


def test_named_features_predict_better_than_selected_ones_from_few_costs():
    errors = []
    for seed in range(8):
        costs = draw(SPACE, 5, seed)
        fits = [model.fit(costs, ENCODING) for model in (LinearCost(("rounds", "depth", "share")), LinearCost(3))]
        errors.append([rmse(fit, TEST, product_law(SPACE, TEST)) for fit in fits])
    named, selected = np.mean(errors, axis=0)
    assert named < 0.8 * selected


def test_named_features_may_be_choices_fidelities_and_conditional():
    space = every_kind()
    posterior = LinearCost(("kind", "layers", "epochs")).fit(draw(space, 12), Encoding(space))
    check_gradients(posterior, inner_points(space, 6))
    assert posterior.name == "linear in kind, layers, epochs"


@pytest.mark.parametrize("make", [
    lambda names: LinearCost(names),
    lambda names: LogGPCost(names),
    lambda names: ResidualGPCost(names),
    lambda names: st.KnownCost(lambda config: 1.0, learned=LinearCost(names)),
])  # fmt: skip
def test_an_unknown_name_is_refused_when_the_study_is_made(make):
    with pytest.raises(MethodError, match=r"'round', which is not .* did you mean 'rounds'\? The space has rounds, rate"):
        st.Study(SPACE, cost_model=make(("round",)))


@pytest.mark.parametrize("names", [(), ("depth", 3), ("depth", "depth")])
def test_names_that_cannot_be_are_refused(names):
    with pytest.raises(MethodError, match="features"):
        LinearCost(names)


def test_named_features_are_stored_with_the_study():
    study = st.Study(SPACE, cost_model=LinearCost(["rounds", "depth"]))
    assert study.code["cost_model"] == "LinearCost(features=('rounds', 'depth'))"
    assert read_code("cost_model", study.code["cost_model"]) == study.cost_model


def test_expected_weights_and_evidence_are_those_of_the_marginal_likelihood():
    rng = np.random.default_rng(0)
    X, y, mean = with_intercept(rng.normal(size=(7, 2))), rng.normal(size=7), rng.normal(size=3)
    penalty, Q0, a = np.array([0.5, 2.0, 0.7]), 0.3, 2.5
    ridge = Ridge.solve(X, y, penalty, (Q0, a), mean)
    shape = Q0 * (np.eye(7) + X @ np.diag(1.0 / penalty) @ X.T)  # integrated over weights and noise: a multivariate t
    exact = multivariate_t(X @ mean, shape, df=a).logpdf(y)
    assert ridge.log_evidence - 3.5 * np.log(np.pi) == pytest.approx(exact)
    gram = np.linalg.inv(X.T @ X + np.diag(penalty))
    np.testing.assert_allclose(ridge.weights, gram @ (X.T @ y + penalty * mean))
    rest = np.arange(7) > 0
    refit = Ridge.solve(X[rest], y[rest], penalty, (Q0, a), mean)
    assert y[0] - ridge.leave_one_out_error[0] == pytest.approx(float(X[0] @ refit.weights))
    assert ridge.leave_one_out_noise[0] == pytest.approx(refit.noise)


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
        refit = LinearPosterior.given(posterior.features, chosen, posterior.prior, F[rest], costs.log_cost[rest])
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
