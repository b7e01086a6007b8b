"""Cost-aware acquisitions, on real beliefs about the objective and known costs."""

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import shoestring as st
from shoestring.acquisition.cost_aware import negative_log_cost
from shoestring.acquisition.gittins import index_surface, solve_log_h
from shoestring.acquisition.improvement import LogEI, log_h
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.belief import Spending
from tests.differences import gradients_of
from tests.problems import belief_of, bowl, branin, mixed_space, mixed_value, plane, told_study


class KnownLogCost:
    """log cost = weights . u + sin(3 u_0), with a variance that grows away from the middle."""

    name = "known"

    def __init__(self, dimensions, seed=0, variance=0.0):
        self.weights = 3 * np.random.default_rng(seed).standard_normal(dimensions)
        self.variance = variance

    def log_cost(self, U):
        return U @ self.weights + np.sin(3 * U[:, 0]), self.variance * ((U - 0.5) ** 2).sum(axis=1)

    def log_cost_with_gradient(self, U):
        slope = np.tile(self.weights, (len(U), 1))
        slope[:, 0] += 3 * np.cos(3 * U[:, 0])
        return *self.log_cost(U), slope, 2 * self.variance * (U - 0.5)


PLANE = plane(3)


def often_fails(config):
    return config["x1"] > 0.75


@functools.cache
def fitted(space, value, n, seed, failures):
    return belief_of(told_study(space, value, n, seed=seed, error_where=failures))


def context(space=PLANE, value=bowl, n=20, seed=0, cost_variance=0.0, failures=None):
    belief, encoding, seen = fitted(space, value, n, seed, failures)
    belief = replace(belief, cost=KnownLogCost(len(space), seed, cost_variance))
    optimizer = AcquisitionOptimizer(encoding, np.random.default_rng(seed), seen.visited, seen.U[seen.order[:5]])
    return belief, optimizer


METHODS = [st.EIpu(), st.EIAlpha(0.3), st.EICool(), st.Gittins(0.5), st.Gittins()]


@pytest.mark.parametrize("acquisition", METHODS, ids=repr)
@pytest.mark.parametrize("failures", [None, often_fails], ids=["", "failures"])
def test_the_gradient_of_a_cost_aware_surface(acquisition, failures):
    belief, _ = context(cost_variance=2.0, n=30, failures=failures)
    belief = replace(belief, spending=Spending(10.0, 4.0, 1.0))
    surface = acquisition.surface(belief, np.random.default_rng(0))
    U = np.random.default_rng(1).uniform(0.05, 0.95, (30, 3))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0], rtol=1e-5, atol=1e-6)
    numeric = gradients_of(lambda u: surface(u, False)[0], U, 1e-6)
    assert (np.abs(slope - numeric).max(axis=1) <= 2e-3 * (1 + np.abs(slope).max(axis=1))).all()


@pytest.mark.parametrize("level", [-300.0, -20.0, -2.0, -0.5, 0.0, 0.3, 2.0, 5.0])
def test_log_h_is_inverted(level):
    z = solve_log_h(np.array([level]))[0]
    assert log_h(np.array([z]))[0][0] == pytest.approx(level, rel=1e-9, abs=1e-9)


def test_at_the_index_an_evaluation_is_exactly_worth_its_cost():
    """EI(x; g) = price E[c], by root finding on EI itself."""
    belief, _ = context()
    U = np.random.default_rng(0).random((10, 3))
    mean, variance = belief.objective.mean_and_variance(belief.encoding.features(U))
    cost = np.exp(-negative_log_cost(belief)(U, False)[0])
    g = -index_surface(belief, math.log(0.2))(U, False)[0]
    for i in range(len(U)):
        s = math.sqrt(variance[i])

        def surplus(value, mu=mean[i], s=s, price=0.2 * cost[i]):
            return s * math.exp(log_h(np.array([(value - mu) / s]))[0][0]) - price

        assert g[i] == pytest.approx(brentq(surplus, mean[i] - 30 * s, mean[i] + 30 * s + 2 * 0.2 * cost[i]), rel=1e-6, abs=1e-6)


def test_a_price_that_was_not_given_is_halved_when_no_evaluation_is_worth_it():
    belief, optimizer = context()
    high = replace(belief, warm_start={"log_price": 5.0})
    assert st.Gittins().select(high, optimizer).warm_start["log_price"] == pytest.approx(5.0 - math.log(2))
    low = replace(belief, warm_start={"log_price": -30.0})
    assert st.Gittins().select(low, optimizer).warm_start["log_price"] == -30.0


