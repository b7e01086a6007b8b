"""The methods compared, by label.

``ei_alpha_0.1`` is EIAlpha(0.1), ``cei_0.2`` is CEI(0.2); ``+gp`` and the like name the cost model, "auto" without it;
``@5`` says that the method was told its budget, 5 times the least. Everything else of a study is at its default, and the
study never stops by itself. EI and random search are given no cost model: they are what cost-aware search is compared with.
"""

import inspect
from typing import Any

from benchmarks.cost_aware.core import CostProblem
from benchmarks.peers import shoestring_space

ALPHAS = (0.01, 0.1, 0.2, 0.5, 1.0)
LAMBDAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
BASELINE, DEFAULT = "ei", "auto"
ALPHA_FAMILY = (BASELINE, *(f"ei_alpha_{alpha:g}" for alpha in ALPHAS))
CEI_FAMILY = tuple(f"cei_{lam:g}" for lam in LAMBDAS)
BIOPT = (*ALPHA_FAMILY, *CEI_FAMILY, "gittins", DEFAULT)
BIOPT_QUICK = (*ALPHA_FAMILY, "cei_0.1", "cei_0.3", "gittins", DEFAULT)
PLUGGED_MODELS = ("gp", "linear3", "residual", "transfer")
PLUGGED = tuple(f"ei_alpha_{alpha:g}+{model}" for alpha in (0.1, 0.5, 1.0) for model in PLUGGED_MODELS)
FREE = (BASELINE, "eipu", "ei_alpha_0.1", "ei_alpha_0.2", "ei_alpha_0.5", "cei_0.1", "cei_0.3", "gittins", DEFAULT)
BUDGETED = ("ei_cool", "auto_budget")  # told the budget: one run for each of them
WITHOUT_COSTS = (BASELINE, "random")


def split(label: str) -> tuple[str, str, str]:
    """Method, cost model ("" for the default) and budget multiple ("" for none)."""
    label, _, multiple = label.partition("@")
    method, _, model = label.partition("+")
    return method, model, multiple


def build(method: str) -> Any:
    """What is given to ``Study(method=)``."""
    import shoestring as st

    plain = {"ei": "EI", "eipu": "EIpu", "ei_cool": "EICool", "gittins": "Gittins", "random": "Random"}
    if method in plain:
        return getattr(st, plain[method])()
    if method in ("auto", "auto_budget"):
        return "auto"
    for prefix, name in (("ei_alpha_", "EIAlpha"), ("cei_", "CEI")):
        if method.startswith(prefix):
            return getattr(st, name)(float(method.removeprefix(prefix)))
    raise ValueError(f"no method is called {method!r}")


def study(label: str, problem: CostProblem, seed: int, budget: float | None = None) -> Any:
    """A study of the problem's space; the budget is told only to methods whose label asks for it."""
    import shoestring as st
    from benchmarks.cost_aware import models

    method, model, multiple = split(label)
    options: dict[str, Any] = {}
    if method not in WITHOUT_COSTS:
        options["cost_model"] = models.build(model, problem.name) if model else "auto"
    if multiple:
        if budget is None:
            raise ValueError(f"{label} has to be told a budget")
        options["budget"] = st.Budget(cost=budget)
    known = inspect.signature(st.Study).parameters
    if missing := sorted(set(options) - set(known)):
        raise RuntimeError(f"this version of shoestring has no Study({missing[0]}=), which {label} needs")
    space = shoestring_space(problem.without_costs())
    return st.Study(space, method=build(method), seed=seed, stop=None, **options)
