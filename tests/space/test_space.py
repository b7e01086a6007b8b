import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.acquisition.optimize.candidates import is_visited
from shoestring.space.encoding import Encoding
from tests.spaces import configs, is_active, small, spaces, text, values_of


def points(space, count=8, seed=0):
    U = np.random.default_rng(seed).random((count, len(space)))
    U[0], U[1] = 0.0, 1.0
    return U


def same(space, left, right):
    """Equal, floats of a continuous parameter to 1e-9 of the value or of the range."""
    assert list(left) == list(right)
    for name in left:
        parameter = space[name]
        if parameter.levels is None:
            scale = abs(left[name]) if parameter.log else max(abs(left[name]), parameter.high - parameter.low)
            assert abs(left[name] - right[name]) <= 1e-9 * scale, name
        else:
            assert text(left[name]) == text(right[name]), name


@given(draws.data())
def test_decode_inverts_encode_on_every_valid_config(data):
    space = data.draw(spaces())
    config = space.check(data.draw(configs(space)))
    same(space, config, space.decode(space.encode(config)))


@given(draws.data())
def test_a_valid_config_passes_its_check_unchanged(data):
    space = data.draw(spaces())
    config = data.draw(configs(space))
    same(space, {name: config[name] for name in space if name in config}, space.check(config))


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_every_decoded_point_is_valid(space, seed):
    for u in points(space, seed=seed):
        config = space.decode(u)
        assert text(space.check(config)) == text(config)


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_decoded_configs_hold_exactly_the_active_parameters(space, seed):
    for u in points(space, seed=seed):
        config = space.decode(u)
        assert [name for name in space if is_active(space[name], config)] == list(config)


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_snap_is_that_of_each_parameter_by_itself(space, seed):
    """Bit for bit, although columns of the same kind are computed together."""
    for order in "CF":
        U = np.asarray(points(space, seed=seed), order=order)
        expected = np.column_stack([parameter.snap(U[:, j]) for j, parameter in enumerate(space.values())])
        expected[~space.active(expected)] = 0.5
        found = space.snap(U)
        assert found.tobytes() == expected.tobytes()
        assert found.flags.c_contiguous


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_snap_changes_nothing_the_second_time(space, seed):
    once = space.snap(points(space, seed=seed))
    np.testing.assert_allclose(space.snap(once), once, rtol=0, atol=1e-12)


@given(spaces(), draws.integers(0, 2**32 - 1))
def test_a_snapped_point_has_the_features_of_its_config(space, seed):
    U, features = points(space, seed=seed), Encoding(space).features
    through_config = np.array([space.encode(space.decode(u)) for u in U])
    np.testing.assert_allclose(features(space.snap(U)), features(through_config), rtol=0, atol=1e-8)


@given(spaces(finite=True), draws.integers(0, 2**32 - 1))
def test_a_snapped_point_is_recognised_as_its_config(space, seed):
    U = space.snap(points(space, seed=seed))
    assert is_visited(U, np.array([space.encode(space.decode(u)) for u in U])).all()


@pytest.mark.parametrize("low", [0.0, 0.3, -1.7])
@pytest.mark.parametrize("levels", [8, 128, 256, 512, 1024])
def test_every_value_of_a_stepped_grid_is_recognised(low, levels):
    space = st.Space(x=st.Float(low, low + 0.1 * (levels - 1), step=0.1))
    U = space.grid()
    assert is_visited(U, np.array([space.encode(space.decode(u)) for u in U])).all()


@given(spaces())
def test_json_and_back(space):
    again = st.Space.from_json(space.to_json())
    assert again == space
    assert hash(again) == hash(space)
    assert again.names == space.names
    assert again.target == space.target
    for u in points(space):
        assert text(again.decode(u)) == text(space.decode(u))


def all_configs(space):
    """Every config of a finite space at the target fidelity, by brute force."""
    free = [name for name in space if not space[name].fidelity]
    found = set()
    for values in itertools.product(*(values_of(space[name]) for name in free)):
        config = dict(zip(free, values, strict=True))
        while inactive := [name for name in config if not is_active(space[name], config)]:
            del config[inactive[0]]
        found.add(text(config | space.target))
    return found


@given(spaces(finite=True, most=4).map(small))
def test_cardinality_is_the_number_of_configs(space):
    everything = all_configs(space)
    grid = space.grid()
    assert space.cardinality() == len(grid) == len(everything)
    assert {text(space.decode(u)) for u in grid} == everything


def test_a_continuous_space_has_no_end():
    assert st.Space(n=st.Int(0, 3), x=st.Float(0, 1)).cardinality() == math.inf


