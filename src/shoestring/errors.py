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

    >>> space = st.Space(lr=st.Float(1e-5, 1e-1, log=True))
    >>> space.check({"lr": 1.0})
    Traceback (most recent call last):
        ...
    shoestring.errors.ConfigError: ...
    >>> space.check({"lr": 0.01})  # how to fix it: a value within the bounds
    {'lr': 0.01}
    """


class BudgetError(ShoestringError, ValueError):
    """A budget that cannot be read.

    Raised when a study or a run is given its budget: no limit at all, a limit that is not positive, a text such as "10 parsecs",
    two units. Write "10m", "20 USD", a number of trials, or ``st.Budget(...)``.

    >>> st.minimize(lambda config: config["x"], st.Space(x=st.Float(0, 1)), budget="3 trails")
    Traceback (most recent call last):
        ...
    shoestring.errors.BudgetError: ...
    >>> len(st.minimize(lambda config: config["x"], st.Space(x=st.Float(0, 1)), budget="3 trials").history)
    3
    """


class OutcomeError(ShoestringError, ValueError):
    """A result that cannot be recorded.

    Raised by ``tell``, ``add``, ``Outcome`` and ``trial.report``: a value that is no number, a negative cost, a value and an
    error at once. Nothing is lost: the trial stays open, so call ``tell`` again with a correct result.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> trial = study.ask()
    >>> study.tell(trial, 0.5, cost=-1)
    Traceback (most recent call last):
        ...
    shoestring.errors.OutcomeError: ...
    >>> study.tell(trial, 0.5, cost=1.0).value  # the trial is still open
    0.5
    """


class MethodError(ShoestringError, ValueError):
    """A method, model or rule that does not exist or does not fit the problem.

    Raised when a study is made, before anything is evaluated: an unknown name, a class in place of an object (``st.EI`` for
    ``st.EI()``), a method for fidelities on a space without any. The message says what to write.

    >>> st.Study(st.Space(x=st.Float(0, 1)), method=st.EI)
    Traceback (most recent call last):
        ...
    shoestring.errors.MethodError: ...
    >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.EI())  # an object, not the class
    """


class StudyError(ShoestringError, ValueError):
    """A study that does not exist, cannot be read, or has no results yet for what was asked.

    Raised by ``Study.load`` and ``Study.from_json``, by ``result.best`` while no trial has succeeded, and where a stored study
    has another space. The message names the studies that exist, or what is needed first.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage="tune.db", name="demo")
    >>> st.Study.load("tune.db", "dmo")
    Traceback (most recent call last):
        ...
    shoestring.errors.StudyError: ...
    >>> st.Study.load("tune.db", "demo").name  # the message names the studies that exist
    'demo'
    """


class StorageError(ShoestringError):
    """A storage that cannot be used: it is missing, not writable, damaged, or of another version.

    Raised when a storage is opened, read or written. Check the path and the rights that the message names; ``shoestring doctor``
    checks a storage too. A storage that may answer later raises the subclass ``StorageUnavailable``.

    >>> st.Study(st.Space(x=st.Float(0, 1)), storage="no-such-folder/tune.db")
    Traceback (most recent call last):
        ...
    shoestring.errors.StorageError: ...
    >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage="tune.db")  # a folder that exists
    """


class StorageUnavailable(StorageError):
    """A storage that does not answer now but may answer later: the server is down, or another program locks the file.

    Raised after several attempts. What could not be written can be written later: call again. Runs of ``minimize`` wait and try
    again by themselves. ``st.Away`` is another name of this class, from earlier versions.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage="tune.db")
    >>> try:
    ...     trial = study.ask()
    ... except st.StorageUnavailable:  # wait a little and call it again: nothing was lost
    ...     trial = study.ask()
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

    >>> try:
    ...     st.minimize(lambda config: config["y"], st.Space(x=st.Float(0, 1)), budget=9)
    ... except st.ObjectiveError as error:  # fix the objective: it is config["x"]
    ...     print(error.trial.number, repr(error.__cause__))
    2 KeyError('y')
    """

    trial: object = None


class ExecutionError(ShoestringError):
    """Workers that cannot be started, or an executor that was lost.

    Raised by a run with ``workers=`` or ``executor=``: an objective that a worker cannot load, worker processes that end at once,
    an executor that was shut down, a cluster that is gone. The study keeps all results that it has: fix the cause that the
    message names and run it again.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> objective, space = lambda config: config["x"], st.Space(x=st.Float(0, 1))
    >>> with ThreadPoolExecutor(2) as pool:
    ...     study = st.minimize(objective, space, 3, executor=pool, method=st.Random()).study
    >>> study.minimize(objective, 6, executor=pool)  # the pool was shut down
    Traceback (most recent call last):
        ...
    shoestring.errors.ExecutionError: ...
    >>> study.minimize(objective, 6, workers=2, threads=True).stop.reason  # go on with another executor
    'the budget of 6 trials is used up'
    """


class TrialError(ShoestringError):
    """A trial that does not exist or is already finished.

    Raised by ``tell``: a number that was never asked, a trial of another study, or a second result that differs from the first.
    Tell the trial that ``ask`` of this study returned, once.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> study.tell(7, 0.5)
    Traceback (most recent call last):
        ...
    shoestring.errors.TrialError: ...
    >>> study.tell(study.ask(), 0.5).number  # a trial that was asked
    0
    """


class SpaceExhausted(ShoestringError):
    """Every config of a finite search space has been evaluated.

    Raised by ``ask``; runs of ``minimize`` stop instead. Take the best trial, or give the space wider bounds or finer steps.

    >>> study = st.Study(st.Space(n=st.Int(1, 2)))
    >>> for value in (0.5, 0.75):
    ...     _ = study.tell(study.ask(), value)
    >>> study.ask()
    Traceback (most recent call last):
        ...
    shoestring.errors.SpaceExhausted: ...
    >>> wider = st.Study(st.Space(n=st.Int(1, 9)), prior=[study])  # or take study.best
    >>> wider.ask().number
    2
    """


class NothingFits(ShoestringError):
    """No affordable trial is left: no trial is expected to fit into the rest of the budget.

    Raised by ``ask`` of a study with a budget; runs of ``minimize`` stop instead. Take the best trial, or give a larger budget.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), budget=st.Budget(cost=3, unit="USD"))
    >>> try:
    ...     while True:
    ...         _ = study.tell(study.ask(), 0.5, cost=1.0)
    ... except st.NothingFits:  # or study.budget = "5 USD", and on
    ...     print(study.best.value)
    0.5
    """
