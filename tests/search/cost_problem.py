"""A training run with a known optimum whose cost grows with rounds and depth."""

import math

import shoestring as st

SPACE = st.Space(
    rounds=st.Int(1, 256, log=True), depth=st.Int(1, 16), rate=st.Float(0.01, 1, log=True), kind=st.Choice("a", "b")
)


def price(config):
    return 0.01 * config["rounds"] * config["depth"] * (2 if config["kind"] == "b" else 1)


def train(config):
    value = (math.log(config["rounds"]) - 4) ** 2 / 5 + (config["depth"] - 6) ** 2 / 20 + (math.log10(config["rate"]) + 1) ** 2
    return st.Outcome(value + 0.1, cost=price(config))


def study_with_costs(n=15, **options):
    """A study of ``n`` trials whose costs are reported in USD."""
    study = st.Study(SPACE, seed=0, cost_model=st.LinearCost(), unit="USD", **options)
    study.minimize(train, n)
    return study
