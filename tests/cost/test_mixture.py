import numpy as np

from shoestring.cost.auto import Mixture, mix
from shoestring.cost.linear import LinearCost
from shoestring.cost.log_gp import LogGPCost
from shoestring.space.encoding import Encoding
from tests.cost.laws import boosting_space, draw, points

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
COSTS = draw(SPACE, 12)
PARTS = (LinearCost(None).fit(COSTS, ENCODING), LogGPCost().fit(COSTS, ENCODING))
MIXTURE = Mixture(PARTS, np.array([0.7, 0.3]))
TEST = points(SPACE, 5, 3)


def test_moments_are_those_of_draws():
    rng = np.random.default_rng(0)
    means, variances = np.array([part.log_cost(TEST) for part in PARTS]).swapaxes(0, 1)
    which = (rng.random((200_000, 1)) > 0.7).astype(int)
    column = np.arange(len(TEST))
    draws = rng.normal(means[which, column], np.sqrt(variances[which, column]))
    mean, variance = MIXTURE.log_cost(TEST)
    np.testing.assert_allclose(mean, draws.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(variance, draws.var(axis=0), rtol=0.02)


def test_gradients_are_those_of_differences():
    mean, variance, d_mean, d_variance = MIXTURE.log_cost_with_gradient(TEST)
    np.testing.assert_allclose(MIXTURE.log_cost(TEST), (mean, variance))
    numeric = [j for j, parameter in enumerate(SPACE.values()) if hasattr(parameter, "low")]
    for j in numeric:
        step = np.zeros(len(SPACE))
        step[j] = 1e-6
        active = SPACE.active(TEST)[:, j]
        above, below = MIXTURE.log_cost(TEST + step), MIXTURE.log_cost(TEST - step)
        for analytic, up, down in zip((d_mean, d_variance), above, below, strict=True):
            np.testing.assert_allclose(analytic[active, j], ((up - down) / 2e-6)[active], rtol=1e-4, atol=1e-5)


def test_a_part_without_weight_is_dropped():
    assert mix(PARTS, np.array([0.0, -50.0])) is PARTS[0]
    assert mix(PARTS, np.array([-np.inf, 0.0])) is PARTS[1]


def test_disagreement_is_uncertainty():
    apart = np.array([part.log_cost(TEST)[0] for part in PARTS])
    own = 0.7 * PARTS[0].log_cost(TEST)[1] + 0.3 * PARTS[1].log_cost(TEST)[1]
    np.testing.assert_allclose(MIXTURE.log_cost(TEST)[1] - own, 0.21 * (apart[0] - apart[1]) ** 2)
