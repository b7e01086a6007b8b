import numpy as np
import pytest

import shoestring as st
from shoestring.history import observe
from tests.problems import plane


def history_of(rows, space=None, maximize=False):
    space = space or plane(1)
    trials = tuple(
        st.Trial(number, space.check(config), state, value, cost) for number, (config, state, value, cost) in enumerate(rows)
    )
    return st.History(trials, space, maximize)


DONE, FAILED, RUNNING, ABANDONED = st.State.DONE, st.State.FAILED, st.State.RUNNING, st.State.ABANDONED
ROWS = [
    ({"x0": 0.1}, DONE, 3.0, 1.0),
    ({"x0": 0.2}, FAILED, None, 2.0),
    ({"x0": 0.3}, DONE, -1.0, 4.0),
    ({"x0": 0.4}, ABANDONED, None, 8.0),
    ({"x0": 0.5}, RUNNING, None, None),
    ({"x0": 0.6}, DONE, 0.0, 16.0),
]


def test_it_is_a_sequence_in_order_of_number():
    history = history_of(ROWS)
    assert len(history) == 6
    assert [trial.number for trial in history] == list(range(6))
    assert history[-1].number == 5
    assert [trial.number for trial in history[1:3]] == [1, 2]


@pytest.mark.parametrize(("maximize", "number"), [(False, 2), (True, 0)])
def test_the_best_trial(maximize, number):
    assert history_of(ROWS, maximize=maximize).best.number == number


def test_without_a_finished_trial_there_is_no_best():
    assert history_of(ROWS[1:2]).best is None
    assert history_of([]).best is None


def test_everything_is_charged():
    assert history_of(ROWS).spent == 31.0


@pytest.mark.parametrize(("maximize", "bests"), [(False, [3.0, -1.0, -1.0]), (True, [3.0, 3.0, 3.0])])
def test_the_best_value_against_what_was_spent(maximize, bests):
    assert history_of(ROWS, maximize=maximize).bests() == list(zip([1.0, 7.0, 31.0], bests, strict=True))


def test_a_low_fidelity_is_best_only_while_there_is_nothing_else():
    space = st.Space(x0=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    low, high = ({"x0": 0.1, "epochs": 1}, DONE, -5.0, 1.0), ({"x0": 0.1}, DONE, 2.0, 1.0)
    assert history_of([low], space).best.number == 0
    assert history_of([low, high], space).best.number == 1
    assert history_of([low, high], space).bests() == [(2.0, 2.0)]


@pytest.mark.parametrize("maximize", [False, True])
def test_observations(maximize):
    history = history_of(ROWS, maximize=maximize)
    seen = observe(history)
    np.testing.assert_array_equal(seen.y, np.array([3.0, -1.0, 0.0]) * (-1 if maximize else 1))
    np.testing.assert_allclose(seen.U[:, 0], [0.1, 0.3, 0.6])
    np.testing.assert_allclose(seen.failed[:, 0], [0.2])
    np.testing.assert_allclose(seen.pending[:, 0], [0.5])
    np.testing.assert_allclose(np.sort(seen.seen[:, 0]), [0.1, 0.2, 0.3, 0.5, 0.6])  # an abandoned config may be asked again
    assert list(seen.order) == ([0, 2, 1] if maximize else [1, 2, 0])


def test_an_empty_history_has_empty_observations():
    seen = observe(history_of([]))
    assert seen.U.shape == seen.failed.shape == seen.pending.shape == (0, 1)
    assert len(seen.y) == 0


def test_trials_at_the_target_come_first():
    space = st.Space(x0=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    rows = [({"x0": 0.1, "epochs": 1}, DONE, -5.0, 1.0), ({"x0": 0.2}, DONE, 2.0, 1.0), ({"x0": 0.3}, DONE, 1.0, 1.0)]
    history = history_of(rows, space)
    seen = observe(history)
    assert list(seen.at_target) == [False, True, True]
    assert list(seen.order) == [2, 1, 0]
