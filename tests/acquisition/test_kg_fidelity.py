"""The knowledge gradient at any fidelity, against Monte Carlo over a fine grid at the target; its cost, and its gradient."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtri

import shoestring as st
from shoestring.acquisition.kg_fidelity import CFKG, OVERHEAD, per_share
from shoestring.acquisition.knowledge_gradient import KG, LookAhead, knowledge_gradient, minima, pending_surface
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.cost.base import expected_log_cost
from shoestring.surrogate.belief import fit_cost
from shoestring.surrogate.kernels import Kernel
from shoestring.surrogate.posterior import Posterior
from tests.differences import gradients_of
from tests.problems import belief_of, mixed_space, mixed_value

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


def low_is_off(config):
    """Waves that low fidelities see displaced."""
    off = sum(1 / (1 + value) for name, value in config.items() if not name.startswith("x"))
    return sum(math.sin(5 * (value - 0.3 * off) + i) for i, value in enumerate(config.values())) + 0.2 * off


def told(space, count=14, seed=0, ask=0, **options):
    """A belief after trials at random fidelities, with a cost model fitted to what they cost, and a seeker."""
    study, rng = st.Study(space, method=st.CFKG(), seed=seed, **options), np.random.default_rng(seed)
    for u in space.snap(rng.random((count, len(space)))):
        config = space.decode(u)
        study.add(config, low_is_off(config), cost=price(config))
    for _ in range(ask):
        study.ask()
    belief, encoding, seen = belief_of(study)
    belief = dataclasses.replace(belief, cost=fit_cost(seen, encoding, st.LogGPCost()))
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


def drawn_from_the_model(dimensions, count, noise, seed, far=1.2):
    """A belief after observations, at random fidelities, of a function drawn from the model itself; ``far`` is the fidelity's
    length scale.
    """
    space = st.Space({f"x{i}": st.Float(0, 1) for i in range(dimensions)} | {"s": st.Fidelity(0, 1)})
    belief, optimizer = told(space, count, seed)
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
    return np.exp(knowledge_gradient(belief, optimizer, U[known])) / truth[known] - 1


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


def test_while_trials_run_it_is_the_average_over_what_they_may_bring():
    """Against draws of the running trials' outcomes, each conditioned on, and of the outcome at x after it."""
    belief, _ = drawn_from_the_model(1, 6, 1e-2, 3)
    waiting, settled = np.array([[0.35, 0.2], [0.8, 1.0]]), belief.objective
    belief = dataclasses.replace(belief, pending=waiting, objective=settled.condition(waiting, settled.mean_at(waiting)))
    grid, U = target_grid(belief.encoding.space, 301), np.array([[0.4, 0.0], [0.6, 0.7], [0.75, 1.0]])
    found = np.exp(pending_surface(belief, grid, count=512)(U, False)[0])
    rng, after = np.random.default_rng(0), belief.objective
    factor = np.linalg.cholesky(settled.covariance(waiting) + settled.noise * np.eye(2))
    outcomes = settled.mean_at(waiting) + rng.standard_normal((4000, 2)) @ factor.T
    means = np.array([settled.condition(waiting, outcome).mean_at(grid) for outcome in outcomes])
    for u, value in zip(U, found, strict=True):
        b = after.covariance(grid, u[None, :])[:, 0] / math.sqrt(after.covariance(u[None, :])[0, 0] + after.noise)
        w = ndtri((rng.permutation(4000) + 0.5) / 4000)
        gains = [means.min(axis=1) - (means + b * (sign * w)[:, None]).min(axis=1) for sign in (-1, 1)]
        assert value == pytest.approx(np.mean(gains), rel=0.05)


