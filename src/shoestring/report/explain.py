"""``study.explain()``: what the study does next and why, what it knows, and what it thought of its last trial, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._format import amount, config_text, plural, rounded
from ..budget import Budget
from ..data.trial import Trial
from ..search.auto import Auto
from ..search.base import SearchContext, SearchMethod
from ..search.bayes import Bayes
from ..search.halving_start import halving_suggestion
from ..surrogate.base import training_size
from ..termination.auto import AutoStop
from ..termination.base import Rule, Verdict
from .summary import summary_text, used_text

CHOSEN_BY_YOU = "you chose it: method="
TOP_SHARE = 0.999  # of the highest expected improvement: a trial with as much has the highest


@dataclass(frozen=True)
class Explanation:
    """What ``study.explain()`` returns: printed, it is a table of a few lines.

    method    what chooses the next trial
    why       why this one
    rejected  what was not chosen, and why, by name
    model     what the value is predicted with;   cost_model  what the cost is predicted with, None where costs are not known
    budget    what is used of it
    stop      what the stopping rule says
    last      the last trial that the model suggested: what was expected of it, and what else there was; None before the first

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> study.explain().method
    'initial design'
    """

    method: str
    why: str
    rejected: Mapping[str, str]
    model: str
    cost_model: str | None
    budget: str
    stop: str
    last: str | None = None

    def __str__(self) -> str:
        rows = [("next trial", f"{self.method}, since {self.why}")]
        rows += [("not chosen", "\n".join(f"{name}: {why}" for name, why in self.rejected.items()))] if self.rejected else []
        rows += [("last trial", self.last)] if self.last else []
        rows += [("model", self.model)] + ([("cost model", self.cost_model)] if self.cost_model else [])
        return summary_text([*rows, ("budget", self.budget), ("stop", self.stop)])

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON.

        >>> sorted(st.Study(st.Space(x=st.Float(0, 1))).explain().to_dict())
        ['budget', 'cost_model', 'last', 'method', 'model', 'rejected', 'stop', 'why']
        """
        return {**vars(self), "rejected": dict(self.rejected)}


def explain(
    context: SearchContext, method: Any, rule: Rule | None, verdict: Verdict | None, budget: Budget | None
) -> Explanation:
    """The explanation at this moment; ``verdict`` is the last one of the rule."""
    name, why, rejected = next_method(context, method)
    last = next((trial for trial in reversed(context.history.trials) if trial.suggestion.get("model")), None)
    weighed = len(context.data.log_cost) > 0 or context.cost_is_known
    return Explanation(
        method=name, why=why, rejected=rejected, model=model_text(context) if isinstance(method, Auto | Bayes) else "not used",
        cost_model=context.cost.name if weighed and context.cost is not None else None,
        budget=budget_text(context, budget), stop=stop_text(rule, verdict),
        last=None if last is None else last_text(last, context.unit),
    )  # fmt: skip


def next_method(context: SearchContext, method: Any) -> tuple[str, str, Mapping[str, str]]:
    """What chooses the next trial, why, and what was rejected."""
    modelled = isinstance(method, Auto | Bayes)
    start = halving_suggestion(context) if isinstance(method, Auto) and context.space.fidelities else None
    if start is not None:
        return "successive halving", start.why, {"a model": "with so few results it would know little"}
    if modelled and context.in_initial_design:
        known = context.fits.learnt.finished
        why = f"a model needs some results first: {known} of {context.initial} are there"
        return "initial design", why, {"a model": "with so few results it would know nothing"}
    if isinstance(method, Auto):
        decision = method.decide(context)
        return repr(decision.acquisition), decision.why, decision.rejected
    chosen = method.acquisition if isinstance(method, Bayes) else method
    name = repr(chosen) if isinstance(method, SearchMethod) else type(chosen).__name__
    return name, f"{CHOSEN_BY_YOU}{name}", {}


def model_text(context: SearchContext) -> str:
    """The surrogate, and what it learns from."""
    data, model = context.data, context.model
    if context.in_initial_design:
        return f"none yet; it will be {type(model).__name__}"
    belief = context.belief(costs=False)
    known = context.fits.learnt.finished
    learnt = training_size(model, known, len(context.space))
    trials = plural(known, "trial") if learnt is None else f"{learnt} of {plural(known, 'trial')}"
    text = f"{type(model).__name__} of {trials}"
    if belief.hyperparameter_samples:
        text += f", {len(belief.hyperparameter_samples)} samples of its hyperparameters"
    if belief.output.kind != "standard":
        text += f", {belief.output.kind} of the values"
    if len(data.failed):
        text += f", {plural(len(data.failed), 'failed trial')} taken into account"
    return text + (f", {plural(len(data.pending), 'running trial')} counted in" if len(data.pending) else "")


def budget_text(context: SearchContext, budget: Budget | None) -> str:
    """What is used of the budget."""
    history = context.history
    if budget is None:
        return "none is known: give budget= to st.Study, or call minimize"
    parts = []
    if budget.trials is not None:
        parts.append(f"{history.trials_used} of {plural(budget.trials, 'trial')}")
    if budget.cost is not None:
        parts.append(used_text(history.spent, budget.cost, context.unit))
    if budget.seconds is not None:
        parts.append(f"{amount(budget.seconds, 's')} of time")
    return "; ".join(parts)


def stop_text(rule: Rule | None, verdict: Verdict | None) -> str:
    """What the stopping rule said last."""
    if rule is None:
        return "the budget alone decides: stop=None"
    if verdict is None:
        name = 'stop="auto"' if isinstance(rule, AutoStop) else type(rule).__name__
        return f"{name} was not asked yet"
    return f"{'stop' if verdict.stop else 'go on'}: {verdict.reason}"


def last_text(trial: Trial, unit: str) -> str:
    """What was expected of a suggested trial, and what else was on the front of EI and cost."""
    known = trial.suggestion
    text = f"{trial.number} by {known['by']}: {config_text(trial.config)}"
    if (decision := known.get("decision")) is not None:
        text += f"\nsince {decision['why']}"
    expected = [f"value {rounded(known['predicted'])}"] if known.get("predicted") is not None else []
    expected += [f"improvement {rounded(known['gain'])}"] if known.get("gain") is not None else []
    expected += [f"cost {amount(known['cost'], unit)}"] if known.get("cost") is not None else []
    text += f"\nexpected {', '.join(expected)}" if expected else ""
    front = known.get("front")
    return text if not front else f"{text}\n{front_text(front['chosen'], front['front'], unit)}"


def front_text(chosen: Sequence[float], front: Sequence[Sequence[float]], unit: str) -> str:
    """The chosen point on the front of EI and cost, beside the point with the highest EI."""
    share, cost = chosen
    top_share, top_cost = max(front, key=lambda point: point[0])
    if share >= TOP_SHARE * top_share:
        return f"it has the highest expected improvement, for {amount(cost, unit)}"
    least_share, least_cost = min(front, key=lambda point: point[1])
    text = f"it has {share / top_share:.0%} of the highest expected improvement, for {amount(cost, unit)}; "
    text += f"the highest costs {amount(top_cost, unit)}"
    return text if least_cost >= cost else f"{text}; {amount(least_cost, unit)} would buy {least_share / top_share:.0%}"
