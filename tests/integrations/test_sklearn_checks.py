"""scikit-learn's own checks of an estimator, with nothing excused that RandomizedSearchCV passes.

All checks run with lists. Those that concern parameters run with distributions and with an st.Space too.
"""

from inspect import signature

import pytest
from scipy.stats import loguniform
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_supervised_y_2d, parametrize_with_checks

import shoestring as st
from shoestring.integrations.sklearn import ShoestringSearchCV

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks feed estimators with what they warn about

FAILED_BY_RANDOMIZED_SEARCH = {"check_supervised_y_2d": "every fit warns of y as a column, and one warning is wanted"}
SEARCHES = [
    (Ridge(), {"alpha": [0.1, 1.0]}),
    (LogisticRegression(), {"C": [0.1, 1.0]}),
    (Pipeline([("pca", PCA()), ("ridge", Ridge())]), {"ridge__alpha": [0.1, 1.0]}),
    (Pipeline([("pca", PCA()), ("model", LogisticRegression())]), {"model__C": [0.1, 1.0]}),
]


LISTS = [
    ShoestringSearchCV(estimator, space, n_iter=2, cv=2, error_score="raise", random_state=0) for estimator, space in SEARCHES
]


def is_regressor(search):
    return "alpha" in next(iter(search.space))


def excuses(search):
    return FAILED_BY_RANDOMIZED_SEARCH if is_regressor(search) else {}


# Before 1.6, scikit-learn's search classes say themselves, in a tag that is inherited, what is not expected of them.
EXCUSED = {"expected_failed_checks": excuses} if "expected_failed_checks" in signature(parametrize_with_checks).parameters else {}


@parametrize_with_checks([LISTS[0], LISTS[3]], **EXCUSED)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LISTS[1], LISTS[2]], **EXCUSED)
def test_sklearn_checks_of_a_classifier_alone_and_of_a_pipeline_that_ends_in_a_regressor(estimator, check):
    check(estimator)


DISTRIBUTION = {"param_distributions": {"C": loguniform(0.1, 1.0)}}
MIXED = {
    "C": st.Float(0.1, 1.0, log=True),
    "solver": st.Choice("lbfgs", "newton-cg"),
    "tol": st.Float(1e-4, 1e-2, when={"solver": "lbfgs"}),
}
FORMS = {"distribution": DISTRIBUTION, "space": {"space": st.Space(MIXED)}, "dict": {"space": MIXED}}
PARAMETER_CHECKS = [  # some are not in every version
    "check_estimators_overwrite_params", "check_dont_overwrite_attributes", "check_dict_unchanged", "check_get_params_invariance",
    "check_set_params", "check_no_attributes_set_in_init", "check_estimator_cloneable", "check_estimator_repr",
    "check_estimators_pickle", "check_fit_idempotent", "check_do_not_raise_errors_in_init_or_set_param",
]  # fmt: skip


@pytest.mark.parametrize("check", [name for name in PARAMETER_CHECKS if hasattr(estimator_checks, name)])
@pytest.mark.parametrize("given", FORMS.values(), ids=FORMS)
def test_a_space_is_not_changed_by_fit_and_parameters_are_as_scikit_learn_wants_them(given, check):
    made = ShoestringSearchCV(LogisticRegression(), **given, n_iter=2, cv=2, random_state=0)
    getattr(estimator_checks, check)("ShoestringSearchCV", made)


@pytest.mark.skipif(not EXCUSED, reason="nothing is excused by this file")
@pytest.mark.parametrize(("estimator", "space"), [each for each in SEARCHES if "alpha" in next(iter(each[1]))])
def test_what_is_excused_is_failed_by_randomized_search(estimator, space):
    twin = RandomizedSearchCV(estimator, space, n_iter=2, cv=2, error_score="raise", random_state=0)
    with pytest.raises(AssertionError, match="DataConversionWarning"):
        check_supervised_y_2d("RandomizedSearchCV", twin)
