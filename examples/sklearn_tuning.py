"""Tune a scikit-learn model by cross-validation: a support vector machine whose gamma exists for one kernel only."""

import sys

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import shoestring as st

X, y = load_breast_cancer(return_X_y=True)

space = st.Space(
    C=st.Float(1e-3, 1e3, log=True),
    kernel=st.Choice("linear", "rbf"),
    gamma=st.Float(1e-5, 1e1, log=True, when={"kernel": "rbf"}),
    class_weight=st.Choice(None, "balanced"),
)


def error(config):
    model = make_pipeline(StandardScaler(), SVC(**config))
    return st.Outcome(None, folds=1 - cross_val_score(model, X, y, cv=5))  # the value is the mean of the folds


if __name__ == "__main__":
    budget = sys.argv[1] if len(sys.argv) > 1 else "5s"
    result = st.minimize(error, space, budget=budget, seed=0)
    print(result)
