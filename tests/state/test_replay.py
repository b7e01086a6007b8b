"""Replay: every suggestion is computed again from what is stored, and is the same."""

import pytest

import shoestring as st
from tests.stored_study import bowl, study


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request):
    """In the quick tests a file alone: what a server does otherwise, the contract of storages and test_persistence.py check."""
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")


@pytest.mark.parametrize("method", ["auto", pytest.param(st.EI(), marks=pytest.mark.slow), st.Random(), st.EICool()])
def test_every_suggestion_comes_out_the_same_again(database, method):
    study(database, method=method, initial=5).minimize(bowl, 10)
    found = st.Study.load(database.open()).replay()
    assert (found.checked, found.first_difference) == (10, None)


def test_replay_of_trials_that_ran_side_by_side(database):
    one, other = study(database, method=st.EI(), initial=2), study(database, method=st.EI(), initial=2)
    held = []
    for step in range(12):
        asking = one if step % 2 else other
        held.append(asking.ask())
        if len(held) == 3:
            done = held.pop(step % 3)
            other.tell(done, bowl(done.config), cost=1.0)
    batch = one.ask_many(3)
    one.tell(batch[1], 0.5, cost=1.0)
    found = st.Study.load(database.open()).replay()
    assert (found.checked, found.first_difference) == (15, None)


def test_replay_of_a_batch_with_an_enqueued_trial_while_another_process_tells(database, monkeypatch):
    one, other = study(database, method=st.EI(), initial=2), study(database, method=st.EI(), initial=2)
    for value in (0.1, 0.2, 0.4):
        one.tell(one.ask(), value, cost=1.0)
    held = other.ask()
    one.enqueue({"x": 0.77, "y": 0.1, "kind": "a"})
    write = one.storage.write

    def told_meanwhile(*arguments, **options):
        monkeypatch.undo()
        other.tell(held, -3.0, cost=1.0)
        return write(*arguments, **options)

    monkeypatch.setattr(one.storage, "write", told_meanwhile)
    one.ask_many(2)
    found = one.replay()
    assert (found.checked, found.first_difference) == (5, None)


def test_replay_names_the_first_that_differs(database):
    study(database, method=st.EI()).minimize(bowl, 10)
    found = st.Study.load(database.open(), method=st.Random()).replay()
    number, how = found.first_difference
    assert number <= 9
    assert " was " in how


def test_enqueued_and_added_trials_are_passed_over(database):
    kept = study(database)
    kept.add({"x": 0.1, "y": 0.1, "kind": "a"}, 0.3, cost=1.0)
    kept.enqueue({"x": 0.2, "y": 0.1, "kind": "a"})
    kept.minimize(bowl, 4)
    found = kept.replay()
    assert (found.checked, found.passed_over, found.first_difference) == (3, 2, None)


def test_what_differs_by_rounding_alone_agrees_and_is_counted_apart(monkeypatch):
    kept = st.Study(st.Space(x=st.Float(0, 1)), st.Random())
    kept.minimize(lambda config: config["x"], 4, progress=False)
    assert (kept.replay().checked, kept.replay().identical) == (4, 4)
    decode = st.Space.decode
    for error, agrees in ((1e-15, True), (1e-3, False)):
        monkeypatch.setattr(st.Space, "decode", lambda self, u, error=error: decode(self, u * (1 - error)))
        found = kept.replay()
        assert (found.first_difference is None) is agrees
        assert found.identical == 0
