"""The searchers compared, behind one small interface.

Each is built from a problem and a seed with the settings its own library recommends by default: libraries are
compared as a user meets them, not as an expert would tune them. They are imported when they are first needed,
so that one can be benchmarked without the others being installed.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from benchmarks.problems.core import Category, Integer, Problem


class Searcher(Protocol):
    """Proposes configurations and is told what they were worth."""

    def suggest(self) -> dict[str, Any]: ...

    def observe(self, config: dict[str, Any], value: float) -> None: ...


class RandomSearcher:
    """Uniform sampling, on the log scale where the dimension asks for it: the floor for everybody else."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._dimensions = problem.dimensions
        self._rng = np.random.default_rng(seed)

    def suggest(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for dimension in self._dimensions:
            if isinstance(dimension, Category):
                config[dimension.name] = dimension.options[self._rng.integers(len(dimension.options))]
                continue
            # Half a unit of room at both ends makes an integer's end values as likely as the others.
            room = 0.5 if isinstance(dimension, Integer) else 0.0
            low, high = dimension.low - room, dimension.high + room
            if dimension.log:
                value = float(np.exp(self._rng.uniform(np.log(low), np.log(high))))
            else:
                value = float(self._rng.uniform(low, high))
            value = min(max(value, dimension.low), dimension.high)
            config[dimension.name] = round(value) if isinstance(dimension, Integer) else value
        return config

    def observe(self, config: dict[str, Any], value: float) -> None:
        pass


class OptunaSearcher:
    """Optuna's ask-and-tell interface with one of its samplers at its default settings."""

    def __init__(self, problem: Problem, sampler: Any) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.distributions = optuna_distributions(problem)
        self.study = optuna.create_study(direction="minimize", sampler=sampler)
        self._trial: Any = None

    def suggest(self) -> dict[str, Any]:
        self._trial = self.study.ask(self.distributions)
        return dict(self._trial.params)

    def observe(self, config: dict[str, Any], value: float) -> None:
        self.study.tell(self._trial, value)


def optuna_distributions(problem: Problem) -> dict[str, Any]:
    """The problem's space in Optuna's terms: all parameters, since a fixed set of distributions has no conditions."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    space: dict[str, Any] = {}
    for dimension in problem.dimensions:
        if isinstance(dimension, Category):
            space[dimension.name] = CategoricalDistribution(dimension.options)
        elif isinstance(dimension, Integer):
            space[dimension.name] = IntDistribution(dimension.low, dimension.high, log=dimension.log)
        else:
            space[dimension.name] = FloatDistribution(dimension.low, dimension.high, log=dimension.log)
    return space


def optuna_gp(problem: Problem, seed: int) -> OptunaSearcher:
    """Optuna's Gaussian-process sampler; it computes with torch, here on one thread like the rest."""
    import optuna
    import torch

    torch.set_num_threads(1)
    return OptunaSearcher(problem, optuna.samplers.GPSampler(seed=seed))


def optuna_tpe(problem: Problem, seed: int) -> OptunaSearcher:
    """Optuna's default sampler, the tree-structured Parzen estimator."""
    import optuna

    return OptunaSearcher(problem, optuna.samplers.TPESampler(seed=seed))


def botorch(problem: Problem, seed: int) -> Searcher:
    """The standard BoTorch loop, described in its own module."""
    from benchmarks.botorch_peer import BotorchSearcher

    return BotorchSearcher(problem, seed)


class ShoestringSearcher:
    """The library under test; a method may be named, otherwise it is whatever the default is."""

    def __init__(self, problem: Problem, seed: int, method: str | None = None) -> None:
        import shoestring as st

        options: dict[str, Any] = {} if method is None else {"method": getattr(st, method)()}
        self.study = st.Study(shoestring_space(problem), seed=seed, stop=None, **options)
        self._trial: Any = None

    def suggest(self) -> dict[str, Any]:
        self._trial = self.study.ask()
        return dict(self._trial.config)

    def observe(self, config: dict[str, Any], value: float) -> None:
        self.study.tell(self._trial, value, cost=1.0)


def shoestring_space(problem: Problem) -> Any:
    """The problem's space in Shoestring's terms, conditions included."""
    import shoestring as st

    space: dict[str, Any] = {}
    for dimension in problem.dimensions:
        when = None if dimension.when is None else {dimension.when[0]: list(dimension.when[1])}
        if isinstance(dimension, Category):
            space[dimension.name] = st.Choice(*dimension.options, when=when)
        elif isinstance(dimension, Integer):
            space[dimension.name] = st.Int(dimension.low, dimension.high, log=dimension.log, when=when)
        else:
            space[dimension.name] = st.Float(dimension.low, dimension.high, log=dimension.log, when=when)
    return st.Space(**space)


PEERS: dict[str, Callable[[Problem, int], Searcher]] = {
    "random": RandomSearcher,
    "optuna_tpe": optuna_tpe,
    "optuna_gp": optuna_gp,
    "botorch": botorch,
    "shoestring": ShoestringSearcher,
}
DEFAULT = tuple(PEERS)


def build(method: str, problem: Problem, seed: int) -> Searcher:
    """Make a searcher by name; ``shoestring-NAME`` is Shoestring with ``method=NAME``."""
    if method.startswith("shoestring-"):
        return ShoestringSearcher(problem, seed, method.removeprefix("shoestring-"))
    if method not in PEERS:
        raise ValueError(f"no method is called {method!r}; there are {', '.join(PEERS)}")
    return PEERS[method](problem, seed)
