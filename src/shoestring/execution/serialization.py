"""Serialization of objectives, trials and results that go to another process and come back.

The objective is sent by cloudpickle, so that lambdas, closures and functions of a notebook work in another process. The results
are plain numbers and text, so that the coordinator needs none of the objective's modules. A result is one of these replies:

    ("done", evaluation)
    ("raised", pickle, text)    the objective's exception, where it is to be raised
    ("load_error", text)        the objective could not be loaded there: no trial can be evaluated
    ("worker_lost", reason)     the worker has died
"""

from __future__ import annotations

import contextlib
import pickle
import traceback
from dataclasses import replace
from importlib import import_module
from typing import Any

from ..data.outcome import Outcome, is_cost, read_attrs, read_cost, read_folds, read_gradient, read_metrics, read_value
from ..data.trial import Trial
from ..errors import ExecutionError, MethodError, OutcomeError
from ..space.space import Space
from .describe import safe_text
from .evaluate import Evaluation, LiveTrial, Objective, evaluate

Reply = tuple[Any, ...]


# -- to the worker -----------------------------------------------------------------------------------------------------


def serialize_objective(objective: Objective) -> bytes:
    """The objective as a pickle."""
    cloudpickle: Any = import_module("cloudpickle")  # imported only here: it takes 20 ms
    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise MethodError(
            f"the objective cannot be sent to another process: {type(error).__name__}: {safe_text(error)}; "
            "create what it holds (a file, a lock, a connection) inside the function, or use threads=True"
        ) from error


def trial_for_worker(trial: Trial) -> Trial:
    """The trial without its suggestion and reports: a suggestion may hold a large part of a model. What it goes on from stays."""
    kept = {name: trial.suggestion[name] for name in ("resumed_from",) if name in trial.suggestion}
    return replace(trial, suggestion=kept, reports=())


# -- in the worker -----------------------------------------------------------------------------------------------------


def evaluate_to_reply(objective: Objective, trial: Trial, live: LiveTrial, raise_errors: bool) -> Reply:
    """Evaluate a trial and return the reply."""
    try:
        return "done", in_plain_numbers(evaluate(objective, trial, live, raise_errors=raise_errors), trial, live.space)
    except BaseException as error:  # only with raise_errors, and KeyboardInterrupt
        if isinstance(error, KeyboardInterrupt):
            raise
        return exception_reply(error)


def exception_reply(error: BaseException) -> Reply:
    """The reply for an exception of the objective. The frames that it holds are not sent."""
    cloudpickle: Any = import_module("cloudpickle")
    text = "".join(traceback.format_exception(error))
    try:
        return "raised", bytes(cloudpickle.dumps(error.with_traceback(None))), text
    except Exception:  # it holds something that cannot be pickled
        return "raised", b"", text


def in_plain_numbers(evaluation: Evaluation, trial: Trial, space: Space) -> Evaluation:
    """The evaluation with plain Python numbers. An outcome that cannot be recorded becomes a failure, as it does locally."""
    returned, evaluation = evaluation.outcome, replace(evaluation, exception=None)  # its text is in the traceback
    try:
        outcome = Outcome(
            None if returned.value is None else read_value(returned.value),
            None if returned.cost is None else read_cost(returned.cost),
            None if returned.folds is None else read_folds(returned.folds),
            None if returned.gradient is None else read_gradient(returned.gradient, trial.config, space),
            None if returned.metrics is None else read_metrics(returned.metrics),
            None if returned.attrs is None else read_attrs(returned.attrs),
        )
    except OutcomeError as error:
        cost = read_cost(returned.cost) if is_cost(returned.cost) else None
        return replace(evaluation, outcome=Outcome(None, cost), error=evaluation.error or str(error), stopped=None)
    return replace(evaluation, outcome=outcome)


# -- back in the coordinator -------------------------------------------------------------------------------------------


def evaluation_from_reply(reply: Reply, seconds: float) -> Evaluation:
    """The evaluation in a reply. Raises the objective's exception, and ExecutionError if the objective could not be loaded.

    ``seconds`` is the time that is charged if the worker died before it could measure it.
    """
    kind, *content = reply
    if kind == "done":
        evaluation: Evaluation = content[0]
        return evaluation
    if kind == "worker_lost":
        return worker_lost(content[0], seconds)
    if kind == "load_error":
        raise ExecutionError(f"the objective could not be loaded by a worker: {content[0]}")
    raise deserialize_exception(*content)


def deserialize_exception(data: bytes, text: str) -> BaseException:
    """The objective's exception, with the worker's traceback as a note."""
    error: BaseException = ExecutionError(f"the objective raised {text.strip().splitlines()[-1]}")
    with contextlib.suppress(Exception):  # its class is not known here, or it cannot be unpickled
        error = pickle.loads(data)
    error.add_note(f"raised by the objective in a worker:\n{text}")
    return error


def worker_lost(reason: str, seconds: float, reports: tuple[dict[str, Any], ...] = ()) -> Evaluation:
    """The evaluation of a trial whose worker has died. The failure may be transient, so it is retryable."""
    return Evaluation(Outcome(None), seconds, reason, reports, transient=True, kind="the worker was lost")
