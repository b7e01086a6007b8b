"""Shoestring: tune expensive things on a shoestring.

    import shoestring as st

    space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))
    result = st.minimize(train, space, budget="10m")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._optuna_names import IN_THE_MODULE, attribute_error
from .acquisition.base import Acquisition
from .acquisition.cost_adjusted import CostAdjustedEI
from .acquisition.cost_aware import CEI, EIAlpha, EICool, EIpu
from .acquisition.entropy_search import ES
from .acquisition.gittins import Gittins
from .acquisition.improvement import EI, LCB, PI, LogEI
from .acquisition.kg_fidelity import CFKG
from .acquisition.kg_gradient import CFDKG, DKG
from .acquisition.kg_stochastic import StochasticKG
from .acquisition.kg_trace_search import TraceKG
from .acquisition.knowledge_gradient import KG
from .acquisition.mes import MES
from .acquisition.optimize.optimizer import AcquisitionOptimizer, Selection
from .acquisition.pes import PES
from .acquisition.quantile_improvement import EQI
from .budget import Budget
from .cost.auto import AutoCost
from .cost.base import CostModel, CostPosterior
from .cost.energy import Energy
from .cost.known import KnownCost
from .cost.linear import LinearCost
from .cost.log_gp import LogGPCost, ResidualGPCost
from .cost.meter import CPUTime, GPUTime, Measurement, Meter, Money, WallTime
from .cost.transfer import TransferCost
from .data.history import History
from .data.outcome import Outcome
from .data.trial import State, Suggestion, Trial
from .errors import (
    Away,
    BudgetError,
    ConfigError,
    ExecutionError,
    MethodError,
    NothingFits,
    ObjectiveError,
    OutcomeError,
    ShoestringError,
    SpaceError,
    SpaceExhausted,
    StorageError,
    StorageUnavailable,
    StudyError,
    TrialError,
)
from .execution.dask_executor import DaskExecutor
from .execution.ray_executor import RayExecutor
from .optimize import maximize, minimize
from .report.explain import Explanation
from .report.result import Recommendation, Result
from .report.trial_log import set_verbosity
from .search.base import SearchMethod
from .search.boca import BOCA
from .search.bore import BORE
from .search.hyperband import Hyperband
from .search.pareto import Front, FrontPoint
from .search.random import Random, Sobol
from .search.tpe import TPE
from .space.parameters import Choice, Fidelity, Float, Int
from .space.space import Space
from .state.registry import register
from .storage import Storage, open_storage
from .study import Study
from .surrogate.base import Fit, Surrogate, SurrogatePosterior
from .surrogate.gp import GP
from .surrogate.sparse import FITC, VFE
from .surrogate.subset import KMeansSubset, RandomSubset, SeedSubset, Subset
from .termination.acquisition_threshold import EIBelow, PIBelow
from .termination.auto import AutoStop
from .termination.base import StopRule, Verdict
from .termination.cost_benefit import WorthIt
from .termination.no_improvement import Patience
from .termination.regret import RegretBound, SureBound
from .termination.regret_probability import RegretBelow

__version__ = "0.1.0"

__all__ = [  # in the order of the data flow
    "Space", "Float", "Int", "Choice", "Fidelity",
    "Study", "minimize", "maximize", "Budget", "Outcome", "Storage", "open_storage", "DaskExecutor", "RayExecutor",
    "Trial", "State", "Suggestion", "History", "Result", "Recommendation", "Explanation", "Verdict",
    "GP", "VFE", "FITC", "RandomSubset", "KMeansSubset", "SeedSubset",
    "Random", "Sobol", "TPE", "BORE", "Hyperband", "BOCA", "EI", "LogEI", "PI", "LCB",
    "EQI", "EIpu", "EIAlpha", "EICool", "CEI", "CostAdjustedEI", "Gittins", "KG", "CFKG", "DKG", "CFDKG", "StochasticKG",
    "TraceKG", "MES", "ES", "PES",
    "RegretBound", "SureBound", "RegretBelow", "Patience", "EIBelow", "PIBelow", "WorthIt", "AutoStop",
    "AutoCost", "LinearCost", "LogGPCost", "ResidualGPCost", "KnownCost", "TransferCost", "Front", "FrontPoint",
    "WallTime", "CPUTime", "GPUTime", "Energy", "Money",
    "ShoestringError", "SpaceError", "ConfigError", "BudgetError", "OutcomeError", "MethodError",
    "StudyError", "StorageError", "StorageUnavailable", "Away", "ObjectiveError", "ExecutionError", "TrialError",
    "SpaceExhausted", "NothingFits",
    "Acquisition", "AcquisitionOptimizer", "Selection", "SearchMethod", "Surrogate", "SurrogatePosterior", "Fit", "StopRule",
    "CostModel", "CostPosterior", "Meter", "Measurement", "Subset", "register",
    "set_verbosity", "plot", "ShoestringSearchCV",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "plot":  # needs matplotlib, so it is imported when asked for
        return import_module(".report.plot", __name__)
    if name == "ShoestringSearchCV":  # needs scikit-learn
        try:
            return import_module(".integrations.sklearn", __name__).ShoestringSearchCV
        except ImportError as missing:
            return _unavailable(name, missing)
    raise attribute_error("module 'shoestring'", name, IN_THE_MODULE)


def _unavailable(name: str, missing: ImportError) -> type:
    """A class in place of one whose library is not installed. The error comes with its use: help(st) and import * still work."""

    def say_so(self: object, *args: object, **options: object) -> None:
        raise ImportError(str(missing)) from missing

    return type(name, (), {"__init__": say_so, "__doc__": f"Not available here: {missing}."})


def __dir__() -> list[str]:
    """The public names alone: what an editor completes."""
    return sorted([*__all__, "__version__"])
