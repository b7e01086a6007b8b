import math

import numpy as np
import pytest

import shoestring as st
from shoestring.cost.known import KnownCost
from shoestring.cost.linear import LinearCost
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from tests.cost.laws import every_kind, inner_points, observed, points

SPACE = every_kind()
ENCODING = Encoding(SPACE)
NONE = observed(np.empty((0, len(SPACE))), [])


def price(config):
    """A product, so that log cost is a sum over parameters."""
    kind = {"a": 1.0, "b": 2.0, "c": 3.0}[config["kind"]]
    return config["rounds"] * config["depth"] ** 2 * math.exp(config["shift"]) * config.get("drop", 0.3) * kind


def test_it_is_exact_without_any_observation():
    U = points(SPACE, 30)
    mean, variance = KnownCost(price).fit(NONE, ENCODING).log_cost(U)
    np.testing.assert_allclose(mean, [math.log(price(SPACE.decode(u))) for u in U], rtol=1e-12)
    assert (variance > 0).all()
    assert variance.max() < 1e-6


def test_gradients_are_right_where_numbers_are_continuous_and_zero_for_choices_and_inactive_ones():
    U = points(SPACE, 30)
    posterior = KnownCost(price).fit(NONE, ENCODING)
    mean, _, slope, d_variance = posterior.log_cost_with_gradient(U)
    np.testing.assert_allclose(mean, posterior.log_cost(U)[0])
    column = SPACE.names.index
    np.testing.assert_allclose(slope[:, column("shift")], 3.0, rtol=1e-6)
    active = SPACE.active(U)[:, column("drop")]
    drop = SPACE["drop"].values(U[:, column("drop")])
    np.testing.assert_allclose(slope[active, column("drop")], 0.8 / drop[active], rtol=1e-4)
    assert (slope[~active, column("drop")] == 0).all()
    assert (slope[:, [column("kind"), column("fast")]] == 0).all()
    assert (d_variance == 0).all()


def test_whole_numbers_between_two_values_lie_on_the_line_between_them():
    posterior = KnownCost(price).fit(NONE, ENCODING)
    depth = SPACE["depth"]
    U = np.repeat(points(SPACE, 1), 5, axis=0)
    low, high = depth.to_unit(3), depth.to_unit(4)
    U[:, 1] = low + (high - low) * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    mean = posterior.log_cost(U)[0] - posterior.log_cost(U[:1])[0]
    np.testing.assert_allclose(mean, 2 * math.log(4 / 3) * np.array([0, 0.25, 0.5, 0.75, 1]), atol=1e-9)
    slope = posterior.log_cost_with_gradient(U[1:2])[2][0, 1]
    assert slope == pytest.approx(2 * math.log(4 / 3) / (high - low))


def test_relaxed_values_and_gradients_agree():
    from tests.differences import gradients_of

    posterior = KnownCost(price).fit(NONE, ENCODING)
    U = inner_points(SPACE, 6)
    smooth = np.array([not isinstance(parameter, st.Choice) for parameter in SPACE.values()])
    by_difference = gradients_of(lambda X: posterior.log_cost(X)[0], U, 1e-6)
    np.testing.assert_allclose(posterior.log_cost_with_gradient(U)[2][:, smooth], by_difference[:, smooth], atol=1e-3, rtol=1e-3)


def test_the_rest_is_learned():
    U = points(SPACE, 20)
    rest = 1.5 + 2.0 * np.log(SPACE["share"].values(U[:, 2]))
    known = np.array([math.log(price(SPACE.decode(u))) for u in U])
    posterior = KnownCost(price, learned=LinearCost()).fit(observed(U[:15], (known + rest)[:15]), ENCODING)
    assert posterior.name == "known times linear in share"
    np.testing.assert_allclose(posterior.log_cost(U)[0][15:], (known + rest)[15:], atol=0.1)
    leave_one_out, variance = posterior.leave_one_out()
    np.testing.assert_allclose(leave_one_out, (known + rest)[:15], atol=0.15)
    assert (variance > 0).all()


def test_a_learned_part_without_observations_leaves_the_formula_less_sure():
    U = points(SPACE, 5)
    mean, variance = KnownCost(price, learned=LinearCost()).fit(NONE, ENCODING).log_cost(U)
    np.testing.assert_allclose(mean, KnownCost(price).fit(NONE, ENCODING).log_cost(U)[0])
    assert (variance >= 0.5).all()


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_that_cannot_be_is_refused_with_its_config(cost):
    with pytest.raises(MethodError, match=r"positive, finite.*rounds"):
        KnownCost(lambda config: cost).fit(NONE, ENCODING).log_cost(points(SPACE, 1))


def test_an_error_in_the_formula_names_the_config():
    with pytest.raises(MethodError, match=r"KeyError.*'missing'"):
        KnownCost(lambda config: config["missing"]).fit(NONE, ENCODING).log_cost(points(SPACE, 1))


def test_f_must_be_a_function():
    with pytest.raises(MethodError, match="function"):
        KnownCost(3.0)
