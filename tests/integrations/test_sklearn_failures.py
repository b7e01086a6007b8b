"""What ShoestringSearchCV does with fits and scorers that fail."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, ShuffleSplit

import shoestring as st
from tests.integrations.searches import Fussy, X, search, y


def test_a_candidate_that_cannot_be_fitted_is_a_failed_trial_and_a_row_of_the_table():
    made = search(Fussy(bad=(0, 3)), {"a": [0, 1, 2, 3, 4]}, method=st.Random(), scoring="accuracy", return_train_score=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = made.fit(X, y)
    (told,) = [str(warning.message) for warning in seen if issubclass(warning.category, FitFailedWarning)]
    assert told.startswith("2 candidates could not be fitted on any fold and got the score nan")
    assert "cannot do" in told
    assert sum("non-finite" in str(warning.message) for warning in seen) == 2  # once for test, once for train scores
    table = found.cv_results_
    assert sorted(params["a"] for params in table["params"]) == [0, 1, 2, 3, 4]
    bad = np.isin(table["param_a"].astype(int), [0, 3])
    assert list(np.isnan(table["mean_test_score"])) == list(np.isnan(table["mean_train_score"])) == list(bad)
    assert list(table["failed"]) == list(bad)
    assert set(table["rank_test_score"][bad]) == {4}
    assert (table["cost"] > 0).all()
    failed = found.history_.having(st.State.FAILED)
    assert [trial.error for trial in failed] == [f"ValueError: cannot do {trial.config['a']}" for trial in failed]
    assert found.best_params_["a"] not in (0, 3)


def test_a_candidate_that_fails_on_one_fold_has_failed():
    made = search(Fussy(looks=True), {"a": [1, 2]}, cv=KFold(3), scoring="accuracy")
    first = np.column_stack([np.r_[np.zeros(50), np.ones(100)], X])  # the training rows of fold 0 begin with a one
    with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 3"), pytest.warns(UserWarning, match="non-finite"):
        found = made.fit(first, y)
    for trial in found.history_:
        assert trial.state is st.State.FAILED
        assert trial.error == "ValueError: cannot do without the first row"
        assert np.isnan(trial.folds[0])
        assert np.isfinite(trial.folds[1:]).all()
        assert trial.cost > 0


def test_a_number_as_error_score_is_a_score_like_any_other():
    made = search(Fussy(bad=(0,)), {"a": [0, 1]}, error_score=-1.0, scoring=["accuracy", "f1_macro"], refit="f1_macro")
    with pytest.warns(FitFailedWarning):
        found = made.fit(X, y)
    row = [params["a"] for params in found.cv_results_["params"]].index(0)
    assert found.cv_results_["mean_test_f1_macro"][row] == found.cv_results_["mean_test_accuracy"][row] == -1
    assert found.history_[row].value == -1
    assert found.best_params_ == {"a": 1}


def test_scikit_learn_s_error_where_nothing_can_be_fitted_and_where_it_is_asked_for():
    made = search(Fussy(bad=(0, 1)), {"a": [0, 1]})
    with pytest.raises(ValueError, match=r"All the 3 fits failed[\s\S]*cannot do"):
        made.fit(X, y)
    with pytest.raises(ValueError, match=r"^cannot do [01]$"):
        made.set_params(error_score="raise").fit(X, y)


def test_a_scorer_that_fails_is_a_failed_trial():
    def scorer(estimator, X, y):
        if estimator.a == 0:
            raise RuntimeError("no score")
        return 0.5

    made = search(Fussy(), {"a": [0, 1]}, scoring=scorer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = made.fit(X, y)
    (failed,) = found.history_.having(st.State.FAILED)
    assert failed.config == {"a": 0}
    assert found.best_params_ == {"a": 1}


def test_one_split_is_a_value_without_folds():
    found = search(cv=ShuffleSplit(1, random_state=0)).fit(X, y)
    assert all(trial.folds is None and trial.state is st.State.DONE for trial in found.history_)


def test_without_scikit_learn_the_error_says_what_to_install():
    script = "import sys; sys.modules['sklearn'] = None; from shoestring import *; print(1); ShoestringSearchCV(None, {})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stdout == "1\n"  # all else works without it
    assert run.stderr.splitlines()[-1] == 'ImportError: ShoestringSearchCV needs scikit-learn: pip install "shoestring[sklearn]"'


def test_a_search_in_which_every_fit_fails_ends_with_scikit_learn_s_error_and_not_after_three():
    made = search(Fussy(bad=range(9)), {"a": list(range(9))}, n_iter=9, method=st.Random())
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        made.fit(X, y)
