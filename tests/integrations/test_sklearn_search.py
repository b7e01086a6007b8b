"""ShoestringSearchCV as a search of scikit-learn, and as a study."""

import pickle
import time

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import shoestring as st
from shoestring.integrations.sklearn import ShoestringSearchCV
from shoestring.termination.base import Verdict
from tests.integrations.searches import DEPTHS, SVC_SPACE, TREE, X, search, y
from tests.names import without_address

# -- as RandomizedSearchCV ---------------------------------------------------------------------------------------------


def test_the_table_has_all_that_randomized_search_has_and_the_costs():
    ours = search(return_train_score=True).fit(X, y)
    theirs = RandomizedSearchCV(SVC(), SVC_SPACE, n_iter=6, cv=3, random_state=0, return_train_score=True).fit(X, y)
    assert set(ours.cv_results_) == set(theirs.cv_results_) | {"trial", "cost", "spent", "expected_cost", "failed"}
    assert {len(column) for column in ours.cv_results_.values()} == {6}
    for key, column in theirs.cv_results_.items():
        assert type(ours.cv_results_[key]) is type(column), key
        assert getattr(ours.cv_results_[key], "dtype", None) == getattr(column, "dtype", None), key
    assert set(vars(theirs)) <= set(vars(ours))


def test_best_refit_and_predict():
    found = search().fit(X, y)
    assert found.best_index_ == found.cv_results_["mean_test_score"].argmax()
    assert found.best_score_ == found.cv_results_["mean_test_score"].max() == found.study_.best.value
    assert found.best_params_ == found.cv_results_["params"][found.best_index_] == found.study_.best.config
    assert found.best_estimator_.get_params()["C"] == found.best_params_["C"]
    assert found.refit_time_ > 0
    assert found.predict(X).shape == y.shape
    assert found.score(X, y) > 0.9
    assert list(found.classes_) == [0, 1, 2]


def test_without_refit_there_is_nothing_to_predict_with():
    found = search(refit=False).fit(X, y)
    assert found.best_score_ > 0.5
    assert not hasattr(found, "best_estimator_")
    assert not hasattr(found, "predict")


def test_scores_are_those_of_cross_validation():
    found = search(n_iter=3).fit(X, y)
    for i, params in enumerate(found.cv_results_["params"]):
        scores = cross_val_score(SVC(**params), X, y, cv=3)
        assert [found.cv_results_[f"split{k}_test_score"][i] for k in range(3)] == list(scores)


def test_shuffled_folds_are_drawn_once_for_all_candidates():
    class Watched(KFold):
        drawn = 0

        def split(self, *args, **kwargs):
            type(self).drawn += 1
            return super().split(*args, **kwargs)

    found = search(TREE, {"random_state": [0], "max_leaf_nodes": [50, 51, 52]}, cv=Watched(3, shuffle=True)).fit(X, y)
    assert Watched.drawn == 1
    assert len(set(found.cv_results_["split0_test_score"])) == 1  # trees that never grow so large: equal on equal folds


def test_splits_as_a_list_or_a_generator():
    assert search(cv=list(KFold(3).split(X))).fit(X, y).fold_sizes_ == (50, 50, 50)
    made = search(cv=KFold(3).split(X))
    if hasattr(RandomizedSearchCV(SVC(), {"C": [1]}, n_iter=1).fit(X, y), "_checked_cv_orig"):
        assert made.fit(X, y).fold_sizes_ == (50, 50, 50)
    else:  # an older version, which does not say what it read
        with pytest.raises(st.MethodError, match="give a list of splits"):
            made.fit(X, y)


def test_several_metrics_and_refit_by_name():
    found = search(TREE, DEPTHS, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, y)
    assert found.multimetric_
    assert {"mean_test_accuracy", "rank_test_f1_macro", "split2_test_f1_macro"} <= set(found.cv_results_)
    assert [trial.value for trial in found.history_] == list(found.cv_results_["mean_test_f1_macro"])
    assert found.best_score_ == found.cv_results_["mean_test_f1_macro"].max()
    assert found.score(X, y) > 0.5


