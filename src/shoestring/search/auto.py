"""``method="auto"``: expected improvement, weighed against cost as soon as costs are seen to differ; with fidelities, the
knowledge gradient per cost.

From what the user wrote as ``method=`` to a search method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..acquisition.base import Acquisition, check_acquisition
from ..acquisition.cost_aware import EIAlpha
from ..acquisition.improvement import LogEI
from ..acquisition.kg_fidelity import CFKG
from ..acquisition.kg_gradient import CFDKG
from ..acquisition.paced import PacedGittins
from ..cost.auto import AutoCost
from ..cost.base import CostModel
from ..data.trial import Suggestion
from ..errors import MethodError
from ..surrogate.belief import MAX_AUXILIARY_ROWS, spread_rows
from .base import Method, SearchContext
from .bayes import Bayes

ALPHA = 1.5  # the thriftiest of {.5, 1, 1.5} that loses well under half a per cent of accuracy on the HPOBench tables
MIN_EXPLAINED_VARIANCE = 0.5  # share of the variance of log cost that must be foretold (leave-one-out)
MIN_LOG_COST_DEVIATION = 0.4  # deviation of log cost over the trials: about one half more or less


@dataclass(frozen=True)
class Auto:
    """Looks at what the problem has, and suggests accordingly.

    Costs that matter are weighed by EI / cost^ALPHA where the budget is not in cost: every trial counts alike, so money is
    all there is to save. Under a budget in cost it is the Gittins index, with the rest of the budget spread over the trials to
    come, so that nothing is spared that there is enough of. Both were chosen on the HPOBench tables. Where there are fidelities,
    cost is what they are for: knowledge about the target per unit of cost, from slopes too where these are told.
    """

    def suggest(self, context: SearchContext) -> Suggestion:
        return self.choice(context).suggest(context)

    def choice(self, context: SearchContext) -> Bayes:
        """The method for this situation."""
        if context.space.fidelities:
            return Bayes(CFDKG() if np.isfinite(context.data.gradients).any() else CFKG())
        if not costs_matter(context):
            return Bayes(LogEI())
        return Bayes(PacedGittins() if context.cost_limited else EIAlpha(ALPHA))


def costs_matter(context: SearchContext) -> bool:
    """Whether costs differ, by enough to be worth saving, and in a way that can be foretold."""
    seen = context.data
    if len(seen.log_cost) < 3 or float(np.std(seen.log_cost)) < MIN_LOG_COST_DEVIATION:
        return False
    if context.costs_go_unnoticed or context.cost is None:
        return False
    mean, _ = context.cost.leave_one_out()
    gamma = seen.log_cost[spread_rows(len(seen.log_cost), MAX_AUXILIARY_ROWS)]  # what it was learnt from
    if len(mean) != len(gamma):
        return True
    wrong = float(np.sum((mean - gamma) ** 2))
    return wrong <= (1.0 - MIN_EXPLAINED_VARIANCE) * float(np.sum((gamma - gamma.mean()) ** 2))


def choose_method(method: Any) -> Method:
    """``"auto"``, a search method, or an acquisition."""
    if isinstance(method, str):
        if method == "auto":
            return Auto()
        raise MethodError(f'method={method!r} is not known; give "auto" or an object such as st.EI() or st.Random()')
    if isinstance(method, type):
        raise MethodError(f"method={method.__name__} is a class; write {method.__name__}()")
    if isinstance(method, Acquisition) or any(hasattr(method, name) for name in ("surface", "select", "on", "choose")):
        check_acquisition(method)
        return Bayes(method)
    if callable(getattr(method, "suggest", None)):
        return method  # type: ignore[no-any-return]
    raise MethodError(f'method={method!r} is neither a search method (suggest) nor an acquisition (surface); give "auto", st.EI(), ...')


def choose_cost_model(model: Any) -> CostModel:
    """``"auto"`` or a cost model."""
    if isinstance(model, str) and model == "auto":
        return AutoCost()
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise MethodError(f'cost_model={model!r} is not a cost model; give "auto", st.LinearCost(), st.KnownCost(f), ...')
    return model  # type: ignore[no-any-return]
