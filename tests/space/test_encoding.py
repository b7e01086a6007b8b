import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.space.encoding import Encoding
from tests.differences import gradients_of
from tests.problems import mixed_space
from tests.spaces import spaces


@pytest.mark.parametrize("count", [2, 3, 7])
def test_any_two_options_are_at_distance_one(count):
    space = st.Space(c=st.Choice(*range(count)))
    Z = Encoding(space).features(space.grid())
    for i, j in itertools.combinations(range(count), 2):
        assert np.linalg.norm(Z[i] - Z[j]) == pytest.approx(1.0)


@given(spaces())
def test_each_parameter_has_one_group_and_each_feature_belongs_to_one(space):
    encoding = Encoding(space)
    assert sorted(set(encoding.groups.tolist())) == list(range(len(space)))
    assert encoding.features(np.random.default_rng(0).random((3, len(space)))).shape == (3, encoding.width)
    assert encoding.width == len(encoding.groups)


@pytest.mark.parametrize(
    "parameter", [st.Float(3, 5), st.Float(1e-5, 1, log=True), st.Int(2, 9), st.Int(1, 64, log=True), st.Float(0, 1, step=0.25)]
)
def test_lowest_and_highest_value_lie_at_zero_and_one(parameter):
    space = st.Space(x=parameter)
    ends = np.array([space.encode({"x": parameter.low}), space.encode({"x": parameter.high})])
    np.testing.assert_allclose(Encoding(space).features(ends)[:, 0], [0.0, 1.0], atol=1e-12)


def test_a_range_of_many_whole_numbers_takes_no_memory():
    space = st.Space(n=st.Int(0, 2**40))
    ends = np.array([space.encode({"n": 0}), space.encode({"n": 2**40})])
    np.testing.assert_allclose(Encoding(space).features(ends)[:, 0], [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_an_inactive_choice_is_equally_far_from_every_option(count):
    space = st.Space(on=st.Choice(True, False), c=st.Choice(*range(count), when={"on": True}))
    encoding = Encoding(space)
    block = encoding.groups == 1
    off = encoding.features(space.encode({"on": False})[None, :])[0, block]
    options = encoding.features(np.array([space.encode({"on": True, "c": i}) for i in range(count)]))[:, block]
    distances = np.linalg.norm(options - off, axis=1)
    np.testing.assert_allclose(distances, distances[0])


def test_an_inactive_number_is_halfway():
    space = st.Space(on=st.Choice(True, False), n=st.Int(1, 64, log=True, when={"on": True}))
    assert Encoding(space).features(space.encode({"on": False})[None, :])[0, 1] == 0.5


def features_by_definition(space, u):
    """The features of one point, parameter by parameter."""
    active, found = space.active(u[None, :])[0], []
    for j, parameter in enumerate(space.values()):
        if not isinstance(parameter, st.Choice):
            low, high = (0.0, 1.0) if parameter.levels is None else parameter.to_unit(np.array([parameter.low, parameter.high]))
            found.append((u[j] - low) * (1.0 / (high - low)) if active[j] else 0.5)
        elif parameter.levels == 2:
            found.append(float(parameter.index(u[j])) if active[j] else 0.5)
        else:
            chosen = np.arange(parameter.levels) == parameter.index(u[j])
            found += list(np.sqrt(0.5) * chosen) if active[j] else [np.sqrt(0.5) / parameter.levels] * parameter.levels
    return found


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_features_are_those_of_each_parameter_by_itself(space, seed):
    """Bit for bit: a change here would change every suggestion."""
    U = np.random.default_rng(seed).random((6, len(space)))
    U[0], U[1] = 0.0, 1.0
    Z = Encoding(space).features(U)
    assert Z.tobytes() == np.array([features_by_definition(space, u) for u in U]).tobytes()
    assert Z.flags.c_contiguous


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_coordinates_of_inactive_parameters_do_not_matter(space, seed):
    rng = np.random.default_rng(seed)
    U = space.snap(rng.random((6, len(space))))
    scrambled = np.where(space.active(U), U, rng.random(U.shape))
    features = Encoding(space).features
    np.testing.assert_array_equal(features(U), features(scrambled))


@pytest.mark.parametrize("seed", range(4))
def test_pull_back_is_the_gradient_through_the_features(seed):
    space, rng = mixed_space(), np.random.default_rng(seed)
    encoding = Encoding(space)
    U = space.snap(rng.random((20, len(space))))
    weights = rng.normal(size=encoding.width)

    def value(points):
        Z = encoding.features(points)
        return (Z**2) @ weights

    by_hand = encoding.pull_back(U, 2 * encoding.features(U) * weights)
    numeric = np.array([name in ("rate", "depth", "extra", "deep") for name in space])
    np.testing.assert_allclose(by_hand[:, numeric], gradients_of(value, U, 1e-6)[:, numeric], atol=1e-6)
    assert (by_hand[:, ~numeric] == 0).all()
