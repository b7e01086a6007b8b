"""TPE: tree-structured Parzen estimators, by Optuna's sampler (``pip install "shoestring[optuna]"``).

TPE (Bergstra et al. 2011) splits the trials into good ones, of density l(x), and the rest, of density g(x), draws candidates
from l and takes the one where l(x) / g(x) is highest. The method itself is Optuna's: each suggestion makes an Optuna study of the
trials so far, seeds the sampler from (seed, number of the trial), and asks it.

Running trials are given to Optuna as running, which the sampler counts among the bad ones (``constant_liar``). Failed trials are
given as running too: Optuna ignores trials that are given as failed, and then l / g stays highest where all trials have failed.
With a third of the space failing, 32 of 40 trials on Branin failed that way, against 7 this way.

Optuna sees coordinates in which its density estimate is the same as with the user's values, and rounding cannot matter:

    Float                a number in [0, 1], the unit coordinate (already on the log scale where log=True)
    Int, or with step=   the number of the level, 0, 1, ..., k - 1
    Int with log=True    the value itself, for which Optuna has its own bins
    Choice               the number of the option
    Fidelity             not given: always at its target

Parameters are suggested parents first, and only those that are active.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._validation import whole_number
from ..acquisition.optimize.candidates import is_visited, random_unvisited
from ..data.trial import Suggestion
from ..errors import MethodError
from ..numerics import Array
from ..space.parameters import Choice
from ..space.space import Parameter, Space
from .base import SearchContext, SearchMethod
from .initial_design import initial_suggestion

MAX_ASKS = 4  # if the sampler answers with visited points this often, a random unvisited point is taken
_logging_lock = threading.RLock()


@dataclass(frozen=True)
class TPE(SearchMethod):
    """Optuna's TPE sampler, on the trials of this study. It needs ``pip install "shoestring[optuna]"``.

    Use it to compare with Optuna under the same budget, stopping rule and storage.

    multivariate  whether the parameters are modelled jointly, or each by itself
    candidates    the number of draws from l(x) that are compared

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), method=st.TPE())
    >>> study.ask().suggestion["by"]
    'TPE'
    """

    multivariate: bool = True  # as in Optuna 5
    candidates: int = 24

    def __post_init__(self) -> None:
        whole_number(self.candidates, "TPE: candidates", 1)
        if not isinstance(self.multivariate, bool):
            raise MethodError(f"TPE: multivariate must be True or False, not {self.multivariate!r}")
        if find_spec("optuna") is None:  # reported now, before any evaluation; the import itself is slow, and is done later
            raise MethodError('TPE needs Optuna, which is not installed; install it with\n  pip install "shoestring[optuna]"')

    def suggest(self, context: SearchContext) -> Suggestion:
        if context.in_initial_design:
            return initial_suggestion(context, "TPE")
        space = context.space
        why = f"Optuna's TPE on {len(context.data.eligible)} trials"
        with optuna_silenced():
            study = self._optuna_study(context)
            for _ in range(MAX_ASKS):  # a visited point stays in Optuna's study as running: the next one is drawn away from it
                u = ask(study, space)
                if not is_visited(u[None, :], context.visited)[0]:
                    return Suggestion(space.decode(u), by="TPE", why=why)
        u = random_unvisited(space, context.visited, context.rng)
        return Suggestion(space.decode(u), by="TPE", why="random, since Optuna's TPE repeats itself here")

    def _optuna_study(self, context: SearchContext) -> Any:
        """An Optuna study of the trials, in order: the sampler gives recent ones more weight."""
        import optuna
        from optuna.trial import TrialState

        sampler = optuna.samplers.TPESampler(
            n_startup_trials=0,  # the initial design was ours
            n_ei_candidates=int(self.candidates),
            seed=int(context.rng.integers(2**32)),
            multivariate=self.multivariate,
            group=self.multivariate and context.encoding.conditional,  # else conditional parameters are drawn independently
            constant_liar=True,
        )
        study = optuna.create_study(sampler=sampler, direction="minimize")
        data, space = context.data, context.space
        finished = optuna_params(space, data.U[data.eligible])
        for (params, kinds), value in zip(finished, data.y[data.eligible].tolist(), strict=True):
            study.add_trial(optuna_trial(params, kinds, TrialState.COMPLETE, value))
        for params, kinds in optuna_params(space, np.vstack([data.failed, data.pending])):
            study.add_trial(optuna_trial(params, kinds, TrialState.RUNNING, None))
        return study


def ask(study: Any, space: Space) -> Array:
    """The point that the sampler suggests."""
    kinds = distributions(space)
    trial = study.ask()
    u = space.at_target(np.full((1, len(space)), 0.5))
    for name, j in space.topological_order.items():
        if name in kinds and space.active(u)[0, j]:
            u[0, j] = to_unit(space[name], draw(trial, name, kinds[name]))
    return np.asarray(space.snap(u)[0])


def draw(trial: Any, name: str, kind: Any) -> float | int:
    """The sampler's value of one parameter, by Optuna's public call for its kind."""
    if hasattr(kind, "choices"):
        return trial.suggest_categorical(name, kind.choices)  # type: ignore[no-any-return]
    suggest = trial.suggest_float if isinstance(kind.low, float) else trial.suggest_int
    return suggest(name, kind.low, kind.high, log=kind.log)  # type: ignore[no-any-return]


def distributions(space: Space) -> dict[str, Any]:
    """Optuna's distribution of each parameter that is not a fidelity."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def kind(parameter: Parameter) -> Any:
        if isinstance(parameter, Choice):
            return CategoricalDistribution(tuple(range(parameter.levels)))
        if parameter.levels is None:
            return FloatDistribution(0.0, 1.0)
        if parameter.log:
            return IntDistribution(int(parameter.low), int(parameter.high), log=True)
        return IntDistribution(0, parameter.levels - 1)

    return {name: kind(parameter) for name, parameter in space.items() if not parameter.fidelity}


