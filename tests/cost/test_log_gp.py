import numpy as np
import pytest

from shoestring.cost.log_gp import LogGPCost
from shoestring.errors import MethodError
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


@pytest.mark.parametrize("features", [None, 3])
def test_leave_one_out_is_what_a_refit_without_the_row_predicts(features):
    costs = draw(SPACE, 14, noise=0.3)
    posterior = LogGPCost(features).fit(costs, ENCODING)
    mean, variance = posterior.leave_one_out()
    process, scale = posterior.process, posterior.scale
    for i in range(14):
        rest = np.arange(14) != i
        refit = Posterior.given(process.kernel, process.noise, process.Z[rest], process.y[rest])
        there, spread = refit.mean_and_variance(process.Z[i : i + 1])
        assert mean[i] == pytest.approx(posterior.centre + scale * there[0], abs=1e-6)
        assert variance[i] == pytest.approx(scale**2 * (spread[0] + process.noise), rel=1e-5)


@pytest.mark.parametrize("features", [None, 4])
def test_gradients(features):
    space = every_kind()
    U = points(space, 30)
    posterior = LogGPCost(features).fit(observed(U, product_law(space, U) + np.sin(5 * U[:, 4])), Encoding(space))
    d_mean = check_gradients(posterior, inner_points(space, 10))
    assert np.abs(d_mean).max() > 0.1


def test_limited_features_are_the_informative_ones():
    posterior = LogGPCost(3).fit(draw(SPACE, 30, noise=0.05), ENCODING)
    assert {SPACE.names[j] for j in ENCODING.groups[posterior.columns]} == {"rounds", "depth", "share"}
    assert posterior.name.startswith("GP over rounds")
    everything = LogGPCost().fit(draw(SPACE, 30, noise=0.05), ENCODING)
    assert rmse(posterior, TEST, product_law(SPACE, TEST)) < rmse(everything, TEST, product_law(SPACE, TEST))


def test_many_rows_are_all_used_though_a_sample_sets_the_hyperparameters():
    costs = draw(SPACE, 160)
    posterior = LogGPCost().fit(costs, ENCODING)
    assert len(posterior.process) == 160
    assert rmse(posterior, TEST, product_law(SPACE, TEST)) < 0.15


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("level", [np.log(1e-9), 0.0, np.log(1e9)])
def test_few_equal_or_extreme_costs_are_finite_and_not_too_sure(n, level):
    U = np.repeat(TEST[:1], n, axis=0)
    posterior = LogGPCost().fit(observed(U, np.full(n, level)), ENCODING)
    mean, variance = posterior.log_cost(TEST)
    np.testing.assert_allclose(mean, level, atol=1e-6)
    assert (variance[10:] > 0.05 / n).all()
    assert np.isfinite(posterior.leave_one_out()).all()


def test_the_features_must_be_at_least_one():
    with pytest.raises(MethodError, match=r"features .* whole number of 1 or more"):
        LogGPCost(0)
