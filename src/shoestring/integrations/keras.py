"""Keras: report the epochs of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = KerasCallback(trial)
        model = keras.models.load_model(callback.file) if callback.file else build(config)
        model.fit(x, y, validation_data=validation, initial_epoch=callback.done, epochs=callback.asked, callbacks=[callback])
        return callback.value

A checkpoint is the whole model, with the state of its optimizer. For Keras 3, with any of its backends.

With ``validation_freq=2`` every other epoch has no validation metrics. Such an epoch is counted and not reported: its training
loss is no value of ``val_loss``. Keras does not tell its callbacks whether there are validation data, and with
``validation_freq`` the first epochs do not show it. So the callback looks at the arguments of the ``fit`` that calls it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import OutcomeError
from ..execution.evaluate import LiveTrial
from .callback import TrainingCallback, framework, monitored

_callbacks = framework("keras.callbacks", "keras", "KerasCallback")

VALIDATION = "val_"  # how the names of validation metrics begin


class KerasCallback(_callbacks.Callback, TrainingCallback):  # type: ignore[misc, name-defined]
    """A callback for ``model.fit`` of Keras.

    monitor   the metric to watch; None: "val_loss", or "loss" without validation data. Give it where ``validation_freq`` is not 1

    Epochs without the validation metric that is watched are not reported. The other arguments, and ``value``, ``done``, ``asked``
    and ``file``, are those of ``TrainingCallback``.
    """

    suffix = ".keras"

    def __init__(self, trial: LiveTrial, monitor: str | None = None, **options: Any) -> None:
        _callbacks.Callback.__init__(self)
        TrainingCallback.__init__(self, trial, **options)
        self.monitor = monitor
        self._watched = monitor

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras counts epochs from 0, and from ``initial_epoch`` for a model that goes on."""
        found = dict(logs or {})
        validated = any(name.startswith(VALIDATION) for name in found)
        if self._watched is None:  # the first epoch decides: a run has one metric
            self._watched = "val_loss" if validated else "loss"
        if validated and self.monitor is None and self._watched == "loss":
            what = "not every epoch is validated, so that it is not clear which metric to watch"
            raise OutcomeError(f'{what}; say so: KerasCallback(trial, monitor="val_loss") or monitor="loss"')
        waits = self._watched.startswith(VALIDATION) and not validated
        value = None if waits else monitored(found, self._watched, None)

        def save(path: Path) -> None:
            self.model.save(str(path))

        if self.step(value, epoch + 1, save=save) and self.stopped:
            self.model.stop_training = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Say so if no epoch was validated."""
        if self.epoch > self.done:
            self.require_value()
