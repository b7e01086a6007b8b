"""Names of Optuna that Shoestring does not have, and what to write in their place.

People who come from Optuna type its names first. The error then says what to write here. No name is an alias: one concept has one
name. The hints are added to classes and functions from outside, so that type checkers do not see attributes that do not exist.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from .budget import HOW_TO_WRITE
from .errors import BudgetError

IN_THE_MODULE = {
    "create_study": "st.Study(space), or st.minimize(objective, space, budget)",
    "load_study": 'st.Study.load("tune.db", "name")',
    "delete_study": "shoestring rm NAME --yes, on the command line",
    "copy_study": "st.Study(space, prior=[study])",
    "TrialPruned": "if trial.should_stop(): return the value that was reached",
    "samplers": "method=st.TPE(), method=st.Random(), ...",
    "pruners": "st.Fidelity(1, 50) in the space, and trial.should_stop() in the objective",
    "visualization": "st.plot",
    "logging": 'st.set_verbosity("warning")',
}
OF_A_STUDY = {
    "optimize": "study.minimize(objective, budget) or study.maximize(objective, budget)",
    "best_params": "study.best.config",
    "best_value": "study.best.value",
    "best_trial": "study.best",
    "trials": "study.history",
    "get_trials": "study.history.having(st.State.DONE)",
    "trials_dataframe": "study.to_dataframe()",
    "enqueue_trial": "study.enqueue(config)",
    "add_trial": "study.add(config, value)",
    "set_user_attr": "study.set_attr(name, value)",
    "user_attrs": "study.attrs",
    "stop": 'study.halt("why")',
    "study_name": "study.name",
}
OF_A_RESULT = {
    "best_params": "result.best.config",
    "best_value": "result.best.value",
    "best_trial": "result.best",
    "trials": "result.history",
    "trials_dataframe": "result.to_dataframe()",
}
OF_A_TRIAL = {
    "should_prune": "if trial.should_stop(): return the value that was reached",
    "params": "config, the first argument of the objective",
    "set_user_attr": "trial.set_attr(name, value)",
    "user_attrs": "trial.attrs",
    "suggest_float": "lr=st.Float(low, high) in the space, and config[...] in the objective",
    "suggest_loguniform": "lr=st.Float(low, high, log=True) in the space, and config[...] in the objective",
    "suggest_uniform": "lr=st.Float(low, high) in the space, and config[...] in the objective",
    "suggest_int": "depth=st.Int(low, high) in the space, and config[...] in the objective",
    "suggest_categorical": 'act=st.Choice("a", "b") in the space, and config[...] in the objective',
}
OF_A_RECORD = {
    "params": "trial.config",
    "user_attrs": "trial.attrs",
    "values": "trial.value",
    "intermediate_values": "trial.reports",
    "datetime_start": "trial.asked_at, in seconds since 1970",
    "duration": "trial.seconds",
}
ARGUMENTS = {
    "n_trials": "budget=20 for 20 trials in all",
    "n_jobs": "workers=4 for four processes",
    "direction": "st.maximize(...) or st.minimize(...)",
    "sampler": "method=st.TPE(), method=st.Random(), ...",
    "pruner": "st.Fidelity(1, 50) in the space, and trial.should_stop() in the objective",
    "study_name": 'name="..."',
    "directions": "one objective is optimized; weigh several into one value, and keep the others as metrics",
    "load_if_exists": "nothing: a stored study is continued",
    "catch": "max_failures=20; a trial that fails does not end a run",
    "show_progress_bar": "progress=True",
}

Class = TypeVar("Class", bound=type)
Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def attribute_error(owner: str, name: str, names: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that is not there."""
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; write: {names[name]}" if name in names else ""))


def hint_attributes(names: Mapping[str, str]) -> Callable[[Class], Class]:
    """A class decorator: the error for an attribute that is not there says what to write in its place."""

    def decorate(cls: Class) -> Class:
        def __getattr__(self: object, name: str) -> Any:
            if hasattr(type(self), name):  # a property has failed: its own error counts
                return object.__getattribute__(self, name)
            raise attribute_error(f"{type(self).__name__!r} object", name, names)

        setattr(cls, "__getattr__", __getattr__)  # noqa: B010  # not an attribute that a type checker should see
        return cls

    return decorate


def hint_arguments(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """A decorator: the error for an argument that is not there, or for a missing budget, says what to write in its place."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    place = known.index("budget") if "budget" in known[: code.co_argcount] else None  # where it may be given by position

    callable_name = "Study" if function.__name__ == "__init__" else function.__name__

    @functools.wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        for name in kwargs:
            if name not in known and name in ARGUMENTS:
                raise TypeError(f"{callable_name}() has no argument {name}=; write: {ARGUMENTS[name]}")
        if place is not None and len(args) <= place and "budget" not in kwargs:
            limit = "; timeout= is the limit for one trial" if "timeout" in kwargs else ""
            raise BudgetError(f"{function.__name__}() needs a budget; {HOW_TO_WRITE}{limit}")
        return function(*args, **kwargs)

    return checked
