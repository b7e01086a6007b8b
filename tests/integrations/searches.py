"""Searches and an estimator that the tests of ShoestringSearchCV share."""

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from shoestring.integrations.sklearn import ShoestringSearchCV

X, y = load_iris(return_X_y=True)
SVC_SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 10)}
TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": randint(1, 9)}


def search(estimator=None, space=None, **options):
    options = {"n_iter": 6, "cv": 3, "random_state": 0} | options
    return ShoestringSearchCV(estimator or SVC(), space or SVC_SPACE, **options)


class Fussy(ClassifierMixin, BaseEstimator):
    """Says the commonest class. Cannot be fitted where ``a`` is in ``bad``, nor on rows that begin with a 1 if it ``looks``."""

    def __init__(self, a=0, bad=(), looks=False):
        self.a, self.bad, self.looks = a, bad, looks

    def fit(self, X, y):
        if self.a in self.bad:
            raise ValueError(f"cannot do {self.a}")
        if self.looks and X[0, 0] == 1:
            raise ValueError("cannot do without the first row")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)
