import dataclasses
import json

import pytest

import shoestring as st

TRIAL = st.Trial(
    4, {"x": 0.5, "layers": [1, 2], "epochs": 9}, st.State.DONE, 0.25, 3.0, (0.2, 0.3), {"x": 1.5}, {"epochs": 9}, 3.1, None,
    ({"value": 0.4, "fidelity": {"epochs": 3}, "cost": 1.0},), {"by": "LogEI", "gain": 0.1},
)  # fmt: skip


@pytest.mark.parametrize("trial", [TRIAL, st.Trial(0, {"x": 1.0}), st.Trial(1, {}, st.State.FAILED, error="no")])
def test_to_dict_is_json_and_comes_back(trial):
    assert st.Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial


def test_a_trial_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TRIAL.value = 0.0


def test_fields_of_a_later_version_are_ignored():
    assert st.Trial.from_dict(TRIAL.to_dict() | {"colour": "red"}) == TRIAL


@pytest.mark.parametrize("state", list(st.State))
def test_only_a_running_trial_is_unfinished(state):
    assert st.Trial(0, {}, state).finished == (state != "running")


def test_a_suggestion_says_only_what_it_knows():
    assert st.Suggestion({"x": 1}, "Random", "random search").to_dict() == {"by": "Random", "why": "random search"}
