"""The knowledge gradient at any fidelity, against Monte Carlo over a fine grid at the target; its cost, and its gradient."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.special import ndtri

import shoestring as st
from shoestring.acquisition.kg_fidelity import ASSUMED_OVERHEAD, CFKG, assumed_cost_weighted_surface
from shoestring.acquisition.knowledge_gradient import KG, DiscretizedKG, initial_discretization, pending_surface
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.cost.base import expected_log_cost
from shoestring.surrogate.belief import fit_cost
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from tests.differences import gradients_of
from tests.problems import belief_of, mixed_space, mixed_value
from tests.reference.accurate_kg import accurate_log_kg

DRAWS = 200_000
SPACES = {
    "one": st.Space(x0=st.Float(0, 1), s=st.Fidelity(0, 1)),
    "two": st.Space(x0=st.Float(0, 1), s=st.Fidelity(0, 1), t=st.Fidelity(0.1, 2, target=1.0, log=True)),
    "whole": st.Space(x0=st.Float(0, 1), x1=st.Float(-1, 1), epochs=st.Fidelity(1, 30, target=20)),
}
each_space = pytest.mark.parametrize("space", list(SPACES.values()), ids=list(SPACES))


def price(config):
    """Rises with every fidelity, and a little with x0."""
    return (0.1 + math.prod(value for name, value in config.items() if not name.startswith("x"))) * (1 + config["x0"])


def displaced_waves(config):
    """Waves that are displaced at low fidelities."""
    off = sum(1 / (1 + value) for name, value in config.items() if not name.startswith("x"))
    return sum(math.sin(5 * (value - 0.3 * off) + i) for i, value in enumerate(config.values())) + 0.2 * off


def context(space, count=14, seed=0, pending=0):
    """A belief after trials at random fidelities, with a cost model fitted to what they cost, and an optimizer."""
    belief, encoding, seen = fitted(space, count, seed, pending)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


@functools.cache
def fitted(space, count, seed, pending):
    study, rng = st.Study(space, method=st.CFKG(), seed=seed), np.random.default_rng(seed)
    for u in space.snap(rng.random((count, len(space)))):
        config = space.decode(u)
        study.add(config, displaced_waves(config), cost=price(config))
    for _ in range(pending):
        study.ask()
    belief, encoding, seen = belief_of(study)
    return dataclasses.replace(belief, cost=fit_cost(seen, encoding, st.LogGPCost())), encoding, seen


def drawn_from_the_model(dimensions, count, noise, seed, far=1.2):
    """A belief after observations, at random fidelities, of a function drawn from the model itself; ``far`` is the fidelity's
    length scale.
    """
    space = st.Space({f"x{i}": st.Float(0, 1) for i in range(dimensions)} | {"s": st.Fidelity(0, 1)})
    belief, optimizer = context(space, count, seed)
    rng, U = np.random.default_rng([seed, dimensions]), optimizer.visited
    kernel = Kernel("matern52", np.append(np.full(dimensions, 1 / 0.3), 1 / far), 1.0)
    factor = np.linalg.cholesky(kernel.covariance(kernel.scale(U)) + (noise + 1e-9) * np.eye(count))
    posterior = Posterior.given(kernel, noise, U, factor @ rng.standard_normal(count), mean=0.0)
    return dataclasses.replace(belief, objective=posterior, without_pending=posterior), optimizer


def target_grid(space, per_axis):
    free = len(space) - len(space.fidelities)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, per_axis)] * free), axis=-1).reshape(-1, free)
    return space.at_target(np.column_stack([grid, np.zeros((len(grid), len(space.fidelities)))]))


def by_monte_carlo(posterior, u, grid):
    """min mu - mean of min (mu + b w) over the grid and many draws of w. What is the minimum now stays in the mean where it is:
    the difference from it leaves little variance.
    """
    u = u[None, :]
    a = posterior.mean_at(grid)
    b = posterior.covariance(grid, u)[:, 0] / math.sqrt(posterior.covariance(u)[0, 0] + posterior.noise)
    kept = np.unique([np.argmin(a + b * w) for w in np.linspace(-6, 6, 1201)])  # other lines are the lowest nowhere
    w = ndtri((np.arange(DRAWS) + np.random.default_rng(0).random(DRAWS)) / DRAWS)
    now = np.argmin(a)
    lowest = np.full(DRAWS, np.inf)
    for line in kept:
        np.minimum(lowest, a[line] + b[line] * w, out=lowest)
    return float((a[now] + b[now] * w - lowest).mean())


def relative_errors(dimensions, count, noise, seed, far):
    belief, optimizer = drawn_from_the_model(dimensions, count, noise, seed, far)
    U = np.random.default_rng([seed, 5]).random((4, dimensions + 1))
    U[0, -1], U[1, -1] = 0.0, 1.0
    grid = target_grid(belief.encoding.space, 4001 if dimensions == 1 else 161)
    truth = np.array([by_monte_carlo(belief.objective, u, grid) for u in U])
    known = truth > (1e-3 if dimensions == 1 else 1e-2)  # a coarser grid is off by more
    return np.exp(accurate_log_kg(belief, optimizer, U[known])) / truth[known] - 1


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2])
def test_it_is_accurate_to_two_per_cent_at_every_fidelity(dimensions):
    cases = [(4 * dimensions, 1e-4, 0, 1.2), (8 * dimensions, 1e-2, 1, 0.6)]
    errors = np.concatenate([relative_errors(dimensions, *case) for case in cases])
    assert len(errors) >= 5
    assert np.abs(errors).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2])
def test_it_is_accurate_in_many_cases(dimensions):
    cases = [(count * dimensions, noise, seed, far)
             for count in (3, 6) for noise in (1e-5, 0.05) for seed, far in ((10, 0.4), (11, 3.0))]
    errors = np.concatenate([relative_errors(dimensions, *case) for case in cases])
    assert len(errors) >= 12
    assert np.abs(errors).max() < 0.02


def test_with_pending_points_it_is_the_average_over_their_outcomes():
    """Against draws of the pending outcomes, and of the outcome at x after them. The mean is linear in the outcomes, so that
    conditioning on three of them gives it for all.
    """
    belief, _ = drawn_from_the_model(1, 6, 1e-2, 3)
    pending, before = np.array([[0.35, 0.2], [0.8, 1.0]]), belief.objective
    belief = dataclasses.replace(belief, pending=pending, objective=before.condition(pending, before.mean_at(pending)))
    grid, U = target_grid(belief.encoding.space, 151), np.array([[0.4, 0.0], [0.6, 0.7], [0.75, 1.0]])
    found = np.exp(pending_surface(belief, grid, count=256)(U, False)[0])
    rng, after, count = np.random.default_rng(0), belief.objective, 8000
    factor = np.linalg.cholesky(before.covariance(pending) + before.noise * np.eye(2))
    expected = before.condition(pending, before.mean_at(pending)).mean_at(grid)
    shifts = [before.condition(pending, before.mean_at(pending) + step).mean_at(grid) - expected for step in factor.T]
    means = expected + rng.standard_normal((count, 2)) @ np.array(shifts)
    for u, value in zip(U, found, strict=True):
        b = after.covariance(grid, u[None, :])[:, 0] / math.sqrt(after.covariance(u[None, :])[0, 0] + after.noise)
        w = ndtri((rng.permutation(count) + 0.5) / count)
        gains = [means.min(axis=1) - (means + b * (sign * w)[:, None]).min(axis=1) for sign in (-1, 1)]
        assert value == pytest.approx(np.mean(gains), rel=0.05)


@each_space
@pytest.mark.parametrize("pending", [0, 2])
def test_the_gradient_by_configuration_and_fidelity_is_that_of_differences(space, pending):
    belief, optimizer = context(space, pending=pending)
    assert len(belief.pending) == pending
    points = initial_discretization(belief, optimizer)
    surface = CFKG().cost_weighted(DiscretizedKG.over(belief, points).surface(), belief)
    U = np.random.default_rng(2).uniform(0.1, 0.9, (6, len(space)))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    expected = gradients_of(lambda X: surface(X, False)[0], U, step=1e-6)
    assert (np.abs(expected) > 1e-3).any(axis=0).all()
    np.testing.assert_allclose(slope, expected, atol=3e-3 * np.abs(expected).max())


@each_space
def test_it_is_kg_per_unit_of_cost_and_at_the_target_kg_itself(space):
    belief, _ = context(space)
    U = np.random.default_rng(3).random((8, len(space)))
    per_cost, gain = (method.surface(belief, np.random.default_rng(0))(U, False)[0] for method in (CFKG(), KG()))
    np.testing.assert_allclose(per_cost + expected_log_cost(belief.cost, U), gain)
    targets = space.at_target(U)
    discretized = DiscretizedKG.over(belief, targets)
    u = targets[:1]
    grid = belief.encoding.features(targets)
    posterior, z = belief.objective, belief.encoding.features(u)
    b = posterior.covariance(grid, z)[:, 0] / np.sqrt(posterior.mean_and_variance(z)[1][0] + posterior.noise)
    w = np.linspace(-8, 8, 20001)
    lowest = (posterior.mean_at(grid)[:, None] + b[:, None] * w).min(axis=0)
    by_hand = posterior.mean_at(grid).min() - np.trapezoid(lowest * np.exp(-w * w / 2), w) / math.sqrt(2 * math.pi)
    assert np.exp(discretized.surface()(u, False)[0][0]) == pytest.approx(by_hand, rel=1e-3, abs=1e-9)


@each_space
def test_while_no_cost_is_known_it_is_assumed_proportional_to_the_fidelity(space):
    belief, optimizer = context(space)
    belief = dataclasses.replace(belief, cost=None)
    log_kg = DiscretizedKG.over(belief, initial_discretization(belief, optimizer)).surface()
    U = space.snap(np.random.default_rng(4).uniform(0.1, 0.9, (6, len(space))))
    shares = [[space.decode(u)[name] / goal for name, goal in space.target.items()] for u in U]
    by_hand = log_kg(U, False)[0] - np.log(ASSUMED_OVERHEAD + np.array(shares)).sum(axis=1)
    np.testing.assert_allclose(CFKG().cost_weighted(log_kg, belief)(U, False)[0], by_hand)


@each_space
def test_the_gradient_of_the_assumed_cost(space):
    """During an ascent whole numbers are relaxed: the cost between two of them lies between theirs."""
    surface = assumed_cost_weighted_surface(lambda U, gradient: (np.zeros(len(U)), np.zeros_like(U) if gradient else None), space)
    U = np.random.default_rng(5).uniform(0.2, 0.8, (20, len(space)))
    value, slope = surface(U, True)
    assert np.isfinite(value).all()
    for j, parameter in enumerate(space.values()):
        if parameter.fidelity:
            low, high = parameter.ends()
            amount = np.exp(low + U[:, j] * (high - low)) if parameter.log else low + U[:, j] * (high - low)
            steep = amount * (high - low) if parameter.log else high - low
            np.testing.assert_allclose(slope[:, j], -steep / (ASSUMED_OVERHEAD * parameter.goal + amount), rtol=0.02)
        else:
            assert (slope[:, j] == 0).all()


@pytest.mark.slow
def test_a_mixed_conditional_space_with_a_fidelity():
    space = st.Space({**mixed_space(), "epochs": st.Fidelity(1, 9)})

    def objective(config):
        seen = config | {"depth": config["depth"] + 3 / config["epochs"], "rate": config["rate"] / 10 ** (1 / config["epochs"])}
        return st.Outcome(mixed_value(seen), cost=config["epochs"] + 30)  # little is saved

    chosen = set()
    for seed in range(3):
        history = st.minimize(objective, space, 16, method=st.CFKG(), seed=seed, initial=6, stop=None).history
        assert all(space.check(trial.config) == trial.config for trial in history)
        assert len({space.key(trial.config) for trial in history}) == 16
        chosen |= {trial.config["epochs"] for trial in history[6:]}
    assert len(chosen) > 2


def test_the_search_finds_the_cheap_edge_of_a_fidelity():
    """With the cost 0.01 + s an evaluation there is a hundred times cheaper; a search that missed it chose s = 0.55."""
    space = st.Space(x=st.Float(-2, 2), y=st.Float(-1, 1), s=st.Fidelity(0.0, 1.0))

    def camel(config):
        off = 0.1 * (1 - config["s"])
        x, y = config["x"] + 3 * off, config["y"] - 2 * off
        return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2 + 3 * off * x

    study = st.Study(space, st.CFKG(), seed=3, stop=None, cost_model=st.KnownCost(lambda config: 0.01 + config["s"]))
    rng = np.random.default_rng(3)
    for u in rng.random((16, 3)):
        u[-1] = u[-1] ** 2 if rng.random() < 0.7 else 0.0
        config = space.decode(u)
        study.add(config, camel(config), cost=0.01 + config["s"])
    assert study.ask().config["s"] < 0.05