def test_several_metrics_and_a_function_or_nothing_to_refit_optimize_the_first():
    scoring = {"f1": "f1_macro", "accuracy": "accuracy"}
    chosen = search(TREE, DEPTHS, scoring=scoring, refit=lambda results: 2).fit(X, y)
    assert chosen.best_index_ == 2
    assert [trial.value for trial in chosen.history_] == list(chosen.cv_results_["mean_test_f1"])
    table = search(TREE, DEPTHS, scoring=scoring, refit=False).fit(X, y)
    assert [trial.value for trial in table.history_] == list(table.cv_results_["mean_test_f1"])
    assert not hasattr(table, "best_index_")


def both(estimator, X, y):
    right = float((estimator.predict(X) == y).mean())
    return {"right": right, "wrong": 1 - right}


def test_a_scorer_that_returns_a_dict():
    found = search(TREE, DEPTHS, scoring=both, refit="right").fit(X, y)
    assert [trial.value for trial in found.history_] == list(found.cv_results_["mean_test_right"])
    calls = []

    def counted(estimator, X, y):
        calls.append(1)
        return both(estimator, X, y)

    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        search(TREE, DEPTHS, scoring=counted).fit(X, y)
    assert len(calls) == 3  # said after the first candidate, not after the last


def test_metrics_that_are_better_when_lower_are_negated_by_scikit_learn():
    found = search(GaussianNB(), {"var_smoothing": loguniform(1e-9, 1)}, scoring="neg_log_loss").fit(X, y)
    assert found.best_score_ == max(trial.value for trial in found.history_) < 0


def test_pipelines_conditions_and_objects_as_values():
    steps = [StandardScaler(), MinMaxScaler(), "passthrough"]
    model = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    kernel, gamma = st.Choice("linear", "rbf"), st.Float(1e-3, 10, log=True, when={"svc__kernel": "rbf"})
    space = {"scale": steps, "svc__kernel": kernel, "svc__gamma": gamma, "svc__C": [0.1, 1, 10]}
    found = search(model, space, n_iter=8).fit(X, y)
    column = found.cv_results_["param_svc__gamma"]
    linear = found.cv_results_["param_svc__kernel"] == "linear"
    assert 0 < linear.sum() < 8
    assert list(np.ma.getmaskarray(column)) == list(linear)
    assert all(any(params["scale"] is step for step in steps) for params in found.cv_results_["params"])
    assert ("svc__gamma" in found.best_params_) == (found.best_params_["svc__kernel"] == "rbf")


def test_param_distributions_is_another_name_for_the_space():
    by_name = st.ShoestringSearchCV(SVC(), param_distributions=SVC_SPACE, n_iter=2, cv=2, random_state=0, method=st.Random())
    by_place = st.ShoestringSearchCV(SVC(), SVC_SPACE, n_iter=2, cv=2, random_state=0, method=st.Random())
    assert st.ShoestringSearchCV is ShoestringSearchCV
    assert by_name.get_params()["param_distributions"] is SVC_SPACE
    assert clone(by_name).fit(X, y).cv_results_["params"] == by_place.fit(X, y).cv_results_["params"]
    with pytest.raises(st.SpaceError, match="as space= or as param_distributions=: neither was given"):
        by_name.set_params(param_distributions=None).fit(X, y)


def test_an_absent_parameter_has_the_estimator_s_default():
    space = [{"criterion": ["gini"], "max_depth": [1]}, {"criterion": ["entropy"]}]
    found = search(TREE, space).fit(X, y)
    assert found.stop_.kind == "exhausted"
    assert found.best_params_ == {"criterion": "entropy"}
    assert found.best_estimator_.max_depth is None


