"""Every error Shoestring raises on purpose.

    ShoestringError
    ├── SpaceError (ValueError)        a parameter or a space that cannot be
    ├── ConfigError (ValueError)       a configuration that does not fit its space
    ├── BudgetError (ValueError)       a budget that cannot be read
    ├── OutcomeError (ValueError)      a result that cannot be recorded; the trial stays open
    ├── MethodError (ValueError)       a method, model or rule that does not exist or does not fit
    ├── StudyError (ValueError)        a stored study that cannot be read
    ├── StorageError                   a place for studies that cannot be used
    │   ├── Away                       it does not answer, but may do so later; what was not written can be written then
    │   ├── Behind                     somebody else has written since one looked; look again
    │   └── OverBudget                 the budget leaves no room for another trial
    ├── ExecutionError                 workers that cannot be started, or were lost for good; nothing of the study is lost
    ├── TrialError                     a trial that is unknown or already finished
    ├── SpaceExhausted                 every configuration of a finite space has been tried
    └── NothingFits                    no trial is expected to fit into what is left of the budget

Messages say what is wrong, where, and how to mend it.
"""

from __future__ import annotations


class ShoestringError(Exception):
    """Base of all errors raised by Shoestring on purpose."""


class SpaceError(ShoestringError, ValueError):
    """A parameter or a space that cannot be."""


class ConfigError(ShoestringError, ValueError):
    """A configuration that does not fit its space."""


class BudgetError(ShoestringError, ValueError):
    """A budget that cannot be read."""


class OutcomeError(ShoestringError, ValueError):
    """A result that cannot be recorded. Nothing is lost: the trial stays open."""


class MethodError(ShoestringError, ValueError):
    """A method, model or rule that does not exist or does not fit the problem."""


class StudyError(ShoestringError, ValueError):
    """A stored study that cannot be read."""


class StorageError(ShoestringError):
    """A place for studies that cannot be used: not there, not writable, damaged, of another version."""


class StorageUnavailable(StorageError):
    """Storage unavailable: it does not answer now, but may do so later. The server is down, or another program locks the file."""


Away = StorageUnavailable  # the name of earlier versions


class Conflict(StorageError):
    """Somebody else has written since one looked; look again."""


class OverBudget(StorageError):
    """The budget leaves no room for another trial."""


class ExecutionError(ShoestringError):
    """Workers that cannot be started, or an executor that was lost for good. The study keeps all that it knows."""


class TrialError(ShoestringError):
    """A trial that is unknown, or already finished."""


class SpaceExhausted(ShoestringError):
    """Every configuration of a finite space has been tried."""


class NothingFits(ShoestringError):
    """No trial is expected to fit into what is left of the budget."""