@each_space
@pytest.mark.parametrize("running", [0, 2])
def test_the_gradient_by_configuration_and_fidelity_is_that_of_differences(space, running):
    belief, optimizer = told(space, ask=running)
    assert len(belief.pending) == running
    points = minima(belief, optimizer)
    surface = CFKG().weighed(LookAhead.over(belief, points).surface(), belief)
    U = np.random.default_rng(2).uniform(0.1, 0.9, (6, len(space)))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    expected = gradients_of(lambda X: surface(X, False)[0], U, step=1e-6)
    assert (np.abs(expected) > 1e-3).any(axis=0).all()
    np.testing.assert_allclose(slope, expected, atol=3e-3 * np.abs(expected).max())


@each_space
def test_it_is_kg_per_unit_of_cost_and_at_the_target_kg_itself(space):
    belief, _ = told(space)
    U = np.random.default_rng(3).random((8, len(space)))
    per_cost, gain = (method.surface(belief, np.random.default_rng(0))(U, False)[0] for method in (CFKG(), KG()))
    np.testing.assert_allclose(per_cost + expected_log_cost(belief.cost, U), gain)
    targets = space.at_target(U)
    ahead = LookAhead.over(belief, targets)
    u = targets[:1]
    grid = ahead.belief.encoding.features(targets)
    posterior, z = belief.objective, belief.encoding.features(u)
    b = posterior.covariance(grid, z)[:, 0] / np.sqrt(posterior.mean_and_variance(z)[1][0] + posterior.noise)
    w = np.linspace(-8, 8, 20001)
    lowest = (posterior.mean_at(grid)[:, None] + b[:, None] * w).min(axis=0)
    by_hand = posterior.mean_at(grid).min() - np.trapezoid(lowest * np.exp(-w * w / 2), w) / math.sqrt(2 * math.pi)
    assert np.exp(ahead.surface()(u, False)[0][0]) == pytest.approx(by_hand, rel=1e-3, abs=1e-9)


@each_space
def test_while_costs_are_not_known_they_are_taken_to_be_in_proportion_to_the_fidelity(space):
    belief, optimizer = told(space)
    belief = dataclasses.replace(belief, cost=None)
    gain = LookAhead.over(belief, minima(belief, optimizer)).surface()
    U = space.snap(np.random.default_rng(4).uniform(0.1, 0.9, (6, len(space))))
    shares = [[space.decode(u)[name] / goal for name, goal in space.target.items()] for u in U]
    by_hand = gain(U, False)[0] - np.log(OVERHEAD + np.array(shares)).sum(axis=1)
    np.testing.assert_allclose(CFKG().weighed(gain, belief)(U, False)[0], by_hand)


@each_space
def test_its_slope_while_costs_are_not_known(space):
    """As a surface is climbed, whole numbers are relaxed: the cost between two of them lies between theirs."""
    surface = per_share(lambda U, gradient: (np.zeros(len(U)), np.zeros_like(U) if gradient else None), space)
    U = np.random.default_rng(5).uniform(0.2, 0.8, (20, len(space)))
    value, slope = surface(U, True)
    assert np.isfinite(value).all()
    for j, parameter in enumerate(space.values()):
        if parameter.fidelity:
            low, high = parameter._ends()
            amount = np.exp(low + U[:, j] * (high - low)) if parameter.log else low + U[:, j] * (high - low)
            steep = amount * (high - low) if parameter.log else high - low
            np.testing.assert_allclose(slope[:, j], -steep / (OVERHEAD * parameter.goal + amount), rtol=0.02)
        else:
            assert (slope[:, j] == 0).all()


def test_a_mixed_conditional_space_with_a_fidelity():
    space = st.Space({**mixed_space(), "epochs": st.Fidelity(1, 9)})

    def objective(config):
        seen = config | {"depth": config["depth"] + 3 / config["epochs"], "rate": config["rate"] / 10 ** (1 / config["epochs"])}
        return st.Outcome(mixed_value(seen), cost=config["epochs"] + 0.2)

    history = st.minimize(objective, space, 18, method=st.CFKG(), seed=1, initial=6, stop=None).history
    assert all(space.check(trial.config) == trial.config for trial in history)
    assert len({space.key(trial.config) for trial in history}) == 18
    assert len({trial.config["epochs"] for trial in history[6:]}) > 1
