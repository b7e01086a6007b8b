"""The persistent list behaves like a list, and its copies keep their items."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as draws

from shoestring.data import persistent_list
from shoestring.data.persistent_list import PersistentList

actions = draws.lists(draws.tuples(draws.sampled_from(["append", "extend", "set", "copy"]), draws.integers(0, 9)), max_size=25)


@given(actions, draws.integers(1, 4))
def test_it_behaves_like_a_list_and_copies_keep_their_items(steps, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persistent_list, "PAGE_SIZE", size)
        items, plain = PersistentList(), []
        copies = []
        for step, number in steps:
            if step == "append":
                items.append(number)
                plain.append(number)
            elif step == "extend":
                items.extend(range(number))
                plain.extend(range(number))
            elif step == "copy":
                copies.append((PersistentList(items), tuple(plain)))
            elif plain:
                items[number % len(plain)] = plain[number % len(plain)] = -number
        for found, expected in [*copies, (items, tuple(plain))]:
            assert list(found) == list(expected)
            assert len(found) == len(expected)
            assert [found[place] for place in range(-len(expected), len(expected))] == [*expected, *expected]
            assert found[1:5:2] == expected[1:5:2]
            assert found == expected
            assert expected == found
            assert found == PersistentList(expected)
            assert list(reversed(found)) == list(reversed(expected))
            assert repr(found) == repr(expected)


def test_items_that_are_not_there():
    items = PersistentList("abc")
    for index in (3, -4):
        with pytest.raises(IndexError):
            items[index]
        with pytest.raises(IndexError):
            items[index] = "x"
    assert list(PersistentList()) == []
    assert items != PersistentList("abd")
    assert items != PersistentList("ab")
    assert items != "abc"


def test_items_that_raise_while_they_are_read_change_nothing():
    def broken():
        yield "d"
        raise ValueError

    items = PersistentList("abc")
    with pytest.raises(ValueError):
        items.extend(broken())
    assert items == tuple("abc")


def test_it_can_be_pickled_and_copied():
    items = PersistentList(range(2000))
    assert pickle.loads(pickle.dumps(items)) == copy.deepcopy(items) == items
