"""A search that is stored: it is continued by the same call, and refused if anything is not as it was."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import beta
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import shoestring as st
from shoestring.integrations import sklearn_executor
from shoestring.integrations.fingerprint import data_part, stable_text
from tests.integrations.searches import DEPTHS, TREE, Fussy, X, search, y


class Counted(GaussianNB):
    """Counts its fits, and is interrupted at one of them."""

    fits = 0
    interrupted_at = None

    def fit(self, X, y):
        type(self).fits += 1
        if type(self).fits == type(self).interrupted_at:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.fixture(autouse=True)
def count_from_zero():
    Counted.fits, Counted.interrupted_at = 0, None


@pytest.fixture
def storage():
    return st.open_storage("memory")


SMOOTHING = {"var_smoothing": st.Float(1e-9, 1, log=True)}


def counted_search(**options):
    return search(Counted(), SMOOTHING, **{"n_iter": 3, "method": st.Random(), "stop": None} | options)


def test_a_second_fit_with_the_same_storage_continues_the_search(tmp_path):
    begun = counted_search(storage=tmp_path / "search.db").fit(X, y)
    assert Counted.fits == 3 * 3 + 1
    found = counted_search(storage=tmp_path / "search.db", n_iter=5).fit(X, y)
    assert Counted.fits == 5 * 3 + 2  # what is stored is not fitted again, only the best one on all rows
    whole = counted_search(n_iter=5).fit(X, y)
    assert found.cv_results_["params"] == whole.cv_results_["params"]
    for name, column in begun.cv_results_.items():
        if not name.startswith("rank"):
            assert list(found.cv_results_[name][:3]) == list(column) or name == "expected_cost", name
    assert found.predict(X).shape == y.shape
    assert found.study_.name == "Counted"


def test_a_search_that_is_complete_is_read_from_the_storage(storage):
    options = {"storage": storage, "scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "return_train_score": True}
    begun, found = (counted_search(**options).fit(X, y) for _ in range(2))
    assert Counted.fits == 3 * 3 + 2
    assert set(found.cv_results_) == set(begun.cv_results_)
    for name, column in begun.cv_results_.items():
        np.testing.assert_array_equal(found.cv_results_[name], column)
    assert found.multimetric_
    assert found.best_params_ == begun.best_params_
    assert found.fold_sizes_ == begun.fold_sizes_
    assert found.history_[0].metrics == {
        "accuracy": begun.cv_results_["mean_test_accuracy"][0],
        "f1_macro": begun.cv_results_["mean_test_f1_macro"][0],
    }


def test_a_version_of_scikit_learn_that_keeps_its_fits_elsewhere_fits_one_candidate_again(storage, monkeypatch):
    begun = counted_search(storage=storage).fit(X, y)
    monkeypatch.setattr(sklearn_executor, "hand_over", lambda evaluate, fits: None)
    found = counted_search(storage=storage).fit(X, y)
    assert Counted.fits == 3 * 3 + 1 + 3 + 1
    assert list(found.cv_results_["mean_fit_time"]) == list(begun.cv_results_["mean_fit_time"])


def test_after_ctrl_c_the_same_call_goes_on(storage, capsys):
    Counted.interrupted_at = 5  # the second candidate
    with pytest.raises(KeyboardInterrupt, match="interrupted; trial 1 will be asked again"):
        counted_search(storage=storage).fit(X, y)
    assert capsys.readouterr().err == "study 'Counted' in memory:// has 1 candidate; the same fit goes on from there\n"
    found = counted_search(storage=storage).fit(X, y)
    assert Counted.fits == 5 + 2 * 3 + 1
    assert list(found.cv_results_["trial"]) == [0, 2, 3]  # the interrupted one was asked again
    assert found.cv_results_["spent"][-1] == pytest.approx(found.spent_)
    assert found.recommended_params_ in found.cv_results_["params"]


def test_failed_candidates_are_stored_too(storage):
    options = {"storage": storage, "method": st.Random(), "n_iter": 4, "scoring": "accuracy"}
    with pytest.warns(FitFailedWarning, match="could not be fitted"), pytest.warns(UserWarning, match="non-finite"):
        begun = search(Fussy(bad=(0, 2)), {"a": [0, 1, 2, 3]}, **options).fit(X, y)
    with pytest.warns(UserWarning, match="non-finite"):
        found = search(Fussy(bad=(0, 2)), {"a": [0, 1, 2, 3]}, **options).fit(X, y)
    assert list(found.cv_results_["failed"]) == list(begun.cv_results_["failed"])
    assert found.cv_results_["failed"].sum() == 2
    np.testing.assert_array_equal(found.cv_results_["mean_fit_time"], begun.cv_results_["mean_fit_time"])


def test_a_stored_search_without_any_fit_says_so(storage):
    made = search(Fussy(bad=(0, 1)), {"a": [0, 1]}, storage=storage)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        made.fit(X, y)
    with pytest.raises(st.MethodError, match=r"none of the 2 candidates in the storage could be fitted.*cannot do"):
        made.fit(X, y)


def test_results_that_were_added_by_hand_are_rows_of_the_table(storage):
    counted_search(storage=storage, study_name="mine").fit(X, y)
    st.Study.load(storage, "mine").add({"var_smoothing": 0.5}, 0.25, cost=1.0)
    found = counted_search(storage=storage, study_name="mine", n_iter=4).fit(X, y)
    row = list(found.cv_results_["trial"]).index(3)
    assert found.cv_results_["mean_test_score"][row] == 0.25
    assert np.isnan(found.cv_results_["mean_fit_time"][row])


def test_folds_that_are_shuffled_without_a_random_state_are_the_same_again(storage):
    options = {"storage": storage, "cv": KFold(3, shuffle=True), "random_state": None}
    begun = search(TREE, DEPTHS, n_iter=2, **options).fit(X, y)
    found = search(TREE, DEPTHS, n_iter=3, **options).fit(X, y)
    assert list(found.cv_results_["split0_test_score"][:2]) == list(begun.cv_results_["split0_test_score"])
    assert options["cv"].random_state is None  # the user's splitter is left alone


def scaled(scaler):
    return {"scale": [scaler, "passthrough"], "tree__ccp_alpha": beta(2, 50)}


PIPELINE = Pipeline([("scale", StandardScaler()), ("tree", TREE)])
STORED = {
    "estimator": PIPELINE, "space": scaled(StandardScaler()), "scoring": "accuracy", "cv": 3, "n_iter": 1, "random_state": 0,
    "method": st.Random(),
}  # fmt: skip


@pytest.fixture(scope="module")
def stored_search():
    storage = st.open_storage("memory")
    st.ShoestringSearchCV(**STORED, storage=storage).fit(X, y)
    return storage


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X[:149], "y": y[:149]}, "X: was 150 rows, 4 columns, now it is 149 rows, 4 columns; y: was 150 rows"),
        ({"X": X + 1}, "X: 150 rows, 4 columns, but not the same as before"),
        ({"y": 2 - y}, "y: 150 rows, but not the same as before"),
        ({"estimator": Pipeline([("scale", None), ("tree", TREE)])}, "estimator: was Pipeline.*now it is Pipeline"),
        ({"cv": 4}, "folds: was 3 folds by cv=3, now it is 4 folds by cv=4"),
        ({"cv": ShuffleSplit(3)}, "folds: was 3 folds by cv=3, now it is 3 folds by cv=ShuffleSplit"),
        ({"scoring": "f1_macro"}, "scoring: was 'accuracy', now it is 'f1_macro'"),
        ({"space": scaled(MinMaxScaler())}, "values of the space: scale, tree__ccp_alpha, but not the same as before"),
        ({"space": {**scaled(StandardScaler()), "tree__ccp_alpha": beta(2, 60)}}, "values of the space"),
        ({"space": {"tree__max_depth": st.Int(1, 3)}}, "scale"),
    ],
    ids=["rows", "X", "y", "estimator", "cv", "folds", "scoring", "objects", "distribution", "space"],
)
def test_another_search_of_the_same_name_is_refused(stored_search, changes, message):
    data = [changes.get("X", X), changes.get("y", y)]
    made = st.ShoestringSearchCV(**STORED | {name: changes[name] for name in changes if name not in "Xy"}, storage=stored_search)
    with pytest.raises(st.StudyError, match=rf"study 'Pipeline' .* is another search: .*{message}.*another study_name="):
        made.fit(*data)
    (record,) = stored_search.studies()
    assert record.trials == 1


def test_what_does_not_change_scores_may_change(storage):
    search(DecisionTreeClassifier(random_state=0), DEPTHS, n_iter=1, storage=storage, study_name="a").fit(X, y)
    again = search(DecisionTreeClassifier(random_state=0), DEPTHS, n_iter=2, storage=storage, study_name="a", random_state=1)
    with pytest.warns(UserWarning, match="train scores are non-finite"):
        again.set_params(n_jobs=1, return_train_score=True).fit(X, y)
    assert len(again.history_) == 2
    assert np.isnan(again.cv_results_["mean_train_score"][0])  # it was not asked for then
    assert np.isfinite(again.cv_results_["mean_train_score"][1])


def test_another_name_is_another_search(storage):
    for name in ("a", "b"):
        assert len(search(TREE, DEPTHS, n_iter=1, storage=storage, study_name=name).fit(X, y).history_) == 1
    assert [each.name for each in storage.studies()] == ["a", "b"]


def test_a_study_that_is_no_search_is_refused(storage):
    st.minimize(lambda config: config["x"], st.Space(x=st.Float(0, 1)), 1, storage=storage, name="mine", method=st.Random())
    with pytest.raises(st.StudyError, match=r"study 'mine' .* was not made by ShoestringSearchCV.*study_name="):
        search(TREE, DEPTHS, storage=storage, study_name="mine").fit(X, y)


def test_fingerprints_tell_data_and_objects_apart():
    assert data_part(X) == data_part(np.asfortranarray(X))
    texts = ["a b", "c"]
    different = [X, X.astype(np.float32), X[::-1], csr_matrix(X), csr_matrix(X[::-1]), X.tolist(), texts, [[1], [1, 2]], None]
    assert len({data_part(each)["digest"] for each in different}) == len(different)
    assert data_part(texts) == data_part(list(texts))
    assert stable_text(Fussy(a=1)) != stable_text(Fussy(a=2))
    assert stable_text(DecisionTreeClassifier(max_depth=3)) == "sklearn.DecisionTreeClassifier({'max_depth': 3})"
    assert stable_text(np.random.RandomState(0)) == stable_text(np.random.RandomState(1))  # without an address
    assert stable_text({"b": search, "c": np.ones(3)}) == stable_text({"b": search, "c": np.ones(3)})


@pytest.mark.slow
def test_sigterm_in_fit_saves_and_ends_the_process(tmp_path):
    script = f"""
import time
import shoestring as st
from sklearn.naive_bayes import GaussianNB
from sklearn.datasets import load_iris

class Slow(GaussianNB):
    def fit(self, X, y):
        print("fitting", flush=True)
        time.sleep(0.05)
        return super().fit(X, y)

space = {{"var_smoothing": st.Float(1e-9, 1, log=True)}}
made = st.ShoestringSearchCV(Slow(), space, n_iter=1000, cv=2, method=st.Random(), storage={str(tmp_path / "a.db")!r})
made.fit(*load_iris(return_X_y=True))
print("not reached")
"""
    running = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(5):
        running.stdout.readline()
    time.sleep(0.02)
    running.terminate()
    out, _ = running.communicate(timeout=30)
    assert running.returncode in (-15, 143)
    assert "not reached" not in out
    assert len(st.Study.load(tmp_path / "a.db").history.having(st.State.DONE)) >= 2
