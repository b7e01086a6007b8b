"""A first study: minimise a function of three parameters of different kinds in 30 evaluations."""

import shoestring as st

space = st.Space(
    x=st.Float(-5, 10),
    steps=st.Int(1, 64, log=True),
    shape=st.Choice("round", "flat", "steep"),
)


def objective(config):
    """Stands for something expensive. The minimum is 0, at x = 3, steps = 16, shape = "flat"."""
    penalty = {"round": 0.5, "flat": 0.0, "steep": 1.0}[config["shape"]]
    return (config["x"] - 3) ** 2 / 10 + abs(config["steps"] - 16) / 16 + penalty


if __name__ == "__main__":
    result = st.minimize(objective, space, budget=30, seed=0)
    print(result)
