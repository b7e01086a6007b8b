"""Ask and tell: you run the evaluations where and how you like. The study only suggests and remembers."""

import math

import shoestring as st

space = st.Space(temperature=st.Float(20, 95), minutes=st.Float(1, 10), tea=st.Choice("black", "green"))
study = st.Study(space, seed=0, direction="maximize")


def taste(config):
    """Stands for a measurement in a laboratory."""
    best = {"black": (92, 4), "green": (75, 2.5)}[config["tea"]]
    off = ((config["temperature"] - best[0]) / 25) ** 2 + ((config["minutes"] - best[1]) / 4) ** 2
    return (9 if config["tea"] == "green" else 8) * math.exp(-off)


if __name__ == "__main__":
    study.enqueue({"temperature": 90, "minutes": 3, "tea": "black"})  # your own guess, evaluated first
    study.add({"temperature": 80, "minutes": 5, "tea": "green"}, 5.9, cost=300)  # a result from last year

    for _ in range(16):
        trial = study.ask()
        if trial.config["minutes"] > 9:
            study.tell(trial, error="the tea went cold", cost=540)  # a failed trial: recorded, charged, and avoided later
        else:
            study.tell(trial, taste(trial.config), cost=60 * trial.config["minutes"])

    first, second = study.ask(), study.ask()  # two open trials: the second suggestion takes the first into account
    print("brew side by side:", first.config, second.config, sep="\n  ")

    saved = study.to_json()  # the whole study as text, for a file, a database field, ...
    print(st.Study.from_json(saved).result)
