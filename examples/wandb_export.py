"""A study in Weights & Biases: one offline run for each trial, without an account and without a network.

    pip install "shoestring[wandb]"
    python examples/wandb_export.py
    wandb sync runs/wandb/offline-run-*
"""

import importlib.util

import shoestring as st

space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))


def train(config):
    error = (config["depth"] - 6) ** 2 / 10 + abs(config["lr"] - 1e-3)
    return st.Outcome(error, cost=config["depth"], metrics={"accuracy": 1 / (1 + error)})


if __name__ == "__main__":
    study = st.Study(space, name="net", method=st.Random(), seed=0)
    result = study.minimize(train, budget=5)
    print(f"best {result.best.value:.4f} at {result.best.config}")
    result.to_csv("trials.csv")  # files need no tracker: one row for each trial
    result.to_jsonl("trials.jsonl")  # all that is known of a trial
    if importlib.util.find_spec("wandb") is None:
        print("Weights & Biases is not installed: pip install wandb")
    else:
        from shoestring.integrations.wandb_export import to_wandb

        print(to_wandb(study, "runs", project="nets"), "runs written")
