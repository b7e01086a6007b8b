"""``ShoestringPruner``: ends trials of an Optuna study that are unlikely to become the best.

A trial that reports intermediate values is compared with the learning curves of the finished trials, by the model of curves of
this library (``surrogate.curves``): how likely is it that this trial, run to its last step, is better than the best one? A trial
is pruned when that probability is below ``probability``. Where it was below before the first report, the trial is pruned when it
is below that share of what it was. What the further steps would cost does not enter. The rule is the one of
``trial.should_stop()`` in studies of this library (``search.pruning``), where ``probability`` is 0.025.

There is no forecast, and no trial is pruned, while fewer than five other trials have a value as early in their runs, while no
trial has come to its last step, and where complete trials show that early values mislead (``surrogate.curves_evidence``).
"""

from __future__ import annotations

import threading
from typing import Any

try:
    from optuna.pruners import BasePruner
    from optuna.study import Study as OptunaStudy
    from optuna.trial import FrozenTrial
except ImportError as error:
    raise ImportError('ShoestringPruner needs Optuna: pip install "shoestring[optuna]"') from error

from .._validation import number_between, whole_number
from ..data.trial import Trial
from ..search.pruning import PRUNING_PROBABILITY, PruningForecast, pruning_forecast
from .optuna_mirror import Mirror, MirrorOptions
from .optuna_sampler import KnownStudies, require_one_objective
from .optuna_trials import to_reports


class ShoestringPruner(BasePruner):
    """A pruner for Optuna studies: ``optuna.create_study(pruner=ShoestringPruner())``, with any sampler.

    The objective reports as always in Optuna: ``trial.report(value, step)``, then ``if trial.should_prune(): raise
    optuna.TrialPruned()``. Values that are reported are taken to be of the same kind as the final one.

    probability    prune a trial that becomes better than the best with a lower probability than this; where the probability was
                   lower before its first report, with a lower one than this share of it
    warmup_steps   steps before which no trial is pruned
    every          steps between two checks
    seed           of the draws of the model

    >>> import optuna
    >>> from shoestring.integrations.optuna import ShoestringPruner
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     for step in range(1, 11):
    ...         trial.report(x + 1 / step, step)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned()
    ...     return x + 0.1
    >>> sampler = optuna.samplers.RandomSampler(seed=0)
    >>> study = optuna.create_study(sampler=sampler, pruner=ShoestringPruner())
    >>> study.optimize(objective, n_trials=15)
    >>> any(trial.state.name == "PRUNED" for trial in study.trials)
    True
    """

    def __init__(self, *, probability: float = PRUNING_PROBABILITY, warmup_steps: int = 0, every: int = 1, seed: int = 0) -> None:
        number_between(probability, "probability", 0.0, 1.0, low_included=False, high_included=False)
        self.probability, self.warmup_steps = probability, whole_number(warmup_steps, "warmup_steps", 0)
        self.every = whole_number(every, "every", 1)
        self.options = MirrorOptions(seed=whole_number(seed, "seed", 0))
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._known = KnownStudies(self.options)

    def __getstate__(self) -> dict[str, Any]:
        """For copies in other processes: what was read is read again there."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_known")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def prune(self, study: OptunaStudy, trial: FrozenTrial) -> bool:
        """Whether the trial should end now; Optuna asks this in ``trial.should_prune()``."""
        step = trial.last_step
        if step is None or step < self.warmup_steps or (step - self.warmup_steps) % self.every:
            return False
        found = self.forecast(study, trial)
        return found is not None and found.should_prune

    def forecast(self, study: OptunaStudy, trial: FrozenTrial) -> PruningForecast | None:
        """How likely the trial becomes better than the best one; None while there is no forecast."""
        require_one_objective(study)
        with self._lock:
            known = self._known.of(study)
            known.update(study.get_trials(deepcopy=False))
            space, steps, now = known.search_space, known.steps, trial.last_step
            if not space or steps is None or now is None or now >= steps[1]:  # nothing to compare with, or nothing to save
                return None
            return forecast_in(known.mirrors(space)[0], trial, self.probability)


def forecast_in(mirror: Mirror, frozen: FrozenTrial, probability: float) -> PruningForecast | None:
    """The forecast of a running trial, by the learning curves of a mirror; it is pruned below this ``probability``."""
    config, reports = mirror.config_of(frozen), to_reports(frozen, mirror.steps)
    if config is None or not reports:
        return None
    context = mirror.context()
    curves = context.fits.curves
    if curves is None or not curves.trusted:
        return None
    number = mirror.rows.get(frozen.number, len(mirror.trials))
    trial = Trial(number, {**config, **mirror.space.target}, fidelity=dict(mirror.space.target))
    return pruning_forecast(context, trial, reports, curves=curves, always=True, threshold=probability)
