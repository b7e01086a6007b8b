"""Keras in a study: each epoch is reported, a training that does not pay is stopped, and one that does goes on.

    python examples/training_keras.py        needs keras and one of its backends, such as torch
"""

import importlib.util
import os

if importlib.util.find_spec("tensorflow") is None:
    os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import shoestring as st
from shoestring.integrations.keras import KerasCallback

X, test_X, y, test_y = train_test_split(*load_digits(return_X_y=True), random_state=0)
space = st.Space(
    learning_rate=st.Float(1e-4, 1e-1, log=True), units=st.Int(8, 64, log=True), epochs=st.Fidelity(1, 6, resumable=True)
)


def build(config):
    layers = [keras.Input((64,)), keras.layers.Dense(config["units"], "relu"), keras.layers.Dense(10, "softmax")]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(config["learning_rate"]), "sparse_categorical_crossentropy")
    return model


def train(config, trial):
    callback = KerasCallback(trial)
    model = keras.models.load_model(callback.file) if callback.file else build(config)
    model.fit(
        X / 16, y, batch_size=64, validation_data=(test_X / 16, test_y), initial_epoch=callback.done, epochs=callback.asked,
        callbacks=[callback], verbose=0,
    )  # fmt: skip
    return callback.value


if __name__ == "__main__":
    result = st.minimize(train, space, budget=12, method=st.Hyperband(), seed=0)
    resumed = sum(trial.resumed_from is not None for trial in result.history)
    print(f"best {result.best.value:.3f} with {result.best.config}; {resumed} trainings were gone on with")
