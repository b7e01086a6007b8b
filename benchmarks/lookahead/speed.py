"""One suggestion by look-ahead methods in ten dimensions, ours and BoTorch's, taking turns on the same data on one thread.

Times are of a whole suggestion: model fit and search. Ours are warm suggestions (the next after telling a result), as in
``benchmarks.latency``; BoTorch has no state. BoTorch's settings are those of its documentation where it names some:
qKnowledgeGradient with 64 fantasies, 10 restarts, 256 raw samples; qMaxValueEntropy over 1,000 candidates;
qPredictiveEntropySearch over 10 sampled optima.
"""

import statistics
import sys
import time
from typing import Any

from benchmarks.timing import observations, smooth, time_method

PEER_SEEDS = 3  # BoTorch takes a minute or more a suggestion
METHODS = ("EI", "KG", "MES", "ES", "PES")


def ours(n: int, seed: int, warm: int = 3) -> dict[str, list[float]]:
    """Seconds a suggestion by each of our methods."""
    import shoestring as st

    return {name: time_method(getattr(st, name)(), n, seed, warm) for name in METHODS if hasattr(st, name)}


def botorch(n: int, seed: int, which: str) -> tuple[float, dict[str, float]]:
    """Seconds of one suggestion, and the suggested config."""
    import torch
    from botorch.acquisition.analytic import PosteriorMean
    from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
    from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
    from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
    from botorch.acquisition.utils import get_optimal_samples
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    data = observations(n, seed)
    inputs = torch.tensor([list(config.values()) for config, _ in data], dtype=torch.float64)
    values = -torch.tensor([[value] for _, value in data], dtype=torch.float64)  # BoTorch maximizes
    bounds = torch.tensor([[0.0] * inputs.shape[1], [1.0] * inputs.shape[1]], dtype=torch.float64)
    began = time.perf_counter()
    model = SingleTaskGP(inputs, values, outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    if which == "KG":
        _, best = optimize_acqf(PosteriorMean(model), bounds, q=1, num_restarts=10, raw_samples=256)
        acquisition: Any = qKnowledgeGradient(model, num_fantasies=64, current_value=best)
    elif which == "MES":
        acquisition = qMaxValueEntropy(model, torch.rand(1000, inputs.shape[1], dtype=torch.float64))
    else:
        optima, _ = get_optimal_samples(model, bounds, num_optima=10)
        acquisition = qPredictiveEntropySearch(model, optima)
    restarts, raw = (10, 256) if which == "KG" else (4, 256)
    options = {} if which != "PES" else {"with_grad": False}
    if options:  # its gradient is not reliable, as its documentation says
        point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=restarts, raw_samples=raw, options=options)
    else:
        point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=restarts, raw_samples=raw)
    seconds = time.perf_counter() - began
    names = list(data[0][0])
    return seconds, {name: float(x) for name, x in zip(names, point[0], strict=True)}


def measure(sizes: tuple[int, ...], repeats: int, peers: bool) -> dict[str, Any]:
    """Median times by method and size, and what BoTorch's knowledge gradient suggested, for the judge."""
    times: dict[str, dict[str, list[float]]] = {}
    suggested: list[dict[str, Any]] = []
    for n in sizes:
        for seed in range(repeats):
            for name, found in ours(n, seed).items():
                times.setdefault(name, {}).setdefault(str(n), []).extend(found)
            for which in ("KG", "MES", "PES") if peers and seed < PEER_SEEDS else ():
                seconds, config = botorch(n, seed, which)
                times.setdefault(f"botorch {which}", {}).setdefault(str(n), []).append(seconds)
                suggested.append({"n": n, "seed": seed, "which": which, "config": config, "value": smooth(config)})
                print(f"botorch {which} n={n}: {seconds:.1f} s", file=sys.stderr, flush=True)
    ms = {name: {n: round(1e3 * statistics.median(found), 2) for n, found in by.items()} for name, by in times.items()}
    return {"ms": ms, "suggested": suggested}
