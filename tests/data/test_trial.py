import dataclasses
import json
import math

import numpy as np
import pytest

import shoestring as st

TRIAL = st.Trial(
    4, {"x": 0.5, "layers": [1, 2], "epochs": 9}, st.State.DONE, 0.25, 3.0, (0.2, 0.3), {"x": 1.5}, {"epochs": 9}, 3.1, None,
    ({"value": 0.4, "fidelity": {"epochs": 3}, "cost": 1.0},), {"by": "LogEI", "gain": 0.1},
)  # fmt: skip


@pytest.mark.parametrize("trial", [TRIAL, st.Trial(0, {"x": 1.0}), st.Trial(1, {}, st.State.FAILED, error="no")])
def test_to_dict_is_json_and_comes_back(trial):
    assert st.Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial


@pytest.mark.parametrize(
    ("trial", "text"),
    [
        (TRIAL, "Trial 4: done, value 0.25, cost 3, x=0.5, layers=[1, 2], epochs=9"),
        (st.Trial(0, {"x": 1 / 3}), "Trial 0: running, x=0.3333"),
        (st.Trial(1, {}, st.State.FAILED, cost=2.0, error="out of\nmemory"), "Trial 1: failed, cost 2, error: out of memory"),
        (st.Trial(2, {"x": math.nan, "kind": None}, st.State.ABANDONED), "Trial 2: abandoned, x=nan, kind=None"),
        (st.Trial(3, {f"x{i}": i for i in range(9)}), "Trial 3: running, x0=0, x1=1, x2=2, x3=3, x4=4, x5=5, and 3 more"),
        (st.Trial(5, {"text": "a" * 100}), "Trial 5: running, text=" + "a" * 37 + "..."),
        (st.Trial(6, {"x": np.float64(0.5)}, st.State.DONE, 10**400), "Trial 6: done, value 1" + "0" * 36 + "..., x=0.5"),
        (st.Trial(7, {"x": np.zeros((2, 2))}, "strange", math.inf), "Trial 7: strange, value inf, x=[[0. 0.] [0. 0.]]"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_it_is_readable_in_print(trial, text):
    assert repr(trial) == str(trial) == text


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
