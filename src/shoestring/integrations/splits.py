"""The folds of a search: drawn once, so that all candidates are scored on the same rows, and perhaps thinned out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

Rows = NDArray[np.intp]


class FixedSplits:
    """A splitter that asks another one once and repeats its answer.

    ``train_sizes`` and ``test_sizes`` are there after the first split; ``thinned`` gives a splitter with fewer training rows.
    """

    def __init__(self, cv: Any, *, classifier: bool, seed: int) -> None:
        self.cv, self.classifier, self.seed = cv, classifier, seed
        self.folds: list[tuple[Any, Any]] = []
        self.train_sizes: tuple[int, ...] = ()
        self.test_sizes: tuple[int, ...] = ()
        self._orders: list[Rows] = []

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        if not self.folds:
            splitter = check_cv(self.cv, y, classifier=self.classifier)
            self.folds = list(splitter.split(X, y, **params))
            count = X.shape[0] if hasattr(X, "shape") else len(X)
            rows = np.arange(count)  # an index may be a mask or a slice
            self.train_sizes = tuple(rows[train].size for train, _ in self.folds)
            self.test_sizes = tuple(rows[test].size for _, test in self.folds)
            labels = np.asarray(y) if self.classifier and y is not None and np.ndim(y) == 1 else None
            rng = np.random.default_rng(self.seed)
            self._orders = [mixed(rows[train], labels, rng) for train, _ in self.folds]
        return iter(self.folds)

    def thinned(self, share: float) -> Any:
        """The same folds with this share of their training rows; of two shares, the smaller one's rows are among the larger's."""
        return self if share >= 1.0 else Thinned(self, share)

    def part(self, X: Any, y: Any, params: dict[str, Any], share: float) -> Iterator[tuple[Any, Any]]:
        folds = self.split(X, y, **params)  # first, since it may be what draws the orders
        for order, (_, test) in zip(self._orders, folds, strict=True):
            yield order[: max(1, round(share * len(order)))], test


class Thinned:
    """``FixedSplits`` with a share of the training rows."""

    def __init__(self, whole: FixedSplits, share: float) -> None:
        self.whole, self.share = whole, share

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        return self.whole.part(X, y, params, self.share)


def mixed(rows: Rows, labels: NDArray[Any] | None, rng: np.random.Generator) -> Rows:
    """Rows in an order whose every beginning is a random sample of them, with the classes in their shares, each at least once."""
    rows = rng.permutation(rows)
    if labels is None:
        return rows
    _, code = np.unique(labels[rows], return_inverse=True)
    place = np.empty(len(rows))
    for members in (np.flatnonzero(code == k) for k in range(int(code.max()) + 1)):
        place[members] = np.arange(len(members)) / len(members)
    return rows[np.argsort(place, kind="stable")]


def with_fold_sizes(rule: Any, test_sizes: tuple[int, ...], train_sizes: tuple[int, ...]) -> Any:
    """The stopping rule, told how many rows the folds have if it has ``fold_sizes`` that are not set; joined rules likewise."""
    if len(test_sizes) < 2 or not is_dataclass(rule) or isinstance(rule, type):
        return rule
    held = {field.name: getattr(rule, field.name) for field in fields(rule)}
    if "fold_sizes" in held and held["fold_sizes"] is None:
        return replace(rule, fold_sizes=test_sizes, train_sizes=train_sizes)
    if "rules" in held:
        return replace(rule, rules=tuple(with_fold_sizes(inner, test_sizes, train_sizes) for inner in held["rules"]))
    return rule
