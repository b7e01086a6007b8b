import numpy as np
import pytest

from shoestring.encoding import Encoding
from shoestring.surrogate.cost.auto import AutoCost, score
from shoestring.surrogate.cost.gp import LogGPCost
from shoestring.surrogate.cost.linear import LinearCost
from shoestring.surrogate.cost.residual import ResidualGPCost
from tests.surrogate.cost.laws import boosting_space, draw, observed, points, product_law, rmse

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
TEST = points(SPACE, 300, 99)


def wavy_law(space, U):
    return 2.0 * np.sin(6 * U[:, 1]) + 2.0 * np.cos(6 * U[:, 5])


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_few_data_get_the_linear_model(n):
    costs = draw(SPACE, n, law=wavy_law)
    assert AutoCost().fit(costs, ENCODING).name == LinearCost().fit(costs, ENCODING).name


def test_a_linear_law_keeps_the_linear_model():
    names = [AutoCost().fit(draw(SPACE, 30, seed), ENCODING).name for seed in range(5)]
    assert sum("GP" not in name for name in names) >= 4


def test_a_law_that_is_far_from_linear_gets_a_gp_when_data_are_many():
    posterior = AutoCost().fit(draw(SPACE, 60, law=wavy_law), ENCODING)
    assert "GP" in posterior.name
    linear = LinearCost().fit(draw(SPACE, 60, law=wavy_law), ENCODING)
    assert rmse(posterior, TEST, wavy_law(SPACE, TEST)) < 0.5 * rmse(linear, TEST, wavy_law(SPACE, TEST))


def test_at_ten_evaluations_it_is_as_good_as_its_best_part_and_better_than_the_gp():
    errors = []
    for seed in range(10):
        costs = draw(SPACE, 10, seed)
        fits = [model.fit(costs, ENCODING) for model in (AutoCost(), LinearCost(), ResidualGPCost(), LogGPCost())]
        errors.append([rmse(fit, TEST, product_law(SPACE, TEST)) for fit in fits])
    auto, linear, residual, process = np.mean(errors, axis=0)
    assert auto <= 1.05 * min(linear, residual)
    assert auto < process


def test_what_it_chooses_scores_no_less_than_the_linear_model():
    for seed in range(4):
        costs = draw(SPACE, 25, seed, law=lambda space, U: product_law(space, U) + 0.5 * wavy_law(space, U))
        assert score(AutoCost().fit(costs, ENCODING), costs) >= score(LinearCost().fit(costs, ENCODING), costs)


def test_the_score_prefers_the_better_prediction():
    costs = draw(SPACE, 20)
    shuffled = observed(costs.U, np.random.default_rng(0).permutation(costs.gamma))
    assert score(LinearCost().fit(costs, ENCODING), costs) > score(LinearCost().fit(shuffled, ENCODING), shuffled) + 5
