"""Better than random search, by a one-sided test over seeds."""

import pytest
from scipy.stats import mannwhitneyu

import shoestring as st
from tests.problems import branin, hartmann3, mixed_space, mixed_value, plane


def failing(value):
    """Where the first parameter is large, an evaluation fails."""

    def objective(config):
        if config["x0"] > 0.7:
            raise MemoryError("too large")
        return value(config)

    return objective


def with_noise(value):
    def objective(config):
        return value(config) + 0.05 * ((hash(tuple(config.values())) % 1000) / 500 - 1)

    return objective


def bests(objective, space, method, trials, seeds):
    return [st.minimize(objective, space, trials, method=method, seed=seed, max_failures=trials).best.value for seed in seeds]


def chance_that_it_is_luck(objective, space, trials, seeds):
    """The p-value of "random search finds values as low"."""
    ours = bests(objective, space, "auto", trials, range(seeds))
    random = bests(objective, space, st.Random(), trials, range(1000, 1000 + 3 * seeds))
    return mannwhitneyu(ours, random, alternative="less").pvalue


PROBLEMS = {
    "Branin": (branin, plane(2)),
    "Hartmann-3": (hartmann3, plane(3)),
    "Branin with failures": (failing(branin), plane(2)),
    "mixed and conditional": (mixed_value, mixed_space()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed and conditional"])
def test_a_few_seeds(name):
    assert_better_by_few_seeds(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Branin", "Hartmann-3", "Branin with failures"])
def test_a_few_seeds_on_other_problems(name):
    assert_better_by_few_seeds(name)


def assert_better_by_few_seeds(name):
    objective, space = PROBLEMS[name]
    assert chance_that_it_is_luck(objective, space, 18, 5) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_many_seeds(name):
    objective, space = PROBLEMS[name]
    assert chance_that_it_is_luck(objective, space, 40, 20) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("method", [st.EI(), st.PI(), st.LCB()], ids=repr)
def test_every_acquisition(method):
    ours = bests(hartmann3, plane(3), method, 30, range(12))
    random = bests(hartmann3, plane(3), st.Random(), 30, range(1000, 1036))
    assert mannwhitneyu(ours, random, alternative="less").pvalue < 1e-3


@pytest.mark.slow
def test_with_noise():
    assert chance_that_it_is_luck(with_noise(hartmann3), plane(3), 30, 15) < 1e-3


@pytest.mark.slow
def test_with_many_asks_at_once():
    """Four trials at a time still beat as many random ones."""
    ours = []
    for seed in range(12):
        study = st.Study(plane(3), seed=seed)
        for _ in range(8):
            for trial in [study.ask() for _ in range(4)]:
                study.tell(trial, hartmann3(trial.config), cost=1.0)
        ours.append(study.best.value)
    random = bests(hartmann3, plane(3), st.Random(), 32, range(1000, 1036))
    assert mannwhitneyu(ours, random, alternative="less").pvalue < 1e-3


@pytest.mark.slow
def test_the_model_fails_less_often_than_random_search_does():
    rates = []
    for method in ("auto", st.Random()):
        results = [st.minimize(failing(branin), plane(2), 40, method=method, seed=seed) for seed in range(10)]
        rates.append([len(result.history.having(st.State.FAILED)) for result in results])
    assert mannwhitneyu(*rates, alternative="less").pvalue < 1e-2
