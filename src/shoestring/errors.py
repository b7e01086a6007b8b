"""The exceptions of Shoestring: every error that it raises on purpose.

    ShoestringError
    ├── SpaceError (ValueError)        an invalid parameter or an invalid search space
    ├── ConfigError (ValueError)       a configuration that does not fit its search space
    ├── BudgetError (ValueError)       a budget that cannot be read
    ├── OutcomeError (ValueError)      a result that cannot be recorded; the trial stays open
    ├── MethodError (ValueError)       a method, model or rule that does not exist or does not fit the problem
    ├── StudyError (ValueError)        a stored study that cannot be read
    ├── StorageError                   a storage that cannot be used: missing, not writable, damaged, of another version
    │   ├── StorageUnavailable         the storage does not answer now, but may answer later; ``Away`` is the same class
    │   ├── Conflict                   another process has written first: read the changes and try again
    │   └── OverBudget                 the budget leaves no room for another trial
    ├── ExecutionError                 workers cannot be started, or the executor was lost; the study keeps all results
    ├── TrialError                     a trial that does not exist or is already finished
    ├── SpaceExhausted                 every configuration of a finite search space has been evaluated
    └── NothingFits                    no affordable trial is left in the budget

``Conflict`` and ``OverBudget`` pass between a storage and a study. A user of ``Study`` does not see them.

A message says what is wrong, where, and how to fix it.
"""

from __future__ import annotations


class ShoestringError(Exception):
    """Base class of all errors that Shoestring raises on purpose."""


class SpaceError(ShoestringError, ValueError):
    """An invalid parameter or an invalid search space."""


class ConfigError(ShoestringError, ValueError):
    """A configuration that does not fit its search space."""


class BudgetError(ShoestringError, ValueError):
    """A budget that cannot be read."""


class OutcomeError(ShoestringError, ValueError):
    """A result that cannot be recorded. Nothing is lost: the trial stays open."""


class MethodError(ShoestringError, ValueError):
    """A method, model or rule that does not exist or does not fit the problem."""


class StudyError(ShoestringError, ValueError):
    """A stored study that cannot be read."""


class StorageError(ShoestringError):
    """A storage that cannot be used: it is missing, not writable, damaged, or of another version."""


class StorageUnavailable(StorageError):
    """A storage that does not answer now but may answer later: the server is down, or another program locks the file.

    The error is transient: what could not be written can be written later. ``st.Away`` is another name of this class.
    """


Away = StorageUnavailable


class Conflict(StorageError):
    """A write conflict: another process has written first. Read the changes and try again."""


class OverBudget(StorageError):
    """The budget leaves no room for another trial."""


class ExecutionError(ShoestringError):
    """Workers that cannot be started, or an executor that was lost. The study keeps all results that it has."""


class TrialError(ShoestringError):
    """A trial that does not exist or is already finished."""


class SpaceExhausted(ShoestringError):
    """Every configuration of a finite search space has been evaluated."""


class NothingFits(ShoestringError):
    """No affordable trial is left: no trial is expected to fit into the rest of the budget."""
