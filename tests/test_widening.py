"""A space that several processes widen at the same time always holds the trials of all of them."""

import pytest

import shoestring as st
from shoestring.storage import open_storage
from tests.storage.crowd import crowd


def space(high, options=2):
    return st.Space(x=st.Float(0, high), act=st.Choice(*"abcdefgh"[:options]))


def begun(place):
    study = st.Study(space(1), method=st.Random(), name="wide", storage=place.open())
    study.add({"x": 1.0, "act": "b"}, 1.0, cost=1.0)


def extend(place, *size):
    return st.Study(space(*size), method=st.Random(), name="wide", storage=place.open(), extend=True)


class Meanwhile:
    """A storage in which somebody else is quicker: ``others`` happens between the look and the first revision."""

    def __init__(self, storage, others):
        self._storage, self._others = storage, [others]

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def revise(self, *words, **options):
        if self._others:
            self._others.pop()()
        return self._storage.revise(*words, **options)


def while_another(place, others, *size):
    storage = Meanwhile(place.open(), others)
    return st.Study(space(*size), method=st.Random(), name="wide", storage=storage, extend=True)


def kept(place):
    return st.Study.load(place.open(), "wide").space


def test_a_space_that_does_not_hold_the_other_is_refused(database):
    begun(database)

    def others():
        extend(database, 5).add({"x": 4.5, "act": "a"}, 0.5, cost=1.0)

    with pytest.raises(st.StudyError, match="cannot be extended"):
        while_another(database, others, 2, 3)
    assert kept(database) == space(5)
    assert [trial.config["x"] for trial in st.Study.load(database.open(), "wide").history] == [1.0, 4.5]


def test_a_space_that_holds_the_other_is_kept(database):
    begun(database)
    while_another(database, lambda: extend(database, 5), 9, 3)
    assert kept(database) == space(9, 3)


def test_what_both_want_is_kept_as_the_first_has_it(database):
    begun(database)
    first = st.Space(act=st.Choice("a", "b"), x=st.Float(0, 5))
    study = while_another(database, lambda: st.Study(first, name="wide", storage=database.open(), extend=True), 5)
    assert list(kept(database)) == ["act", "x"]
    assert dict(study.space) == dict(first)


def test_what_others_keep_beside_the_space_stays(database):
    begun(database)

    def others():
        storage = database.open()
        storage.revise(storage.find("wide").id, {"run": {"command": ["train"]}, "note": "mine"})

    while_another(database, others, 2)
    settings = database.open().find("wide").settings
    assert (settings["run"], settings["note"]) == ({"command": ["train"]}, "mine")
    assert kept(database) == space(2)


def test_of_two_that_begin_it_with_different_spaces_the_second_must_hold_the_first(database):
    storage = database.open()
    storage.find = lambda name: None  # as long as the first one had not begun it
    begun(database)
    with pytest.raises(st.StudyError, match="cannot be extended"):
        st.Study(space(0.5), name="wide", storage=storage, extend=True)
    assert st.Study(space(3), name="wide", seed=77, storage=storage, extend=True).seed == 0
    assert kept(database) == space(3)
    assert database.open().find("wide").settings["seed"] == 0


def test_a_crowd_that_widens_it_in_all_directions(database):
    begun(database)
    sizes = [(2, 2), (3, 2), (2, 4), (4, 4), (5, 3), (6, 6)]
    assert any(crowd(_widen_and_add, [(database.address, *size) for size in sizes]))
    final = st.Study.load(database.open(), "wide")
    for trial in final.history:
        assert final.space.check(trial.config) == trial.config
    assert len(final.history) > 1
    assert kept(database) == final.space


def _widen_and_add(address, high, options):
    try:
        study = st.Study(space(high, options), method=st.Random(), name="wide", storage=open_storage(address), extend=True)
        study.add({"x": float(high), "act": "abcdefgh"[options - 1]}, 1.0, cost=1.0)
    except st.StudyError:  # somebody else has widened it in another direction
        return False
    return True
