"""Trials as arrays: the same whether they were written one by one, together, or twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.data import trial_table
from shoestring.data.dataset import to_dataset
from shoestring.data.trial import State
from shoestring.data.trial_table import ARRAYS, TrialTable, encode_configs
from shoestring.errors import ConfigError, StudyError
from shoestring.state import study_state
from shoestring.storage.base import Changes, StoredTrial
from tests.spaces import spaces
from tests.trials import SPACE, closed, several, trials


def require_equal(one, other):
    assert one.count == other.count
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name)[: one.count], getattr(other, name)[: one.count], err_msg=name)
    for name in ("gradients", "pruned"):
        assert getattr(one, name).keys() == getattr(other, name).keys()
        for row, point in getattr(one, name).items():
            np.testing.assert_array_equal(point, getattr(other, name)[row])
    assert set(other.hash[: other.count].tolist()) <= one.hashes


@given(draws.data(), spaces())
def test_many_configs_are_encoded_as_each_by_itself(data, space):
    """Bit for bit: a study that is opened again must compute what it would have computed."""
    U = np.random.default_rng(data.draw(draws.integers(0, 99))).random((40, len(space)))
    configs = [space.decode(u) for u in U]
    np.testing.assert_array_equal(encode_configs(configs, space), np.array([space.encode(config) for config in configs]))
    assert encode_configs([], space).shape == (0, len(space))


def test_a_parameter_that_is_not_there_is_refused_as_by_the_space():
    configs = [{"x": 0.5}, {"x": 0.5, "z": 1.0}]
    space = st.Space(x=st.Float(0, 1))
    for call in (lambda: encode_configs(configs, space), lambda: space.encode(configs[1])):
        with pytest.raises(KeyError, match="z"):
            call()


@given(draws.data())
def test_a_table_that_grows_and_is_rewritten_equals_one_made_from_scratch(data):
    """Trials start, end out of order, and abandoned ones end once more, one by one or together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_table, "INITIAL_CAPACITY", 2)
        patch.setattr(trial_table, "ROWS_PER_WRITE", data.draw(draws.integers(1, 3)))
        grown, known = TrialTable(SPACE), []
        for _ in range(data.draw(draws.integers(0, 6))):
            if data.draw(draws.booleans()):
                assert grown.hashes is not None  # from now on the set is kept up to date
            late = [trial for trial in known if trial.state in (State.RUNNING, State.ABANDONED)]
            if late and data.draw(draws.booleans()):
                trial = data.draw(closed(data.draw(draws.sampled_from(late))))
                known[trial.number] = trial
                grown.put(trial.number, trial)
            else:
                new = [data.draw(trials(len(known) + j)) for j in range(data.draw(draws.integers(1, 5)))]
                before = grown.version
                grown.put_all(len(known), new)
                known += new
                assert grown.version > before
        require_equal(grown, TrialTable.of(known, SPACE))
        one_by_one = TrialTable(SPACE)
        for trial in known:
            one_by_one.put(trial.number, trial)
        require_equal(one_by_one, grown)
        part = data.draw(draws.integers(0, len(known)))
        require_equal(grown.head(part), TrialTable.of(known[:part], SPACE))


@given(several())
def test_what_a_history_says_is_what_its_trials_say(found):
    history = st.History(found, SPACE)
    done = [trial for trial in found if trial.state is State.DONE]
    at_target = [trial for trial in found if trial.config["epochs"] == 9]
    models = [trial.suggestion["model"] for trial in found if "model" in trial.suggestion]
    assert history.trials_used == sum(trial.state is not State.ABANDONED for trial in found)
    assert history.spent == np.array([trial.cost or 0.0 for trial in found]).sum()  # exactly: suggestions depend on it
    assert history.warm_start == (models[-1] if models else None)
    assert history.number_of(State.DONE, State.FAILED) == sum(trial.state in (State.DONE, State.FAILED) for trial in found)
    assert history.having(State.DONE) == tuple(done)
    ended = [trial for trial in at_target if trial.state in (State.DONE, State.FAILED)]
    assert history.results() == [trial.value for trial in ended]
    seen = to_dataset(history)
    assert seen.finished == len(done)
    np.testing.assert_array_equal(seen.y[: len(done)], [trial.value for trial in done])
    np.testing.assert_array_equal(seen.at_target[: len(done)], [trial.config["epochs"] == 9 for trial in done])
    np.testing.assert_array_equal(np.isfinite(seen.gradients[: len(done), 0]), [trial.gradient is not None for trial in done])
    for points, state in ((seen.U[: len(done)], State.DONE), (seen.failed, State.FAILED), (seen.pending, State.RUNNING)):
        expected = [SPACE.encode(trial.config) for trial in found if trial.state is state]
        np.testing.assert_array_equal(points, np.array(expected).reshape(len(expected), len(SPACE)))
    for count in range(6):
        np.testing.assert_array_equal(seen.best(count), seen.order[:count])


@pytest.mark.parametrize("part", [1, 2, 3, 1000])
def test_a_trial_that_does_not_fit_is_named_and_those_before_it_are_known(monkeypatch, part):
    """Written at once or not: nothing is known of it, nor of those after it."""
    study = st.Study(st.Space(kind=st.Choice("a", "b")))
    monkeypatch.setattr(study_state, "ROWS_PER_WRITE", part)
    kinds = ["a", "b", "c", "a"]
    found = [StoredTrial(st.Trial(number, {"kind": kind}), number + 1) for number, kind in enumerate(kinds)]
    monkeypatch.setattr(study.storage, "changes_since", lambda *_: Changes(4, found, []))
    for _ in range(2):
        with pytest.raises(StudyError, match="trial 2 is of a wider space"):
            study.refresh()
        assert len(study.state) == study.state.table.count == 2
    with pytest.raises(ConfigError):
        study.state.table.put(2, found[2].trial)
    assert study.state.table.count == 2
