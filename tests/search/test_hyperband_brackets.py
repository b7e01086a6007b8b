"""Hyperband's brackets: numbers of configurations, amounts of the resource, and spaces that have none."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.search.hyperband import make_brackets, resource_amounts


def table(fidelity, eta=3, smallest=None, limit=None):
    """The brackets as lists of (count, amount)."""
    brackets = make_brackets(resource_amounts(fidelity, "epochs", eta, smallest), eta, limit)
    return [[(rung.count, rung.amount) for rung in bracket.rungs] for bracket in brackets]


def test_the_table_of_the_paper():
    assert table(st.Fidelity(1, 81)) == [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(34, 3), (11, 9), (3, 27), (1, 81)],
        [(15, 9), (5, 27), (1, 81)],
        [(8, 27), (2, 81)],
        [(5, 81)],
    ]


def test_amounts_count_from_the_target_and_not_from_the_low_end():
    assert resource_amounts(st.Fidelity(2, 100), "epochs", 3) == [100, 33, 11, 4]  # 100, 33.3, 11.1, 3.7; 1.2 is below 2
    assert resource_amounts(st.Fidelity(1, 100, target=27), "epochs", 3) == [27, 9, 3, 1]
    assert resource_amounts(st.Fidelity(1, 4), "epochs", 2) == [4, 2, 1]
    assert resource_amounts(st.Fidelity(0.1, 0.9), "rows", 3.0) == pytest.approx([0.9, 0.3, 0.1])
    assert table(st.Fidelity(3, 5)) == [[(1, 5)]]  # no room to halve: random search


@pytest.mark.parametrize("power", range(1, 13))
@pytest.mark.parametrize("eta", [2, 3, 4, 5, 10])
def test_no_rung_is_lost_to_rounding(eta, power):
    assert len(resource_amounts(st.Fidelity(1, eta**power), "epochs", eta)) == power + 1
    assert len(resource_amounts(st.Fidelity(0.1, 0.1 * eta**power), "epochs", eta)) == power + 1


def test_a_share_begins_four_halvings_below_its_target_unless_the_smallest_is_given():
    assert resource_amounts(st.Fidelity(0, 1), "rows", 3) == pytest.approx([1, 1 / 3, 1 / 9, 1 / 27, 1 / 81])
    assert resource_amounts(st.Fidelity(0, 1), "rows", 2, 0.25) == [1.0, 0.5, 0.25]
    assert resource_amounts(st.Fidelity(1, 81), "epochs", 3, 9) == [81, 27, 9]
    assert resource_amounts(st.Fidelity(0, 10), "epochs", 3) == [10, 3, 1]  # 10/27 and 10/81 of an epoch would be none


def test_rungs_that_coincide_are_one_with_the_larger_number():
    coarse = st.Fidelity(10, 100, step=30)  # 10, 40, 70, 100
    assert resource_amounts(coarse, "epochs", 2) == [100, 40, 10, 10]
    assert table(coarse, 2) == [[(8, 10), (2, 40), (1, 100)], [(6, 10), (3, 40), (1, 100)], [(4, 40), (2, 100)], [(4, 100)]]


def test_fewer_brackets_are_those_that_halve_most_often():
    assert table(st.Fidelity(1, 9), limit=2) == [[(9, 1), (3, 3), (1, 9)], [(5, 3), (1, 9)]]
    assert table(st.Fidelity(1, 9), limit=9) == table(st.Fidelity(1, 9))


@given(low=draws.integers(0, 50), width=draws.integers(1, 10**4), eta=draws.one_of(draws.integers(2, 10), draws.floats(2, 10)))
def test_every_bracket_rises_to_the_target_while_its_configurations_fall(low, width, eta):
    fidelity = st.Fidelity(low, low + width)
    brackets = table(fidelity, eta)
    assert len(brackets) >= 1
    for bracket in brackets:
        counts, sizes = zip(*bracket, strict=True)
        assert list(sizes) == sorted(set(sizes))
        assert sizes[-1] == fidelity.high
        assert all(fidelity.check(size, "epochs") == size > 0 for size in sizes)
        assert all(after <= before / eta + 1 for before, after in pairwise(counts))
        assert counts[-1] >= 1


@given(eta=draws.integers(2, 5), halvings=draws.integers(0, 6))
def test_the_formulas_of_algorithm_1(eta, halvings):
    brackets = table(st.Fidelity(1, eta**halvings) if halvings else st.Fidelity(1, eta, target=1), eta)
    assert len(brackets) == halvings + 1
    for s, bracket in zip(range(halvings, -1, -1), brackets, strict=True):
        n = -(-(halvings + 1) * eta**s // (s + 1))
        assert bracket == [(n // eta**i, eta ** (halvings - s + i)) for i in range(s + 1)]


PLAIN = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
TWO = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(0, 1))


@pytest.mark.parametrize(
    ("space", "options", "said"),
    [
        (st.Space(x=st.Float(0, 1)), {}, r"epochs=st\.Fidelity\(1, 81\)"),
        (TWO, {}, r'st\.Hyperband\(resource="epochs"\) or st\.Hyperband\(resource="rows"\)'),
        (TWO, {"resource": "x"}, "'x' is not a fidelity.*epochs, rows"),
        (PLAIN, {"smallest": 0.5}, "smallest=0.5 must lie between 1 and the target of epochs, 9"),
        (PLAIN, {"smallest": 10}, "between 1 and the target"),
        (TWO, {"resource": "rows", "smallest": 0}, "a number above 0"),
        (st.Space(x=st.Float(0, 1), epochs=st.Fidelity(0, 9, target=0)), {}, "target of epochs is 0"),
    ],
    ids=str,
)
def test_a_space_that_does_not_fit_is_refused_with_what_to_write(space, options, said):
    with pytest.raises(st.MethodError, match=said):
        st.Study(space, st.Hyperband(**options)).ask()


@pytest.mark.parametrize(
    "bad",
    [
        {"eta": 1.5}, {"eta": math.inf}, {"eta": math.nan}, {"eta": "3"}, {"eta": True}, {"asynchronous": 1}, {"resource": 3},
        {"smallest": -1}, {"smallest": "1"}, {"brackets": 0}, {"brackets": 1.5}, {"brackets": True},
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused_by_name(bad):
    with pytest.raises(st.MethodError, match=next(iter(bad))):
        st.Hyperband(**bad)
