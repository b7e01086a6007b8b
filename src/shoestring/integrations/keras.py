"""Keras: report the epochs of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = KerasCallback(trial)
        model = keras.models.load_model(callback.file) if callback.file else build(config)
        model.fit(x, y, validation_data=validation, initial_epoch=callback.done, epochs=callback.asked, callbacks=[callback])
        return callback.value

A checkpoint is the whole model, with the state of its optimizer. For Keras 3, with any of its backends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..execution.evaluate import LiveTrial
from .callback import TrainingCallback, framework, monitored

_callbacks = framework("keras.callbacks", "keras", "KerasCallback")


class KerasCallback(_callbacks.Callback, TrainingCallback):  # type: ignore[misc, name-defined]
    """A callback for ``model.fit`` of Keras.

    monitor   the metric to watch; None: "val_loss", or "loss" without validation data

    The other arguments, and ``value``, ``done``, ``asked`` and ``file``, are those of ``TrainingCallback``.
    """

    suffix = ".keras"

    def __init__(self, trial: LiveTrial, monitor: str | None = None, **options: Any) -> None:
        _callbacks.Callback.__init__(self)
        TrainingCallback.__init__(self, trial, **options)
        self.monitor = monitor

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras counts epochs from 0, and from ``initial_epoch`` for a model that goes on."""
        found = dict(logs or {})
        value = monitored(found, self.monitor, "val_loss" if "val_loss" in found else "loss")

        def save(path: Path) -> None:
            self.model.save(str(path))

        if self.step(value, epoch + 1, save=save) and self.stopped:
            self.model.stop_training = True
