"""Shoestring inside Optuna, versions 4 and 5 (``pip install "shoestring[optuna]"``).

ShoestringSampler      suggests trials by a search method of this library: ``optuna.create_study(sampler=...)``
ShoestringTerminator   ends a study by a stopping rule, whatever its sampler: ``study.optimize(..., callbacks=[...])``
ShoestringPruner       ends trials that no longer pay: ``optuna.create_study(pruner=...)``
from_optuna, to_optuna                 studies, both ways
from_distributions, to_distributions   spaces, both ways
"""

from .optuna_pruner import ShoestringPruner
from .optuna_sampler import ShoestringSampler
from .optuna_spaces import from_distributions, to_distributions
from .optuna_studies import from_optuna, to_optuna
from .optuna_terminator import ShoestringTerminator

__all__ = [
    "ShoestringPruner", "ShoestringSampler", "ShoestringTerminator", "from_distributions", "from_optuna", "to_distributions",
    "to_optuna",
]  # fmt: skip
