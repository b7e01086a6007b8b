import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

from shoestring.cost.auto import AutoCost
from shoestring.cost.base import CostObservations
from shoestring.cost.censored import expected_above, fit_costs
from shoestring.cost.linear import LinearCost
from shoestring.cost.log_gp import LogGPCost
from shoestring.space.encoding import Encoding
from tests.cost.laws import boosting_space, draw, points, product_law, rmse

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
TEST = points(SPACE, 300, 99)
LIMIT = np.log(1.5)  # evaluations are cut off here


def cut(seed, n=25, noise=0.1):
    costs = draw(SPACE, n, seed, noise)
    hidden = costs.log_cost > LIMIT
    return CostObservations(costs.U, np.minimum(costs.log_cost, LIMIT), hidden), costs


class Spy:
    """A model that keeps what it was given."""

    def __init__(self, model):
        self.model, self.seen = model, []

    def fit(self, costs, encoding, warm_start=None):
        self.seen.append(costs.log_cost)
        return self.model.fit(costs, encoding)


def test_bounds_are_better_than_ignoring_them_or_taking_them_for_costs():
    errors = []
    wanted = product_law(SPACE, TEST)
    for seed in range(10):
        costs, _ = cut(seed, noise=0.7)  # where chance made an evaluation cheap it is seen: those alone are a biased sample
        seen = ~costs.censored
        assert 3 <= costs.censored.sum() <= 20
        fits = [
            fit_costs(LinearCost(), costs, ENCODING),
            LinearCost().fit(CostObservations(costs.U[seen], costs.log_cost[seen], costs.censored[seen]), ENCODING),
            LinearCost().fit(costs, ENCODING),
        ]
        errors.append([rmse(fit, TEST, wanted) for fit in fits])
    censored, dropped, taken = np.mean(errors, axis=0)
    assert censored < dropped
    assert censored < 0.8 * taken


@pytest.mark.parametrize("model", [LinearCost(), LogGPCost(), AutoCost()])
@pytest.mark.parametrize("n", [1, 2, 6, 25])
def test_no_guess_lies_below_its_bound_or_far_beyond_the_data(model, n):
    costs, whole = cut(3, n)
    if not costs.censored.any():
        costs = CostObservations(costs.U, costs.log_cost, np.arange(n) == 0)
    spy = Spy(model)
    posterior = fit_costs(spy, costs, ENCODING)
    for gamma in (gamma for gamma in spy.seen if len(gamma) == n):
        assert (gamma[costs.censored] >= costs.log_cost[costs.censored]).all()
        np.testing.assert_array_equal(gamma[~costs.censored], costs.log_cost[~costs.censored])
        assert gamma.max() < whole.log_cost.max() + 6
    assert np.isfinite(posterior.log_cost(TEST)).all()


def test_it_converges():
    costs, _ = cut(0)
    spy = Spy(LinearCost())
    fit_costs(spy, costs, ENCODING)
    whole = [gamma for gamma in spy.seen if len(gamma) == len(costs)]
    assert np.abs(whole[-1] - whole[-2]).max() < 0.05


def test_without_censored_costs_it_is_the_plain_fit():
    costs = draw(SPACE, 12)
    spy = Spy(LinearCost())
    fit_costs(spy, costs, ENCODING)
    assert len(spy.seen) == 1


def test_a_lower_bound_raises_the_prediction_there():
    costs, _ = cut(1)
    row = costs.U[np.flatnonzero(costs.censored)[:1]]
    assert fit_costs(LogGPCost(), costs, ENCODING).log_cost(row)[0] > LogGPCost().fit(costs, ENCODING).log_cost(row)[0]


@given(draws.floats(-30, 30), draws.floats(-30, 30), draws.floats(1e-6, 1.0))
def test_the_expectation_above_a_bound(bound, mean, variance):
    value = float(expected_above(np.array([bound]), np.array([mean]), np.array([variance]))[0])
    assert np.isfinite(value)
    assert value >= max(bound, mean) - 1e-9


def test_the_expectation_above_a_bound_by_sampling():
    sample = np.random.default_rng(0).normal(0.3, 0.8, 400_000)
    wanted = sample[sample > 0.9].mean()
    assert expected_above(np.array([0.9]), np.array([0.3]), np.array([0.64]))[0] == pytest.approx(wanted, abs=5e-3)
