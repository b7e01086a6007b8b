"""The places of trials on the rungs, read from their plans, when trials are abandoned, end late, or belong to another run."""

import shoestring as st
from tests.problems import abandon

SMALL = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))


def plans(history):
    return [(plan["bracket"], plan["rung"], plan["config"]) for plan in (trial.suggestion["plan"] for trial in history)]


def test_a_late_result_of_a_trial_that_was_suggested_again_takes_no_second_place():
    study = st.Study(SMALL, st.Hyperband())
    lost = study.ask()
    abandon(study, lost.number)
    again = study.ask()
    assert again.config == lost.config
    for _ in range(8):
        study.tell(study.ask(), 0.5)
    study.tell(lost, 0.1)
    assert plans([study.ask()]) == [(0, 1, 0)]  # the rung no longer waits for the second one
    study.tell(again, 0.9)
    assert [plan[:2] for plan in plans([study.ask(), study.ask(), study.ask()])] == [(0, 1), (0, 1), (1, 0)]


def test_the_place_of_a_trial_that_is_not_suggested_again_is_free():
    study = st.Study(SMALL, st.Hyperband())
    abandon(study, study.ask().number)
    study.state.storage._studies[study.state.study].queue.clear()
    asked = [study.ask() for _ in range(9)]
    assert plans(asked) == [(0, 0, config) for config in range(1, 10)]  # but its number is not given to another configuration


def test_other_settings_start_a_new_run():
    study = st.Study(SMALL, st.Hyperband())
    study.minimize(lambda config: config["x"], 11)
    for method in (st.Hyperband(eta=2), st.Hyperband(smallest=3), st.Hyperband(brackets=1), st.Hyperband(asynchronous=True)):
        assert plans([st.Study.from_json(study.to_json(), method).ask()]) == [(0, 0, 0)]
    assert plans([st.Study.from_json(study.to_json(), st.Hyperband(3, resource="epochs")).ask()])[0][:2] == (0, 1)


def test_a_plan_is_kept_with_its_trial_and_survives_storage():
    study = st.Study(SMALL, st.Hyperband())
    trial = study.ask()
    scheme = "epochs 1, 3, 9; 3 brackets by 3, in turn"
    assert trial.suggestion["plan"] == {"scheme": scheme, "bracket": 0, "rung": 0, "config": 0}
    assert st.Study.from_json(study.to_json(), st.Hyperband()).history[0].suggestion == trial.suggestion
    assert "plan" not in st.Study(SMALL, st.Random()).ask().suggestion
