"""What travels between the coordinator and those who evaluate elsewhere, and how.

The objective goes out by cloudpickle, so that lambdas, closures and functions of a notebook can be evaluated elsewhere. What
comes back is plain numbers and text, so that the coordinator needs none of the objective's modules, in one of these replies:

    ("done", evaluation)
    ("raised", pickle, text)    the objective's exception, where it is to be raised
    ("unusable", text)          the objective could not be loaded there: no trial can be evaluated
    ("lost", reason)            the worker has died
"""

from __future__ import annotations

import contextlib
import pickle
import traceback
from dataclasses import replace
from importlib import import_module
from typing import Any

from ..data.outcome import Outcome, is_cost, read_cost, read_folds, read_gradient, read_value
from ..data.trial import Trial
from ..errors import ExecutionError, MethodError, OutcomeError
from ..space.space import Space
from .evaluate import Evaluation, LiveTrial, Objective, evaluate

Reply = tuple[Any, ...]


def packed(objective: Objective) -> bytes:
    """The objective, ready to travel."""
    cloudpickle: Any = import_module("cloudpickle")  # when it is needed: it takes 20 ms
    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise MethodError(
            f"the objective cannot be sent to another process: {type(error).__name__}: {error}; "
            "make what it holds (a file, a lock, a connection) inside the function, or use threads=True"
        ) from error


def slim(trial: Trial) -> Trial:
    """The trial without what its evaluation does not need: a suggestion may hold much of a model."""
    return replace(trial, suggestion={}, reports=())


def attempt(objective: Objective, trial: Trial, live: LiveTrial, raise_errors: bool) -> Reply:
    """Evaluate, and say what came of it."""
    try:
        return "done", settled(evaluate(objective, trial, live, raise_errors=raise_errors), trial, live.space)
    except Exception as error:  # it comes here only if it is to be raised
        return raised(error)


def raised(error: Exception) -> Reply:
    """An exception of the objective, ready to travel, without the frames that it holds."""
    cloudpickle: Any = import_module("cloudpickle")
    text = "".join(traceback.format_exception(error))
    try:
        return "raised", bytes(cloudpickle.dumps(error.with_traceback(None))), text
    except Exception:  # whatever it holds that cannot travel
        return "raised", b"", text


def settled(seen: Evaluation, trial: Trial, space: Space) -> Evaluation:
    """The evaluation in plain numbers; what cannot be recorded is a failure, as it would be at home."""
    told = seen.outcome
    try:
        plain = Outcome(
            None if told.value is None else read_value(told.value),
            None if told.cost is None else read_cost(told.cost),
            None if told.folds is None else read_folds(told.folds),
            None if told.gradient is None else read_gradient(told.gradient, trial.config, space),
        )
    except OutcomeError as error:
        cost = read_cost(told.cost) if is_cost(told.cost) else None
        return replace(seen, outcome=Outcome(None, cost), error=seen.error or str(error), stopped=None)
    return replace(seen, outcome=plain)


def evaluation_of(reply: Reply, seconds: float) -> Evaluation:
    """The evaluation in a reply; raises what the objective raised, and ExecutionError if it could not be loaded.

    ``seconds`` are charged where nobody has measured them.
    """
    kind, *rest = reply
    if kind == "done":
        seen: Evaluation = rest[0]
        return seen
    if kind == "lost":
        return lost(rest[0], seconds)
    if kind == "unusable":
        raise ExecutionError(f"the objective could not be loaded by a worker: {rest[0]}")
    raise unpacked_error(*rest)


def unpacked_error(data: bytes, text: str) -> BaseException:
    """An exception from elsewhere, with its traceback as a note."""
    error: BaseException = ExecutionError(f"the objective raised {text.strip().splitlines()[-1]}")
    with contextlib.suppress(Exception):  # of a class that is not known here, or that cannot be made again
        error = pickle.loads(data)
    error.add_note(f"raised by the objective in a worker:\n{text}")
    return error


def lost(reason: str, seconds: float, reports: tuple[dict[str, Any], ...] = ()) -> Evaluation:
    """The evaluation of a trial whose worker has died: another attempt may fare better."""
    return Evaluation(Outcome(None), seconds, reason, reports, passing=True)
