"""Cheap evaluations first: most trials train on few of the rows, and the recommended config is for all of them."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import shoestring as st

X, test_X, y, test_y = train_test_split(*load_digits(return_X_y=True), test_size=0.4, random_state=0)

space = st.Space(
    C=st.Float(1e-2, 1e3, log=True),
    gamma=st.Float(1e-6, 1e-1, log=True),
    rows=st.Fidelity(50, len(X), log=True),
)


def error(config):
    """The test error of a support vector machine that was trained on the first rows."""
    rows = config["rows"]
    model = SVC(C=config["C"], gamma=config["gamma"]).fit(X[:rows], y[:rows])
    return st.Outcome(1 - model.score(test_X, test_y), cost=rows / len(X))  # one unit: a training on all rows


if __name__ == "__main__":
    result = st.minimize(error, space, budget=st.Budget(cost=4, trials=20, unit="full trainings"), seed=0)
    print(result)
    for trial in result.history:
        print(f"trial {trial.number:2d}  {trial.config['rows']:4d} rows  error {trial.value:.3f}")

    answer = result.recommended  # for all rows, even if no trial used all of them
    print(f"recommended: C = {answer.config['C']:.3g}, gamma = {answer.config['gamma']:.3g}")
    print(f"predicted {answer.value:.3f}, measured with all rows {error(answer.config).value:.3f}")
