"""A first study: the lowest point of a function of three parameters of different kinds, in 40 evaluations."""

import shoestring as st

space = st.Space(
    x=st.Float(-5, 10),
    steps=st.Int(1, 64, log=True),
    shape=st.Choice("round", "flat", "steep"),
)


def objective(config):
    """Stands for something expensive; lowest at x = 3, steps = 16, shape = "flat", where it is 0."""
    penalty = {"round": 0.5, "flat": 0.0, "steep": 1.0}[config["shape"]]
    return (config["x"] - 3) ** 2 / 10 + abs(config["steps"] - 16) / 16 + penalty


if __name__ == "__main__":
    result = st.minimize(objective, space, budget=40, seed=0)
    print(result)
