"""Every capability in one study: fidelities, learned costs, folds, workers, a rule, subsets, MCMC, failures; and combinations."""

import itertools
import math
import threading

import pytest

import shoestring as st

PLAIN = {"lr": st.Float(1e-4, 1, log=True), "depth": st.Int(1, 8), "kind": st.Choice("a", "b"), "width": st.Int(4, 64, log=True)}
SPACES = {"plain": st.Space(**PLAIN), "fidelity": st.Space(**PLAIN, epochs=st.Fidelity(1, 27, log=True))}
MODELS = {
    "map": st.GP(),
    "mcmc": st.GP(inference="mcmc", sets=3),
    "auto": st.GP(inference="auto"),
    "subset": st.GP(subset=st.KMeansSubset(8)),
    "mcmc on a subset": st.GP(inference="mcmc", sets=3, subset=st.RandomSubset(8)),
}
COSTS = {"auto": "auto", "named": st.LinearCost(features=("width", "depth")), "gp": st.LogGPCost()}
RULES = {"none": None, "auto": "auto", "bound": st.SureBound(0.01), "regret": st.RegretBelow(0.01)}


def objective(config):
    """A failure now and then, five folds, and a cost that depends on the config."""
    if config["depth"] == 7:
        raise MemoryError("too deep")
    rest = 1 / config.get("epochs", 27)
    value = (math.log10(config["lr"]) + 2) ** 2 + 0.1 * abs(config["depth"] - 4) + 0.3 * (config["kind"] == "b") + rest
    cost = 0.5 * config["width"] * config["depth"] * config.get("epochs", 27)
    return st.Outcome(value, folds=[value + 0.01 * (k - 2) for k in range(5)], cost=cost)


def run(space, model, cost, rule, *, workers=1, budget=14, **options):
    study = st.Study(
        SPACES[space], seed=3, model=MODELS[model], cost_model=COSTS[cost], stop=RULES[rule], initial=6, unit="USD", **options
    )
    study.minimize(objective, budget, workers=workers, fail_fast=False, progress=False)
    return study


@pytest.mark.parametrize(
    ("space", "model", "cost", "rule"),
    [
        ("plain", "auto", "named", "regret"),
        ("plain", "subset", "gp", "bound"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in itertools.product(SPACES, MODELS, COSTS, RULES)
        ),
    ],
)  # fmt: skip
def test_it_runs_to_the_end_and_says_what_it_does(space, model, cost, rule):
    study = run(space, model, cost, rule)
    assert len(study.history) == 14
    assert study.best is not None
    found = study.explain()
    assert found.why
    assert "failed trial" in found.model
    assert found.stop.startswith("go on" if RULES[rule] else "the budget alone")


@pytest.mark.slow
def test_eight_workers_a_budget_in_cost_and_a_storage_at_once(tmp_path):
    address, before = tmp_path / "tune.db", threading.active_count()
    budget = st.Budget(cost=20_000, trials=24, unit="USD")
    study = run("fidelity", "auto", "auto", "auto", workers=8, budget=budget, storage=address, name="all")
    found = study.explain()
    assert found.method.startswith("CFKG") or found.method == "initial design"
    spent = study.history.spent
    study.close()
    with st.Study.load(address, "all") as again:
        assert again.history.spent == pytest.approx(spent)
        assert again.explain().cost_model == found.cost_model
        assert again.explain().why == found.why
    assert threading.active_count() <= before + 1


def test_what_it_says_of_a_stored_suggestion_is_what_was_decided_then(tmp_path):
    study = run("plain", "map", "auto", "none", storage=tmp_path / "tune.db")
    modelled = ["model" in trial.suggestion for trial in study.history]
    assert ["decision" in trial.suggestion for trial in study.history] == modelled
    assert study.history[-1].suggestion["decision"]["why"]
