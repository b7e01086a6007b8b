"""What is recommended can be evaluated: a config that only succeeds at low fidelities is no answer."""

import math

import shoestring as st

SPACE = st.Space(w=st.Float(0, 100), epochs=st.Fidelity(1, 50))


def fails_when_large(config):
    """Larger is better, but above 40 only short runs succeed."""
    if config["epochs"] > 20 and config["w"] > 40:
        return st.Outcome(math.nan, cost=float(config["epochs"]))
    return st.Outcome(1.0 - config["w"] / 100 + 1.0 / config["epochs"], cost=float(config["epochs"]))


def test_a_config_that_fails_at_the_target_is_not_recommended():
    study = st.Study(SPACE, seed=0, stop=None)
    for w in (5, 15, 25, 35, 45, 55, 65, 75, 85, 95):
        for epochs in (2, 50):
            told = fails_when_large({"w": w, "epochs": epochs})
            study.add({"w": w, "epochs": epochs}, told.value, cost=told.cost)
    assert study.recommend().config["w"] < 45
    assert (study.context.belief(costs=False).evaluated[:, 0] < 0.45).all()


def test_reports_reach_the_model_of_a_plain_study():
    def trains(config, trial):
        for epoch in range(1, config["epochs"] + 1):
            trial.report((config["w"] / 100 - 0.3) ** 2 + 1.0 / epoch, epochs=epoch, cost=float(epoch))
        return st.Outcome((config["w"] / 100 - 0.3) ** 2 + 1.0 / config["epochs"], cost=float(config["epochs"]))

    study = st.Study(SPACE, method=st.LogEI(), seed=0, stop=None)
    study.minimize(trains, 6)
    seen = study.context.data
    assert seen.intermediate > 0
    assert study.context.belief(costs=False).n_trials == len(seen.y) > 6  # in as many numbers as a model of curves needs
