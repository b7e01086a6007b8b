"""Points that need not be asked again: the same as by looking at each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.acquisition.optimize.candidates import is_visited
from shoestring.data.dataset import to_dataset
from shoestring.data.persistent_list import PersistentList
from shoestring.data.trial import State
from shoestring.data.trial_table import TrialTable
from shoestring.data.visited import VisitedSet, is_among
from tests.trials import PLAIN, SPACE, several, trials


def points_of(found, space):
    """Those of some trials, and some that are nobody's."""
    U = np.array([space.encode(trial.config) for trial in found]).reshape(len(found), len(space))
    return np.vstack([U, space.snap(np.random.default_rng(0).random((5, len(space)))), U * (1 - 1e-15)])


@given(several(), several())
def test_they_are_those_of_the_observations(found, others):
    history = st.History(found, SPACE)
    taken, seen = VisitedSet.of(history), to_dataset(history).data
    U = points_of([*found, *others], SPACE)
    np.testing.assert_array_equal(taken.holds(U), is_among(U, seen))
    np.testing.assert_array_equal(is_visited(U, taken), is_visited(U, seen))
    assert sorted(map(tuple, taken.points)) == sorted(map(tuple, seen))
    assert taken[:0].shape == (0, len(SPACE))
    more = taken.also(U[:3])
    np.testing.assert_array_equal(more.holds(U), is_among(U, np.vstack([seen, U[:3]])))
    np.testing.assert_array_equal(taken.holds(U), is_among(U, seen))


@given(draws.data())
def test_what_is_written_later_is_not_seen(data):
    """The columns are the study's, and go on; so is the set of marks, which only grows."""
    found = data.draw(several(PLAIN, 8))
    columns, book = TrialTable.of(found, PLAIN), PersistentList(found)
    history = st.History(PersistentList(book), PLAIN, False, columns, columns.version)
    taken, expected = VisitedSet.of(history), to_dataset(history).data
    U = points_of(found, PLAIN)
    np.testing.assert_array_equal(taken.holds(U), is_among(U, expected))
    for _ in range(3):
        number = data.draw(draws.integers(0, len(book)))
        trial = data.draw(trials(number, PLAIN))
        columns.put(number, trial)
        if number == len(book):
            book.append(trial)
        else:
            book[number] = trial
        now = st.History(PersistentList(book), PLAIN, False, columns, columns.version)
        U = points_of([*found, *book], PLAIN)
        np.testing.assert_array_equal(taken.holds(U), is_among(U, expected))
        np.testing.assert_array_equal(VisitedSet.of(now).holds(U), is_among(U, to_dataset(now).data))


def test_points_with_the_same_mark_are_told_apart(monkeypatch):
    monkeypatch.setattr("shoestring.data.visited.hash_rows", lambda places: np.zeros(len(places), dtype=np.int64))
    monkeypatch.setattr("shoestring.data.trial_table.hash_rows", lambda places: np.zeros(len(places), dtype=np.int64))
    space = st.Space(x=st.Float(0, 1))
    found = tuple(st.Trial(j, {"x": x}, state) for j, (x, state) in enumerate([(0.1, State.RUNNING), (0.2, State.ABANDONED)]))
    taken = VisitedSet.of(st.History(found, space))
    assert taken.holds(np.array([[0.1], [0.2], [0.3]])).tolist() == [True, False, False]
