"""BoTorch's multi-fidelity knowledge gradient, the loop of its tutorial on continuous fidelities.

SingleTaskMultiFidelityGP with standardised outcomes, the cost as an affine function of the fidelity (told exactly, where our
methods learn it), improvements weighted by its inverse, fantasies projected to the target, and one-shot optimization. The
tutorial's sizes are kept (5 restarts, 512 raw samples, at most 200 steps), except for 32 fantasies in place of 128 and one
suggestion at a time: both make it faster. It starts from 16 random points in six dimensions, 2 (d + 2) in general. What it
recommends is the minimum of the posterior mean at the target over the whole box.

A suggestion takes many seconds, so a run ends after CAP evaluations, and is compared at the cost it has reached.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from botorch.acquisition import PosteriorMean
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
from botorch.acquisition.utils import project_to_target_fidelity
from botorch.fit import fit_gpytorch_mll
from botorch.models import AffineFidelityCostModel, SingleTaskMultiFidelityGP
from botorch.models.transforms import Standardize
from botorch.optim.initializers import gen_one_shot_kg_initial_conditions
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from benchmarks.fidelity.core import FidelityProblem, Measured
from benchmarks.fidelity.functions import FIXED
from benchmarks.problems.core import Category, Config

CAP = 30
FANTASIES = 32
STARTS, RAW = 5, 512
OPTIONS = {"batch_limit": 5, "maxiter": 200}


def capped(problem: FidelityProblem) -> FidelityProblem:
    return replace(problem, cap=min(CAP, problem.cap))


class BotorchMultiFidelityKG:
    """The loop around it, on the unit cube with the fidelity last."""

    def __init__(self, problem: FidelityProblem, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._dimensions = (*problem.dimensions, *problem.fidelities)
        if len(problem.fidelities) != 1 or any(isinstance(each, Category) or each.log for each in self._dimensions):
            raise ValueError("this loop is written for plain numbers and one fidelity")
        self._last = len(problem.dimensions)
        self._bounds = torch.tensor([[0.0] * (self._last + 1), [1.0] * (self._last + 1)], dtype=torch.float64)
        self._initial = torch.rand(2 * (self._last + 2), self._last + 1, dtype=torch.float64)
        self._inputs: list[list[float]] = []
        self._values: list[float] = []
        self._asked: list[float] = []
        cost = AffineFidelityCostModel(fidelity_weights={self._last: 1.0}, fixed_cost=FIXED)
        self._utility = InverseCostWeightedUtility(cost_model=cost)
        self.failures = 0  # suggestions that it could not make
        self._fitted: tuple[int, SingleTaskMultiFidelityGP] | None = None

    def suggest(self) -> Sequence[Config]:
        count = len(self._values)
        if count < len(self._initial):
            point = self._initial[count]
        else:
            try:
                point = self._best()
            except NotPSDError:  # after many evaluations at s = 0 that are near each other; a random point, as good as its start
                self.failures += 1
                point = torch.rand(self._last + 1, dtype=torch.float64)
        self._asked = point.tolist()
        return [self._config(self._asked)]

    def observe(self, results: Sequence[Measured]) -> None:
        self._inputs.append(self._asked)
        self._values.append(-results[0].value)  # BoTorch maximizes

    def recommend(self) -> Config | None:
        if len(self._values) < 2:  # nothing can be standardised yet
            return self._config(self._inputs[0]) if self._values else None
        point, _ = self._highest_mean(self._model())
        return self._config([*point.squeeze(0).tolist(), 1.0])

    def _config(self, point: list[float]) -> dict[str, Any]:
        ends = [(float(each.low), float(each.high)) for each in self._dimensions]  # type: ignore[union-attr]
        names = [each.name for each in self._dimensions]
        return {name: low + u * (high - low) for name, u, (low, high) in zip(names, point, ends, strict=True)}

    def _model(self) -> SingleTaskMultiFidelityGP:
        """Fitted anew when there is new data."""
        if self._fitted is None or self._fitted[0] != len(self._values):
            inputs = torch.tensor(self._inputs, dtype=torch.float64)
            values = torch.tensor(self._values, dtype=torch.float64).unsqueeze(-1)
            model = SingleTaskMultiFidelityGP(inputs, values, outcome_transform=Standardize(m=1), data_fidelities=[self._last])
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            self._fitted = (len(self._values), model)
        return self._fitted[1]

    def _highest_mean(self, model: SingleTaskMultiFidelityGP) -> tuple[Tensor, Tensor]:
        mean = FixedFeatureAcquisitionFunction(PosteriorMean(model), d=self._last + 1, columns=[self._last], values=[1.0])
        return optimize_acqf(
            mean, self._bounds[:, : self._last], q=1, num_restarts=STARTS, raw_samples=1024,
            options={"batch_limit": 10, "maxiter": 200},
        )  # fmt: skip

    def _best(self) -> Tensor:
        model = self._model()
        _, current = self._highest_mean(model)
        acquisition = qMultiFidelityKnowledgeGradient(
            model, num_fantasies=FANTASIES, current_value=current, cost_aware_utility=self._utility,
            project=lambda X: project_to_target_fidelity(X, target_fidelities={self._last: 1.0}, d=self._last + 1),
        )  # fmt: skip
        starts = gen_one_shot_kg_initial_conditions(acquisition, self._bounds, q=1, num_restarts=STARTS, raw_samples=RAW)
        point, _ = optimize_acqf(
            acquisition, self._bounds, q=1, num_restarts=STARTS, raw_samples=RAW, batch_initial_conditions=starts,
            options=OPTIONS,
        )  # fmt: skip
        return point.squeeze(0).detach()
