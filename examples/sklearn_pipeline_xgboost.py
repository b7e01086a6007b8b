"""A pipeline of columns of several kinds and XGBoost, tuned as one estimator. Needs pandas; XGBoost is used if it is installed.

    python examples/sklearn_pipeline_xgboost.py [candidates]

The search chooses how missing values are filled and how rare categories are grouped, together with the model's own settings. In
place of XGBoost, scikit-learn's gradient boosting is used where XGBoost is not installed.
"""

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import shoestring as st


def flats(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Flats with numbers, categories and missing values, and their rent."""
    rng = np.random.default_rng(seed)
    area, floor = rng.uniform(20, 140, rows), rng.integers(0, 8, rows)
    district = rng.choice(["centre", "north", "south", "harbour", "hill"], rows, p=[0.3, 0.3, 0.3, 0.06, 0.04])
    rent = 200 + 9 * area + 15 * floor + 4 * area * (district == "centre") + rng.normal(0, 60, rows)
    frame = pd.DataFrame({"area": area, "floor": floor.astype(float), "district": district})
    frame.loc[rng.random(rows) < 0.15, "area"] = np.nan
    return frame, rent


def make_model() -> tuple[Any, dict[str, Any]]:
    """A regressor of boosted trees, and the ranges of its settings."""
    try:
        from xgboost import XGBRegressor
    except ImportError:
        print("XGBoost is not installed (pip install xgboost): scikit-learn's gradient boosting takes its place")
        space = {"max_iter": st.Int(10, 100, log=True), "max_leaf_nodes": st.Int(4, 64, log=True)}
        return HistGradientBoostingRegressor(random_state=0), space
    space = {"n_estimators": st.Int(10, 100, log=True), "max_depth": st.Int(2, 8), "subsample": st.Float(0.5, 1.0)}
    return XGBRegressor(random_state=0, n_jobs=1), space


def main(candidates: int) -> None:
    X, y = flats()
    model, own = make_model()
    numbers = Pipeline([("fill", SimpleImputer())])
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False)
    columns = ColumnTransformer([("numbers", numbers, ["area", "floor"]), ("categories", categories, ["district"])])
    pipeline = Pipeline([("columns", columns), ("model", model)])
    space = {
        "columns__numbers__fill__strategy": ["mean", "median"],
        "columns__numbers__fill__add_indicator": [True, False],
        "columns__categories__min_frequency": st.Int(1, 40, log=True),
        "model__learning_rate": st.Float(0.02, 0.5, log=True),
        **{f"model__{name}": parameter for name, parameter in own.items()},
    }
    search = st.ShoestringSearchCV(pipeline, space, n_iter=candidates, cv=3, scoring="neg_mean_absolute_error", random_state=0)
    search.set_output(transform="pandas").fit(X, y)
    print(f"best    a mean error of {-search.best_score_:.1f} with")
    for name, value in search.best_params_.items():
        print(f"          {name} = {value if not isinstance(value, float) else round(value, 4)}")
    print(f"spent   {search.spent_:.2f} s on {len(search.history_)} candidates")
    print(f"stopped {search.stop_reason_}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
