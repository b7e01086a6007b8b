"""BoTorch's standard loop: a Gaussian process with default priors and log expected improvement.

BoTorch is a toolkit rather than a searcher, so the loop has to be written by whoever uses it. This is the one
from its tutorials: ten Sobol points, then SingleTaskGP on the unit cube with standardised outcomes, and the
acquisition maximised from ten restarts out of 512 raw samples. Integers are relaxed and rounded, categories
one-hot encoded and decided by the largest entry; the model is trained on the points as evaluated, after
rounding.

Rounding has a known weakness: on a grid the plain loop proposes the same configuration again and again (24
distinct ones in 80 on one FCNet table). So a repeat is replaced by the unseen configuration of largest
acquisition value among random ones, which makes BoTorch the stronger opponent that a user would turn it into.
"""

import math
from typing import Any

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.problems.core import Category, Dimension, Integer, Problem

INITIAL = 10


def _ends(dimension: Dimension) -> tuple[float, float]:
    """The interval that [0, 1] stands for; integers get half a unit of room to weigh alike."""
    assert not isinstance(dimension, Category)
    room = 0.5 if isinstance(dimension, Integer) else 0.0
    low, high = float(dimension.low) - room, float(dimension.high) + room
    return (math.log(low), math.log(high)) if dimension.log else (low, high)


def width(dimension: Dimension) -> int:
    """How many model inputs a dimension takes."""
    return len(dimension.options) if isinstance(dimension, Category) else 1


def encode(dimensions: tuple[Dimension, ...], config: dict[str, Any]) -> list[float]:
    """A configuration as a point of the unit cube."""
    point: list[float] = []
    for dimension in dimensions:
        value = config[dimension.name]
        if isinstance(dimension, Category):
            point.extend(float(option == value) for option in dimension.options)
        else:
            low, high = _ends(dimension)
            point.append(((math.log(value) if dimension.log else value) - low) / (high - low))
    return point


def decode(dimensions: tuple[Dimension, ...], point: list[float]) -> dict[str, Any]:
    """The configuration nearest to a point of the unit cube."""
    config: dict[str, Any] = {}
    start = 0
    for dimension in dimensions:
        part = point[start : start + width(dimension)]
        start += width(dimension)
        if isinstance(dimension, Category):
            config[dimension.name] = dimension.options[part.index(max(part))]
            continue
        low, high = _ends(dimension)
        value = low + part[0] * (high - low)
        value = min(max(math.exp(value) if dimension.log else value, dimension.low), dimension.high)
        config[dimension.name] = round(value) if isinstance(dimension, Integer) else value
    return config


def propose(inputs: Tensor, values: Tensor) -> tuple[Tensor, LogExpectedImprovement]:
    """Fit the model and maximise log expected improvement; values are to be minimised, BoTorch maximises."""
    outcomes = -values.unsqueeze(-1)
    model = SingleTaskGP(inputs, outcomes, outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    bounds = torch.stack([torch.zeros_like(inputs[0]), torch.ones_like(inputs[0])])
    acquisition = LogExpectedImprovement(model, best_f=outcomes.max())
    candidate, _ = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
    return candidate.squeeze(0), acquisition


class BotorchSearcher:
    """The loop around it."""

    def __init__(self, problem: Problem, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._dimensions = problem.dimensions
        size = sum(width(dimension) for dimension in problem.dimensions)
        sobol = SobolEngine(size, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
        self._initial: list[list[float]] = sobol.draw(INITIAL, dtype=torch.float64).tolist()
        self._inputs: list[list[float]] = []
        self._values: list[float] = []

    def suggest(self) -> dict[str, Any]:
        if len(self._values) < INITIAL:
            return decode(self._dimensions, self._initial[len(self._values)])
        inputs = torch.tensor(self._inputs, dtype=torch.float64)
        values = torch.tensor(self._values, dtype=torch.float64)
        point, acquisition = propose(inputs, values)
        config = decode(self._dimensions, point.tolist())
        if encode(self._dimensions, config) in self._inputs:
            return self._unseen(acquisition) or config
        return config

    def _unseen(self, acquisition: LogExpectedImprovement) -> dict[str, Any] | None:
        """The best of 512 random configurations that were not evaluated before, if there is one."""
        points = torch.rand(512, len(self._inputs[0]), dtype=torch.float64).tolist()
        configs = [decode(self._dimensions, point) for point in points]
        encoded = [encode(self._dimensions, config) for config in configs]
        fresh = [index for index, point in enumerate(encoded) if point not in self._inputs]
        if not fresh:
            return None
        with torch.no_grad():
            worth = acquisition(torch.tensor([[encoded[index]] for index in fresh], dtype=torch.float64))
        return configs[fresh[int(worth.argmax())]]

    def observe(self, config: dict[str, Any], value: float) -> None:
        self._inputs.append(encode(self._dimensions, config))
        self._values.append(value)
