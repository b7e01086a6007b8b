"""LightGBM: report the rounds of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = LightGBMCallback(trial)
        lightgbm.train({"objective": "regression", "learning_rate": config["eta"]}, data, num_boost_round=callback.remaining,
                       valid_sets=[validation], callbacks=[callback], init_model=callback.file)
        return callback.value

The model of a training that was stopped has the rounds up to there. Also as ``callbacks=`` of ``LGBMClassifier.fit``.
"""

from __future__ import annotations

from typing import Any

from ..execution.evaluate import LiveTrial
from .callback import TrainingCallback, framework, monitored


class LightGBMCallback(TrainingCallback):
    """A callback for ``lightgbm.train`` and for the estimators of LightGBM. One epoch is one round of boosting.

    monitor   the metric to watch, as LightGBM prints it: "valid_0 l2". None: the first one of the first data set that is not the
              training data

    The other arguments, and ``value``, ``remaining`` and ``file``, are those of ``TrainingCallback``.
    """

    suffix = ".txt"
    order = 35  # after those of LightGBM: early stopping has 30
    before_iteration = False

    def __init__(self, trial: LiveTrial, monitor: str | None = None, **options: Any) -> None:
        super().__init__(trial, **options)
        self.monitor = monitor

    def __call__(self, env: Any) -> None:
        """Called by LightGBM after each round. Its own exception ends the training, as in its early stopping."""
        found = {f"{row[0]} {row[1]}": row[2] for row in env.evaluation_result_list}
        validated = (name for name in found if not name.startswith("training "))
        value = monitored(found, self.monitor, next(validated, None))
        single = hasattr(env.model, "save_model")  # a cross-validation has several models, and no checkpoint

        def save(path: Any) -> None:
            env.model.save_model(str(path), num_iteration=-1)

        if self.step(value, env.iteration + 1, save=save if single else None) and env.iteration + 1 < env.end_iteration:
            library = framework("lightgbm.callback", "lightgbm", "LightGBMCallback")
            raise library.EarlyStopException(env.iteration, env.evaluation_result_list)
