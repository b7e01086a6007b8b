"""PyTorch Lightning: report the epochs of a training to a trial, stop it, and go on with it.

    def train(config, trial):
        callback = LightningCallback(trial, monitor="val_loss")
        trainer = lightning.Trainer(max_epochs=callback.asked, callbacks=[callback], logger=False, enable_checkpointing=False)
        trainer.fit(Model(config), data, validation, ckpt_path=callback.file)
        return callback.value

A checkpoint is Lightning's own, with the state of the optimizers. The package may be ``lightning`` or ``pytorch_lightning``.

With ``check_val_every_n_epoch=2`` every other epoch is not validated, and Lightning still shows the metrics of the validation
before it. Such an epoch is counted and not reported.
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

    Epochs in which the metric was not computed are not reported. The other arguments, and ``value``, ``asked`` and ``file``, are
    those of ``TrainingCallback``.
    """

    suffix = ".ckpt"

    def __init__(self, trial: LiveTrial, monitor: str = "val_loss", **options: Any) -> None:
        _callbacks.Callback.__init__(self)
        TrainingCallback.__init__(self, trial, **options)
        self.monitor = monitor
        self._validated = False  # in the present epoch
        self._seen: Any = None  # the metric at the end of the epoch before

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._validated = False

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """The validation of an epoch is over by now. Only the first of several processes reports, and all of them stop."""
        value = self._computed(trainer)
        stop = False
        if trainer.is_global_zero:
            number = None if value is None else float(value)
            stop = self.step(number, trainer.current_epoch + 1, save=trainer.save_checkpoint) and self.stopped
        if trainer.world_size > 1:
            stop = trainer.strategy.broadcast(stop)
        if stop:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Say so if no epoch was validated."""
        if trainer.is_global_zero and self.epoch > self.done:
            self.require_value()

    def _computed(self, trainer: Any) -> Any:
        """The metric, if it was computed in this epoch, in training or in validation; None if it will be in a later one."""
        metrics = dict(trainer.callback_metrics)
        before, self._seen = self._seen, metrics.get(self.monitor)
        if trainer.enable_validation and not self._validated and (self._seen is None or self._seen is before):
            return None  # what is not computed anew stays there as the same object
        return monitored(metrics, self.monitor, None)
