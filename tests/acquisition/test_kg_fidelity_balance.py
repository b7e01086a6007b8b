"""Neither always the cheapest fidelity nor always the dearest, where the one misleads and the other is expensive.

The complaint about multi-fidelity searches (Ax issue 475) is that they stay at one end. Here the cheapest fidelity sees the
minimum far from where it is at the target, so that staying there ends at a wrong answer, however many trials there are.
"""

import math

import numpy as np
import pytest

import shoestring as st
from tests.problems import branin, plane

SPACE = st.Space(x0=st.Float(0, 1), x1=st.Float(0, 1), epochs=st.Fidelity(1, 10))
TRIALS = 40


def displaced(config):
    """log(1 + Branin); the fewer epochs, the farther its minima are from where they belong, and the higher it is."""
    off = (10 - config["epochs"]) / 9
    return math.log(1 + branin({"x0": config["x0"] - 0.25 * off, "x1": config["x1"] + 0.2 * off})) + 0.3 * off


LOWEST = displaced({"x0": (math.pi + 5) / 15, "x1": 2.275 / 15, "epochs": 10})


def searched(method, seed):
    """Shares of trials at the cheapest fidelity and at the target, and how much worse than the best the recommendation is."""
    def paid(config):
        return st.Outcome(displaced(config), cost=0.5 + config["epochs"])

    result = st.minimize(paid, SPACE, TRIALS, method=method, seed=seed, stop=None)
    epochs = np.array([trial.config["epochs"] for trial in result.history])
    assert result.recommended.config["epochs"] == 10
    return np.mean(epochs == 1), np.mean(epochs == 10), displaced(result.recommended.config) - LOWEST


def assert_balanced(method, seed):
    cheapest, target, regret = searched(method, seed)
    assert 0.02 < cheapest < 0.9
    assert 0.02 < target < 0.9
    assert regret < 0.05


def test_knowledge_per_cost_uses_cheap_and_dear_trials_and_is_not_misled():
    assert_balanced(st.CFKG(), 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_it_does_so_for_other_seeds(seed):
    assert_balanced(st.CFKG(), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_default_method_does_so_too(seed):
    assert_balanced("auto", seed)


@pytest.mark.parametrize("seed", range(3))
def test_who_stays_at_the_cheapest_fidelity_is_misled(seed):
    """That the problem is one: a search of the cheapest fidelity alone, well done, ends nowhere near the minimum."""
    regrets = []
    for epochs in (1, 10):
        study = st.Study(plane(2), st.EI(), stop=None, seed=seed)
        study.minimize(lambda config, epochs=epochs: displaced(config | {"epochs": epochs}), TRIALS)
        regrets.append(displaced(study.recommend().config | {"epochs": 10}) - LOWEST)
    assert regrets[0] > 1.0
    assert regrets[1] < 0.05
