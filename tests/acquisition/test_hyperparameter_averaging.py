"""Acquisitions averaged over hyperparameter samples: against averages by hand, with gradient, in every way of choosing."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.base import Acquisition, average, log_mean
from shoestring.acquisition.improvement import log_ei_in_units
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.cost.linear import LinearCost
from shoestring.search.bayes import select
from shoestring.surrogate.belief import Spending, fit_cost
from tests.differences import gradients_of
from tests.problems import belief_of, bowl, branin, mixed_space, mixed_value, plane, told_study

MCMC = st.GP(inference="mcmc", sets=3)
INFORMATION = [st.MES(), st.ES(samples=512), st.PES()]
WEIGHED = [st.EIpu(), st.EIAlpha(0.5), st.EICool(), st.CEI(), st.CostAdjustedEI()]
LOGS = [st.EI(), st.LogEI(), st.PI(), st.KG(), *WEIGHED, *INFORMATION]
PLAIN = [st.LCB(), st.Gittins(), st.Gittins(0.5)]


def often_fails(config):
    return config["x1"] > 0.8


def context(n=12, model=MCMC, error_where=None):
    """A belief about Branin's function with hyperparameter samples, costs and a budget, and an optimizer."""
    belief, encoding, seen = fitted(n, model, error_where)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


@functools.cache
def fitted(n, model, error_where):
    belief, encoding, seen = belief_of(told_study(plane(), branin, n, error_where=error_where), model)
    gamma = 3 * seen.cost_points[:, 0] + 0.1 * np.random.default_rng(3).normal(size=len(seen.cost_points))
    cost = fit_cost(replace(seen, log_cost=gamma), encoding, LinearCost())
    known = {"cost": cost, "spending": Spending(100.0, 10.0, 5.0)}
    samples = tuple(replace(each, **known) for each in belief.hyperparameter_samples)
    return replace(belief, hyperparameter_samples=samples, **known), encoding, seen


def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("acquisition", LOGS + PLAIN, ids=repr)
def test_the_surface_is_the_average_by_hand(acquisition):
    belief, _ = context()
    U, draw = rng().random((20, 2)), rng()
    each = np.array([acquisition.surface(part, draw)(U, False)[0] for part in belief.hyperparameter_samples])
    by_hand = np.log(np.exp(each).mean(axis=0)) if acquisition in LOGS else each.mean(axis=0)
    np.testing.assert_allclose(acquisition.averaged_surface(belief, rng())(U, False)[0], by_hand, rtol=1e-9)
    assert len({tuple(row) for row in each}) == 3  # the samples differ


@pytest.mark.parametrize("acquisition", [st.EI(), st.PI(), st.LCB(), st.EIAlpha(0.5), st.Gittins(), st.KG()], ids=repr)
@pytest.mark.parametrize("failing", [None, often_fails], ids=["", "failures"])
def test_its_gradient_is_that_of_differences(acquisition, failing):
    belief, _ = context(n=20, error_where=failing)
    surface = acquisition.averaged_surface(belief, rng())
    U = rng().uniform(0.05, 0.95, (8, 2))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0], rtol=1e-6)
    numeric = gradients_of(lambda points: surface(points, False)[0], U, 1e-6)
    np.testing.assert_allclose(slope, numeric, atol=5e-3 * np.abs(numeric).max())


def test_with_one_sample_it_is_the_acquisitions_own():
    belief, _ = context(model=st.GP())
    U = rng().random((10, 2))
    for acquisition in LOGS + PLAIN:
        value, slope = acquisition.surface(belief, rng())(U, True)
        mine, its_slope = acquisition.averaged_surface(belief, rng())(U, True)
        np.testing.assert_array_equal(mine, value)
        np.testing.assert_array_equal(its_slope, slope)


def test_log_means_without_overflow_and_with_nothing_at_all():
    values = np.array([[-2000.0, 900.0, -np.inf, -np.inf, np.nan], [-2001.0, 900.0, -np.inf, 0.0, 1.0]])
    total, shares = log_mean(values)
    np.testing.assert_allclose(total, [-2000 + np.log((1 + np.exp(-1)) / 2), 900.0, -np.inf, np.log(0.5), 1 + np.log(0.5)])
    np.testing.assert_allclose(shares.sum(axis=0), [1, 1, 0, 1, 1])


