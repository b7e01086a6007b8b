"""What going on with a run costs: the cost of the whole, less that of what was done before."""

import numpy as np
import pytest

import shoestring as st
from shoestring.cost.base import CostObservations, expected_log_cost, to_warm_start
from shoestring.cost.incremental import MIN_SHARE, PART_OF_FIDELITY, IncrementalCost, StartedRuns, incremental_log_cost
from shoestring.space.encoding import Encoding

SPACE = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 10.0, resumable=True), kind=st.Choice("a", "b"))


def known(law, space=SPACE):
    nothing = CostObservations(np.empty((0, len(space))), np.empty(0), np.empty(0, dtype=bool))
    return st.KnownCost(law).fit(nothing, Encoding(space))


def at(*configs, space=SPACE):
    return np.array([space.encode(config) for config in configs])


START = {"x": 0.5, "s": 2.0, "kind": "a"}


def incremental(law, *starts, pending=None):
    return IncrementalCost(known(law), StartedRuns(at(*starts), SPACE, pending))


def test_going_on_costs_the_difference():
    cost = incremental(lambda c: 1 + c["s"] ** 2, START)
    points = at(START | {"s": 6.0}, START | {"s": 6.0, "x": 0.51}, START | {"s": 6.0, "kind": "b"}, START | {"s": 1.0})
    assert np.exp(cost.log_cost(points)[0]) == pytest.approx([37 - 5, 37, 37, 2])
    assert np.exp(incremental_log_cost(cost.total, points, at(START), SPACE)) == pytest.approx([32, 37, 37, 2])
    assert np.exp(expected_log_cost(cost, points)) == pytest.approx([32, 37, 37, 2])


def test_of_several_runs_of_a_config_the_one_that_has_come_furthest_goes_on():
    cost = incremental(lambda c: 1 + c["s"], START, START | {"s": 4.0}, START | {"s": 8.0})
    assert np.exp(cost.log_cost(at(START | {"s": 6.0}))[0]) == pytest.approx([2.0])


def test_going_on_never_costs_nothing():
    flat = incremental(lambda c: 7.0, START)
    shares = np.exp(flat.log_cost(at(START | {"s": 4.0}, START | {"s": 10.0}, START | {"s": 2.02}))[0]) / 7.0
    assert shares == pytest.approx([PART_OF_FIDELITY * 0.5, PART_OF_FIDELITY * 0.8, MIN_SHARE])
    falling = incremental(lambda c: 20.0 - c["s"], START)
    assert np.exp(falling.log_cost(at(START | {"s": 4.0}))[0]) == pytest.approx([16 * PART_OF_FIDELITY * 0.5])


def test_a_run_that_is_running_is_continued_by_its_own_trial_alone():
    pending = at(START | {"s": 6.0})
    cost = incremental(lambda c: c["s"] + 1.0, START, pending=pending)
    assert np.exp(cost.log_cost(pending)[0]) == pytest.approx([4.0])  # what is reserved for it
    assert np.exp(cost.log_cost(at(START | {"s": 8.0}))[0]) == pytest.approx([9.0])  # another trial begins from the start


@pytest.mark.parametrize("law", [lambda c: 1 + c["s"] ** 2, lambda c: 7.0], ids=["rising", "flat"])
def test_its_gradient_along_the_fidelity_is_that_of_finite_differences(law):
    class Smooth(st.CostModel):  # a known cost has no gradient of its own
        def fit(self, costs, encoding, warm_start=None):
            return self

        name, step = "smooth", 1e-6

        def log_cost(self, U):
            return np.log([law(SPACE.decode(u)) for u in U]), np.full(len(U), 0.3)

        def log_cost_with_gradient(self, U):
            mean, variance = self.log_cost(U)
            slope = np.zeros(U.shape)
            move = np.array([0.0, self.step, 0.0])
            slope[:, 1] = (self.log_cost(U + move)[0] - self.log_cost(U - move)[0]) / (2 * self.step)
            return mean, variance, slope, np.zeros(U.shape)

    cost = IncrementalCost(Smooth(), StartedRuns(at(START), SPACE))
    U, step = at(START | {"s": 3.0}, START | {"s": 7.5}, START | {"x": 0.7, "s": 7.5}), 1e-5
    mean, variance, slope, _ = cost.log_cost_with_gradient(U)
    move = np.array([0.0, step, 0.0])
    numeric = (cost.log_cost(U + move)[0] - cost.log_cost(U - move)[0]) / (2 * step)
    assert mean == pytest.approx(cost.log_cost(U)[0])
    assert variance == pytest.approx(np.full(3, 0.3))
    assert slope[:, 1] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_the_warm_start_is_that_of_the_model_that_was_fitted():
    cost = incremental(lambda c: 1 + c["s"], START)
    assert to_warm_start(cost, 3) == to_warm_start(cost.total, 3)
    assert cost.name == cost.total.name
