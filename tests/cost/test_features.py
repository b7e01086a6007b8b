import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.cost.features import CostFeatures
from shoestring.space.encoding import Encoding
from tests.cost.laws import every_kind, inner_points
from tests.differences import gradients_of
from tests.spaces import spaces


@pytest.mark.parametrize("parameter", [st.Float(0.2, 5), st.Int(2, 9), st.Int(1, 64, log=True), st.Float(0.5, 3, step=0.5)])
def test_a_positive_number_enters_by_its_logarithm(parameter):
    space = st.Space(x=parameter)
    value = parameter.values(np.linspace(0, 1, 40))
    U = parameter.to_unit(value)[:, None]
    wanted = np.log(value / parameter.low) / np.log(parameter.high / parameter.low) - 0.5
    np.testing.assert_allclose(CostFeatures(Encoding(space))(U)[:, 0], wanted, atol=1e-12)


def test_a_number_that_may_be_zero_enters_by_its_unit_coordinate():
    space = st.Space(x=st.Float(0, 4))
    np.testing.assert_allclose(CostFeatures(Encoding(space))(np.array([[0.25]])), [[-0.25]])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_choice_enters_by_centred_indicators(count):
    space = st.Space(c=st.Choice(*range(count)))
    F = CostFeatures(Encoding(space))(space.grid())
    np.testing.assert_allclose(F.mean(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(F, axis=0)) == count


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_any_space_has_finite_features_within_their_range_and_neutral_where_inactive(space, seed):
    rng = np.random.default_rng(seed)
    features = CostFeatures(Encoding(space))
    U = space.snap(rng.random((6, len(space))))
    F = features(U)
    assert F.shape == (6, len(features.groups))
    assert (np.abs(F) <= 1.0 + 1e-9).all()
    active = space.active(U)
    assert (F[~active[:, features.groups]] == 0).all()
    scrambled = np.where(active, U, rng.random(U.shape))
    np.testing.assert_array_equal(F, features(scrambled))


@pytest.mark.parametrize("seed", range(3))
def test_pull_back_is_the_gradient_through_the_features(seed):
    space, rng = every_kind(), np.random.default_rng(seed)
    features = CostFeatures(Encoding(space))
    U = inner_points(space, 20, seed)
    weights = rng.normal(size=len(features.groups))
    by_hand = features.pull_back(U, 2 * features(U) * weights)
    smooth = np.array([not isinstance(parameter, st.Choice) for parameter in space.values()])
    by_difference = gradients_of(lambda X: (features(X) ** 2) @ weights, U, 1e-6)
    np.testing.assert_allclose(by_hand[:, smooth], by_difference[:, smooth], atol=1e-5)
    assert (by_hand[:, ~smooth] == 0).all()
    assert (by_hand[~space.active(U)] == 0).all()


def test_half_a_bin_below_a_positive_value_stays_finite_and_smooth():
    space = st.Space(x=st.Float(0.1, 1.1, step=0.5))  # half a step below 0.1 lies below zero
    features = CostFeatures(Encoding(space))
    U = np.linspace(0, 1, 2001)[:, None]
    F = features(U)[:, 0]
    assert np.isfinite(F).all()
    assert (np.diff(F) > 0).all()
    slope = features.pull_back(U, np.ones((2001, 1)))[:, 0]
    np.testing.assert_allclose(np.gradient(F, U[:, 0])[1:-1], slope[1:-1], rtol=0.02)
