import numpy as np
import pytest

import shoestring as st
from shoestring.search.initial_design import sobol_point
from tests.problems import mixed_space, plane


@pytest.mark.parametrize("method", [st.Random(), st.Sobol()], ids=repr)
def test_every_config_is_valid_and_new_until_the_space_is_exhausted(method):
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", "b", "c"), m=st.Int(0, 1, when={"c": "a"}))
    study = st.Study(space, method)
    keys = [space.key(space.check(study.ask().config)) for _ in range(int(space.cardinality()))]
    assert len(set(keys)) == 16
    with pytest.raises(st.SpaceExhausted, match="16"):
        study.ask()


@pytest.mark.parametrize("method", [st.Random(), st.Sobol()], ids=repr)
def test_another_seed_gives_other_configs(method):
    first, again, other = (
        [study.ask().config for _ in range(3)] for study in (st.Study(mixed_space(), method, seed=seed) for seed in (1, 1, 2))
    )
    assert first == again != other


def test_the_sobol_sequence_is_the_same_point_by_point():
    U = np.array([sobol_point(7, index, 3) for index in range(64)])
    assert len(np.unique(U, axis=0)) == 64
    for column in U.T:  # of 64 points, one in each 64th of every axis
        assert len(set(np.floor(64 * column))) == 64


def test_random_draws_follow_the_natural_distribution():
    study = st.Study(st.Space(c=st.Choice("a", "b"), x=st.Float(1e-4, 1.0, log=True)), st.Random(), seed=3)
    configs = [study.ask().config for _ in range(300)]
    assert 110 < sum(config["c"] == "a" for config in configs) < 190
    assert 110 < sum(config["x"] < 1e-2 for config in configs) < 190


def test_a_space_filling_start_reaches_every_quarter():
    study = st.Study(plane(2), initial=8, seed=5)
    quarters = {tuple(value > 0.5 for value in study.ask().config.values()) for _ in range(8)}
    assert len(quarters) == 4
