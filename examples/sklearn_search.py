"""ShoestringSearchCV in place of RandomizedSearchCV: it stops by itself and says why."""

from scipy.stats import loguniform, randint
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import shoestring as st

X, y = load_breast_cancer(return_X_y=True)

space = {
    "max_depth": randint(2, 30),
    "min_samples_leaf": randint(1, 20),
    "ccp_alpha": loguniform(1e-5, 1e-1),
    "criterion": ["gini", "entropy"],
}

if __name__ == "__main__":
    search = st.ShoestringSearchCV(DecisionTreeClassifier(random_state=0), space, n_iter=60, random_state=0).fit(X, y)
    print(f"best    {search.best_score_:.4f} with {search.best_params_}")
    print(f"spent   {search.spent_:.2f} s on {len(search.history_)} candidates")
    print(f"stopped {search.stop_reason_}")
