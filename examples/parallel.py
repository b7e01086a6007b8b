"""Two trials at once, each in a worker process. A crash or a timeout fails its own trial only.

    python examples/parallel.py
"""

import os
import time

import shoestring as st

space = st.Space(x=st.Float(-5, 5), y=st.Float(-5, 5))


def train(config: dict[str, float]) -> float:
    if config["x"] == 4:
        os.abort()
    if config["x"] == 5:
        time.sleep(1000)
    return (config["x"] - 1) ** 2 + config["y"] ** 2


study = st.Study(space, seed=0)
study.enqueue({"x": 4, "y": 0})
study.enqueue({"x": 5, "y": 0})
result = study.minimize(train, budget=6, workers=2, timeout="1s")
for trial in result.history.having(st.State.FAILED):
    print(f"trial {trial.number} failed: {trial.error}")
print(f"best {result.best.value:.4f} at {result.best.config}")
