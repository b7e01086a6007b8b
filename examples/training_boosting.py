"""XGBoost and LightGBM in a study: each round of boosting is reported, and a training that does not pay is stopped.

    python examples/training_boosting.py        needs xgboost and lightgbm
"""

import lightgbm
import xgboost
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import shoestring as st
from shoestring.integrations.lightgbm import LightGBMCallback
from shoestring.integrations.xgboost import XGBoostCallback

X, test_X, y, test_y = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
space = st.Space(rate=st.Float(0.01, 0.5, log=True), leaves=st.Int(2, 16, log=True), rounds=st.Fidelity(4, 60, resumable=True))


def with_xgboost(config, trial):
    callback = XGBoostCallback(trial)
    settings = {"eta": config["rate"], "max_leaves": config["leaves"], "tree_method": "hist", "nthread": 1}
    xgboost.train(
        settings, xgboost.DMatrix(X, y), num_boost_round=callback.remaining, evals=[(xgboost.DMatrix(test_X, test_y), "test")],
        callbacks=[callback], xgb_model=callback.file, verbose_eval=False,
    )  # fmt: skip
    return callback.value


def with_lightgbm(config, trial):
    callback = LightGBMCallback(trial, monitor="test rmse")
    settings = {"objective": "regression", "metric": "rmse", "learning_rate": config["rate"], "num_leaves": config["leaves"]}
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    lightgbm.train(
        settings | {"verbose": -1, "num_threads": 1}, data, num_boost_round=callback.remaining,
        valid_sets=[lightgbm.Dataset(test_X, test_y, reference=data, free_raw_data=False)], valid_names=["test"],
        callbacks=[callback], init_model=callback.file,
    )  # fmt: skip
    return callback.value


if __name__ == "__main__":
    for objective in (with_xgboost, with_lightgbm):
        result = st.minimize(objective, space, budget=12, method=st.Hyperband(), seed=0)
        stopped = sum("stopped" in trial.suggestion for trial in result.history)
        resumed = sum(trial.resumed_from is not None for trial in result.history)
        print(f"{objective.__name__}: best {result.best.value:.2f}, {stopped} stopped early, {resumed} gone on with")
