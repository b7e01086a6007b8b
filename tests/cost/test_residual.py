import numpy as np
import pytest

from shoestring.cost.linear import LinearCost, LinearPosterior
from shoestring.cost.log_gp import ResidualGPCost
from shoestring.space.encoding import Encoding
from shoestring.surrogate.posterior import Posterior
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

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
TEST = points(SPACE, 200, 99)


def curved_law(space, U):
    return product_law(space, U) + 1.5 * np.sin(5 * U[:, 1]) * U[:, 0]


@pytest.mark.parametrize("n", [2, 5, 16])
def test_leave_one_out_is_what_a_refit_without_the_row_predicts(n):
    costs = draw(SPACE, n, noise=0.3, law=curved_law)
    posterior = ResidualGPCost().fit(costs, ENCODING)
    mean, variance = posterior.leave_one_out()
    linear, rest, process = posterior.linear, posterior.rest, posterior.rest.process
    F = linear.features(costs.U)
    for i in range(n):
        others = np.arange(n) != i
        gamma = costs.log_cost[others]
        refit = LinearPosterior.given(linear.features, list(linear.parameters), linear.prior, F[others], gamma)
        y = (refit.ridge.error - rest.centre) / rest.scale
        gp = Posterior.given(process.kernel, process.noise, process.Z[others], y)
        there, spread = gp.mean_and_variance(process.Z[i : i + 1])
        straight, weights, _ = refit.ridge.predict(refit.design(costs.U[i : i + 1]))
        assert mean[i] == pytest.approx(straight[0] + rest.centre + rest.scale * there[0], abs=1e-6)
        assert variance[i] == pytest.approx(weights[0] + rest.scale**2 * (spread[0] + process.noise), rel=1e-5)


def test_gradients():
    space = every_kind()
    U = points(space, 30)
    posterior = ResidualGPCost().fit(observed(U, product_law(space, U) + np.sin(5 * U[:, 4])), Encoding(space))
    check_gradients(posterior, inner_points(space, 10))


def test_it_learns_what_a_line_cannot():
    costs = draw(SPACE, 60, law=curved_law)
    wanted = curved_law(SPACE, TEST)
    assert rmse(ResidualGPCost().fit(costs, ENCODING), TEST, wanted) < 0.6 * rmse(LinearCost().fit(costs, ENCODING), TEST, wanted)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_costs_are_finite(n):
    posterior = ResidualGPCost().fit(draw(SPACE, n), ENCODING)
    for array in (*posterior.log_cost_with_gradient(TEST), *posterior.leave_one_out()):
        assert np.isfinite(array).all()
    assert (posterior.log_cost(TEST)[1] > 0.01).all()
