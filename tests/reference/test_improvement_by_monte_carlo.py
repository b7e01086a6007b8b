import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.improvement import log_expected_improvement, log_probability_of_improvement, negative_lower_bound
from tests.problems import belief_of, bowl, plane, told_study

CASES = [(0.0, 1.0), (1.0, 1.0), (-1.0, 0.5), (2.0, 1.0), (30.0, 20.0), (1e-4, 1e-4), (-500.0, 400.0)]


def draws(mean, deviation, count=400_000):
    half = np.random.default_rng(0).standard_normal(count // 2)
    return mean + deviation * np.concatenate([half, -half])


def one(score, mean, deviation, *rest):
    return float(score(np.array([mean]), np.array([deviation]), *rest)[0][0])


@pytest.mark.parametrize(("mean", "deviation"), CASES)
def test_expected_improvement(mean, deviation):
    gains = np.maximum(0.3 * deviation - draws(mean, deviation), 0)
    error = gains.std() / np.sqrt(len(gains))
    assert np.exp(one(log_expected_improvement, mean, deviation, 0.3 * deviation)) == pytest.approx(gains.mean(), abs=5 * error)


@pytest.mark.parametrize(("mean", "deviation"), CASES)
def test_probability_of_improvement(mean, deviation):
    wins = draws(mean, deviation) < 0.3 * deviation
    error = np.sqrt(wins.mean() * (1 - wins.mean()) / len(wins)) + 1e-6
    found = np.exp(one(log_probability_of_improvement, mean, deviation, 0.3 * deviation))
    assert found == pytest.approx(wins.mean(), abs=5 * error)


@pytest.mark.parametrize(("mean", "deviation"), CASES)
def test_the_lower_bound_is_a_quantile(mean, deviation):
    bound = -one(negative_lower_bound, mean, deviation, 1.959964)
    assert np.mean(draws(mean, deviation) < bound) == pytest.approx(0.025, abs=0.0015)


@pytest.mark.parametrize("acquisition", [st.EI(), st.LogEI(), st.PI(0.2), st.LCB(3.841459)], ids=repr)
def test_surfaces_against_draws_of_the_posterior(acquisition):
    belief, encoding, _ = belief_of(told_study(plane(), bowl, 6))
    X = encoding.features(np.random.default_rng(1).random((8, 2)))
    samples = belief.objective.sample(X, 200_000, np.random.default_rng(2))
    value, _ = acquisition.surface(belief, np.random.default_rng(0))(X, False)
    if isinstance(acquisition, st.EI | st.LogEI):
        found, gains = np.exp(value), np.maximum(belief.incumbent - samples, 0)
    elif isinstance(acquisition, st.PI):
        found, gains = np.exp(value), (samples < belief.incumbent - 0.2).astype(float)
    else:
        found, gains = np.full(8, 0.025), (samples < -value).astype(float)
    error = gains.std(axis=0) / np.sqrt(len(gains))
    assert (np.abs(found - gains.mean(axis=0)) < 5 * error + 1e-4).all()