def test_parameters_are_kept_as_given_and_cloned():
    space, method = st.Space(C=st.Float(0.1, 10)), st.EI()
    made = ShoestringSearchCV(SVC(), space, method=method, budget="1s", resource=None)
    assert made.space is space
    assert made.method is method
    copy = clone(made).set_params(estimator__kernel="linear", n_iter=3)
    assert copy.space == space
    assert copy.method == method
    assert copy.estimator.kernel == "linear"
    assert made.n_iter is None
    assert "ShoestringSearchCV" in repr(copy)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_two_workers_find_what_one_finds(backend):
    with parallel_config(backend=backend):
        one, two = (search(method=st.EI(), n_jobs=jobs, n_iter=10).fit(X, y) for jobs in (1, 2))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert list(one.cv_results_["mean_test_score"]) == list(two.cv_results_["mean_test_score"])


def test_more_workers_than_folds_fit_several_candidates_at_a_time(capsys):
    with parallel_config(backend="threading"):
        found = search(n_jobs=4, cv=2, n_iter=6, verbose=1).fit(X, y)
    assert len(found.history_) == 6
    rounds = [line.split("each of ")[1].split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("Fitting")]
    assert [count for count in rounds if count != "0"] == ["2", "2", "2"]  # 0: old versions say so when the folds are drawn
    assert len({str(params) for params in found.cv_results_["params"]}) == 6


def test_groups_and_fit_parameters_reach_scikit_learn():
    from sklearn.model_selection import GroupKFold

    groups = np.arange(len(y)) % 3
    found = search(cv=GroupKFold(3), n_iter=2).fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
    assert found.fold_sizes_ == (50, 50, 50)


def test_a_fitted_search_can_be_pickled_with_its_study():
    found = search(stop=st.RegretBound(0.01) | st.Patience(30)).fit(X, y)
    again = pickle.loads(pickle.dumps(found))
    assert again.study_.to_json() == found.study_.to_json()
    assert again.study_.rule == found.study_.rule
    assert again.recommended_params_ == found.recommended_params_
    assert list(again.predict(X)) == list(found.predict(X))
    assert again.study_.ask().config == found.study_.ask().config


# -- as a study --------------------------------------------------------------------------------------------------------


def test_the_study_is_told_folds_and_measured_seconds():
    found = search().fit(X, y)
    table = found.cv_results_
    for i, trial in enumerate(found.history_):
        assert trial.number == i
        assert trial.folds == tuple(table[f"split{k}_test_score"][i] for k in range(3))
        assert trial.value == table["mean_test_score"][i]
        assert trial.cost == pytest.approx(3 * (table["mean_fit_time"][i] + table["mean_score_time"][i]))
        assert trial.cost == trial.seconds == table["cost"][i]
    assert found.spent_ == pytest.approx(table["cost"].sum()) == pytest.approx(table["spent"][-1])
    assert found.study_.direction == "maximize"
    assert found.fold_sizes_ == (50, 50, 50)
    assert found.train_sizes_ == (100, 100, 100)


def test_expected_costs_are_in_the_table():
    found = search(method=st.EIpu(), n_iter=11).fit(X, y)
    assert np.isnan(found.cv_results_["expected_cost"][0])
    assert np.isfinite(found.cv_results_["expected_cost"][-1])


def test_the_recommendation_is_one_of_the_candidates():
    found = search(n_iter=10).fit(X, y)
    assert found.recommended_params_ in found.cv_results_["params"]
    with pytest.raises(NotFittedError):
        _ = search().recommended_params_


def test_equal_random_states_give_equal_searches():
    states = [7, 7, np.random.RandomState(7), 8]
    a, b, c, other = (search(method=st.EI(), n_iter=10, random_state=state).fit(X, y).cv_results_["params"] for state in states)
    assert a == b == c
    assert a != other


class StopAfter:
    """A rule that looks at the folds, and asks for their sizes in a field as our own rules do."""

    def __init__(self, count):
        self.count, self.seen = count, []

    def check(self, history, belief=None):
        self.seen.append([trial.folds for trial in history])
        return Verdict(len(history) >= self.count, f"{len(history)} is enough", {"count": float(len(history))})