def test_uniform_points_give_each_level_its_equal_share():
    space = st.Space(n=st.Int(0, 4), c=st.Choice("a", "b", "c"))
    U = np.column_stack([np.arange(0.5, 3000) / 3000] * 2)
    decoded = [space.decode(u) for u in U]
    assert {n: sum(config["n"] == n for config in decoded) for n in range(5)} == dict.fromkeys(range(5), 600)
    assert {c: sum(config["c"] == c for config in decoded) for c in "abc"} == dict.fromkeys("abc", 1000)


def test_a_log_scale_gives_each_decade_its_equal_share():
    space = st.Space(x=st.Float(1e-4, 1.0, log=True))
    decoded = [space.decode(np.array([u]))["x"] for u in (0.0, 0.25, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(decoded, [1e-4, 1e-3, 1e-2, 1e-1, 1.0])


# -- conditions --------------------------------------------------------------------------------------------------------


def test_a_chain_of_conditions():
    space = st.Space(
        c=st.Choice("on", "off"), n=st.Int(1, 3, when={"c": "on"}), x=st.Float(0, 1, when={"n": [2, 3]}), y=st.Int(0, 1)
    )
    assert space.check({"c": "off", "y": 0}) == {"c": "off", "y": 0}
    assert space.check({"c": "on", "n": 1, "y": 0}) == {"c": "on", "n": 1, "y": 0}
    assert space.check({"c": "on", "n": 3, "x": 0.5, "y": 1}) == {"c": "on", "n": 3, "x": 0.5, "y": 1}
    assert space.parents("x") == ("n",)


@pytest.mark.parametrize("wanted", ["b", ["b", "c"], ("b", "c"), {"b", "c"}, frozenset({"b"})])
def test_a_condition_on_one_value_or_several(wanted):
    space = st.Space(c=st.Choice("a", "b", "c"), x=st.Float(0, 1, when={"c": wanted}))
    assert "x" in space.decode(space.encode({"c": "b", "x": 0.2}))
    assert "x" not in space.decode(space.encode({"c": "a"}))
    again = st.Space.from_json(space.to_json())
    assert again.decode(again.encode({"c": "b", "x": 0.5})) == {"c": "b", "x": 0.5}


def test_conditions_with_numpy_values_can_be_written_as_json():
    space = st.Space(n=st.Int(1, 4), x=st.Float(0, 1, when={"n": [np.int64(2), np.int64(3)]}))
    assert json.loads(space.to_json())["x"]["when"] == {"n": [2, 3]}


def test_a_parent_may_be_given_after_its_child():
    space = st.Space(x=st.Float(0, 1, when={"c": "b"}), c=st.Choice("a", "b"))
    assert list(space.decode(np.array([0.5, 0.9]))) == ["x", "c"]
    assert list(space.decode(np.array([0.5, 0.1]))) == ["c"]


# -- spaces that are not valid ---------------------------------------------------------------------------------------------

NAN = float("nan")


@pytest.mark.parametrize(
    ("parameter", "cause"),
    [
        (st.Float(1, 1), "below high"),
        (st.Int(3, 3), "below high"),
        (st.Float(0, 1, log=True), "log"),
        (st.Float(-1, 1, log=True), "log"),
        (st.Int(0, 9, log=True), "log"),
        (st.Float(NAN, 1), "nan"),
        (st.Float(0, NAN), "nan"),
        (st.Float(0, math.inf), "inf"),
        (st.Float("0", 1), "number"),
        (st.Float(0, None), "number"),
        (st.Float(False, True), "number"),
        (st.Float(-1.7e308, 1.7e308), "wide"),
        (st.Float(0, 1, step=0), "step"),
        (st.Float(0, 1, step=2), "step"),
        (st.Float(0, 1, step=NAN), "step"),
        (st.Float(1, 2, log=True, step=0.5), "both"),
        (st.Int(0, 9, step=1.5), "whole"),
        (st.Int(0.5, 9), "whole"),
        (st.Int(0, 2**60), "2"),
        (st.Choice(), "option"),
        (st.Choice("a", "b", "a"), "twice"),
        (st.Choice({"k": 1, "l": 2}, {"l": 2, "k": 1}), "twice"),
        (st.Choice("a", NAN), "JSON"),
        (st.Choice("a", object()), "JSON"),
        (st.Choice("a", {1, 2}), "JSON"),
        (st.Fidelity(5, 5), "below high"),
        (st.Fidelity(1, 10, target=11), "bounds"),
        (st.Fidelity(1, 10, target=2.5), "grid"),
        (st.Fidelity(1, 10, when={"other": 1}), "condition"),
        (st.Float(0, 1, when={"nowhere": 1}), "nowhere"),
        (st.Float(0, 1, when={"other": 9}), "other"),
        (st.Float(0, 1, when={"other": [0, 9]}), "other"),
        (st.Float(0, 1, when={"other": []}), "other"),
        (st.Float(0, 1, when={"real": 0.5}), "real"),
        ("a text", "Float, Int, Choice"),
        (st.Float, "Float, Int, Choice"),
    ],
)
def test_an_invalid_parameter_is_refused_by_name(parameter, cause):
    with pytest.raises(st.SpaceError, match=r"\bculprit\b") as refused:
        st.Space(culprit=parameter, other=st.Int(0, 5), real=st.Float(0, 1))
    assert cause in str(refused.value)


@pytest.mark.parametrize("when", ["other", ["other"], 3])
def test_a_condition_that_is_not_a_dict_is_refused_by_name(when):
    with pytest.raises(st.SpaceError, match="culprit"):
        st.Space(culprit=st.Float(0, 1, when=when), other=st.Int(0, 5))


@pytest.mark.parametrize(
    "parameter",
    [
        st.Float(0, 1e300, step=1e-300),  # more steps than floats can count
        st.Float(1e10, 1e10 + 2e-6, log=True),  # both ends have the same logarithm
    ],
)
def test_a_range_that_floats_cannot_resolve_is_refused_by_name(parameter):
    with pytest.raises(st.SpaceError, match="culprit"):
        st.Space(culprit=parameter)


def test_conditions_in_a_circle_are_refused_by_name():
    with pytest.raises(st.SpaceError, match="circle") as refused:
        st.Space(
            a=st.Choice(1, 2, when={"c": 1}), b=st.Choice(1, 2, when={"a": 1}), c=st.Choice(1, 2, when={"b": 1}), d=st.Int(0, 1)
        )
    assert all(name in str(refused.value) for name in "abc")


def test_a_parameter_conditional_on_itself_is_refused_by_name():
    with pytest.raises(st.SpaceError, match="loop"):
        st.Space(loop=st.Choice(1, 2, when={"loop": 1}))


@pytest.mark.parametrize("parameters", [{}, {"": st.Float(0, 1)}, {3: st.Float(0, 1)}, {"epochs": st.Fidelity(1, 9)}])
def test_a_space_without_a_named_parameter_to_choose_is_refused(parameters):
    with pytest.raises(st.SpaceError):
        st.Space(parameters)


@pytest.mark.parametrize(
    "stored", ["", "[1]", '{"x": 3}', '{"x": {"kind": "nought"}}', '{"x": {"kind": "float"}}', '{"x": {"kind": "int", "lo": 1}}']
)
def test_json_that_is_no_space_is_refused(stored):
    with pytest.raises(st.SpaceError):
        st.Space.from_json(stored)


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(st.SpaceError, match="culprit"):
        st.Space.from_json({"culprit": {"kind": "complex"}})


# -- configs that do not fit -------------------------------------------------------------------------------------------


@pytest.fixture
def space():
    return st.Space(
        x=st.Float(0, 1),
        n=st.Int(0, 10, step=5),
        g=st.Float(0, 1, step=0.25),
        c=st.Choice("a", "b"),
        y=st.Float(1, 2, when={"c": "b"}),
        epochs=st.Fidelity(1, 9),
    )


RIGHT = {"x": 0.5, "n": 5, "g": 0.5, "c": "a"}


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"x": 1.1}, "x"),
        ({"x": -1e-6}, "x"),
        ({"x": NAN}, "x"),
        ({"x": math.inf}, "x"),
        ({"x": "0.5"}, "x"),
        ({"x": None}, "x"),
        ({"x": True}, "x"),
        ({"n": 11}, "n"),
        ({"n": 4}, "n"),
        ({"n": 5.5}, "n"),
        ({"g": 0.3}, "g"),
        ({"c": "z"}, "c"),
        ({"c": ["a"]}, "c"),
        ({"c": {"a"}}, "c"),
        ({"c": np.array(["a", "b"])}, "c"),
        ({"y": 1.5}, "y"),
        ({"c": "b"}, "y"),
        ({"c": "b", "y": 3}, "y"),
        ({"epochs": 10}, "epochs"),
        ({"epochs": 1.5}, "epochs"),
        ({"unheard": 1}, "unheard"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(space, change, culprit):
    with pytest.raises(st.ConfigError, match=rf"\b{culprit}\b"):
        space.check(RIGHT | change)


@pytest.mark.parametrize("missing", ["x", "n", "g", "c"])
def test_a_missing_value_is_refused_by_name(space, missing):
    with pytest.raises(st.ConfigError, match=rf"\b{missing}\b"):
        space.check({name: value for name, value in RIGHT.items() if name != missing})


@pytest.mark.parametrize("config", [None, [1, 2], "x", 3])
def test_a_config_that_is_no_dict_is_refused(space, config):
    with pytest.raises(st.ConfigError):
        space.check(config)


def test_a_missing_fidelity_is_at_its_target(space):
    assert space.check(RIGHT)["epochs"] == 9
    assert space.check(RIGHT | {"epochs": 3})["epochs"] == 3


def test_the_target_of_a_fidelity_is_high_unless_given():
    space = st.Space(x=st.Float(0, 1), a=st.Fidelity(1, 50), b=st.Fidelity(0.1, 1.0, target=0.5), c=st.Fidelity(0, 1))
    assert space.target == {"a": 50, "b": 0.5, "c": 1.0}
    assert space.fidelities == ("a", "b", "c")
    U = space.at_target(np.full((1, 4), 0.3))
    assert {name: space.decode(U[0])[name] for name in "abc"} == pytest.approx(space.target)


def test_numpy_scalars_are_accepted_and_become_plain(space):
    config = space.check(
        {"x": np.float32(0.5), "n": np.int64(5), "g": np.float64(0.5), "c": np.str_("b"), "y": np.int32(1), "epochs": np.uint8(2)}
    )
    assert config == {"x": 0.5, "n": 5, "g": 0.5, "c": "b", "y": 1.0, "epochs": 2}
    assert {type(value) for value in config.values()} == {float, int, str}


def test_numpy_bounds_are_accepted():
    space = st.Space(
        x=st.Float(np.float64(0), np.float32(1)), n=st.Int(np.int64(1), np.int32(9)), e=st.Fidelity(np.int64(1), np.int64(9))
    )
    assert st.Space.from_json(space.to_json()) == space
    assert {type(value) for value in space.decode(np.full(3, 0.5)).values()} == {float, int}


def test_a_space_is_a_mapping_that_prints_its_parameters(space):
    assert list(space) == list(space.keys()) == list(space.names) == ["x", "n", "g", "c", "y", "epochs"]
    assert list(space.values()) == list(space.parameters) == [space[name] for name in space]
    assert list(space.items()) == list(zip(space.names, space.parameters, strict=True))
    assert "x" in space
    assert "z" not in space
    assert space.get("z") is None
    assert space["c"].options == ("a", "b")
    assert "x=Float(low=0, high=1" in repr(space)


def everything_in(space):
    """The attributes, and the pickles of the space and its parameters."""
    return set(vars(space)), pickle.dumps(space), [(set(vars(each)), pickle.dumps(each)) for each in space.values()]


@pytest.mark.parametrize("method", ["auto", st.Sobol(), st.BOCA(), st.Hyperband()], ids=str)
def test_using_a_space_in_a_study_leaves_it_as_it_was(space, method):
    """scikit-learn, for one, compares the parameters of an estimator before and after a fit."""
    before = everything_in(space)
    study = st.Study(space, method, initial=4)
    study.minimize(lambda config: st.Outcome(config["x"] + 1 / config["epochs"], cost=config["epochs"]), 6)
    study.recommend()
    finite = st.Space(n=st.Int(0, 3), c=st.Choice("a", "b"))
    untouched = everything_in(finite)
    assert len(finite.grid()) == 8
    assert st.minimize(lambda config: config["n"], finite, 8).stop is not None
    assert everything_in(finite) == untouched
    assert everything_in(space) == before


def test_a_space_can_be_pickled_and_copied(space):
    for again in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert again == space
        assert again.names == space.names
        U = points(space)
        np.testing.assert_array_equal(again.snap(U), space.snap(U))
        assert [again.decode(u) for u in U] == [space.decode(u) for u in U]


def test_equal_spaces_have_one_grid():
    first, second = (st.Space(n=st.Int(0, 3), c=st.Choice("a", "b")) for _ in range(2))
    assert first.grid() is first.grid() is second.grid()
    assert len(st.Space(c=st.Choice("a", "b"), n=st.Int(0, 4)).grid()) == 10


def test_equal_configs_have_equal_keys(space):
    assert space.key({"x": np.float64(0.5), "c": "a"}) == space.key({"c": "a", "x": 0.5})
    assert space.key({"x": 0.5, "c": "a"}) != space.key({"x": 0.5, "c": "b"})
