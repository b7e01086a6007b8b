import numpy as np
import pytest

import shoestring as st
from tests.problems import bowl, plane, told_study


def test_a_start_that_fills_the_space_and_then_the_model():
    study = st.Study(plane(), initial=4)
    for _ in range(7):
        trial = study.ask()
        study.tell(trial, bowl(trial.config), cost=1.0)
    assert ["model" in trial.suggestion for trial in study.history] == [False] * 4 + [True] * 3
    assert "1 of 4" in study.history[0].suggestion["why"]
    assert "6 trials" in study.history[6].suggestion["why"]


def test_a_model_based_suggestion_says_what_was_known():
    study = told_study(plane(), bowl, 12)
    suggestion = study.ask().suggestion
    assert suggestion["by"] == "LogEI"
    assert np.isfinite(suggestion["predicted"])
    assert suggestion["gain"] >= 0
    assert suggestion["model"]["trials"] == 12


def test_predictions_are_in_the_units_of_the_user():
    study = told_study(plane(1), lambda config: 1e6 + 1e3 * config["x0"], 12)
    assert 1e6 - 2e3 < study.ask().suggestion["predicted"] < 1e6 + 3e3


def test_predictions_have_the_sign_of_what_is_maximised():
    study = told_study(plane(1), lambda config: 100 + config["x0"], 12, direction="maximize")
    assert study.ask().suggestion["predicted"] == pytest.approx(101, abs=2)


def test_while_nothing_has_succeeded_it_goes_on_filling_the_space():
    study = st.Study(plane(), initial=3)
    for _ in range(6):
        study.tell(study.ask(), error="no", cost=1.0)
    assert all("model" not in trial.suggestion for trial in [study.ask() for _ in range(4)])


@pytest.mark.slow
def test_it_keeps_away_from_where_trials_fail():
    """Values fall towards a region that fails: who knows of the failures asks deep inside less than half as often."""
    beyond = {True: 0, False: 0}
    for seed in range(8):
        study = told_study(plane(), lambda config: -config["x0"], 20, seed, error_where=lambda config: config["x0"] > 0.67)
        for knows in beyond:
            other = st.Study(plane(), seed=seed, initial=1)
            for trial in study.history:
                if trial.state is st.State.DONE:
                    other.add(trial.config, trial.value, cost=1.0)
                elif knows:
                    other.add(trial.config, error=trial.error, cost=1.0)
            beyond[knows] += sum(other.ask().config["x0"] > 0.8 for _ in range(2))
    assert beyond[True] < beyond[False] / 2


def test_many_asks_at_once_are_apart():
    study = told_study(plane(), bowl, 10)
    U = np.array([list(study.ask().config.values()) for _ in range(12)])
    gaps = np.linalg.norm(U[:, None] - U, axis=-1)[np.triu_indices(12, 1)]
    assert gaps.min() > 1e-4
