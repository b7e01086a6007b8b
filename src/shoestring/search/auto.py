"""``method="auto"``: the method that suits the problem, and how ``method=`` and ``cost_model=`` are read.

Without fidelities: expected improvement, weighed against cost as soon as costs are seen to differ. With fidelities: the knowledge
gradient per unit of cost. Where learning curves are reported, and trials ask ``trial.should_stop()``: expected improvement that
knows of noise (EQI), under the model of curves or, where that predicts better, the plain one. A trial is begun for the target
fidelity, and ends as soon as its curve takes its chance away. On the tuning tables of recorded curves that was better than to
choose the fidelity before a run: what the first epochs show is not known then. The regret at a quarter of the budget is .53 with
EI, .52 with augmented EI (Huang et al. 2006) and .50 with EQI there (45 runs each, with an earlier start); without fidelities it
was .68. Where early values turn out to mislead, complete runs alone count and no run is stopped early (``CurveFit.trusted``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..acquisition.base import Acquisition, check_acquisition
from ..acquisition.cost_adjusted import CostAdjustedEI
from ..acquisition.cost_aware import EIAlpha
from ..acquisition.improvement import LogEI
from ..acquisition.kg_fidelity import CFKG
from ..acquisition.kg_gradient import CFDKG
from ..acquisition.quantile_improvement import EQI
from ..cost.auto import AutoCost
from ..cost.base import CostModel, check_cost_model
from ..data.trial import Suggestion
from ..data.visited import VisitedSet
from ..errors import MethodError
from ..surrogate.belief import MAX_AUXILIARY_ROWS, spread_rows
from .anchor import anchored
from .base import MIN_COSTS_FOR_PREDICTION, Method, SearchContext, SearchMethod
from .bayes import Bayes
from .halving_start import halving_suggestion
from .pruning import runs_that_went_on

COST_EXPONENT = 1.5  # under a budget in cost
CURVE_COST_EXPONENT = 1.0  # the same where runs end early: most pay for a part of what is expected
MIN_EXPLAINED_VARIANCE = 0.5  # share of the variance of log cost that must be predicted (leave-one-out)
MAX_WENT_ON = 3  # runs that went on to the target where a check would have stopped them: it seems that none asks
MIN_LOG_COST_DEVIATION = 0.4  # over the trials: costs differ by about one half more or less


@dataclass(frozen=True)
class Decision:
    """Which acquisition suits a context, why, and what was rejected: names and reasons in words.

    ``suggestion.decision`` and ``study.explain()`` show it.
    """

    acquisition: Acquisition
    why: str
    rejected: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"why": self.why, "rejected": dict(self.rejected)}


@dataclass(frozen=True)
class Auto(SearchMethod):
    """Chooses the acquisition by what the problem has.

    Where the budget is not in cost, every trial counts alike: cost-adjusted EI saves cost where there is little to gain. Under a
    budget in cost it is EI / cost^COST_EXPONENT. Both were chosen on the tuning problems with costs. Where there are fidelities,
    cost is what they are for: knowledge about the target per unit of cost, from gradients too where these are reported. Where
    learning curves decide, it is EQI at the target per unit of cost, after a start by successive halving (``halving_start``).
    """

    def suggest(self, context: SearchContext) -> Suggestion:
        start = halving_suggestion(context) if context.space.fidelities else None
        if start is not None:
            return start
        context = prepared(context)
        decision = self.decide(context)
        suggestion = Bayes(decision.acquisition, cautious=True).suggest(context)
        if decision.acquisition.chooses_fidelity and context.space.fidelities:
            suggestion = anchored(suggestion, context)
        return suggestion if context.in_initial_design else replace(suggestion, decision=decision.to_dict())

    def choice(self, context: SearchContext) -> Bayes:
        """The method for this context."""
        return Bayes(self.decide(context).acquisition, cautious=True)

    def decide(self, context: SearchContext) -> Decision:
        """The acquisition for this context, and the reasons."""
        if context.space.fidelities:
            without = why_no_curves(context)
            if without is None and context.fits.learnt is not context.data:
                why = "runs that look good early do not end well here: complete runs alone count, and none is stopped early"
                rejected = {"CFKG": "low fidelities mislead"}
                return Decision(EQI(CURVE_COST_EXPONENT if context.cost_limited else 0.0), why, rejected)
            if without is None:
                why = "learning curves are reported: a trial is begun for the target, and ends early if it cannot become the best"
                rejected = {"CFKG": "it chooses how far a run goes before its first epoch is seen"}
                rejected["EI"] = "runs have noise: it would try the place of the best again and again"
                return Decision(EQI(CURVE_COST_EXPONENT if context.cost_limited else 0.0), why, rejected)
            gradients = bool(np.isfinite(context.data.gradients).any())
            why = "there are fidelities: it buys what tells most about the target for each unit of cost"
            return Decision(CFDKG() if gradients else CFKG(), why, {"EI at the target": without})
        unweighed = why_costs_do_not_matter(context)
        if unweighed is not None:
            return Decision(LogEI(), f"costs are left out: {unweighed}", {"EI weighed by cost": unweighed})
        rejected = {"EI": "it does not look at costs"}
        if context.cost_limited:
            why = "costs differ and can be predicted, and the budget is in cost: cheap trials come first"
            return Decision(EIAlpha(COST_EXPONENT), why, rejected)
        why = "costs differ and can be predicted: they count as soon as there is little left to gain"
        rejected["EI per unit cost"] = "the budget is not in cost, so that every trial counts alike"
        return Decision(CostAdjustedEI(), why, rejected)


def prepared(context: SearchContext) -> SearchContext:
    """The context to decide in: where early values mislead, runs that were stopped for them may be tried again."""
    if not context.space.fidelities or context.fits.learnt is context.data:
        return context
    return replace(context, visited=VisitedSet.of(context.history, pruned=False))


def why_no_curves(context: SearchContext) -> str | None:
    """Why learning curves do not decide; None where they do."""
    if np.isfinite(context.data.gradients).any():
        return "gradients are reported"
    curves = context.fits.curves
    if curves is None:
        return "too few learning curves were reported"
    if len(context.space.fidelities) > 1:
        return "there are several fidelities, and curves show one of them"
    if curves.trusted and not context.history.table.pruned and runs_that_went_on(context, curves) >= MAX_WENT_ON:
        return "trials report, but they do not ask trial.should_stop()"
    return None


def why_costs_do_not_matter(context: SearchContext) -> str | None:
    """Why costs are not worth weighing; None where they differ, by enough, and in a way that can be predicted."""
    log_cost = context.data.log_cost
    if len(log_cost) < MIN_COSTS_FOR_PREDICTION:
        return f"fewer than {MIN_COSTS_FOR_PREDICTION} are known"
    if context.costs_go_unnoticed:  # first: what is stored must not depend on the noise of such times
        return "they are measured times of less than a tenth of a second"
    if float(np.std(log_cost)) < MIN_LOG_COST_DEVIATION:
        return "they are nearly equal"
    if context.cost is None:  # last, since it is fitted now
        return "none can be predicted"
    mean, _ = context.cost.leave_one_out()
    learnt = log_cost[spread_rows(len(log_cost), MAX_AUXILIARY_ROWS)]  # what it was learnt from
    if len(mean) != len(learnt):
        return None
    wrong = float(np.sum((mean - learnt) ** 2) / np.sum((learnt - learnt.mean()) ** 2))
    return None if wrong <= 1.0 - MIN_EXPLAINED_VARIANCE else "the cost model cannot predict them"


def read_search_method(method: Any) -> Method:
    """``"auto"``, a search method, or an acquisition."""
    if isinstance(method, str):
        if method == "auto":
            return Auto()
        raise MethodError(f'method={method!r} is not known; give "auto" or an object such as st.EI() or st.Random()')
    if isinstance(method, type):
        raise MethodError(f"method={method.__name__} is a class; write {method.__name__}()")
    if isinstance(method, SearchMethod) or callable(getattr(method, "suggest", None)):
        return method  # type: ignore[no-any-return]
    if isinstance(method, Acquisition) or any(hasattr(method, name) for name in ("surface", "select", "on", "choose")):
        check_acquisition(method)
        return Bayes(method)
    raise MethodError(f'method={method!r} is neither a search method nor an acquisition; give "auto", st.EI(), st.Random(), ...')


def read_cost_model(model: Any) -> CostModel:
    """``"auto"`` or a cost model."""
    if isinstance(model, str) and model == "auto":
        return AutoCost()
    check_cost_model(model)
    return model  # type: ignore[no-any-return]
