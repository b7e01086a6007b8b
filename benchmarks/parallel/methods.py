"""The searchers compared, by label: a method and how many workers it has, such as ``auto@8``.

All evaluate asynchronously in simulated time, in which an evaluation takes as long as it costs: whenever a worker is free, the
searcher is asked for a configuration, and it is told a result when its time has come. Shoestring does so by its own loop
(``shoestring.execution.simulated``); the others by ask and tell, in the same order of events. Thinking takes no simulated time.
Nothing is asked after so many evaluations, or, if there is a limit, from that simulated time on.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cost_aware.core import CostProblem
from benchmarks.peers import OptunaSearcher, RandomSearcher, optuna_distributions, shoestring_space

WORKERS = 8
OURS = {"auto": "auto", "ei": "EI", "kg": "KG"}
PEERS = ("optuna_tpe", "optuna_gp", "random")
REFERENCE = "auto@1"
LABELS = tuple(f"{name}@{WORKERS}" for name in (*OURS, *PEERS))


@dataclass(frozen=True)
class Course:
    """What was evaluated, in order of asking: value, cost, start and end in simulated seconds; and the searcher's own seconds."""

    values: list[float]
    costs: list[float]
    starts: list[float]
    ends: list[float]
    seconds: float


def parsed(label: str) -> tuple[str, int]:
    name, _, workers = label.partition("@")
    if name not in OURS and name not in PEERS:
        raise ValueError(f"no method is called {name!r}; there are {', '.join((*OURS, *PEERS))}")
    return name, int(workers or WORKERS)


def follow(label: str, problem: CostProblem, seed: int, evaluations: int, limit: float | None = None) -> Course:
    """Run a method to its end."""
    name, workers = parsed(label)
    if name in OURS:
        return shoestring(OURS[name], problem, seed, evaluations, workers, limit)
    return asynchronously(searcher(name, problem, seed), problem, evaluations, workers, limit)


def shoestring(
    method: str, problem: CostProblem, seed: int, evaluations: int, workers: int, limit: float | None = None
) -> Course:
    import shoestring as st
    from shoestring.execution.simulated import simulate

    def objective(config: dict[str, Any]) -> st.Outcome:
        value, cost = problem.evaluate(config)
        return st.Outcome(value, cost=cost)

    space = shoestring_space(problem.without_costs())
    study = st.Study(space, method="auto" if method == "auto" else getattr(st, method)(), seed=seed, stop=None)
    run = simulate(study, objective, st.Budget(trials=evaluations, seconds=limit), workers=workers)
    trials = [trial for trial in run.result.history if trial.number in run.spans]
    return Course(
        [float(trial.value) for trial in trials], [float(trial.cost) for trial in trials],
        [run.spans[trial.number].start for trial in trials], [run.spans[trial.number].end for trial in trials],
        study.optimizer_seconds,
    )  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """Ask gives something to tell by, and a configuration."""

    ask: Callable[[], tuple[Any, dict[str, Any]]]
    tell: Callable[[Any, float], object]


def searcher(name: str, problem: CostProblem, seed: int) -> Peer:
    plain = problem.without_costs()
    if name == "random":
        random = RandomSearcher(plain, seed)
        return Peer(lambda: (None, random.suggest()), lambda trial, value: None)
    import optuna

    if name == "optuna_gp":
        import torch

        torch.set_num_threads(1)
        sampler: Any = optuna.samplers.GPSampler(seed=seed)
    else:
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study, distributions = OptunaSearcher(plain, sampler).study, optuna_distributions(plain)

    def ask() -> tuple[Any, dict[str, Any]]:
        trial = study.ask(distributions)
        return trial, dict(trial.params)

    return Peer(ask, study.tell)


def asynchronously(peer: Peer, problem: CostProblem, evaluations: int, workers: int, limit: float | None = None) -> Course:
    """Ask whenever somebody is free; tell when the time has come."""
    values, costs, starts, ends = [], [], [], []
    running: list[tuple[float, int, Any]] = []
    now, seconds = 0.0, 0.0
    while (goes_on := len(values) < evaluations and (limit is None or now < limit)) or running:
        began = time.perf_counter()
        if goes_on and len(running) < workers:
            trial, config = peer.ask()
            seconds += time.perf_counter() - began
            value, cost = problem.evaluate(config)
            values.append(value)
            costs.append(cost)
            starts.append(now)
            ends.append(now + cost)
            heapq.heappush(running, (now + cost, len(values) - 1, trial))
        else:
            now, number, trial = heapq.heappop(running)
            peer.tell(trial, values[number])
            seconds += time.perf_counter() - began
    return Course(values, costs, starts, ends, seconds)
