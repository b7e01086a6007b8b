"""What breaks other optimizers: failures, constants, huge values, duplicates, exhausted spaces."""

import math

import numpy as np
import pytest

import shoestring as st
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study


def believed(study):
    """Mean and variance of the study's model all over the space."""
    belief, encoding, _ = belief_of(study)
    U = study.space.snap(np.random.default_rng(0).random((100, len(study.space))))
    mean, variance = belief.objective.mean_and_variance(encoding.features(U))
    return belief.output.inverse(mean), variance


def ask_often(study):
    for _ in range(64):
        study.ask()


def test_sixty_four_asks_at_once_in_a_space_of_twenty_seven():
    space = st.Space({name: st.Choice("a", "b", "c") for name in "xyz"})
    study = st.Study(space)
    for _ in range(2):
        with pytest.raises(st.SpaceExhausted, match="27"):
            ask_often(study)
    assert len({space.key(trial.config) for trial in study.history}) == len(study.history) == 27


@pytest.mark.parametrize("told", [3, 10])
def test_no_duplicate_when_some_are_finished_and_others_run(told):
    space = st.Space(x=st.Int(1, 3), y=st.Float(0, 1, step=0.5), z=st.Choice("a", "b", "c"))
    study = st.Study(space, initial=2)
    for _ in range(told):
        trial = study.ask()
        study.tell(trial, trial.config["x"] + trial.config["y"])
    with pytest.raises(st.SpaceExhausted):
        ask_often(study)
    assert len({space.key(trial.config) for trial in study.history}) == len(study.history) == 27


def test_an_exhausted_space_ends_the_study_and_says_so():
    space = st.Space(x=st.Int(1, 3), y=st.Int(1, 3), z=st.Int(1, 3))
    result = st.minimize(lambda config: sum(config.values()), space, 64)
    assert len(result.history) == 27
    assert result.best.value == 3
    assert "27" in result.stop.reason
    assert "configuration" in result.stop.reason


def test_a_conditional_finite_space_is_exhausted_too():
    space = st.Space(c=st.Choice("a", "b"), n=st.Int(1, 3, when={"c": "b"}), m=st.Choice(1, 2, when={"n": [2, 3]}))
    result = st.minimize(lambda config: len(config), space, 64)
    assert len(result.history) == space.cardinality() == 6


def test_many_asks_at_once_are_all_different():
    for space, value in ((plane(), bowl), (mixed_space(), mixed_value)):
        study = told_study(space, value, 8)
        keys = [space.key(study.ask().config) for _ in range(16)]
        assert len(set(keys)) == 16


def test_many_asks_at_once_do_not_crowd():
    """With the mean in place of results to come, half of many asks lay within 0.001 of another one."""
    study = told_study(plane(), bowl, 10)
    U = np.array([study.space.encode(study.ask().config) for _ in range(24)])
    apart = np.abs(U[:, None, :] - U[None, :, :]).max(axis=2) + np.eye(len(U))
    assert np.median(apart.min(axis=1)) > 0.005


def test_a_space_too_large_to_search_whole_is_exhausted_only_when_it_is():
    space = st.Space(n=st.Int(1, 5000, log=True))
    study = st.Study(space, st.Random())
    for n in range(1, 4998):
        study.add({"n": n}, 1.0)
    left = {study.tell(study.ask(), 1.0).config["n"] for _ in range(3)}
    assert left == {4998, 4999, 5000}
    with pytest.raises(st.SpaceExhausted, match="5000"):
        study.ask()


def test_a_choice_of_very_many_options_can_be_searched():
    space = st.Space(x=st.Float(0, 1), c=st.Choice(*range(1500)))
    result = st.minimize(lambda config: abs(config["x"] - 0.5) + config["c"] % 7, space, 12)
    assert len(result.history) == 12


def test_a_third_of_nan_and_a_twentieth_of_inf():
    rng = np.random.default_rng(0)

    def objective(config):
        draw = rng.random()
        return math.nan if draw < 0.3 else math.inf if draw < 0.35 else bowl(config)

    result = st.minimize(objective, plane(), 24)
    states = [trial.state for trial in result.history]
    assert len(states) == 24
    assert 3 < states.count("failed") < 15
    mean, variance = believed(result.study)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


@pytest.mark.parametrize("space", [plane(), mixed_space()], ids=["plane", "mixed"])
@pytest.mark.parametrize("constant", [0.0, 1e300, *(pytest.param(value, marks=pytest.mark.slow) for value in (1.0, -1e-300))])
def test_a_constant_objective(space, constant):
    result = st.minimize(lambda config: constant, space, 10, initial=5)
    assert all(trial.state == "done" for trial in result.history)
    assert len({space.key(trial.config) for trial in result.history}) == 10
    mean, variance = believed(result.study)
    np.testing.assert_allclose(mean, constant, atol=1.5 if abs(constant) < 2 else abs(constant))
    assert np.isfinite(variance).all()


@pytest.mark.parametrize("huge", [1.7e308, *(pytest.param(value, marks=pytest.mark.slow) for value in (1e300, -1e300))])
def test_one_huge_value_does_not_ruin_a_study(huge):
    study = st.Study(plane())
    study.add({"x0": 0.95, "x1": 0.95}, huge, cost=1.0)
    result = study.minimize(bowl, 25)
    mean, variance = believed(study)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    if huge > 0:
        assert result.best.value < 1e-3


def test_five_hundred_near_duplicates():
    study, rng = st.Study(plane()), np.random.default_rng(0)
    for _ in range(500):
        x, y = 0.5 + 1e-9 * rng.normal(size=2)
        study.add({"x0": x, "x1": y}, 1.0 + 1e-3 * rng.normal(), cost=1.0)
    config = study.ask().config
    assert max(abs(value - 0.5) for value in config.values()) > 1e-3
    mean, variance = believed(study)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


def test_the_same_config_told_many_times():
    study = st.Study(plane())
    for value in (1.0, 3.0, 2.0) * 5:
        study.add({"x0": 0.5, "x1": 0.5}, value, cost=1.0)
    study.minimize(bowl, 18)
    assert np.isfinite(believed(study)[0]).all()


def test_values_over_many_orders_of_magnitude():
    result = st.minimize(lambda config: 10.0 ** (200 * bowl(config)), plane(), 25)
    assert all(trial.state == "done" for trial in result.history)
    assert result.best.value < 1e10
    assert np.isfinite(believed(result.study)[1]).all()


@pytest.mark.parametrize(
    "space",
    [
        st.Space(x=st.Float(0, 1), only=st.Choice("alone")),
        st.Space(only=st.Choice("alone"), n=st.Int(0, 3)),
        st.Space(x=st.Float(-1e300, 1e300)),
        st.Space(x=st.Float(1e-300, 1e300, log=True)),
        st.Space(x=st.Float(0, 1), n=st.Int(0, 2**40)),
        st.Space({"naïve ☂ name": st.Float(0, 1)}),
        st.Space({f"x{i}": st.Float(0, 1) for i in range(40)}),
        st.Space(c=st.Choice(*range(60)), x=st.Float(0, 1)),
        st.Space(x=st.Float(1, 1 + 1e-12)),
    ],
    ids=["one option", "one option, finite", "widest", "widest log", "many ints", "unicode", "forty", "sixty options", "narrow"],
)
def test_spaces_at_the_edge_of_sense(space):
    rng = np.random.default_rng(0)
    result = st.minimize(lambda config: float(rng.normal()), space, 12, initial=4)
    assert result.history.having(st.State.DONE) == result.history.trials
    for trial in result.history:
        assert space.check(trial.config) == trial.config