@pytest.mark.parametrize("lam", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize(("space", "value"), [(plane(2), branin), (plane(3), bowl), (mixed_space(), mixed_value)])
def test_no_point_is_cheaper_than_contextual_ei_with_as_much_improvement(space, value, lam, seed):
    belief, optimizer = context(space, value, seed=seed)
    log_ei, negative_cost = LogEI().surface(belief, None), negative_log_cost(belief)
    optimum = optimizer.maximize(log_ei)
    u = st.CEI(lam).select(belief, replace(optimizer, rng=np.random.default_rng(seed)))
    u = u.u[None, :]
    bound = optimum.value + math.log1p(-lam)
    assert log_ei(u, False)[0][0] >= bound - 1e-3
    rng = np.random.default_rng(seed + 100)
    others = [rng.random((4000, len(space))), np.clip(u + 0.03 * rng.standard_normal((4000, len(space))), 0, 1), optimum.U]
    U = space.snap(space.at_target(np.vstack(others)))
    good = log_ei(U, False)[0] >= max(bound, log_ei(u, False)[0][0])
    cheapest = (-negative_cost(U, False)[0])[good].min(initial=np.inf)
    assert -negative_cost(u, False)[0][0] <= cheapest + 0.02


def test_contextual_ei_goes_from_the_highest_ei_to_the_lowest_cost():
    belief, optimizer = context()
    log_ei, negative_cost = LogEI().surface(belief, None), negative_log_cost(belief)
    optimum = optimizer.maximize(log_ei)
    first = st.CEI(0.0).select(belief, optimizer).u
    assert log_ei(first[None, :], False)[0][0] == pytest.approx(optimum.value, abs=1e-3)
    last = st.CEI(1.0).select(belief, optimizer).u
    assert negative_cost(last[None, :], False)[0][0] >= optimizer.maximize(negative_cost).value - 0.02
    costs = [-negative_cost(st.CEI(lam).select(belief, optimizer).u[None, :], False)[0][0] for lam in (0.01, 0.1, 0.4, 0.9)]
    assert all(later <= earlier + 0.02 for earlier, later in itertools.pairwise(costs))


def test_alpha_zero_is_ei_and_one_is_per_unit():
    belief, _ = context()
    U = np.random.default_rng(0).random((50, 3))
    ei = LogEI().surface(belief, None)(U, False)[0]
    np.testing.assert_array_equal(st.EIAlpha(0).surface(belief, None)(U, False)[0], ei)
    per_unit = st.EIpu().surface(belief, None)(U, False)[0]
    np.testing.assert_allclose(st.EIAlpha(1).surface(belief, None)(U, False)[0], per_unit)
    np.testing.assert_allclose(per_unit, ei + negative_log_cost(belief)(U, False)[0])


def test_cooling_goes_from_per_unit_to_plain():
    belief, _ = context()
    U = np.random.default_rng(0).random((50, 3))

    def at(spent):
        return st.EICool().surface(replace(belief, spending=Spending(10.0, spent, 2.0)), None)(U, False)[0]

    np.testing.assert_allclose(at(2.0), st.EIpu().surface(belief, None)(U, False)[0])
    np.testing.assert_allclose(at(6.0), st.EIAlpha(0.5).surface(belief, None)(U, False)[0])
    np.testing.assert_allclose(at(10.0), LogEI().surface(belief, None)(U, False)[0])
    np.testing.assert_allclose(at(99.0), LogEI().surface(belief, None)(U, False)[0])


def test_an_uncertain_cost_is_never_rewarded():
    certain, _ = context(cost_variance=0.0)
    uncertain, _ = context(cost_variance=5.0)
    U = np.random.default_rng(0).random((50, 3))
    for acquisition in (st.EIpu(), st.EIAlpha(0.2), st.Gittins(0.1)):
        lower, higher = (acquisition.surface(belief, None)(U, False)[0] for belief in (uncertain, certain))
        assert (lower <= higher + 1e-12).all()


@pytest.mark.parametrize(
    "wrong",
    [lambda: st.CEI(-0.1), lambda: st.CEI(1.1), lambda: st.CEI("0.5"), lambda: st.EIAlpha(-1), lambda: st.EIAlpha(math.nan),
     lambda: st.EIAlpha(math.inf), lambda: st.Gittins(0), lambda: st.Gittins(-2), lambda: st.Gittins(True)],
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(st.MethodError):
        wrong()


def test_without_any_cost_they_are_plain_ei():
    belief, optimizer = context()
    belief = replace(belief, cost=None)
    U = np.random.default_rng(0).random((50, 3))
    ei = LogEI().surface(belief, None)(U, False)[0]
    for acquisition in (st.EIpu(), st.EIAlpha(0.3), st.CEI(0.2)):
        np.testing.assert_array_equal(acquisition.surface(belief, None)(U, False)[0], ei)
    optimum = optimizer.maximize(LogEI().surface(belief, None))
    np.testing.assert_array_equal(st.CEI(0.3).select(belief, replace(optimizer, rng=np.random.default_rng(0))).u, optimum.u)
