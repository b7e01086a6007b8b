"""A program as an objective: ``shoestring run`` starts it once for each trial and reads its result.

    command         the command line with placeholders for parameters, one run of it in its own process group, and the
                    objective that ``Study.minimize`` calls
    result_reader   the result that a program prints or writes to a file, and the log files of each trial

``execution.orphan_guard`` ends the programs that still run when the coordinator process is killed.
"""

from __future__ import annotations

from .command import Cancelled, CommandTemplate, ProgramObjective

__all__ = ["CommandTemplate", "ProgramObjective", "Cancelled"]
