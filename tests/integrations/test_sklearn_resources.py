"""A resource (rows, trees) as a fidelity of the search."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold
from sklearn.svm import SVC

import shoestring as st
from shoestring.integrations.sklearn import FixedSplits, ShoestringSearchCV

X, y = load_iris(return_X_y=True)


class Cheap:
    """A method that asks for the given amounts in turn, at random configs."""

    def __init__(self, name, amounts):
        self.name, self.amounts = name, amounts

    def suggest(self, context):
        suggestion = st.Random().suggest(context)
        amount = self.amounts[context.number % len(self.amounts)]
        return st.Suggestion({**suggestion.config, self.name: amount}, by="Cheap", why="for the test")


class RowCounter(RegressorMixin, BaseEstimator):
    """Its score is minus the number of rows it was fitted on: fewer rows look better."""

    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y):
        self.rows_ = len(X)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return -float(self.rows_)


def rows_search(**options):
    options = {"n_iter": 6, "cv": 3, "random_state": 0, "resource": "n_samples"} | options
    return ShoestringSearchCV(RowCounter(), {"a": st.Float(0, 1)}, **options)


def test_training_rows_are_subsampled_as_asked_and_test_rows_are_not():
    found = rows_search(method=Cheap("n_samples", [30, 75, 150])).fit(X, y)
    table = found.cv_results_
    assert list(table["n_resources"]) == [30, 75, 150] * 2
    assert list(-table["mean_test_score"]) == [20, 50, 100] * 2  # of the hundred rows of each training fold
    assert all(set(params) == {"a"} for params in table["params"])
    assert [trial.fidelity for trial in found.history_][:2] == [{"n_samples": 30}, {"n_samples": 75}]


def test_only_candidates_at_the_target_can_be_best():
    found = rows_search(method=Cheap("n_samples", [30, 75, 150])).fit(X, y)
    assert found.best_index_ in (2, 5)
    assert found.best_score_ == -100
    assert found.best_index_ == found.history_.best.number
    assert found.best_estimator_.rows_ == 150
    assert found.cv_results_["rank_test_score"][found.best_index_] > 1  # the ranks know nothing of resources


def test_while_none_is_at_the_target_the_last_fit_is_what_the_model_recommends_there():
    found = rows_search(method=Cheap("n_samples", [60, 30])).fit(X, y)
    assert list(found.cv_results_["n_resources"]) == [60, 30, 60, 30, 60, 150]
    assert found.best_index_ == 5
    assert found.best_score_ == -100


def test_the_default_method_ends_with_the_whole_resource_too():
    found = rows_search(n_iter=10).fit(X, y)
    assert len(found.cv_results_["n_resources"]) == 10
    assert found.cv_results_["n_resources"][found.best_index_] == 150


def test_a_function_for_refit_chooses_among_all():
    made = rows_search(method=Cheap("n_samples", [30, 150]), refit=lambda results: int(results["n_resources"].argmin()))
    found = made.fit(X, y)
    assert found.best_index_ == 0


def test_methods_that_know_nothing_of_fidelities_ask_at_the_target():
    found = rows_search(max_resources=120, method=st.EI()).fit(X, y)
    assert set(found.cv_results_["n_resources"]) == {120}
    assert set(found.cv_results_["mean_test_score"]) == {-80.0}
    assert found.best_estimator_.rows_ == 150


def test_several_candidates_at_a_time_may_have_different_resources():
    made = rows_search(method=Cheap("n_samples", [30, 75, 75, 150]), n_jobs=2, cv=[(np.arange(100), np.arange(100, 150))])
    with parallel_config(backend="threading"):
        found = made.fit(X, y)
    assert list(-found.cv_results_["mean_test_score"]) == [20, 50, 50, 100, 20, 50]
    assert list(found.cv_results_["n_resources"]) == [30, 75, 75, 150, 30, 75]


def test_a_parameter_of_the_estimator_as_resource():
    made = ShoestringSearchCV(
        RandomForestClassifier(random_state=0), {"max_depth": st.Int(1, 6)}, n_iter=6, cv=2, random_state=0,
        resource="n_estimators", max_resources=8, method=Cheap("n_estimators", [1, 2, 8]),
    )  # fmt: skip
    found = made.fit(X, y)
    assert list(found.cv_results_["n_resources"]) == [1, 2, 8] * 2
    assert [params["n_estimators"] for params in found.cv_results_["params"]] == [1, 2, 8] * 2
    assert found.best_index_ in (2, 5)
    assert len(found.best_estimator_.estimators_) == 8
    assert found.study_.space["n_estimators"] == st.Fidelity(1, 8, log=True)


def test_a_fidelity_in_the_space_is_one_with_and_without_naming_it():
    space = st.Space(max_depth=st.Int(1, 6), n_estimators=st.Fidelity(1, 8))
    for resource in (None, "n_estimators"):
        made = ShoestringSearchCV(
            RandomForestClassifier(random_state=0), space, n_iter=4, cv=2, random_state=0,
            method=Cheap("n_estimators", [1, 8]), resource=resource,
        )  # fmt: skip
        found = made.fit(X, y)
        assert [params["n_estimators"] for params in found.cv_results_["params"]] == [1, 8] * 2
        assert ("n_resources" in found.cv_results_) == (resource is not None)
        assert found.best_index_ in (1, 3)


def test_the_smallest_sample_has_ten_rows_a_class():
    made = ShoestringSearchCV(SVC(), {"C": [1, 2]}, n_iter=1, cv=3, resource="n_samples", random_state=0)
    assert made.fit(X, y).study_.space["n_samples"] == st.Fidelity(30, 150, log=True)
    few = np.r_[0:9, 50:59, 100:109]
    assert made.fit(X[few], y[few]).study_.space["n_samples"] == st.Fidelity(13, 27, log=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resource": "n_trees"}, "resource='n_trees' is neither"),
        ({"resource": "a", "max_resources": 4}, "a is the resource, so it cannot be searched"),
        ({"max_resources": 151}, "a number from 2 to 150"),
        ({"max_resources": "all"}, "a number from 2 to 150"),
        ({"min_resources": 150}, r"low \(150\) must be below high \(150\)"),
        ({"min_resources": 0}, "log=True needs low > 0"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_resource_is_said_by_fit(options, message):
    with pytest.raises(st.SpaceError, match=message):
        rows_search(**options).fit(X, y)


def test_a_parameter_as_resource_needs_its_greatest_amount():
    made = ShoestringSearchCV(RandomForestClassifier(), {"max_depth": [1, 2]}, resource="n_estimators")
    with pytest.raises(st.SpaceError, match="resource='n_estimators' needs max_resources="):
        made.fit(X, y)


def test_subsampled_folds_are_nested_and_keep_the_shares_of_the_classes():
    rare = np.r_[np.zeros(80, int), np.ones(16, int), np.full(4, 2)]
    splits = FixedSplits(KFold(2, shuffle=True, random_state=0), classifier=True, seed=3)
    Z = np.arange(100)[:, None]
    small, large = (list(splits.subsampled(share).split(Z, rare)) for share in (0.1, 0.5))
    whole = list(splits.subsampled(1.0).split(Z, rare))
    for (few, test), (many, _), (train, rest) in zip(small, large, whole, strict=True):
        assert set(few) < set(many) < set(train)
        assert set(test) == set(rest)
        assert (len(few), len(many), len(train)) == (5, 25, 50)
        assert set(rare[few]) == set(rare[train])
        assert (rare[many] == 0).mean() == pytest.approx((rare[train] == 0).mean(), abs=0.05)


def test_rows_of_a_mask_or_a_slice_are_counted_too():
    mask = np.arange(10) < 4
    splits = FixedSplits([(mask, ~mask), (slice(4, 10), slice(0, 4))], classifier=False, seed=0)
    list(splits.split(np.zeros((10, 1))))
    assert splits.train_sizes == (4, 6)
    assert splits.test_sizes == (6, 4)
