"""Peers that prune or promote: Optuna's TPE with its Hyperband pruner, and SMAC's multi-fidelity search.

Their one resource is the growth of a model (epochs, trees); the training set is whole. Optuna goes on with the model it has: an
evaluation is paid for piece by piece, and is judged at the rungs alone (1, 3, 9, ... times the least), since judging it after
every unit, as is common, would cost it time for nothing. SMAC asks for a config at a budget and starts it anew.

Both recommend their best: Optuna of the trials that were completed, or before that of the most grown; SMAC its incumbent at
the highest budget seen.
"""

import math
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fidelity.core import FidelityProblem, high
from benchmarks.fidelity.curves import Curve, Recorder
from benchmarks.fidelity.real import SHARE, Task
from benchmarks.problems.core import Category, Config, Integer, Problem

REDUCTION = 3


def rungs(growth: Integer) -> list[int]:
    """Where a trial may be ended, and the end."""
    steps = math.ceil(math.log(growth.high / growth.low, REDUCTION) - 1e-9)
    return [growth.low * REDUCTION**k for k in range(steps)] + [growth.high]


def _task(problem: FidelityProblem) -> Task:
    if not isinstance(problem, Task):
        raise AttributeError(f"{problem.name} has no model that grows")
    return problem


def optuna_hyperband(problem: FidelityProblem, seed: int) -> Curve:
    import optuna

    from benchmarks.peers import optuna_distributions

    task = _task(problem)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    growth, steps = task.growth, rungs(task.growth)
    pruner = optuna.pruners.HyperbandPruner(min_resource=growth.low, max_resource=growth.high, reduction_factor=REDUCTION)
    # The name decides which bracket a trial belongs to, so it has to be the same every time.
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner, study_name=f"seed {seed}")
    distributions = optuna_distributions(Problem(task.name, task.dimensions, lambda config: 0.0, 0.0))

    def best() -> Config | None:
        grown = [trial for trial in study.get_trials(deepcopy=False) if trial.last_step is not None]
        done = [trial for trial in grown if trial.state.is_finished()]
        return min(done, key=lambda t: (-t.last_step, t.intermediate_values[t.last_step])).params if done else None

    recorder = Recorder(task, best)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not recorder.over:
            began = time.process_time()
            trial = study.ask(distributions)
            recorder.think(time.process_time() - began)
            config = task.at_target(trial.params)
            reached, total, clock = 0, 0.0, time.process_time()
            model = task.start(config)
            for step in steps:
                model.grow(step - reached)
                error, reached = model.error(), step
                paid = time.process_time() - clock
                recorder.spend(paid)
                total += paid
                trial.report(error, step)
                if step < growth.high and (trial.should_prune() or recorder.over):
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    break
                clock = time.process_time()
            else:
                study.tell(trial, error)
            recorder.pay([config | {growth.name: reached}], [total], price=0.0)
        return recorder.curve("optuna_hyperband", seed)


def smac_hyperband(problem: FidelityProblem, seed: int) -> Curve:
    from ConfigSpace import ConfigurationSpace, Float
    from ConfigSpace import Integer as WholeNumber
    from smac import MultiFidelityFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    task = _task(problem)
    space, growth = ConfigurationSpace(seed=seed), task.growth
    for each in task.dimensions:
        assert not isinstance(each, Category)
        kind: Any = WholeNumber if isinstance(each, Integer) else Float
        space.add(kind(each.name, (each.low, each.high), log=each.log))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = Scenario(
            space, deterministic=True, n_trials=10 * task.cap, min_budget=growth.low, max_budget=growth.high, seed=seed,
            output_directory=Path(folder),
        )  # fmt: skip
        smac = MultiFidelityFacade(
            scenario, lambda config, seed, budget: 0.0, logging_level=False, overwrite=True,
            intensifier=MultiFidelityFacade.get_intensifier(scenario, eta=REDUCTION),
        )  # fmt: skip

        def incumbent() -> Config | None:
            found = smac.intensifier.get_incumbents()
            return dict(found[0]) if found else None

        recorder = Recorder(task, incumbent)
        while not recorder.over:
            began = time.process_time()
            info = smac.ask()
            recorder.think(time.process_time() - began)
            config = dict(info.config) | {SHARE.name: high(SHARE), growth.name: max(round(info.budget), growth.low)}
            found = task.evaluate(config)
            recorder.pay([config], [found.cost])
            smac.tell(info, TrialValue(cost=found.value, time=found.cost))
        return recorder.curve("smac_hyperband", seed)


RUNS: dict[str, Callable[[FidelityProblem, int], Curve]] = {
    "optuna_hyperband": optuna_hyperband,
    "smac_hyperband": smac_hyperband,
}
