"""BORE: labels, the classifier's gradient, and a search that keeps the rules of every other method."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws
from scipy.stats import mannwhitneyu
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import shoestring as st
from shoestring.acquisition.optimize.optimizer import random_argmax
from shoestring.data.dataset import to_dataset
from shoestring.search.bore import (
    fit_classifier,
    labels,
    log_odds_and_gradient,
    log_probability_surface,
    probability_surface,
    training_set,
)
from shoestring.space.encoding import Encoding
from tests.differences import gradients_of
from tests.problems import bowl, hartmann3, mixed_space, mixed_value, plane, told_study
from tests.search.reproducibility import configs, same_seed_same_trials, stored_and_read_it_goes_on_alike
from tests.spaces import spaces

QUICK = st.BORE(RandomForestClassifier(10))
each = pytest.mark.parametrize("method", [QUICK, st.BORE("mlp")], ids=["forest", "mlp"])


def paid(config):
    return st.Outcome(mixed_value(config), cost=1.0)


# -- labels --------------------------------------------------------------------------------------------------------------


@given(n=draws.integers(1, 200), percent=draws.integers(1, 99), seed=draws.integers(0, 9))
def test_without_equal_values_exactly_the_share_rounded_up_is_good(n, percent, seed):
    y = np.random.default_rng(seed).permutation(n).astype(float)
    good = labels(y, percent / 100)
    assert good.sum() == -(-percent * n // 100)  # in whole numbers, where nothing is rounded
    assert good.all() or y[good].max() < y[~good].min()


@given(draws.lists(draws.integers(0, 4), min_size=1, max_size=30), draws.floats(0.01, 0.99))
def test_equal_values_have_equal_labels_and_the_best_is_good(values, gamma):
    y = np.array(values, dtype=float)
    good = labels(y, gamma)
    assert good[np.argmin(y)]
    assert all(len(set(good[y == value])) == 1 for value in y)
    assert good.sum() <= max(math.ceil(gamma * len(y)), (y == y.min()).sum())


def test_however_small_the_share_one_is_good():
    assert labels(np.array([3.0, 1.0, 2.0]), 1e-12).tolist() == [False, True, False]


def test_failed_and_running_trials_are_not_good():
    study = told_study(plane(), bowl, 12, error_where=lambda config: config["x0"] > 0.8)
    study.ask()
    seen = to_dataset(study.log)
    U, good = training_set(seen, 0.25)
    n = len(seen.y)
    assert len(U) == n + len(seen.failed) + 1 == 13
    assert good[:n].sum() == math.ceil(n / 4)
    assert not good[n:].any()


def test_other_fidelities_are_not_used():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 10))
    study = st.Study(space)
    for x in np.linspace(0, 1, 8):
        study.add({"x": float(x), "epochs": 1}, -1.0 - float(x), cost=1.0)
    assert training_set(to_dataset(study.log), 0.25)[1].sum() == 2
    for x in np.linspace(0, 1, 4):
        study.add({"x": float(x)}, float(x), cost=1.0)
    U, good = training_set(to_dataset(study.log), 0.25)
    assert (len(U), good.sum()) == (4, 1)


# -- the classifier --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic", "identity"])
@pytest.mark.parametrize("layers", [(7,), (8, 5), (6, 4, 3)], ids=str)
def test_the_gradient_of_a_perceptron(activation, layers):
    rng = np.random.default_rng(0)
    Z = rng.random((40, 4))
    classifier = fit_classifier(MLPClassifier(layers, activation=activation, max_iter=20), Z, Z[:, 0] + Z[:, 1] ** 2 < 0.6, 1)
    odds, slope = log_odds_and_gradient(classifier, Z)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), classifier.predict_proba(Z)[:, 1], rtol=1e-9)
    np.testing.assert_allclose(slope, gradients_of(lambda X: log_odds_and_gradient(classifier, X)[0], Z, 1e-7), atol=1e-6)


def test_the_gradient_on_a_mixed_space():
    space = mixed_space()
    encoding = Encoding(space)
    U = space.snap(np.random.default_rng(1).random((30, len(space))))
    classifier = fit_classifier("mlp", encoding.features(U), U[:, 0] < 0.4, 0)
    surface = log_probability_surface(classifier, encoding)
    np.testing.assert_allclose(np.exp(surface(U, False)[0]), probability_surface(classifier, encoding)(U, False)[0], rtol=1e-9)
    continuous = [0, 3, 5]
    active = space.active(U)[:, continuous]
    slopes = gradients_of(lambda X: surface(X, False)[0], U, 1e-6)[:, continuous]
    np.testing.assert_allclose(surface(U, True)[1][:, continuous][active], slopes[active], atol=1e-5)


def test_the_probability_is_that_of_good_ones():
    encoding = Encoding(plane(1))
    U = np.linspace(0, 1, 40)[:, None]
    surface = probability_surface(fit_classifier("forest", encoding.features(U), U[:, 0] < 0.3, 0), encoding)
    assert surface(np.array([[0.1]]), False)[0][0] > 0.9
    assert surface(np.array([[0.9]]), False)[0][0] < 0.1


def test_among_equal_values_every_one_may_be_drawn():
    values = np.array([0.1, 0.7, 0.7 + 1e-14, np.nan, 0.7])
    drawn = {random_argmax(values, np.random.default_rng(seed)) for seed in range(50)}
    assert drawn == {1, 2, 4}


@pytest.mark.parametrize(
    "classifier",
    [GradientBoostingClassifier(n_estimators=5), GaussianNB(), make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=5))],
    ids=["boosting", "bayes", "pipeline"],
)
def test_any_classifier_with_predict_proba_can_be_used_and_is_not_changed(classifier):
    method = st.BORE(classifier)
    first, again = (told_study(plane(), bowl, 10, method=method).ask().config for _ in range(2))
    assert first == again
    assert not hasattr(classifier, "classes_")


# -- the search ------------------------------------------------------------------------------------------------------------


@each
def test_the_same_seed_gives_the_same_trials(method):
    same_seed_same_trials(method, paid, 10)


@each
@pytest.mark.parametrize("k", [pytest.param(3, marks=pytest.mark.slow), 7])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(method, k):
    stored_and_read_it_goes_on_alike(method, paid, k, 9)


@given(space=spaces(), smooth=draws.booleans(), seed=draws.integers(0, 5))
@settings(max_examples=12)
def test_every_space_gets_valid_configs_at_the_target(space, smooth, seed):
    classifier = MLPClassifier((4,), max_iter=5) if smooth else RandomForestClassifier(3)
    rng = np.random.default_rng(seed)
    study = told_study(space, lambda config: rng.random(), 6, seed, method=st.BORE(classifier), initial=4)
    try:
        config = study.ask().config
    except st.SpaceExhausted:
        return
    assert space.check(config) == config
    assert {name: config[name] for name in space.target} == space.target


def test_it_says_what_it_expects():
    study = told_study(plane(), bowl, 12, method=QUICK)
    suggestion = study.ask().suggestion
    assert suggestion["by"] == "BORE"
    assert "best 25% of 12 trials" in suggestion["why"]


@each
def test_running_trials_send_the_next_one_elsewhere(method):
    study = told_study(mixed_space(), mixed_value, 12, method=method)
    asked = [study.ask().config for _ in range(5)]
    assert len({study.space.key(config) for config in asked}) == 5


def test_it_keeps_away_from_where_trials_fail():
    inside = 0
    for seed in range(6):
        study = told_study(
            plane(), lambda config: -config["x0"], 30, seed, lambda config: config["x0"] > 0.6, method=QUICK
        )
        inside += study.ask().config["x0"] > 0.7
    assert inside <= 1


def test_while_all_values_are_alike_it_fills_the_space():
    study = told_study(plane(), lambda config: 1.0, 12, method=QUICK)
    assert "alike" in study.ask().suggestion["why"]


@each
def test_a_finite_space_is_never_repeated_and_then_exhausted(method):
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", [1], None), m=st.Int(0, 1, when={"c": "a"}))
    study = st.Study(space, method, initial=4)
    keys = set()
    for _ in range(16):
        trial = study.ask()
        keys.add(space.key(space.check(trial.config)))
        study.tell(trial, float(trial.config["n"]), cost=1.0)
    assert len(keys) == 16
    with pytest.raises(st.SpaceExhausted, match="16"):
        study.ask()


@each
def test_maximizing_is_minimizing_the_negative(method):
    down = st.minimize(bowl, plane(), 9, method=method, seed=2, initial=5)
    up = st.maximize(lambda config: -bowl(config), plane(), 9, method=method, seed=2, initial=5)
    assert configs(down) == configs(up)


@pytest.mark.parametrize("gamma", [0, 1, -0.1, 1.5, math.nan, True, "0.25", None], ids=repr)
def test_a_gamma_that_is_not_a_share_is_refused(gamma):
    with pytest.raises(st.MethodError, match=r"gamma must lie between 0 and 1.*0\.25"):
        st.BORE(gamma=gamma)


@pytest.mark.parametrize(
    ("classifier", "said"),
    [
        ("trees", "forest"),
        (SVC(), "probability=True"),
        (LinearSVC(), "predict_proba"),
        (GaussianNB, r"GaussianNB\(\)"),
        (3, "forest"),
    ],
    ids=repr,
)
def test_what_is_not_a_classifier_is_refused_with_what_to_write(classifier, said):
    with pytest.raises(st.MethodError, match=said):
        st.BORE(classifier)


def test_a_classifier_that_cannot_be_fitted_is_named_as_the_cause():
    from sklearn.calibration import CalibratedClassifierCV

    study = told_study(plane(), bowl, 9, method=st.BORE(CalibratedClassifierCV(GaussianNB(), cv=5)))
    with pytest.raises(st.MethodError, match="3 good and 6 other"):
        study.ask()


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(st.MethodError, match=r"shoestring\[sklearn\]"):
        st.BORE()


@pytest.mark.slow
@pytest.mark.parametrize("method", [st.BORE(), st.BORE("mlp")], ids=["forest", "mlp"])
def test_better_than_random(method):
    ours = [st.minimize(hartmann3, plane(3), 40, method=method, seed=seed).best.value for seed in range(12)]
    random = [st.minimize(hartmann3, plane(3), 40, method=st.Random(), seed=seed).best.value for seed in range(1000, 1045)]
    assert mannwhitneyu(ours, random, alternative="less").pvalue < 0.01
