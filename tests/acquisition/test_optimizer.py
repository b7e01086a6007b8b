import itertools

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.optimize.candidates import is_visited, moves_from, quasi_random
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.space.encoding import Encoding
from tests.problems import belief_of, bowl, branin, mixed_space, mixed_value, plane, told_study


def maximize(surface, encoding, rng, *, visited, best):
    optimum = AcquisitionOptimizer(encoding, rng, visited, best).maximize(surface)
    return optimum.u, optimum.value


def search(study, acquisition=None, model=None, seed=0):
    belief, encoding, seen = belief_of(study, model)
    rng = np.random.default_rng(seed)
    surface = (acquisition or st.LogEI()).surface(belief, rng)
    u, value = maximize(surface, encoding, rng, visited=seen.visited, best=seen.U[seen.order[:5]])
    return u, value, lambda U: surface(U, False)[0]


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_grid_optimum_in_one_dimension(seed):
    study = told_study(plane(1), lambda config: np.sin(9 * config["x0"]) + config["x0"], 6, seed)
    _, value, surface = search(study)
    assert value >= surface(np.linspace(0, 1, 20_001)[:, None]).max() - 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_grid_optimum_in_two_dimensions(seed):
    study = told_study(plane(2), branin, 12, seed)
    _, value, surface = search(study)
    axis = np.linspace(0, 1, 201)
    assert value >= surface(np.array(list(itertools.product(axis, axis)))).max() - 0.02


@pytest.mark.parametrize("seed", range(3))
def test_on_a_mixed_space_it_equals_brute_force_over_the_discrete_part(seed):
    space = st.Space(x=st.Float(0, 1), n=st.Int(1, 5), c=st.Choice("a", "b", "c"), g=st.Float(0, 1, step=0.5, when={"c": "b"}))

    def cost(config):
        return (config["x"] - 0.4) ** 2 + abs(config["n"] - 3) / 5 + (config["c"] != "b") * 0.3 + config.get("g", 0)

    study = told_study(space, cost, 14, seed)
    u, value, surface = search(study)
    axis = np.linspace(0, 1, 401)
    best = -np.inf
    for n, c, g in itertools.product(range(1, 6), "abc", (0.0, 0.5, 1.0)):
        row = space.encode({"x": 0.0, "n": n, "c": c} | ({"g": g} if c == "b" else {}))
        U = np.tile(row, (len(axis), 1))
        U[:, 0] = axis
        best = max(best, surface(U).max())
    assert value >= best - 0.01
    assert surface(u[None, :])[0] == pytest.approx(value)


@pytest.mark.parametrize("space", [plane(2), mixed_space()], ids=["plane", "mixed"])
def test_the_value_returned_is_the_value_at_the_point_returned(space):
    study = told_study(space, bowl if len(space) == 2 else mixed_value, 12)
    u, value, surface = search(study)
    assert surface(u[None, :])[0] == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(space.snap(u[None, :])[0], u, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_visited_point_is_never_returned(seed):
    """The surface is highest, and flat, on everything that was visited."""
    space = st.Space(c=st.Choice("a", "b", "c"), n=st.Int(1, 3000), k=st.Int(1, 4))
    encoding, rng = Encoding(space), np.random.default_rng(seed)
    seen = np.empty((0, 3))
    for _ in range(12):
        u, _ = maximize(lambda Z, gradient: (-Z[:, -2], np.zeros_like(Z)), encoding, rng, visited=seen, best=seen[:3])
        assert not is_visited(u[None, :], seen)[0]
        seen = np.vstack([seen, u])


def test_a_finite_space_is_searched_whole_and_then_is_exhausted():
    space = st.Space(n=st.Int(1, 4), c=st.Choice("a", "b"), x=st.Float(0, 1, step=0.5, when={"c": "b"}))
    encoding, rng = Encoding(space), np.random.default_rng(0)
    weights = rng.normal(size=encoding.width)
    grid = space.grid()
    values, seen = encoding.features(grid) @ weights, np.empty((0, 3))
    for expected in sorted(values, reverse=True):
        u, value = maximize(lambda U, gradient: (encoding.features(U) @ weights, None), encoding, rng, visited=seen, best=seen)
        assert value == pytest.approx(expected)
        seen = np.vstack([seen, u])
    with pytest.raises(st.SpaceExhausted, match=str(len(grid))):
        maximize(lambda U, gradient: (encoding.features(U) @ weights, None), encoding, rng, visited=seen, best=seen)


def test_suggestions_are_at_the_target_fidelity():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27, target=9))
    study = told_study(space, bowl, 5)
    study.add({"x": 0.3, "epochs": 1}, 0.0)
    u, *_ = search(study)
    assert space.decode(u)["epochs"] == 9


@pytest.mark.parametrize(
    "space",
    [
        st.Space(x=st.Float(0, 1), only=st.Choice("alone")),
        st.Space(x=st.Float(0, 1), n=st.Int(0, 2**40)),
        st.Space(x=st.Float(0, 1), n=st.Int(1, 2**40, log=True)),
        st.Space(x=st.Float(0, 1), on=st.Choice("alone"), n=st.Int(0, 1, when={"on": "alone"})),
    ],
    ids=["one option", "many whole numbers", "many on a log scale", "one option as a parent"],
)
def test_extreme_spaces_can_be_searched(space):
    study = told_study(space, lambda config: (config["x"] - 0.3) ** 2, 6)
    u, value, surface = search(study)
    assert surface(u[None, :])[0] == pytest.approx(value)
    space.check(space.decode(u))


def test_values_that_are_nan_are_ignored():
    encoding = Encoding(plane(1))

    def half_nan(Z, gradient):
        value = np.where(Z[:, 0] > 0.5, np.nan, Z[:, 0])
        return value, np.ones_like(Z) if gradient else None

    u, value = maximize(half_nan, encoding, np.random.default_rng(0), visited=np.empty((0, 1)), best=np.empty((0, 1)))
    assert 0.4 < u[0] <= 0.5
    assert value == u[0]


def test_exchange_moves_change_one_discrete_parameter_each():
    space = st.Space(x=st.Float(0, 1), n=st.Int(1, 100), c=st.Choice("a", "b", "c"), epochs=st.Fidelity(1, 9))
    u = space.encode(space.check({"x": 0.3, "n": 50, "c": "b"}))
    moves = moves_from(u, space, np.random.default_rng(0))
    changed = moves != u
    assert (changed.sum(axis=1) == 1).all()
    assert not changed[:, [0, 3]].any()
    assert changed[:, 2].sum() == 2
    assert {49, 51} <= {space.decode(move)["n"] for move in moves}


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_quasi_random_points_spread_evenly(dimensions):
    """Every twentieth of every axis gets its share to within one half; independent draws would miss that often."""
    U = quasi_random(400, dimensions, np.random.default_rng(0))
    assert ((U >= 0) & (U < 1)).all()
    for column in U.T:
        counts = np.histogram(column, 20, (0, 1))[0]
        assert counts.min() >= 10
        assert counts.max() <= 30


@pytest.mark.parametrize("shift", [0.0, 1e-11, -1e-11])
def test_points_within_rounding_of_each_other_are_one_point(shift):
    seen = np.array([[0.25, 0.7, 1 / 3], [1.0, 0.0, 0.5]])
    assert is_visited(seen + shift, seen).all()
    assert not is_visited(seen + 1e-6, seen).any()
