"""PyTorch Lightning in a study: each epoch is reported, a training that does not pay is stopped, and one that does goes on.

    python examples/training_lightning.py        needs lightning
"""

import logging
import warnings

import lightning
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import shoestring as st
from shoestring.integrations.lightning import LightningCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")
warnings.filterwarnings("ignore", module="torch")

X, test_X, y, test_y = (torch.as_tensor(part) for part in train_test_split(*load_digits(return_X_y=True), random_state=0))
training = DataLoader(TensorDataset(X.float() / 16, y), batch_size=64, shuffle=True)
validation = DataLoader(TensorDataset(test_X.float() / 16, test_y), batch_size=256)
space = st.Space(
    learning_rate=st.Float(1e-4, 1e-1, log=True), units=st.Int(8, 64, log=True), epochs=st.Fidelity(1, 6, resumable=True)
)


class Model(lightning.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.rate = config["learning_rate"]
        units = config["units"]
        self.net = torch.nn.Sequential(torch.nn.Linear(64, units), torch.nn.ReLU(), torch.nn.Linear(units, 10))

    def training_step(self, batch, index):
        return cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_loss", cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.rate)


def train(config, trial):
    callback = LightningCallback(trial, monitor="val_loss")
    trainer = lightning.Trainer(
        max_epochs=callback.asked, callbacks=[callback], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Model(config), training, validation, ckpt_path=callback.file)
    return callback.value


if __name__ == "__main__":
    result = st.minimize(train, space, budget=12, method=st.Hyperband(), seed=0)
    resumed = sum(trial.resumed_from is not None for trial in result.history)
    print(f"best {result.best.value:.3f} with {result.best.config}; {resumed} trainings were gone on with")
