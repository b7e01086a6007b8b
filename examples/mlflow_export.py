"""A study in MLflow: one run for each trial, in a local SQLite file. To export again adds the trials that are new.

    pip install "shoestring[mlflow]"
    python examples/mlflow_export.py
    mlflow ui --backend-store-uri sqlite:///mlflow.db       (with the whole package mlflow)
"""

import importlib.util

import shoestring as st
from shoestring.integrations.mlflow_export import to_mlflow

space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))


def train(config):
    error = (config["depth"] - 6) ** 2 / 10 + abs(config["lr"] - 1e-3)
    return st.Outcome(error, cost=config["depth"], metrics={"accuracy": 1 / (1 + error)})


if __name__ == "__main__":
    study = st.Study(space, storage="tune.db", name="net", seed=0)
    result = study.minimize(train, budget=10)
    print(f"best {result.best.value:.4f} at {result.best.config}")
    if importlib.util.find_spec("mlflow") is None:
        print("MLflow is not installed: pip install mlflow-skinny")
    else:
        print(to_mlflow(study, "sqlite:///mlflow.db"), "runs written")
        study.minimize(train, budget=12)
        print(to_mlflow(study, "sqlite:///mlflow.db"), "more")  # the two that are new
