import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from tests.spaces import options, stepped, text

JSON_VALUES = [1, 1.0, True, "1", None, [1, 2], [1.0, 2], {"units": [64, 64]}, "", 0, False, 0.0]


def test_options_that_differ_in_json_are_different_options():
    space = st.Space(c=st.Choice(*JSON_VALUES))
    for value in JSON_VALUES:
        found = space.decode(space.encode(space.check({"c": value})))["c"]
        assert text(found) == text(value)
        assert type(found) is type(value)


@given(draws.lists(options, min_size=1, max_size=6, unique_by=text))
def test_any_json_values_can_be_options(values):
    choice = st.Choice(values)
    choice.validate("c")
    for level, value in enumerate(values):
        assert choice.level_of(value, "c") == level
        assert text(choice.from_unit(float(choice.to_unit(level)))) == text(value)


def test_a_number_finds_the_option_it_equals():
    assert st.Choice(1, 2).check(2.0, "c") == 2
    assert type(st.Choice(1, 2).check(np.float64(2), "c")) is int
    with pytest.raises(st.ConfigError):
        st.Choice(1, 2).check(True, "c")


def test_a_tuple_stands_for_a_list():
    choice = st.Choice((64, 64), (128,))
    assert choice.check((128,), "c") == [128]
    assert choice.check([64, 64], "c") == [64, 64]


def test_options_cannot_be_changed_from_outside():
    layers = [64, 64]
    choice = st.Choice(layers, [128])
    layers.append(3)
    choice.from_unit(0.1).append(9)
    choice.check([64, 64], "c").append(9)
    assert choice.options == ([64, 64], [128])


@pytest.mark.parametrize(
    ("parameter", "count"),
    [
        (st.Int(2, 12), 11),
        (st.Int(0, 10, step=3), 4),
        (st.Int(1, 100, log=True), 100),
        (st.Float(0, 0.3, step=0.1), 4),
        (st.Float(0, 1, step=0.3), 4),
        (st.Float(0, 1), None),
        (st.Choice("a", "b"), 2),
        (st.Fidelity(1, 50), 50),
        (st.Fidelity(0, 1), None),
        (st.Fidelity(1.0, 50.0), None),
    ],
)
def test_levels(parameter, count):
    assert parameter.levels == count


