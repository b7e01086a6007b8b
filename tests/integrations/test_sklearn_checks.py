"""scikit-learn's own checks of an estimator, with nothing excused that RandomizedSearchCV passes."""

from inspect import signature

import pytest
from scipy.stats import loguniform
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_supervised_y_2d, parametrize_with_checks

from shoestring.integrations.sklearn import ShoestringSearchCV

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks feed estimators with what they warn about

FAILED_BY_RANDOMIZED_SEARCH = {"check_supervised_y_2d": "every fit warns of y as a column, and one warning is wanted"}
SEARCHES = [
    (Ridge(), {"alpha": [0.1, 1.0]}),
    (LogisticRegression(), {"C": [0.1, 1.0]}),
    (Pipeline([("pca", PCA()), ("ridge", Ridge())]), {"ridge__alpha": [0.1, 1.0]}),
    (Pipeline([("pca", PCA()), ("model", LogisticRegression())]), {"model__C": [0.1, 1.0]}),
]


class Loguniform(type(loguniform(0.1, 1.0))):
    """A distribution whose repr has no address in it: the names of the tests are the same in every process."""

    def __init__(self, low, high):
        super().__init__(loguniform, low, high)

    def __repr__(self):
        return "loguniform"


EVERY_KIND = [
    *(ShoestringSearchCV(estimator, space, n_iter=2, cv=2, error_score="raise", random_state=0) for estimator, space in SEARCHES),
    ShoestringSearchCV(LogisticRegression(), {"C": Loguniform(0.1, 1.0)}, n_iter=3, cv=2, random_state=0),
]


def is_regressor(search):
    return "alpha" in next(iter(search.space))


def excuses(search):
    return FAILED_BY_RANDOMIZED_SEARCH if is_regressor(search) else {}


# Before 1.6, scikit-learn's search classes say themselves, in a tag that is inherited, what is not expected of them.
EXCUSED = {"expected_failed_checks": excuses} if "expected_failed_checks" in signature(parametrize_with_checks).parameters else {}


@parametrize_with_checks(EVERY_KIND, **EXCUSED)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.skipif(not EXCUSED, reason="nothing is excused by this file")
@pytest.mark.parametrize(("estimator", "space"), [each for each in SEARCHES if "alpha" in next(iter(each[1]))])
def test_what_is_excused_is_failed_by_randomized_search(estimator, space):
    twin = RandomizedSearchCV(estimator, space, n_iter=2, cv=2, error_score="raise", random_state=0)
    with pytest.raises(AssertionError, match="DataConversionWarning"):
        check_supervised_y_2d("RandomizedSearchCV", twin)
