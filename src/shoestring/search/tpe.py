"""Tree-structured Parzen estimators, by Optuna's sampler (``pip install "shoestring[optuna]"``).

TPE (Bergstra et al. 2011) splits the trials into the good, of density l(x), and the rest, of density g(x), draws candidates
from l and takes the one where l(x) / g(x) is highest. Nothing of it is written here: each suggestion makes an Optuna study
of the trials seen so far, seeds the sampler from (seed, number of the trial), and asks it.

Running trials are given as running, which the sampler counts among the bad ones (``constant_liar``), and so are failed ones.
Given as failed they would be passed over, and l / g stays highest where all that was asked has failed: with a third of the
space failing, 32 of 40 trials on Branin did, against 7 this way.

Optuna sees coordinates in which its own estimate is the same as with the user's values, and rounding cannot matter:

    Float                a number in [0, 1], the unit coordinate (a log scale is straightened already)
    Int, or with step=   the number of the level, 0, 1, ..., k - 1
    Int with log=True    the value itself, for which Optuna has bins of its own
    Choice               the number of the option
    Fidelity             nothing: always at its target

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

from .._validation import plain
from ..acquisition.optimize.candidates import is_visited, random_unvisited
from ..data.trial import Suggestion
from ..errors import MethodError
from ..numerics import Array
from ..space.parameters import Choice
from ..space.space import Parameter, Space
from .base import SearchContext
from .initial_design import initial_suggestion

TRIES = 4  # answers of the sampler that may be known already before a random new point is taken
_quiet = threading.RLock()


@dataclass(frozen=True)
class TPE:
    """Optuna's TPE; it models the parameters together or (``multivariate=False``) each for itself, and draws ``candidates``."""

    multivariate: bool = True  # as in Optuna 5
    candidates: int = 24

    def __post_init__(self) -> None:
        count = plain(self.candidates)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise MethodError(f"TPE: candidates must be a whole number of 1 or more, not {self.candidates!r}")
        if not isinstance(self.multivariate, bool):
            raise MethodError(f"TPE: multivariate must be True or False, not {self.multivariate!r}")
        if find_spec("optuna") is None:  # said now and not after the start; the import itself is slow, and waits
            raise MethodError('TPE needs Optuna, which is not installed; install it with\n  pip install "shoestring[optuna]"')

    def suggest(self, context: SearchContext) -> Suggestion:
        begun = initial_suggestion(context, "TPE")
        if begun is not None:
            return begun
        space, seen = context.space, context.data
        why = f"Optuna's TPE on {len(seen.eligible)} trials"
        with quiet():
            study = self._study(context)
            for _ in range(TRIES):  # a known answer stays in Optuna's study as running: the next one is drawn away from it
                u = ask(study, space)
                if not is_visited(u[None, :], context.visited)[0]:
                    return Suggestion(space.decode(u), by="TPE", why=why)
        u = random_unvisited(space, context.visited, context.rng)
        return Suggestion(space.decode(u), by="TPE", why="random, since Optuna's TPE repeats itself here")

    def _study(self, context: SearchContext) -> Any:
        """An Optuna study of what was seen, in the order of the trials: the sampler trusts recent ones more."""
        import optuna
        from optuna.trial import TrialState

        sampler = optuna.samplers.TPESampler(
            n_startup_trials=0,  # the start was ours
            n_ei_candidates=int(self.candidates),
            seed=int(context.rng.integers(2**32)),
            multivariate=self.multivariate,
            group=self.multivariate and context.encoding.conditional,  # or else conditional ones are drawn alone
            constant_liar=True,
        )
        study = optuna.create_study(sampler=sampler, direction="minimize")
        seen, space = context.data, context.space
        for (params, kinds), value in zip(translated(space, seen.U[seen.eligible]), seen.y[seen.eligible].tolist(), strict=True):
            study.add_trial(record(params, kinds, TrialState.COMPLETE, value))
        for params, kinds in translated(space, np.vstack([seen.failed, seen.pending])):
            study.add_trial(record(params, kinds, TrialState.RUNNING, None))
        return study


def ask(study: Any, space: Space) -> Array:
    """A point from the sampler."""
    kinds = distributions(space)
    trial = study.ask()
    u = space.at_target(np.full((1, len(space)), 0.5))
    for name, j in space.parents_first.items():
        if name in kinds and space.active(u)[0, j]:
            u[0, j] = to_unit(space[name], draw(trial, name, kinds[name]))
    return np.asarray(space.snap(u)[0])


def draw(trial: Any, name: str, kind: Any) -> float | int:
    """A value of one parameter, by the public call for its kind."""
    if hasattr(kind, "choices"):
        return trial.suggest_categorical(name, kind.choices)  # type: ignore[no-any-return]
    suggest = trial.suggest_float if isinstance(kind.low, float) else trial.suggest_int
    return suggest(name, kind.low, kind.high, log=kind.log)  # type: ignore[no-any-return]


def distributions(space: Space) -> dict[str, Any]:
    """Optuna's distribution of each parameter that the sampler is to choose."""
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


def translated(space: Space, U: Array) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(values, distributions) of the active parameters of each point, as Optuna is to see them."""
    kinds, active = distributions(space), space.active(U)
    columns = {name: from_unit(space[name], U[:, j]) for j, name in enumerate(space) if name in kinds}
    for row, mask in enumerate(active):
        names = [name for j, name in enumerate(space) if name in kinds and mask[j]]
        yield {name: columns[name][row] for name in names}, {name: kinds[name] for name in names}


def from_unit(parameter: Parameter, u: Array) -> list[Any]:
    """Unit coordinates as Optuna sees them."""
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


def record(params: Mapping[str, Any], kinds: Mapping[str, Any], state: Any, value: float | None) -> Any:
    """A trial for Optuna's study."""
    now = datetime.now()
    end = now if state.is_finished() else None
    return _own_trial()(
        number=0, trial_id=0, state=state, value=value, datetime_start=now, datetime_complete=end,
        params=params, distributions=kinds, user_attrs={}, system_attrs={}, intermediate_values={},
    )  # fmt: skip


@cache
def _own_trial() -> Any:
    """Optuna's storage copies each trial that is added, its distributions included, which would be most of the time of a
    suggestion; nobody else has these, so they need no copy."""
    from optuna.trial import FrozenTrial

    return type("OwnTrial", (FrozenTrial,), {"__deepcopy__": lambda self, memo: self})


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna says nothing inside, and is afterwards as the user had it. One thread at a time: its settings are global."""
    import optuna

    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this or that option is experimental
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            yield
        finally:
            optuna.logging.set_verbosity(before)