@pytest.mark.parametrize(
    "made",
    [
        lambda: st.Int("a", 3), lambda: st.Int(None, 3), lambda: st.Int(0, float("inf")), lambda: st.Int(0, float("nan")),
        lambda: st.Float(0, 1, step=0), lambda: st.Float(0, 1, step=np.float64(0)), lambda: st.Float(0, 1, step="b"),
        lambda: st.Float(0, 1, step=-1), lambda: st.Int([1], 3), lambda: st.Fidelity(np.zeros(2), 3, step=1),
        lambda: st.Choice(),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_refused_with_its_name_and_not_before_it_has_one(made):
    parameter = made()
    with pytest.raises(st.SpaceError, match="culprit"):
        st.Space(culprit=parameter)


@pytest.mark.parametrize(
    "parameter", [st.Float(0, 1, step=0.25), st.Int(2, 12), st.Fidelity(1, 9, target=5), st.Choice("a", "b")], ids=repr
)
def test_a_parameter_is_compared_printed_and_copied_by_what_was_given(parameter):
    again = copy.deepcopy(parameter)
    assert again == parameter == pickle.loads(pickle.dumps(parameter))
    assert hash(again) == hash(parameter)
    assert "levels" not in repr(parameter)
    if not isinstance(parameter, st.Choice):
        wider = dataclasses.replace(parameter, high=20, step=None, low=11)
        assert wider.levels == (None if isinstance(parameter, st.Float) else 10)


@given(stepped())
def test_a_grid_starts_at_low_and_stays_within_its_bounds(fields):
    parameter = st.Float(**fields)
    values = [parameter.from_unit(float(u)) for u in parameter.grid_units()]
    assert values[0] == pytest.approx(parameter.low, rel=1e-11, abs=1e-11 * parameter.step)
    assert parameter.low <= min(values)
    assert max(values) <= parameter.high
    np.testing.assert_allclose(np.diff(values), parameter.step, rtol=1e-6)


def test_a_step_as_wide_as_the_range_up_to_rounding_is_two_values():
    space = st.Space(x=st.Float(0.8, 0.9, step=0.1))  # 0.9 - 0.8 is a little less than 0.1
    assert [space.decode(u)["x"] for u in space.grid()] == [0.8, 0.9]


def test_grid_values_are_written_as_people_write_them():
    parameter = st.Float(0.1, 0.7, step=0.1)
    assert [parameter.from_unit(float(u)) for u in parameter.grid_units()] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("parameter", "off"),
    [(st.Float(0, 1e-8, step=1e-9), 0.5e-9), (st.Int(0, 10**10), 10**9 + 0.5), (st.Float(0, 1, step=0.1), 0.1001)],
)
def test_a_value_between_two_grid_values_is_refused_at_any_scale(parameter, off):
    with pytest.raises(st.ConfigError, match="grid"):
        parameter.check(off, "x")


@pytest.mark.parametrize(
    "parameter",
    [
        st.Int(-(10**12), 10**12), st.Int(1, 10**12, log=True), st.Int(0, 2**53),
        st.Int(-(2**53), 2**53), st.Int(1, 2**53, log=True),
    ],
)
def test_large_whole_numbers_come_back_as_they_were(parameter):
    try:
        parameter.validate("n")
    except st.SpaceError:
        return  # a range that is refused cannot mislead
    span = parameter.high - parameter.low
    values = [parameter.low + span * k // 97 for k in range(98)] + [parameter.high - k for k in range(50)]
    assert [parameter.check(value, "n") for value in values] == values


def test_values_at_the_ends_of_the_unit_interval_and_beyond():
    for parameter in (st.Float(2, 3), st.Float(1e-5, 1e-1, log=True), st.Int(2, 7), st.Float(0, 1, step=0.25)):
        assert parameter.from_unit(0.0) == parameter.from_unit(-1.0) == parameter.low
        assert parameter.from_unit(1.0) == parameter.from_unit(2.0) == pytest.approx(parameter.high, rel=1e-12)


def test_whole_numbers_are_ints_and_real_ones_floats():
    assert type(st.Int(0, 9).from_unit(0.4)) is int
    assert type(st.Fidelity(1, 9).from_unit(0.4)) is int
    assert type(st.Fidelity(0, 1).from_unit(0.4)) is float
    assert type(st.Float(0, 9).from_unit(0.4)) is float


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (st.Float(-3, 5), (-3.0, 0.1, 5.0)),
        (st.Float(1e-5, 1e-1, log=True), (1e-5, 3e-3, 1e-1)),
        (st.Float(0, 1, step=0.3), (0.0, 0.3, 0.9)),
        (st.Int(2, 12), (2, 7, 12)),
        (st.Int(0, 10, step=3), (0, 3, 9)),
        (st.Int(1, 100, log=True), (1, 17, 100)),
        (st.Fidelity(1, 81, log=True), (1, 27, 81)),
        (st.Fidelity(0, 1), (0.0, 0.25, 1.0)),
    ],
)
def test_the_derivative_of_the_value_by_the_unit_coordinate(parameter, values):
    """By differences of ``to_unit``: over a tiny step, or on a grid over the whole range, on the scale on which it is uniform."""
    for value in values:
        if parameter.levels is None:
            step = 1e-6 * (abs(value) or 1.0)
            low, high = max(value - step, parameter.low), min(value + step, parameter.high)
            expected = (high - low) / np.subtract(*parameter.to_unit(np.array([high, low])))
        else:
            low, high = parameter.low, parameter.values(np.array(1.0))
            width = np.log(high / low) * value if parameter.log else high - low
            expected = width / np.subtract(*parameter.to_unit(np.array([high, low])))
        assert parameter.derivative(value) == pytest.approx(expected, rel=1e-5)
