"""Where a little of the resource says much, Hyperband finds better configurations than random search for the same money."""

import pytest
from scipy.stats import mannwhitneyu

import shoestring as st
from tests.problems import hartmann3, plane


def better_than_random(method, most, trials, seeds):
    """Whether the best after some trials is lower than that of as many random ones as cost at least as much."""

    def objective(config):
        return st.Outcome(hartmann3(config) + (1.0 + 0.3 * config["x0"]) / config["epochs"], cost=float(config["epochs"]))

    space = st.Space({**plane(3), "epochs": st.Fidelity(1, most)})
    runs = [st.minimize(objective, space, trials, method=method, seed=seed) for seed in range(seeds)]
    as_many = max(-(-int(run.spent) // most) for run in runs)
    random = [st.minimize(objective, space, as_many, method=st.Random(), seed=seed) for seed in range(1000, 1000 + 3 * seeds)]
    return mannwhitneyu([run.best.value for run in runs], [run.best.value for run in random], alternative="less").pvalue < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
def test_halving_is_better_than_random_where_few_epochs_say_much(asynchronous):
    assert better_than_random(st.Hyperband(asynchronous=asynchronous, brackets=1), 27, 80, seeds=11)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.slow
def test_better_than_random_where_few_epochs_say_much(asynchronous):
    assert better_than_random(st.Hyperband(asynchronous=asynchronous), 81, 206, seeds=15)