def test_a_sample_without_improvement_does_not_veto():
    low, high = ((lambda U, gradient, level=level: (np.full(len(U), level), None)) for level in (-1e5, -1.0))
    U = np.zeros((1, 2))
    assert average([low, high], log_space=True)(U, False)[0][0] == pytest.approx(-1.0 + np.log(0.5))
    assert average([low, high], log_space=False)(U, False)[0][0] == pytest.approx(-50000.5)


class Plain(Acquisition):
    """It does not consider hyperparameter samples."""

    def surface(self, belief, rng):
        return st.LogEI().surface(belief, rng)


class OwnSelection(Plain):
    """Its ``select`` does not consider them either."""

    def select(self, belief, optimizer):
        raise AssertionError("it would consider one sample only")


@pytest.mark.parametrize("acquisition", [Plain(), OwnSelection()], ids=["surface", "surface and select"])
def test_an_acquisition_that_does_not_consider_samples_is_averaged_too(acquisition):
    belief, optimizer = context()
    found = select(acquisition, belief, replace(optimizer, rng=rng())).u
    averaged = average([st.EI().surface(each, rng()) for each in belief.hyperparameter_samples], log_space=True)
    np.testing.assert_array_equal(found, replace(optimizer, rng=rng()).maximize(averaged).u)


def mean_ei(belief, U):
    return np.mean([np.exp(st.EI().surface(each, rng())(U, False)[0]) for each in belief.hyperparameter_samples], axis=0)


def log_cost(belief, u):
    mean, variance = belief.cost.log_cost(u[None, :])
    return float(mean[0] + 0.5 * variance[0])


def test_contextual_ei_keeps_its_share_of_the_mean_ei_and_costs_less():
    belief, optimizer = context()
    in_units = log_ei_in_units(belief)  # the share is one of EI in the units of the values
    best = optimizer.maximize(in_units).u
    cheaper = select(st.CEI(0.4), belief, replace(optimizer, rng=rng())).u
    assert in_units(cheaper[None, :], False)[0][0] >= np.log(0.6) + in_units(best[None, :], False)[0][0] - 1e-3
    assert log_cost(belief, cheaper) < log_cost(belief, best)


@pytest.mark.parametrize("acquisition", [st.Gittins(), st.KG(), st.CostAdjustedEI(), st.LCB()], ids=repr)
def test_what_is_chosen_is_high_under_the_average(acquisition):
    belief, optimizer = context(n=15)
    u = select(acquisition, belief, replace(optimizer, rng=rng())).u
    shown = st.EI() if isinstance(acquisition, st.CostAdjustedEI) else acquisition
    surface = shown.averaged_surface(belief, rng())
    others = surface(rng().random((200, 2)), False)[0]
    assert surface(u[None, :], False)[0][0] >= np.quantile(others, 0.98) - 0.02


@pytest.mark.parametrize(
    "method", ["auto", st.KG(), st.EIpu(), *(
        pytest.param(method, marks=pytest.mark.slow) for method in (st.PI(), st.LCB(), st.CEI(), st.Gittins(), *INFORMATION[:2])
    )], ids=repr
)  # fmt: skip
def test_every_method_runs_with_costs_a_budget_and_a_mixed_space(method):
    def objective(config):
        return st.Outcome(mixed_value(config), cost=1.0 + 20 * config["rate"] + config["depth"])

    study = st.Study(mixed_space(), method, stop=None, initial=5, model=st.GP(inference="mcmc", sets=2))
    result = study.minimize(objective, st.Budget(cost=60.0, trials=6))
    assert result.recommended is not None
    assert sum(trial.cost for trial in study.history) <= 66.0


def test_the_front_is_that_of_the_average():
    study = told_study(plane(), bowl, 10, model=MCMC)
    front = study.pareto_front()
    assert {"EI", "CEI(0.1)", "Gittins()"} <= set(front.landings)
    assert front.landings["EI"].ei >= 0.99 * max(point.ei for point in front.points)
