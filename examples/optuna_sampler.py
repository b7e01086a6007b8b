"""Shoestring inside Optuna: one changed line for the sampler, one for the stopping rule, one for the pruner."""

import math
import sys

import optuna

from shoestring.integrations.optuna import ShoestringPruner, ShoestringSampler, ShoestringTerminator


def objective(trial):
    """A learning curve that ends low for a learning rate near 0.03, and that costs more with more layers."""
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    dropout = trial.suggest_float("dropout", 0.0, 0.5) if layers > 2 else 0.0
    trial.set_user_attr("usd", 0.1 * layers)
    end = 0.1 + 0.05 * abs(math.log10(lr / 0.03)) + 0.02 * (4 - layers) + 0.1 * abs(dropout - 0.2)
    for epoch in range(1, 11):
        trial.report(end + 0.5 * math.exp(-epoch / 3), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return end + 0.5 * math.exp(-10 / 3)


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=ShoestringSampler(cost="usd", seed=0), pruner=ShoestringPruner())
    stop = ShoestringTerminator("Patience(15)", cost="usd")
    study.optimize(objective, n_trials=trials, callbacks=[stop])
    pruned = sum(trial.state is optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(f"{len(study.trials)} trials, {pruned} of them pruned, best {study.best_value:.4f} at {study.best_params}")
    print("not stopped" if stop.verdict is None or not stop.verdict.stop else f"stopped: {stop.verdict.reason}")
