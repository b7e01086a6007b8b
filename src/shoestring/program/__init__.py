"""Any program as an objective: its arguments, its process, its answer.

    template    python train.py --lr {lr}: where the parameters go
    process     one run of it, in a process group of its own, which a timeout or an interruption ends as a whole
    guard       ends what still runs when the coordinator itself is killed
    logs        where the output of each trial is kept
    answer      the last line of the output, as a number or JSON
    objective   all of this as a function of a config, for ``Study.minimize``
"""

from __future__ import annotations

from .command import Cancelled, ProgramObjective, Template

__all__ = ["Template", "ProgramObjective", "Cancelled"]
