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
    ├── ObjectiveError                 an objective that is broken: it fails on every config; the study keeps all trials
    ├── ExecutionError                 workers cannot be started, or the executor was lost; the study keeps all results
    ├── TrialError                     a trial that does not exist or is already finished
    ├── SpaceExhausted                 every configuration of a finite search space has been evaluated
    └── NothingFits                    no affordable trial is left in the budget

``Conflict`` and ``OverBudget`` pass between a storage and a study. A user of ``Study`` does not see them.

A message says what is wrong, where, and how to fix it.
"""

from __future__ import annotations


class ShoestringError(Exception):
    """Base class of all errors that Shoestring raises on purpose.

    Raised as one of its subclasses. Catch it to handle all of them alike; any other exception is a defect, or comes from your
    code.

    >>> try:
    ...     st.Space()
    ... except st.ShoestringError as error:
    ...     print(type(error).__name__)
    SpaceError
    """


class SpaceError(ShoestringError, ValueError):
    """An invalid parameter or an invalid search space.

    Raised when a parameter or a space is made: reversed bounds, options given twice, a condition on an unknown parameter. Correct
    the parameter that the message names.

    >>> st.Float(1, 0)
    Traceback (most recent call last):
        ...
    shoestring.errors.SpaceError: ...
    """


class ConfigError(ShoestringError, ValueError):
    """A config that does not fit its search space.

    Raised by ``enqueue``, ``add`` and ``Space.check``: a parameter is missing, unknown, inactive, or out of its range. Correct
    the value that the message names.
    """


class BudgetError(ShoestringError, ValueError):
    """A budget that cannot be read.

    Raised when a study or a run is given its budget: no limit at all, a limit that is not positive, a text such as "10 parsecs",
    two units. Write "10m", "20 USD", a number of trials, or ``st.Budget(...)``.
    """


class OutcomeError(ShoestringError, ValueError):
    """A result that cannot be recorded.

    Raised by ``tell``, ``add``, ``Outcome`` and ``trial.report``: a value that is no number, a negative cost, a value and an
    error at once. Nothing is lost: the trial stays open, so call ``tell`` again with a correct result.
    """


class MethodError(ShoestringError, ValueError):
    """A method, model or rule that does not exist or does not fit the problem.

    Raised when a study is made, before anything is evaluated: an unknown name, a class in place of an object (``st.EI`` for
    ``st.EI()``), a method for fidelities on a space without any. The message says what to write.
    """


class StudyError(ShoestringError, ValueError):
    """A study that does not exist, cannot be read, or has no results yet for what was asked.

    Raised by ``Study.load`` and ``Study.from_json``, by ``result.best`` while no trial has succeeded, and where a stored study
    has another space. The message names the studies that exist, or what is needed first.
    """


class StorageError(ShoestringError):
    """A storage that cannot be used: it is missing, not writable, damaged, or of another version.

    Raised when a storage is opened, read or written. Check the path and the rights that the message names; ``shoestring doctor``
    checks a storage too. A storage that may answer later raises the subclass ``StorageUnavailable``.
    """


class StorageUnavailable(StorageError):
    """A storage that does not answer now but may answer later: the server is down, or another program locks the file.

    Raised after several attempts. What could not be written can be written later: call again. Runs of ``minimize`` wait and try
    again by themselves. ``st.Away`` is another name of this class, from earlier versions.
    """


Away = StorageUnavailable


class Conflict(StorageError):
    """A write conflict: another process has written first.

    Raised by a storage and handled by the study, which reads the changes and tries again.
    """


class OverBudget(StorageError):
    """The budget leaves no room for another trial.

    Raised by a storage and handled by the study, which then stops.
    """


class ObjectiveError(ShoestringError):
    """An objective that is broken: it cannot be called, or the first trials have all failed.

    Raised by ``minimize`` and ``maximize`` while no trial has succeeded, and once more trials than ``max_failures`` have failed.
    Its cause is the exception of the last trial. Fix the line that the message names and run it again: the study keeps all
    trials. Where failing is normal, give ``max_failures=``.

    trial  the last trial
    """

    trial: object = None


class ExecutionError(ShoestringError):
    """Workers that cannot be started, or an executor that was lost.

    Raised by a run with ``workers=`` or ``executor=``: an objective that cannot be sent to another process, worker processes that
    end at once, a cluster that is gone. The study keeps all results that it has: fix the cause that the message names and run it
    again.
    """


class TrialError(ShoestringError):
    """A trial that does not exist or is already finished.

    Raised by ``tell``: a number that was never asked, a trial of another study, or a second result that differs from the first.
    Tell the trial that ``ask`` of this study returned, once.
    """


class SpaceExhausted(ShoestringError):
    """Every config of a finite search space has been evaluated.

    Raised by ``ask``; runs of ``minimize`` stop instead. Take the best trial, or give the space wider bounds or finer steps.
    """


class NothingFits(ShoestringError):
    """No affordable trial is left: no trial is expected to fit into the rest of the budget.

    Raised by ``ask`` of a study with a budget; runs of ``minimize`` stop instead. Take the best trial, or give a larger budget.
    """
