"""PyTorch Lightning: report the epochs of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = LightningCallback(trial, monitor="val_loss")
        trainer = lightning.Trainer(max_epochs=callback.asked, callbacks=[callback], logger=False, enable_checkpointing=False)
        trainer.fit(Model(config), data, validation, ckpt_path=callback.file)
        return callback.value

A checkpoint is Lightning's own, with the state of the optimizers. The package may be ``lightning`` or ``pytorch_lightning``.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from ..execution.evaluate import LiveTrial
from .callback import TrainingCallback, framework, monitored

_package = "lightning.pytorch" if importlib.util.find_spec("lightning") is not None else "pytorch_lightning"
_callbacks = framework(f"{_package}.callbacks", "lightning", "LightningCallback")


class LightningCallback(_callbacks.Callback, TrainingCallback):  # type: ignore[misc, name-defined]
    """A callback for the ``Trainer`` of PyTorch Lightning.

    monitor   the metric to watch, by the name that it is logged with: ``self.log("val_loss", loss)``

    The other arguments, and ``value``, ``asked`` and ``file``, are those of ``TrainingCallback``.
    """

    suffix = ".ckpt"

    def __init__(self, trial: LiveTrial, monitor: str = "val_loss", **options: Any) -> None:
        _callbacks.Callback.__init__(self)
        TrainingCallback.__init__(self, trial, **options)
        self.monitor = monitor

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """The validation of an epoch is over by now. Only the first of several processes reports, and all of them stop."""
        value = monitored(dict(trainer.callback_metrics), self.monitor, None)
        stop = False
        if trainer.is_global_zero:
            stop = self.step(float(value), trainer.current_epoch + 1, save=trainer.save_checkpoint) and self.stopped
        if trainer.world_size > 1:
            stop = trainer.strategy.broadcast(stop)
        if stop:
            trainer.should_stop = True