def test_the_rule_sees_the_folds_and_ends_the_search():
    rule = StopAfter(4)
    found = search(stop=rule, n_iter=20).fit(X, y)
    assert len(found.history_) == 4
    assert found.stop_reason_ == found.stop_.reason == "4 is enough"
    assert found.stop_.evidence == {"count": 4.0}
    assert [len(folds) for folds in rule.seen[-1]] == [3, 3, 3, 3]


def test_a_rule_that_takes_fold_sizes_is_given_them():
    found = search(stop=st.RegretBound(after=5) & st.Patience(30), cv=4).fit(X, y)
    assert found.study_.rule.rules[0].fold_sizes == found.fold_sizes_ == (38, 38, 37, 37)
    assert search(stop="auto").fit(X, y).study_.rule.fold_sizes == (50, 50, 50)
    assert search(stop=st.RegretBound(fold_sizes=(1, 2, 3))).fit(X, y).study_.rule.fold_sizes == (1, 2, 3)
    overlapping = ShuffleSplit(3, test_size=30, random_state=0)  # no parts of one whole: what each is trained on is told too
    assert search(stop="auto", cv=overlapping).fit(X, y).study_.rule.train_sizes == (120, 120, 120)


def test_the_regret_bound_ends_a_search_that_has_nothing_to_gain():
    found = search(TREE, {"ccp_alpha": st.Float(0, 0.03), "max_features": [4]}, n_iter=60).fit(X, y)
    assert len(found.history_) < 60
    assert "what is left to gain" in found.stop_reason_


def test_budgets():
    assert search(n_iter=None, budget=3).fit(X, y).stop_reason_ == "the budget of 3 trials is used up"
    assert len(search(n_iter=4, budget=3).fit(X, y).history_) == 3
    assert len(search(n_iter=3, budget=st.Budget(cost=1e3)).fit(X, y).history_) == 3
    fitting = search(n_iter=None, budget=st.Budget(cost=0.03), stop=None).fit(X, y)
    assert fitting.stop_.kind == "budget"
    assert fitting.spent_ > 0.015


def test_a_time_as_budget_is_the_time_of_the_whole_search():
    began = time.perf_counter()
    found = search(n_iter=None, budget="200ms", stop=None, method=st.Random()).fit(X, y)
    assert found.stop_.kind == "budget"
    assert found.study_.seconds > 0.1
    assert found.spent_ < time.perf_counter() - began


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_iter": 0}, st.BudgetError, "n_iter must be a whole number of 1 or more"),
        ({"n_iter": 2.5}, st.BudgetError, "n_iter must be a whole number of 1 or more"),
        ({"budget": "soon"}, st.BudgetError, "budget='soon' cannot be read"),
        ({"budget": st.Budget(cost=3, unit="USD")}, st.BudgetError, "measured in seconds"),
        ({"method": "best"}, st.MethodError, "there is no best"),
        ({"stop": 3}, st.MethodError, "stop=3 is not a rule"),
        ({"cost_model": "none"}, st.MethodError, "cost_model='none'"),
        ({"space": {"C": 3}}, st.SpaceError, "C: 3 is neither"),
        ({"param_distributions": {"C": [1]}}, st.SpaceError, "as space= or as param_distributions=: both were given"),
        ({"storage": 3}, st.StorageError, "storage=3 is not an address"),
        ({"space": {"nonsense": [1, 2]}}, ValueError, "Invalid parameter 'nonsense'"),
        ({"refit": 3}, ValueError, "refit"),
        ({"stop": StopAfter(0)}, st.MethodError, "ended before its first candidate: 0 is enough"),
    ],
    ids=without_address,
)
def test_what_is_wrong_is_said_by_fit(options, error, message):
    made = search(**options)
    with pytest.raises(error, match=message):
        made.fit(X, y)
