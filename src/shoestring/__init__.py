"""Shoestring: tune expensive things on a shoestring.

    import shoestring as st

    space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))
    result = st.minimize(train, space, budget="10m")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .acquisition.cost_aware import CEI, EIAlpha, EICool, EIpu
from .acquisition.entropy import ES
from .acquisition.fidelity_knowledge import CFKG
from .acquisition.gittins import Gittins
from .acquisition.improvement import EI, LCB, PI, LogEI
from .acquisition.knowledge import KG
from .acquisition.mes import MES
from .acquisition.pes import PES
from .acquisition.sloped_knowledge import CFDKG, DKG
from .acquisition.stochastic_knowledge import StochasticKG
from .budget import Budget
from .choice import Choice
from .errors import (
    Away,
    BudgetError,
    ConfigError,
    ExecutionError,
    MethodError,
    NothingFits,
    OutcomeError,
    ShoestringError,
    SpaceError,
    SpaceExhausted,
    StorageError,
    StudyError,
    TrialError,
)
from .execution.on_dask import DaskExecutor
from .execution.on_ray import RayExecutor
from .history import History
from .optimize import maximize, minimize
from .outcome import Outcome
from .parameters import Fidelity, Float, Int
from .result import Recommendation, Result
from .search.boca import BOCA
from .search.bore import BORE
from .search.front import Front, FrontPoint
from .search.hyperband import Hyperband
from .search.sampling import Random, Sobol
from .search.tpe import TPE
from .space import Space
from .storage import Storage, open_storage
from .study import Study
from .surrogate.cost.auto import AutoCost
from .surrogate.cost.gp import LogGPCost
from .surrogate.cost.known import KnownCost
from .surrogate.cost.linear import LinearCost
from .surrogate.cost.residual import ResidualGPCost
from .surrogate.cost.transfer import TransferCost
from .surrogate.gp import GP
from .surrogate.sparse import FITC, VFE
from .surrogate.subset import KMeansSubset, RandomSubset, SeedSubset
from .termination.auto import AutoStop
from .termination.patience import Patience
from .termination.promise import EIBelow, PIBelow
from .termination.regret import RegretBound
from .termination.sure import SureBound
from .termination.verdict import Verdict
from .termination.worth import WorthIt
from .trial import State, Suggestion, Trial

__version__ = "0.1.0"

__all__ = [  # in the order of the data flow
    "Space", "Float", "Int", "Choice", "Fidelity",
    "Study", "minimize", "maximize", "Budget", "Outcome", "Storage", "open_storage", "DaskExecutor", "RayExecutor",
    "Trial", "State", "Suggestion", "History", "Result", "Recommendation", "Verdict",
    "GP", "VFE", "FITC", "RandomSubset", "KMeansSubset", "SeedSubset",
    "Random", "Sobol", "TPE", "BORE", "Hyperband", "BOCA", "EI", "LogEI", "PI", "LCB",
    "EIpu", "EIAlpha", "EICool", "CEI", "Gittins", "KG", "CFKG", "DKG", "CFDKG", "StochasticKG", "MES", "ES", "PES",
    "RegretBound", "SureBound", "Patience", "EIBelow", "PIBelow", "WorthIt", "AutoStop",
    "AutoCost", "LinearCost", "LogGPCost", "ResidualGPCost", "KnownCost", "TransferCost", "Front", "FrontPoint",
    "ShoestringError", "SpaceError", "ConfigError", "BudgetError", "OutcomeError", "MethodError",
    "StudyError", "StorageError", "Away", "ExecutionError", "TrialError", "SpaceExhausted", "NothingFits",
    "plot",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "plot":  # needs matplotlib, so it is imported when asked for
        return import_module(".plot", __name__)
    raise AttributeError(f"module 'shoestring' has no attribute {name!r}")
