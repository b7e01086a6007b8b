"""``stop="auto"``: the rule that the trials allow, and how ``stop=`` is read.

    trials with folds, or a tolerance    the regret bound (``SureBound``)
    a method with a price                no config is worth its cost (``WorthIt``)
    plain numbers, a model-based method  little is left to gain, by the study's model:

        P( f(best) - min f  >  max(noise, share * gained) )  <=  1 - confidence                                               (1)

noise    the deviation of one evaluation: of configs that were evaluated more than once, or the model's estimate, whichever is
         larger. A gain below it cannot be told from luck.
gained   from the best of the first trials (the initial design) to the best value now, in the units that the model sees: where
         it models logarithms, a hundredth of a gain from 0.1 to 0.0001 is 7 % of 0.0001, and not 0.001
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._format import rounded
from .._validation import number_between, whole_number
from ..cost.base import CostModel
from ..data.dataset import Dataset, to_dataset
from ..data.history import History
from ..search.auto import Auto
from ..search.base import Method
from ..search.bayes import Bayes
from ..surrogate.belief import Belief
from ..surrogate.output_transform import OutputTransform
from .base import Joined, Rule, StopRule, Verdict, check_rule_class, stored_text
from .cost_benefit import WorthIt
from .regret import RegretBound, SureBound, check_sizes, values_are_equal

DEFAULT_SHARE = 0.01  # of what was gained
FIRST_TRIALS = 8  # the initial design: what was gained is counted from its best value
SCALES = {"log": ", on a log scale", "yeo-johnson": ", on the scale of the model"}  # of the gain, if not that of the values
SAME_CONFIG_DECIMALS = 9  # of the unit cube: configs that agree to so many are one


@dataclass(frozen=True, repr=False)
class AutoStop(StopRule):
    """What ``stop="auto"`` is: a regret bound where trials have folds, cost-benefit stopping where there is a price.

    Where there is neither, and the method has a model, the study ends when little is left to gain: less than the noise of one
    evaluation, or less than a share of what was gained since the first trials. Write it out to give the parts their options.

    price                    see ``WorthIt``; ``method=Gittins(price)`` brings it along
    tolerance                see ``RegretBound``; with a tolerance no folds are needed
    fold_sizes, train_sizes  see ``RegretBound``
    cost_model               see ``WorthIt``
    share                    of what was gained since the first trials: a smaller gain is not worth more trials. None: the budget
                             alone decides where there are neither folds nor a price
    confidence               the probability, by the model, that no more than that is left to gain
    after                    evaluations before a study of plain numbers may end

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), stop=st.AutoStop(tolerance=0.01))
    >>> study.result.stop.stop
    False
    """

    price: float | None = None
    tolerance: float | None = None
    fold_sizes: tuple[int, ...] | None = None
    train_sizes: tuple[int, ...] | None = None
    cost_model: CostModel | None = None
    share: float | None = None
    confidence: float = 0.99
    after: int = 40

    def __post_init__(self) -> None:
        for field in ("price", "tolerance", "share"):
            number_between(getattr(self, field), f"AutoStop: {field}", 0.0, low_included=False, optional=True)
        number_between(self.confidence, "AutoStop: confidence", 0.5, 1.0, high_included=False)
        whole_number(self.after, "AutoStop: after", 2)
        check_sizes("AutoStop", self.fold_sizes, self.train_sizes)

    def __repr__(self) -> str:
        return stored_text(self, ("share", "confidence", "after"))

    @property
    def bound(self) -> SureBound:
        return SureBound(self.tolerance, fold_sizes=self.fold_sizes, train_sizes=self.train_sizes)

    @property
    def wants_cost(self) -> bool:
        return self.price is not None

    def needs_belief(self, history: History) -> bool:
        rules = self.rules_for(history)
        if not rules:
            return self.share is not None and history.evaluations >= self.after
        return any(rule.needs_belief(history) for rule in rules)

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        rules = self.rules_for(history)
        if not rules:
            return self.check_plain(history, belief)
        verdict = Verdict(False, "")
        for rule in rules:
            verdict = rule.check(history, belief)
            if verdict.stop:
                break
        return verdict

    def rules_for(self, history: History) -> list[StopRule]:
        """The rules that apply to what the trials have."""
        rules: list[StopRule] = []
        best = history.best if self.tolerance is None else None
        if self.tolerance is not None or (best is not None and best.folds is not None):
            rules.append(self.bound)
        if self.price is not None:
            rules.append(WorthIt(self.price, cost_model=self.cost_model))
        return rules

    def check_plain(self, history: History, belief: Belief | None) -> Verdict:
        """Equation (1): little is left to gain."""
        if self.share is None:
            return Verdict(False, "without folds, a tolerance or a price the budget alone decides")
        found = history.evaluations
        if found < self.after:
            return Verdict(False, f"{found} of the {self.after} evaluations are there after which the regret is estimated")
        if values_are_equal(history):
            return Verdict(False, f"all {found} values are equal, which says nothing of the rest of the space")
        from .regret_probability import GainModel, verdict_of  # here: a study that is not near its end needs none of it

        model = GainModel.of(history, belief)
        data = to_dataset(history)
        noise, gained = noise_of(data, model.belief), gained_so_far(data)
        tolerance = small_gain(data, model.belief.output, self.share)
        what = f"{100 * self.share:g} % of what was gained" + SCALES.get(model.belief.output.kind, "")
        if noise >= tolerance:
            tolerance, what = noise, "the noise of one evaluation"
        if not tolerance > 0.0:
            return Verdict(False, "nothing was gained since the first trials, and values have no noise to compare a gain with")
        verdict = verdict_of(model, tolerance, self.confidence, f"{what} ({rounded(tolerance)})")
        return Verdict(verdict.stop, verdict.reason, {**verdict.evidence, "noise": noise, "gained": gained})


def noise_of(data: Dataset, belief: Belief) -> float:
    """The deviation of one evaluation, in the user's units: that of repeated configs, or the model's at the best value."""
    best = float(data.y[data.best(1)[0]])
    output = belief.output
    modelled = math.sqrt(max(belief.fit.posterior.noise, 0.0)) / output.derivative(float(output.forward(np.array(best))))
    return max(modelled, repeated_deviation(data))


def repeated_deviation(data: Dataset) -> float:
    """The pooled standard deviation of configs that were evaluated more than once; 0 where there are none."""
    rows = np.round(data.U[: data.finished], SAME_CONFIG_DECIMALS)
    _, group, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    freedom = int((counts - 1).sum())
    if freedom == 0:
        return 0.0
    y = data.y[: data.finished]
    mean = np.bincount(group, weights=y) / counts
    return math.sqrt(float(((y - mean[group]) ** 2).sum()) / freedom)


def gained_so_far(data: Dataset) -> float:
    """The best of the first trials minus the best value now."""
    y = data.y[data.eligible]
    return float(y[:FIRST_TRIALS].min() - y.min())


def small_gain(data: Dataset, output: OutputTransform, share: float) -> float:
    """A share of what was gained, in modelled units, as a further gain from the best value on, in the user's units."""
    y = data.y[data.eligible]
    first, best = output.forward(np.array([y[:FIRST_TRIALS].min(), y.min()]))
    high, low = output.inverse(np.array([best, best - share * (first - best)]))
    return float(high - low)


def find_bound(rule: Rule | None) -> RegretBound | None:
    """The regret bound that a rule is, contains or would use."""
    if isinstance(rule, RegretBound):
        return rule
    if isinstance(rule, AutoStop):
        return rule.bound
    inner = rule.rules if isinstance(rule, Joined) else ()
    return next((found for part in inner if (found := find_bound(part)) is not None), None)


def read_rule(stop: Any, method: Method) -> Rule | None:
    """``stop=`` as a rule: ``"auto"`` (which takes the price of a method that has one), None, or a rule."""
    if stop is None:
        return None
    if isinstance(stop, str) and stop == "auto":
        price = method.acquisition.price if isinstance(method, Bayes) else None
        modelled = isinstance(method, Auto | Bayes)  # without a model of its own, a study would fit one for the rule alone
        return AutoStop(price=price, share=DEFAULT_SHARE if modelled and price is None else None)
    check_rule_class(stop)
    return stop  # type: ignore[no-any-return]
