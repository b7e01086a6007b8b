"""The demo's problem: a gradient-boosting classifier that learns to read digits from few examples.

With 400 images to learn from, scikit-learn's default settings (made for larger data) leave room, and one evaluation
takes about half a second. Validation and test images are many, so that the errors mean something.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadpoolctl import threadpool_limits

from .. import Choice, Float, Int, Space

TRAIN, VALIDATION, TEST = 400, 797, 600  # of 1797 images

SPACE = Space(
    learning_rate=Float(0.02, 0.5, log=True),
    max_iter=Int(20, 120, log=True),
    max_leaf_nodes=Int(3, 31, log=True),
    min_samples_leaf=Int(2, 50, log=True),
    l2_regularization=Float(1e-4, 10.0, log=True),
    max_features=Float(0.05, 1.0),
    early_stopping=Choice(False, True),
    n_iter_no_change=Int(3, 20, when={"early_stopping": True}),
)


class Digits:
    """The data, split once, and the errors of a configuration in percent. Needs scikit-learn."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, digits = load_digits(return_X_y=True)
        rest, self.test_images, rest_digits, self.test_digits = train_test_split(
            images, digits, test_size=TEST, stratify=digits, random_state=0
        )
        self.images, self.validation_images, self.digits, self.validation_digits = train_test_split(
            rest, rest_digits, train_size=TRAIN, test_size=VALIDATION, stratify=rest_digits, random_state=0
        )

    def validation_error(self, config: Mapping[str, Any]) -> float:
        """What is minimised."""
        return self._error(config, self.validation_images, self.validation_digits)

    def test_error(self, config: Mapping[str, Any]) -> float:
        """On images that neither training nor tuning has seen."""
        return self._error(config, self.test_images, self.test_digits)

    def _error(self, config: Mapping[str, Any], images: Any, digits: Any) -> float:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=0, **config)
        with threadpool_limits(1):  # steady times: this model uses every core it finds
            model.fit(self.images, self.digits)
            return 100.0 * (1.0 - float(model.score(images, digits)))