def optuna_params(space: Space, U: Array) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(values, distributions) of the active parameters of each point, as Optuna sees them."""
    kinds, active = distributions(space), space.active(U)
    columns = {name: from_unit(space[name], U[:, j]) for j, name in enumerate(space) if name in kinds}
    for row, mask in enumerate(active):
        names = [name for j, name in enumerate(space) if name in kinds and mask[j]]
        yield {name: columns[name][row] for name in names}, {name: kinds[name] for name in names}


def from_unit(parameter: Parameter, u: Array) -> list[Any]:
    """Unit coordinates of a parameter as Optuna sees them."""
    if parameter.levels is None:
        return list(np.clip(u, 0.0, 1.0).tolist())
    if not isinstance(parameter, Choice) and parameter.log:
        return list(np.rint(parameter.values(u)).astype(int).tolist())
    return list(parameter.index(u).tolist())


def to_unit(parameter: Parameter, value: float | int) -> float:
    """The inverse of ``from_unit``, for one value."""
    if parameter.levels is None:
        return float(value)
    if not isinstance(parameter, Choice) and parameter.log:
        return float(parameter.to_unit(value))
    return float(parameter.units(np.array([value]))[0])


def optuna_trial(params: Mapping[str, Any], kinds: Mapping[str, Any], state: Any, value: float | None) -> Any:
    """A trial for Optuna's study."""
    now = datetime.now()
    end = now if state.is_finished() else None
    return _uncopied_trial()(
        number=0, trial_id=0, state=state, value=value, datetime_start=now, datetime_complete=end,
        params=params, distributions=kinds, user_attrs={}, system_attrs={}, intermediate_values={},
    )  # fmt: skip


@cache
def _uncopied_trial() -> Any:
    """A class of Optuna trials that are not deep-copied.

    Optuna's storage copies each trial that is added, with its distributions, which would be most of the time of a suggestion.
    These trials belong to one short-lived study, so that no copy is needed.
    """
    from optuna.trial import FrozenTrial

    return type("UncopiedTrial", (FrozenTrial,), {"__deepcopy__": lambda self, memo: self})


@contextmanager
def optuna_silenced() -> Iterator[None]:
    """Optuna logs nothing inside; afterwards its settings are the user's again. One thread at a time: the settings are global."""
    import optuna

    with _logging_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an option is experimental
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            yield
        finally:
            optuna.logging.set_verbosity(before)
