"""Search spaces of scikit-learn as ``st.Space`` and back."""

import numpy as np
import pytest
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler, RandomizedSearchCV
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import shoestring as st
from shoestring.integrations.sklearn_spaces import space_from_sklearn, space_to_sklearn

PLAIN = st.Space(C=st.Float(1e-2, 1e2, log=True), tol=st.Float(0.0, 0.5), depth=st.Int(1, 9), kind=st.Choice("a", None, 3, True))
CONDITIONAL = st.Space(
    kernel=st.Choice("linear", "rbf", "poly"),
    gamma=st.Float(0.1, 10.0, log=True, when={"kernel": ["rbf", "poly"]}),
    degree=st.Int(2, 4, when={"kernel": "poly"}),
    coef=st.Float(0.0, 1.0, when={"degree": 3}),
)


def test_a_space_comes_back_as_it_was():
    (written,) = space_to_sklearn(PLAIN)
    assert dict(space_from_sklearn(written)) == dict(PLAIN)


def test_lists_and_distributions():
    given = {"C": loguniform(0.1, 10), "tol": uniform(0, 2), "depth": randint(1, 9), "kind": ["a", None]}
    wanted = {"C": st.Float(0.1, 10, log=True), "tol": st.Float(0, 2), "depth": st.Int(1, 8), "kind": st.Choice("a", None)}
    assert dict(space_from_sklearn(given)) == wanted
    assert dict(space_from_sklearn([given])) == wanted


def test_samples_of_scikit_learn_are_configs_of_the_space_with_its_conditions():
    parts = space_to_sklearn(CONDITIONAL)
    assert len(parts) == 5  # linear, rbf, and poly with each of three degrees
    seen = set()
    for sample in ParameterSampler(parts, n_iter=60, random_state=0):
        assert set(CONDITIONAL.check(sample)) == set(sample)
        seen.add(frozenset(sample))
    assert frozenset(CONDITIONAL.names) in seen


def test_whole_numbers_on_a_log_scale_keep_their_probabilities():
    (written,) = space_to_sklearn(st.Space(n=st.Int(1, 100, log=True)))
    drawn = written["n"].rvs(size=4000, random_state=0)
    assert (drawn.min(), drawn.max()) == (1, 100)
    assert np.mean(drawn <= 10) == pytest.approx(np.log(21) / np.log(201), abs=0.03)


def test_steps_are_lists():
    assert space_to_sklearn(st.Space(n=st.Int(4, 12, step=4), x=st.Float(0, 0.3, step=0.1))) == [
        {"n": [4, 8, 12], "x": [0.0, 0.1, 0.2, 0.3]}
    ]


def test_randomized_search_takes_what_is_written():
    space = st.Space(C=st.Float(0.1, 10, log=True), solver=st.Choice("lbfgs", "newton-cg"))
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 2
    found = RandomizedSearchCV(LogisticRegression(), space_to_sklearn(space), n_iter=2, cv=2, random_state=0).fit(X, y)
    assert space.check(found.best_params_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": norm(0, 1)}, "x: .* has no counterpart.*give it to ShoestringSearchCV"),
        ({"scale": [StandardScaler(), MinMaxScaler()]}, "scale: .* has no counterpart"),
        ([{"a": [1]}, {"b": [2]}], "a list of 2 dicts has no counterpart"),
        ({"x": 3}, "x: 3 is neither a list nor a distribution"),
    ],
)
def test_what_a_space_cannot_express_is_an_error_that_names_it(given, message):
    with pytest.raises(st.SpaceError, match=message):
        space_from_sklearn(given)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"x": st.Fidelity(1, 9), "y": st.Float(0, 1)}, "x: a fidelity has no counterpart.*resource="),
        ({"x": st.Int(1, 5000, log=True)}, "x: 5000 values on a log scale have no counterpart: at most 1000"),
        ({"x": st.Float(0, 1, step=1e-4)}, "x: 10001 values in a list have no counterpart"),
        ({"k": st.Int(0, 999), "x": st.Float(0, 1, when={"k": 3})}, "k: 1000 values in a list have no counterpart: at most 200"),
        (
            {"k": st.Int(0, 99), "l": st.Int(0, 99), "x": st.Float(0, 1, when={"k": 3, "l": 3})},
            "the conditions on k, l make more than 200 parts",
        ),
    ],
)
def test_what_scikit_learn_cannot_express_is_an_error_that_names_it(parameters, message):
    with pytest.raises(st.SpaceError, match=message):
        space_to_sklearn(st.Space(parameters))


def test_only_a_space_is_written():
    with pytest.raises(st.SpaceError, match=r"expected an st\.Space"):
        space_to_sklearn({"x": [1]})
