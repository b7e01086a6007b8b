import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from tests.problems import abandon, plane


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


def test_it_is_readable_in_print():
    assert repr(history_of(ROWS)) == "History: 6 trials (1 running, 3 done, 1 failed, 1 abandoned), best -1 (trial 2), spent 31"
    assert repr(history_of(ROWS, maximize=True)).endswith("best 3 (trial 0), spent 31")
    assert repr(history_of(ROWS[1:2])) == "History: 1 trial (1 failed), spent 2"
    assert repr(history_of([])) == str(history_of([])) == "History: 0 trials"


def test_without_a_finished_trial_there_is_no_best():
    assert history_of(ROWS[1:2]).best is None
    assert history_of([]).best is None


def test_all_costs_count_those_of_failed_and_abandoned_trials_too():
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
def test_a_history_as_a_dataset(maximize):
    history = history_of(ROWS, maximize=maximize)
    seen = to_dataset(history)
    np.testing.assert_array_equal(seen.y, np.array([3.0, -1.0, 0.0]) * (-1 if maximize else 1))
    np.testing.assert_allclose(seen.U[:, 0], [0.1, 0.3, 0.6])
    np.testing.assert_allclose(seen.failed[:, 0], [0.2])
    np.testing.assert_allclose(seen.pending[:, 0], [0.5])
    np.testing.assert_allclose(np.sort(seen.visited[:, 0]), [0.1, 0.2, 0.3, 0.5, 0.6])  # abandoned: may be suggested again
    assert list(seen.order) == ([0, 2, 1] if maximize else [1, 2, 0])


def test_an_empty_history_is_an_empty_dataset():
    seen = to_dataset(history_of([]))
    assert seen.U.shape == seen.failed.shape == seen.pending.shape == (0, 1)
    assert len(seen.y) == 0


def test_trials_at_the_target_come_first():
    space = st.Space(x0=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    rows = [({"x0": 0.1, "epochs": 1}, DONE, -5.0, 1.0), ({"x0": 0.2}, DONE, 2.0, 1.0), ({"x0": 0.3}, DONE, 1.0, 1.0)]
    history = history_of(rows, space)
    seen = to_dataset(history)
    assert list(seen.at_target) == [False, True, True]
    assert list(seen.order) == [2, 1, 0]


SCALES = st.Space(
    rate=st.Float(1e-4, 1e-1, log=True), width=st.Float(-2, 6), trees=st.Int(10, 20), grid=st.Float(0, 1, step=0.25),
    rounds=st.Int(1, 64, log=True), kind=st.Choice("a", "b"), size=st.Choice(16, 32, 64), drop=st.Float(0, 1, when={"kind": "b"}),
    epochs=st.Fidelity(1, 81, log=True),
)
CONFIG = {"rate": 3e-3, "width": 1.5, "trees": 14, "grid": 0.5, "rounds": 7, "kind": "a", "size": 32, "epochs": 27}
SLOPES = {"rate": 40.0, "width": -2.0, "trees": 0.5, "grid": 3.0, "rounds": -0.25, "epochs": -0.125}


def study_with_gradients(*gradients, **settings):
    study = st.Study(SCALES, **settings)
    for gradient in gradients:
        study.add(CONFIG, 1.0, gradient=gradient)
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_gradient_is_converted_to_the_unit_cube(direction):
    seen, sign = to_dataset(study_with_gradients(SLOPES, direction=direction).log), -1.0 if direction == "maximize" else 1.0
    known = {name: slope for name, slope in zip(SCALES, seen.gradients[0] * sign, strict=True) if np.isfinite(slope)}
    log_range = {"rate": np.log(1e3), "rounds": np.log(64.5 / 0.5), "epochs": np.log(81.5 / 0.5)}
    by_hand = {"width": -2.0 * 8, "trees": 0.5 * 11, "grid": 3.0 * 1.25} | {
        name: SLOPES[name] * CONFIG[name] * wide for name, wide in log_range.items()
    }
    assert known == pytest.approx(by_hand, rel=1e-12)


def test_some_trials_have_gradients_and_some_have_none():
    study = study_with_gradients({"rate": 1.0}, None, {"width": -3.0})
    study.add(CONFIG, error="lost", gradient={"width": 1.0})
    seen = to_dataset(study.log)
    assert seen.gradients.shape == seen.U.shape == (3, len(SCALES))
    known = np.isfinite(seen.gradients)
    assert known.sum(axis=1).tolist() == [1, 0, 1]
    assert known[0, 0]
    assert known[2, 1]
    part = seen.select(np.array([2]))
    np.testing.assert_array_equal(part.gradients, seen.gradients[[2]])
    assert to_dataset(st.Study(SCALES).log).gradients.shape == (0, len(SCALES))


def test_a_derivative_too_large_for_a_float_counts_as_unknown():
    assert np.isnan(to_dataset(study_with_gradients({"width": 1e308}).log).gradients).all()


def test_gradients_are_kept_when_a_study_is_written_and_read():
    study = study_with_gradients(SLOPES, None)
    again = st.Study.from_json(study.to_json())
    np.testing.assert_array_equal(to_dataset(again.log).gradients, to_dataset(study.log).gradients)


def test_a_history_is_a_snapshot():
    """What happens later, to new trials and to those that were running, is not in it."""
    study = st.Study(plane(1), st.Random(), direction="maximize")
    for value in (1.0, 3.0, 2.0):
        study.tell(study.ask(), value, cost=2.0)
    running, lost = study.ask(), study.ask()
    abandon(study, lost.number)

    def said(history):
        seen, running = to_dataset(history), [trial.number for trial in history.having(RUNNING)]
        numbers = history.trials_used, history.spent, history.best.number, len(history[-2:])
        return [trial.to_dict() for trial in history], running, numbers, history.results(), seen.y.tolist(), seen.pending.tolist()

    before, log = said(study.log), study.log
    assert before == said(log)
    study.tell(running, 9.0, cost=5.0)
    assert said(log) == before
    for _ in range(600):
        study.add({"x0": 0.5}, 10.0, cost=1.0)
    study.tell(study.ask(), 11.0)
    assert said(log) == before
    assert log == st.History(log[:], study.space, True)
    assert log != study.log
    assert said(study.log) == said(st.History(study.log[:], study.space, True))


def test_a_history_with_further_trials_leaves_the_first_as_it_was():
    history = history_of(ROWS)
    more = history.with_trials([st.Trial(6, {"x0": 0.7}, DONE, -9.0, 1.0), st.Trial(7, {"x0": 0.8})])
    assert (len(history), len(more)) == (6, 8)
    assert (history.best.number, more.best.number) == (2, 6)
    assert (history.spent, more.spent) == (31.0, 32.0)
    assert more.head(6) == history
