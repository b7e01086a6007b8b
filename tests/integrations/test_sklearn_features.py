"""What RandomizedSearchCV takes and gives, and ShoestringSearchCV too: each is compared with RandomizedSearchCV itself."""

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array, csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, RandomizedSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import shoestring as st
from tests.integrations.searches import X, y

pytestmark = pytest.mark.filterwarnings("error")
WEIGHTS = np.where(np.arange(len(y)) % 5 == 0, 40.0, 0.1)
GROUPS = np.arange(len(y)) % 3
WORDS = ["good film", "bad film", "very good", "very bad", "good good", "bad bad"] * 4
LABELS = np.array([1, 0, 1, 0, 1, 0] * 4)


def both(estimator, candidate, X, y, *, cv=3, scoring=None, **fit_params):
    """The two searches, fitted with one candidate, after their scores were found to be the same."""
    space = {name: [value] for name, value in candidate.items()}
    options = {"n_iter": 1, "cv": cv, "scoring": scoring, "random_state": 0}
    theirs = RandomizedSearchCV(estimator, space, **options).fit(X, y, **fit_params)
    ours = st.ShoestringSearchCV(estimator, space, **options).fit(X, y, **fit_params)
    splits = [f"split{k}_test_score" for k in range(3)]
    assert [ours.cv_results_[split][0] for split in splits] == [theirs.cv_results_[split][0] for split in splits]
    return ours, theirs


def test_sample_weights_go_to_the_fits_and_to_the_refit():
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    ours, theirs = both(tree, {"criterion": "gini"}, X, y, sample_weight=WEIGHTS)
    assert ours.predict_proba(X).tolist() == theirs.predict_proba(X).tolist()
    plain, _ = both(tree, {"criterion": "gini"}, X, y)
    assert plain.predict_proba(X).tolist() != ours.predict_proba(X).tolist()


def test_metadata_is_routed_to_the_estimator_the_scorer_and_the_splitter():
    with sklearn.config_context(enable_metadata_routing=True):
        model = DecisionTreeClassifier(max_depth=2, random_state=0).set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        routed = {"sample_weight": WEIGHTS, "groups": GROUPS}
        ours, theirs = both(model, {"criterion": "gini"}, X, y, cv=GroupKFold(3), scoring=scorer, **routed)
        assert ours.score(X, y, sample_weight=WEIGHTS) == theirs.score(X, y, sample_weight=WEIGHTS) != ours.score(X, y)
        assert str(ours.get_metadata_routing()) == str(theirs.get_metadata_routing())


def test_metadata_that_nobody_asks_for_is_refused_as_in_scikit_learn():
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="unexpected argument"):
        st.ShoestringSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, n_iter=1).fit(X, y, gadget=WEIGHTS)


@pytest.mark.parametrize(("make", "resource"), [(csr_matrix, None), (csr_array, "n_samples")])
def test_sparse_inputs(make, resource):
    both(MultinomialNB(), {"alpha": 0.5}, make(X), y)
    space = {"alpha": st.Float(0.1, 1.0)}
    found = st.ShoestringSearchCV(MultinomialNB(), space, n_iter=3, cv=2, random_state=0, resource=resource).fit(make(X), y)
    assert found.predict(make(X)).shape == y.shape


@pytest.mark.parametrize("texts", [WORDS, np.array(WORDS, dtype=object)], ids=["list", "array"])
def test_texts_and_tuples_as_values(texts):
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    ours, _ = both(model, {"countvectorizer__ngram_range": (1, 2), "multinomialnb__alpha": 0.5}, texts, LABELS)
    assert ours.best_params_["countvectorizer__ngram_range"] == (1, 2)
    assert ours.predict(["very good"]).tolist() == [1]


def test_a_data_frame_with_a_column_transformer():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"width": X[:, 0], "kind": np.where(X[:, 1] > 3, "wide", "narrow")})
    columns = make_column_transformer((StandardScaler(), ["width"]), (OneHotEncoder(), ["kind"]))
    model = Pipeline([("columns", columns), ("model", LogisticRegression())])
    ours, theirs = both(model, {"model__C": 0.5, "columns__onehotencoder__drop": "first"}, frame, y)
    assert ours.feature_names_in_.tolist() == theirs.feature_names_in_.tolist() == ["width", "kind"]
    assert ours.predict(frame).tolist() == theirs.predict(frame).tolist()


def test_set_output_before_and_after_fit():
    pandas = pytest.importorskip("pandas")
    made = st.ShoestringSearchCV(PCA(), {"n_components": [1, 2]}, n_iter=1, cv=2, random_state=0)
    found = made.set_output(transform="pandas").fit(X)
    assert isinstance(found.transform(X), pandas.DataFrame)
    assert isinstance(found.set_output(transform="default").transform(X), np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        unset = st.ShoestringSearchCV(make_pipeline(StandardScaler(), PCA()), {"pca__n_components": [1]}, n_iter=1, cv=2).fit(X)
        assert isinstance(unset.transform(X), pandas.DataFrame)


def test_set_output_is_there_only_where_the_estimator_has_it():
    assert not hasattr(st.ShoestringSearchCV(Ridge(), {"alpha": [1.0]}), "set_output")


def test_an_empty_cv_is_said_as_in_scikit_learn():
    with pytest.raises(ValueError, match=r"No fits were performed\. Was the CV iterator empty\?"):
        st.ShoestringSearchCV(Ridge(), {"alpha": [1.0]}, cv=[]).fit(X, y)


def test_callbacks_of_scikit_learn_hear_of_every_fit():
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    heard = []

    class Recorder:
        def setup(self, estimator, context):
            heard.append("setup")

        def on_fit_task_begin(self, estimator, context):
            heard.append((context.task_name, context.task_id))

        def on_fit_task_end(self, estimator, context):
            heard.append("end")

        def teardown(self, estimator, context):
            heard.append("teardown")

    made = st.ShoestringSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, n_iter=3, cv=2, random_state=0, method=st.Random())
    made.set_callbacks(Recorder()).fit(X, y)
    fits = [each[1] for each in heard if each[0] == "candidate-split-evaluation"]
    assert fits == [0, 1, 2, 3, 4, 5]
    assert heard.count("end") == len(fits) + 3  # the search, the refit and the whole
    assert [heard[0], heard[-1]] == ["setup", "teardown"]
