"""A space that several processes extend at the same time always contains the trials of all of them."""

import pytest

import shoestring as st
from shoestring.storage import open_storage
from tests.storage.crowd import crowd


def space(high, options=2):
    return st.Space(x=st.Float(0, high), act=st.Choice(*"abcdefgh"[:options]))


def start(place):
    study = st.Study(space(1), method=st.Random(), name="wide", storage=place.open())
    study.add({"x": 1.0, "act": "b"}, 1.0, cost=1.0)


def extend(place, *size):
    return st.Study(space(*size), method=st.Random(), name="wide", storage=place.open(), extend=True)


class ConcurrentStorage:
    """A storage in which another process is quicker: ``others`` runs between the read and the first revision."""

    def __init__(self, storage, others):
        self._storage, self._others = storage, [others]

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def revise(self, *words, **options):
        if self._others:
            self._others.pop()()
        return self._storage.revise(*words, **options)


def extend_while(place, others, *size):
    storage = ConcurrentStorage(place.open(), others)
    return st.Study(space(*size), method=st.Random(), name="wide", storage=storage, extend=True)


def stored_space(place):
    return st.Study.load(place.open(), "wide").space


def test_a_space_that_does_not_contain_the_other_is_refused(database):
    start(database)

    def others():
        extend(database, 5).add({"x": 4.5, "act": "a"}, 0.5, cost=1.0)

    with pytest.raises(st.StudyError, match="cannot be extended"):
        extend_while(database, others, 2, 3)
    assert stored_space(database) == space(5)
    assert [trial.config["x"] for trial in st.Study.load(database.open(), "wide").history] == [1.0, 4.5]


def test_a_space_that_contains_the_other_is_stored(database):
    start(database)
    extend_while(database, lambda: extend(database, 5), 9, 3)
    assert stored_space(database) == space(9, 3)


def test_if_both_extend_to_the_same_space_the_order_of_the_first_is_kept(database):
    start(database)
    first = st.Space(act=st.Choice("a", "b"), x=st.Float(0, 5))
    study = extend_while(database, lambda: st.Study(first, name="wide", storage=database.open(), extend=True), 5)
    assert list(stored_space(database)) == ["act", "x"]
    assert dict(study.space) == dict(first)


def test_other_settings_that_another_process_stores_stay(database):
    start(database)

    def others():
        storage = database.open()
        storage.revise(storage.find("wide").id, {"run": {"command": ["train"]}, "note": "mine"})

    extend_while(database, others, 2)
    settings = database.open().find("wide").settings
    assert (settings["run"], settings["note"]) == ({"command": ["train"]}, "mine")
    assert stored_space(database) == space(2)


def test_of_two_that_start_a_study_with_different_spaces_the_second_must_contain_the_first(database):
    storage = database.open()
    storage.find = lambda name: None  # as before the first one had started it
    start(database)
    with pytest.raises(st.StudyError, match="cannot be extended"):
        st.Study(space(0.5), name="wide", storage=storage, extend=True)
    assert st.Study(space(3), name="wide", seed=77, storage=storage, extend=True).seed == 0
    assert stored_space(database) == space(3)
    assert database.open().find("wide").settings["seed"] == 0


def test_many_processes_that_extend_it_in_all_directions(database):
    start(database)
    sizes = [(2, 2), (3, 2), (2, 4), (4, 4), (5, 3), (6, 6)]
    assert any(crowd(_extend_and_add, [(database.address, *size) for size in sizes]))
    final = st.Study.load(database.open(), "wide")
    for trial in final.history:
        assert final.space.check(trial.config) == trial.config
    assert len(final.history) > 1
    assert stored_space(database) == final.space


def _extend_and_add(address, high, options):
    try:
        study = st.Study(space(high, options), method=st.Random(), name="wide", storage=open_storage(address), extend=True)
        study.add({"x": float(high), "act": "abcdefgh"[options - 1]}, 1.0, cost=1.0)
    except st.StudyError:  # another process has extended it in another direction
        return False
    return True
