"""A training loop as a trial: epochs are reported, runs that do not pay are stopped, and good ones go on from their checkpoint.

    python examples/training_loop.py
"""

import json

import numpy as np

import shoestring as st
from shoestring.integrations.callback import TrainingCallback

space = st.Space(
    rate=st.Float(1e-3, 1, log=True),
    decay=st.Float(1e-6, 1e-1, log=True),
    epochs=st.Fidelity(1, 27, log=True, resumable=True),
)
random = np.random.default_rng(0)
X = random.normal(size=(400, 20))
y = X @ random.normal(size=20) + 0.5 * random.normal(size=400)


def train(config, trial):
    """Gradient descent for a linear regression; returns the error on rows that were not used."""
    loop = TrainingCallback(trial)
    weights = np.array(json.loads(loop.file.read_text())) if loop.file else np.zeros(20)
    for _ in loop:  # the epochs that are left: all of them, or those after the checkpoint
        gradient = X[:300].T @ (X[:300] @ weights - y[:300]) / 300 + config["decay"] * weights
        weights = weights - config["rate"] * gradient
        error = float(np.mean((X[300:] @ weights - y[300:]) ** 2))
        state = json.dumps(weights.tolist())
        if loop.step(error, save=lambda path, state=state: path.write_text(state)):
            break  # the last epoch, or the study says that going on does not pay
    return st.Outcome(loop.value, cost=loop.epoch - loop.done)  # the epochs that were trained now


if __name__ == "__main__":
    result = st.minimize(train, space, budget=st.Budget(cost=120, unit="epochs"), method=st.Hyperband(), seed=0)
    print(result)
    for trial in result.history:
        before = f", went on from trial {trial.resumed_from.number}" if trial.resumed_from else ""
        print(f"trial {trial.number}: {trial.value:.3f} at {trial.fidelity['epochs']} epochs for {trial.cost:.0f}{before}")
