"""Other libraries on tables of curves: Optuna's samplers and pruners, and SMAC's multi-fidelity facade, at their defaults.

Optuna prunes: a run is judged after every epoch, and one that is stopped never goes on. SMAC promotes: it asks for a config at
a number of epochs. Here a promoted config goes on from what it has, as if its script kept a checkpoint for each config, and pays
for the rest alone. Each is judged by its own incumbent: the lowest value at the highest fidelity seen.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.curves import tables
from benchmarks.curves.ledger import CAP, Ledger
from benchmarks.peers import optuna_distributions
from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem

REDUCTION = 3  # one in so many is promoted


def problem_of(name: str) -> Problem:
    return Problem(name, tables.load(name).dimensions, lambda config: 0.0, 0.0)


def optuna_gp(name: str, seed: int) -> Ledger:
    """Whole runs only."""
    table, searcher = tables.load(name), peers.optuna_gp(problem_of(name), seed)
    seen: list[tuple[float, Config]] = []
    ledger = Ledger(name, lambda: min(seen, key=lambda pair: pair[0])[1] if seen else None)
    while not ledger.over:
        config = searcher.suggest()
        value, cost = table.evaluate(config, seed)
        ledger.before(cost)
        searcher.observe(config, value)
        seen.append((value, config))
    return ledger


def optuna_hyperband(name: str, seed: int) -> Ledger:
    import optuna

    last = len(tables.load(name).units)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=last, reduction_factor=REDUCTION)
    return pruned(name, seed, pruner)


def optuna_asha(name: str, seed: int) -> Ledger:
    import optuna

    return pruned(name, seed, optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=REDUCTION))


def pruned(name: str, seed: int, pruner: Any) -> Ledger:
    """Optuna's TPE with a pruner that is asked after every point of the curve."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table, distributions = tables.load(name), optuna_distributions(problem_of(name))
    # The name decides which bracket of Hyperband a trial belongs to, so it has to be the same every time.
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner, study_name=f"seed {seed}")

    def best() -> Config | None:
        done = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished() and trial.last_step is not None]
        return min(done, key=lambda t: (-t.last_step, t.intermediate_values[t.last_step])).params if done else None

    ledger = Ledger(name, best)
    while not ledger.over:
        trial = study.ask(distributions)
        curve, paid, state = table.curve(trial.params, seed), 0.0, optuna.trial.TrialState.COMPLETE
        for number in range(len(table.units)):
            paid = float(curve.seconds[number])
            if not np.isfinite(curve.valid[number]):
                state = optuna.trial.TrialState.FAIL
                break
            trial.report(float(curve.valid[number]), number + 1)
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        ledger.before(paid)
        study.tell(trial, float(curve.valid[number]) if state == optuna.trial.TrialState.COMPLETE else None, state=state)
    return ledger


def smac_space(dimensions: tuple[Dimension, ...], seed: int) -> Any:
    """The space in the terms of ConfigSpace."""
    from ConfigSpace import Categorical, ConfigurationSpace, Float
    from ConfigSpace import Integer as WholeNumber

    space = ConfigurationSpace(seed=seed)
    for each in dimensions:
        if isinstance(each, Category):
            space.add(Categorical(each.name, list(each.options)))
        else:
            kind: Any = WholeNumber if isinstance(each, Integer) else Float
            space.add(kind(each.name, (each.low, each.high), log=each.log))
    return space


def smac(name: str, seed: int) -> Ledger:
    """Its incumbent is that of the highest budget observed."""
    from smac import MultiFidelityFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue
    from smac.runhistory.enumerations import StatusType

    table = tables.load(name)
    reached: dict[Any, float] = {}  # seconds of a config until the last epoch that it was asked for
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = Scenario(
            smac_space(table.dimensions, seed), deterministic=True, n_trials=CAP, min_budget=float(table.units[0]),
            max_budget=float(table.units[-1]), seed=seed, output_directory=Path(folder),
        )  # fmt: skip
        facade = MultiFidelityFacade(
            scenario, lambda config, seed, budget: 0.0, logging_level=False, overwrite=True,
            intensifier=MultiFidelityFacade.get_intensifier(scenario, eta=REDUCTION),
        )  # fmt: skip

        def incumbent() -> Config | None:
            found = facade.intensifier.get_incumbents()
            return dict(found[0]) if found else None

        ledger = Ledger(name, incumbent)
        while not ledger.over:
            info = facade.ask()
            value, paid = table.curve(dict(info.config), seed).until(max(round(info.budget), 1))
            ledger.before(max(paid - reached.get(info.config, 0.0), 0.0))
            reached[info.config] = paid
            fine = bool(np.isfinite(value))
            status = StatusType.SUCCESS if fine else StatusType.CRASHED
            facade.tell(info, TrialValue(cost=value if fine else 1e9, time=paid, status=status))
        ledger.rest()  # the incumbent is read while its folder exists
    return ledger
