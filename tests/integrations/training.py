"""Live trials for tests of training callbacks, and stand-ins for libraries that are too large to install here."""

import sys
import types
from importlib import import_module

from shoestring.budget import Allowance
from shoestring.execution.evaluate import LiveTrial


def live_trial(space, folder, stop_after=None, **fidelity):
    """A live trial whose ``should_stop`` is True once so many values were reported."""
    config = {name: fidelity.get(name, target) for name, target in space.target.items()}

    def prune_reason(reports):
        return "it does not pay" if stop_after is not None and len(reports) >= stop_after else None

    def make():
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    return LiveTrial(0, config, dict(config), space, Allowance, make, prune_reason)


def stand_in(monkeypatch, adapter, modules):
    """Import an adapter with stand-ins for its library; both are gone after the test."""
    for name, content in modules.items():
        module = types.ModuleType(name)
        vars(module).update(content, __spec__=types.SimpleNamespace(name=name))
        monkeypatch.setitem(sys.modules, name, module)
    name = f"shoestring.integrations.{adapter}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = import_module(name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


class KerasModel:
    """The parts of a Keras model that a callback uses, and a ``fit`` that calls it as Keras documents."""

    def __init__(self):
        self.stop_training, self.weight = False, 0.0

    def save(self, path):
        with open(path, "w") as file:
            file.write(str(self.weight))

    def fit(self, epochs, initial_epoch=0, callbacks=(), validation_data="data", validation_freq=1):
        for callback in callbacks:
            callback.set_model(self)
            callback.on_train_begin()
        for epoch in range(initial_epoch, epochs):
            self.weight += 1.0
            logs = {"loss": 2 / self.weight}
            if validation_data is not None and (epoch + 1) % validation_freq == 0:
                logs["val_loss"] = 1 / self.weight
            for callback in callbacks:
                callback.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        for callback in callbacks:
            callback.on_train_end(logs)


class KerasCallbackBase:
    def __init__(self):
        self._model = None

    @property
    def model(self):
        return self._model

    def set_model(self, model):
        self._model = model

    def on_train_begin(self, logs=None):
        pass


class LightningTrainer:
    """The parts of Lightning's trainer that a callback uses."""

    world_size = 1
    is_global_zero = True
    sanity_checking = False

    def __init__(self, max_epochs, callbacks, check_val_every_n_epoch=1, enable_validation=True):
        self.max_epochs, self.callbacks = max_epochs, callbacks
        self.check_val_every_n_epoch, self.enable_validation = check_val_every_n_epoch, enable_validation
        self.current_epoch, self.weight, self.should_stop, self.callback_metrics = 0, 0.0, False, {}

    def save_checkpoint(self, path):
        path.write_text(f"{self.current_epoch + 1} {self.weight}")

    def call(self, hook):
        for callback in self.callbacks:
            getattr(callback, hook)(self, None)

    def fit(self, ckpt_path=None):
        if ckpt_path is not None:
            epoch, weight = ckpt_path.read_text().split()
            self.current_epoch, self.weight = int(epoch), float(weight)
        while self.current_epoch < self.max_epochs and not self.should_stop:
            self.call("on_train_epoch_start")
            self.weight += 1.0
            self.callback_metrics["train_loss"] = 2 / self.weight
            if self.enable_validation and (self.current_epoch + 1) % self.check_val_every_n_epoch == 0:
                self.callback_metrics["val_loss"] = 1 / self.weight  # it stays there until the next validation
                self.call("on_validation_end")
            self.call("on_train_epoch_end")
            self.current_epoch += 1
        self.call("on_train_end")
