"""XGBoost: report the rounds of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = XGBoostCallback(trial)
        xgboost.train({"eta": config["eta"]}, data, num_boost_round=callback.remaining, evals=[(validation, "validation")],
                      callbacks=[callback], xgb_model=callback.file, verbose_eval=False)
        return callback.value

The model of a training that was stopped has the rounds up to there. Also as ``callbacks=`` of ``XGBClassifier``.
"""

from __future__ import annotations

from typing import Any

from ..execution.evaluate import LiveTrial
from .callback import TrainingCallback, framework, monitored

_callback = framework("xgboost.callback", "xgboost", "XGBoostCallback")


class XGBoostCallback(_callback.TrainingCallback, TrainingCallback):  # type: ignore[misc, name-defined]
    """A callback for ``xgboost.train`` and for the estimators of XGBoost. One epoch is one round of boosting.

    monitor   the metric to watch, as XGBoost prints it: "validation-rmse". None: the last one of the last data set, as XGBoost's
              early stopping has it

    The other arguments, and ``value``, ``remaining`` and ``file``, are those of ``TrainingCallback``.
    """

    suffix = ".ubj"

    def __init__(self, trial: LiveTrial, monitor: str | None = None, **options: Any) -> None:
        _callback.TrainingCallback.__init__(self)
        TrainingCallback.__init__(self, trial, **options)
        self.monitor = monitor

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """True ends the training. A booster counts its rounds from the start of the run, also those of an earlier trial."""
        found = {f"{data}-{metric}": values[-1] for data, metrics in evals_log.items() for metric, values in metrics.items()}
        value = monitored(found, self.monitor, next(reversed(found), None))
        value = value[0] if isinstance(value, tuple) else value  # of a cross-validation: the mean and its deviation
        rounds = getattr(model, "num_boosted_rounds", None)  # a cross-validation has several models, and no checkpoint
        return self.step(value, None if rounds is None else rounds(), save=None if rounds is None else model.save_model)
