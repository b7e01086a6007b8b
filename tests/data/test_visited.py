"""The visited set: the same points as by comparison with every trial."""

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
    """Points of some trials, and some of no trial."""
    U = np.array([space.encode(trial.config) for trial in found]).reshape(len(found), len(space))
    return np.vstack([U, space.snap(np.random.default_rng(0).random((5, len(space)))), U * (1 - 1e-15)])


@given(several(), several())
def test_it_contains_the_points_of_the_dataset(found, others):
    history = st.History(found, SPACE)
    visited, expected = VisitedSet.of(history), to_dataset(history).visited
    U = points_of([*found, *others], SPACE)
    np.testing.assert_array_equal(visited.contains(U), is_among(U, expected))
    np.testing.assert_array_equal(is_visited(U, visited), is_visited(U, expected))
    assert sorted(map(tuple, visited.points)) == sorted(map(tuple, expected))
    assert visited[:0].shape == (0, len(SPACE))
    more = visited.with_points(U[:3])
    np.testing.assert_array_equal(more.contains(U), is_among(U, np.vstack([expected, U[:3]])))
    np.testing.assert_array_equal(visited.contains(U), is_among(U, expected))


@given(draws.data())
def test_what_is_written_to_the_table_later_is_not_in_it(data):
    """The table is the study's, and goes on; so is the set of hashes, which only grows."""
    found = data.draw(several(PLAIN, 8))
    table, stored = TrialTable.of(found, PLAIN), PersistentList(found)
    history = st.History(PersistentList(stored), PLAIN, False, table, table.version)
    visited, expected = VisitedSet.of(history), to_dataset(history).visited
    U = points_of(found, PLAIN)
    np.testing.assert_array_equal(visited.contains(U), is_among(U, expected))
    for _ in range(3):
        number = data.draw(draws.integers(0, len(stored)))
        trial = data.draw(trials(number, PLAIN))
        table.put(number, trial)
        if number == len(stored):
            stored.append(trial)
        else:
            stored[number] = trial
        now = st.History(PersistentList(stored), PLAIN, False, table, table.version)
        U = points_of([*found, *stored], PLAIN)
        np.testing.assert_array_equal(visited.contains(U), is_among(U, expected))
        np.testing.assert_array_equal(VisitedSet.of(now).contains(U), is_among(U, to_dataset(now).visited))


def test_points_with_the_same_hash_are_compared_in_full(monkeypatch):
    monkeypatch.setattr("shoestring.data.trial_table.hash_rows", lambda places: np.zeros(len(places), dtype=np.int64))
    monkeypatch.setattr("shoestring.data.visited.hash_rows", lambda places: np.zeros(len(places), dtype=np.int64))
    space = st.Space(x=st.Float(0, 1))
    found = tuple(st.Trial(j, {"x": x}, state) for j, (x, state) in enumerate([(0.1, State.RUNNING), (0.2, State.ABANDONED)]))
    visited = VisitedSet.of(st.History(found, space))
    assert visited.contains(np.array([[0.1], [0.2], [0.3]])).tolist() == [True, False, False]
