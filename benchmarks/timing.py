"""How long each library takes to make one suggestion, given data it has not seen.

Cold is the first suggestion of a fresh study that was handed n observations; warm is the next ones, each
after telling the result of the one before, when a library may reuse what it learned. Telling is timed
together with asking, so that it makes no difference in which of the two a library does its work. BoTorch has
no state between suggestions: model fit and acquisition search are the same every time.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers import optuna_distributions, shoestring_space
from benchmarks.problems.core import Config, Problem, Real

DIMENSIONS = 10
_DIMENSIONS = tuple(Real(f"x{i}", 0.0, 1.0) for i in range(DIMENSIONS))


def smooth(config: Config) -> float:
    """A bowl with a ripple of a different frequency along every axis: smooth, and not trivially modelled."""
    total = 0.0
    for i, dimension in enumerate(_DIMENSIONS):
        x = config[dimension.name]
        total += (x - 0.3 - 0.04 * i) ** 2 + 0.1 * math.sin((4 + i) * x)
    return total


# The optimum plays no part in timing, hence not a number.
PROBLEM = Problem("smooth10", _DIMENSIONS, smooth, math.nan)


@dataclass
class Times:
    """Seconds a suggestion, cold and warm."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)


def observations(n: int, seed: int) -> list[tuple[dict[str, float], float]]:
    """n random configurations with their values."""
    points = np.random.default_rng([n, seed]).random((n, DIMENSIONS))
    configs = [{d.name: float(x) for d, x in zip(_DIMENSIONS, point, strict=True)} for point in points]
    return [(config, smooth(config)) for config in configs]


def _clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def time_shoestring(n: int, seed: int, warm: int) -> Times:
    import shoestring as st

    study = st.Study(shoestring_space(PROBLEM), seed=seed, stop=None)
    for config, value in observations(n, seed):
        study.add(config, value, cost=1.0)
    trial, seconds = _clocked(study.ask)
    times = Times([seconds])
    for _ in range(warm):
        value = smooth(trial.config)
        _, telling = _clocked(lambda: study.tell(trial, value, cost=1.0))  # noqa: B023
        trial, asking = _clocked(study.ask)
        times.warm.append(telling + asking)
    return times


def time_method(method: Any, n: int, seed: int, warm: int) -> list[float]:
    """Warm suggestions of one method of ours, on data whose costs differ tenfold."""
    import shoestring as st

    def cost(config: Config) -> float:
        return math.exp(1.5 * config["x0"] + config["x1"])

    study = st.Study(shoestring_space(PROBLEM), method=method, seed=seed, stop=None)
    for config, value in observations(n, seed):
        study.add(config, value, cost=cost(config))
    trial, times = study.ask(), []
    for _ in range(warm):
        study.tell(trial, smooth(trial.config), cost=cost(trial.config))
        trial, seconds = _clocked(study.ask)
        times.append(seconds)
    return times


def time_checks(n: int, seed: int, warm: int, **options: Any) -> dict[str, list[float]]:
    """Warm EI suggestions, fit included, and before each the checks of stopping rules with the belief of that step at hand.

    Rules that go on (the usual case), and rules that say stop, which have to search to the end.
    """
    import shoestring as st

    rules = {
        "regret_bound": st.RegretBound(1e-9), "sure_bound": st.SureBound(1e-9), "worth_it": st.WorthIt(1e-9),
        "ei_below": st.EIBelow(1e-12), "pi_below": st.PIBelow(1e-9),
        "regret_bound_stopping": st.RegretBound(1e9), "sure_bound_stopping": st.SureBound(1e9),
    }  # fmt: skip
    study = st.Study(shoestring_space(PROBLEM), method=st.EI(), seed=seed, stop=None, **options)
    for config, value in observations(n, seed):
        study.add(config, value, cost=1.0)
    trial = study.ask()
    times: dict[str, list[float]] = {"ask": [], **{name: [] for name in rules}}
    for _ in range(warm):
        study.tell(trial, smooth(trial.config), cost=1.0)
        study.context.belief(costs=True)
        for name, rule in rules.items():
            study.rule = rule
            times[name].append(_clocked(lambda: study.suggester.check_rule(None))[1])
        study.suggester._context = None  # so that the suggestion is timed with its fit
        trial, seconds = _clocked(study.ask)
        times["ask"].append(seconds)
    return times


def time_optuna(n: int, seed: int, warm: int) -> Times:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = optuna_distributions(PROBLEM)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed))
    for config, value in observations(n, seed):
        study.add_trial(optuna.trial.create_trial(params=config, distributions=space, value=value))
    trial, seconds = _clocked(lambda: study.ask(space))
    times = Times([seconds])
    for _ in range(warm):
        value = smooth(trial.params)
        _, telling = _clocked(lambda: study.tell(trial, value))  # noqa: B023
        trial, asking = _clocked(lambda: study.ask(space))
        times.warm.append(telling + asking)
    return times


def time_botorch(n: int, seed: int, warm: int) -> Times:
    """Always one suggestion, counted as cold and as warm: there is nothing to warm up."""
    import torch

    from benchmarks.botorch_peer import encode, propose

    torch.manual_seed(seed)
    data = observations(n, seed)
    inputs = torch.tensor([encode(_DIMENSIONS, config) for config, _ in data], dtype=torch.float64)
    values = torch.tensor([value for _, value in data], dtype=torch.float64)
    _, seconds = _clocked(lambda: propose(inputs, values))
    return Times([seconds], [seconds])


TIMERS: dict[str, Callable[[int, int, int], Times]] = {
    "shoestring": time_shoestring,
    "optuna": time_optuna,
    "botorch": time_botorch,
}
