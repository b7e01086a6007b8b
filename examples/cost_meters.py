"""What does a study cost? The same trials by CPU time, in money and, where this machine can measure it, in energy.

    python examples/cost_meters.py
"""

import shoestring as st

space = st.Space(rounds=st.Int(1, 40, log=True), x=st.Float(0, 1))


def train(config):
    total = 0.0
    for _ in range(config["rounds"] * 2000):  # stands for a training that takes longer with more rounds
        total += config["x"] ** 2
    return 1 / config["rounds"] + (config["x"] - 0.3) ** 2


if __name__ == "__main__":
    meters = {
        "CPU time": "cpu",
        "money": st.Money(per_hour={"machine": 0.40, "cpu": 0.05}, unit="USD"),
        "energy": "energy",
    }
    for name, cost in meters.items():
        try:
            result = st.minimize(train, space, budget=8, cost=cost, seed=0)
        except st.MethodError as problem:  # before the first trial: nothing was spent
            print(f"{name}: {problem}")
            continue
        print(f"{name}: best {result.best.value:.3f} for {result.spent:.3g} {result.unit}")
