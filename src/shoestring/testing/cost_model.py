"""The contract of a cost model."""

from __future__ import annotations

import numpy as np

from ..acquisition.cost_aware import EIpu
from ..budget import Budget
from ..cost.base import CostModel, CostObservations, CostPosterior, check_cost_model, expected_log_cost
from ..cost.censored import fit_costs
from ..study import Study
from .problems import SPACES, configs, data_about, run


class CostModelContract:
    """The checks that every cost model must pass: derive a test class and define ``make``.

    Use it to test a cost model of your own with pytest: finite predictions, gradients, a study with a budget in cost.

    spaces  those of ``problems.SPACES`` that it works on

    >>> from shoestring.testing import CostModelContract
    >>> class TestMine(CostModelContract):
    ...     def make(self):
    ...         return st.LinearCost(features=2)
    >>> TestMine().test_it_is_a_cost_model()
    """

    spaces: tuple[str, ...] = ("numbers", "mixed")

    def make(self) -> CostModel:
        raise NotImplementedError("return the cost model to test")

    def fitted(self, space: str = "mixed", trials: int = 12) -> tuple[CostPosterior, CostObservations]:
        encoding, data = data_about(space, trials)
        costs = CostObservations(data.cost_points, data.log_cost, data.censored)
        return fit_costs(self.make(), costs, encoding), costs

    def test_it_is_a_cost_model(self) -> None:
        check_cost_model(self.make())

    def test_it_predicts_finite_logarithms_of_costs_with_variances(self) -> None:
        for space in self.spaces:
            posterior, _ = self.fitted(space)
            U = SPACES[space].snap(np.random.default_rng(0).random((9, len(SPACES[space]))))
            mean, variance = posterior.log_cost(U)
            assert mean.shape == variance.shape == (9,)
            assert np.isfinite(mean).all()
            assert (variance >= 0.0).all()
            assert np.isfinite(expected_log_cost(posterior, U)).all()

    def test_gradients_are_those_of_differences(self) -> None:
        posterior, _ = self.fitted("numbers")
        U = np.random.default_rng(1).uniform(0.2, 0.8, (5, 2))
        mean, _, d_mean, d_variance = posterior.log_cost_with_gradient(U)
        np.testing.assert_allclose(mean, posterior.log_cost(U)[0], rtol=1e-9, atol=1e-9)
        for column in range(2):
            step = np.zeros(2)
            step[column] = 1e-5
            above, below = posterior.log_cost(U + step), posterior.log_cost(U - step)
            np.testing.assert_allclose(d_mean[:, column], (above[0] - below[0]) / 2e-5, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(d_variance[:, column], (above[1] - below[1]) / 2e-5, rtol=1e-2, atol=1e-4)

    def test_a_cost_aware_study_runs_within_a_budget_in_cost_and_replay_agrees(self) -> None:
        for space in self.spaces:
            def study(space: str = space) -> Study:
                options = {"seed": 1, "initial": 4, "cost_model": self.make(), "budget": Budget(cost=60.0)}
                return Study(SPACES[space], EIpu(), stop=None, **options)  # type: ignore[arg-type]

            first = run(study(), 9, fail_every=4)
            assert configs(first) == configs(run(study(), 9, fail_every=4))
            assert first.replay().first_difference is None
