import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.cost.auto import AutoCost
from shoestring.cost.features import CostFeatures
from shoestring.cost.name_priors import KINDS, kind_by_name, kind_of, named_prior, words_of
from shoestring.space.encoding import Encoding
from tests.cost.laws import every_kind, observed, points


@pytest.mark.parametrize("name", ["n_estimators", "nEstimators", "N-Estimators", "num estimators", "nestimators", "ESTIMATORS"])
def test_case_and_separators_do_not_matter(name):
    assert kind_by_name(name) == "iterations"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("iterations", "rounds num_boost_round trees max_iter epochs steps cv_folds"),
        ("size", "depth max_depth layers n_units_1 hidden_layer_sizes width num_leaves kernel_size degree"),
        ("share", "subsample colsample_bytree max_features rows max_samples"),
        ("batch", "batch_size batchSize minibatch bs"),
        ("quiet", "learning_rate lr min_samples_leaf layer_dropout weight_decay reg_lambda step_size warmup_steps gamma"),
        ("other", "C x1 sigma count story"),
    ],
)
def test_a_name_says_its_kind(kind, names):
    assert {name: kind_by_name(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


@given(draws.text(max_size=12))
def test_any_name_has_a_kind(name):
    assert kind_by_name(name) in KINDS
    assert all(word == word.lower() for word in words_of(name))


def test_a_weight_is_the_slope_times_the_range_of_the_logarithm():
    counts = {"rounds": st.Int(1, 256, log=True), "depth": st.Int(2, 8), "layers": st.Int(0, 5), "batch_size": st.Int(8, 64)}
    space = st.Space(**counts, c=st.Float(0, 1))
    prior = named_prior(CostFeatures(Encoding(space)))
    expected = [0.8 * math.log(256), 0.45 * math.log(4), 0.45 * math.log(6), -0.4 * math.log(8), 0.0]
    np.testing.assert_allclose(prior.mean, [0.0, *expected])
    assert prior.penalty[0] == 0.0
    deviations = np.sqrt(prior.noise[0] / prior.penalty[1:])
    np.testing.assert_allclose(deviations, [0.3 * math.log(256), 0.45 * math.log(4), 0.45 * math.log(6), 0.4 * math.log(8), 1.0])


def test_a_fidelity_drives_cost_whatever_its_name():
    space = every_kind()
    assert kind_of("sample", space["sample"]) == "iterations"
    assert kind_of("kind", space["kind"]) == "choice"


def test_one_cost_is_enough_to_tell_cheap_from_expensive():
    space = st.Space(trees=st.Int(1, 1000, log=True), x=st.Float(0, 1))
    posterior = AutoCost().fit(observed(points(space, 1), [0.0]), Encoding(space))
    cheap, expensive = posterior.log_cost(np.array([[0.05, 0.5], [0.95, 0.5]]))[0]
    assert expensive - cheap > 1.0
