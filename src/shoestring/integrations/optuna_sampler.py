"""``ShoestringSampler``: a sampler of Optuna that suggests by a search method of this library.

One Optuna study may have several workers: threads (``n_jobs``), processes, machines. Each has a sampler of its own, and reads the
trials of the others from Optuna's storage. What is suggested to a trial is stored with the trial at once, so that the other
workers count it as pending. Randomness comes from the seed and from the number of the trial, which no two workers share.

A sampler keeps what it has read (``optuna_mirror``): an ask costs one row of a table and one suggestion, not a study made anew.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

try:
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.storages import InMemoryStorage
    from optuna.study import Study as OptunaStudy
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError('ShoestringSampler needs Optuna: pip install "shoestring[optuna]"') from error

from .._validation import whole_number
from ..budget import Budget, read_budget
from ..errors import MethodError
from ..search.auto import read_search_method
from ..search.bayes import Bayes
from ..search.boca import BOCA
from ..search.hyperband import Hyperband
from ..space.parameters import Float
from ..space.space import Space
from ..state.registry import read_code
from ..study import Study
from .optuna_mirror import PARAMS_KEY, MirrorOptions, OptunaTrials, external_params
from .optuna_trials import read_cost

log = logging.getLogger("shoestring")

INITIAL_TRIALS = 8  # of the initial design, as in a study of this library
MAX_SEED = 2**31


class KnownStudies:
    """What was read of Optuna's studies, by storage and then by study; it is forgotten with the storage."""

    def __init__(self, options: MirrorOptions) -> None:
        self.options = options
        self._by_storage: WeakKeyDictionary[Any, dict[int, OptunaTrials]] = WeakKeyDictionary()

    def of(self, study: OptunaStudy) -> OptunaTrials:
        """What is known of a study, as it was read last."""
        of_storage = self._by_storage.setdefault(study._storage, {})
        if study._study_id not in of_storage:
            of_storage[study._study_id] = OptunaTrials(study.direction.name.lower(), self.options)
        return of_storage[study._study_id]


class ShoestringSampler(BaseSampler):
    """A sampler for Optuna studies with one objective: ``optuna.create_study(sampler=ShoestringSampler())``.

    The first trial is random, since an Optuna study says by its trials which parameters there are. A few that fill the space
    follow, then those that the method suggests. Conditional parameters are part of one model, once trials have shown when they
    exist. Failed trials are avoided, pruned ones count with the value that they have reached, running ones are pending.

    method     "auto", a search method (st.TPE(), ...) or an acquisition (st.EI(), ...), also as text: "EI". Methods that choose
               fidelities are refused: an Optuna trial decides by itself how many steps it makes
    cost       what a trial costs: "seconds" (its duration), the name of a user attribute that holds it
               (``trial.set_user_attr("usd", 0.31)``), or None: all trials count alike
    seed       of all random draws; None: a new one
    budget     what the study may spend, for methods that plan with it: "20 USD", "3h", 100. The sampler does not end the study
    initial    trials of the initial design
    cost_model, model   as for ``st.Study``

    >>> import optuna
    >>> from shoestring.integrations.optuna import ShoestringSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=ShoestringSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=15)
    >>> study.best_value < 0.01
    True
    """

    def __init__(
        self,
        method: Any = "auto",
        *,
        cost: str | None = "seconds",
        seed: int | None = None,
        budget: str | int | Budget | None = None,
        initial: int = INITIAL_TRIALS,
        cost_model: Any = "auto",
        model: Any = None,
    ) -> None:
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        method = read_code("method", method) if isinstance(method, str) else method
        check_target_only(method)
        self.options = MirrorOptions(
            method=method, seed=whole_number(seed, "seed", 0), initial=whole_number(initial, "initial", 1), cost=read_cost(cost),
            budget=None if budget is None else read_budget(budget), cost_model=cost_model, model=model,
        )  # fmt: skip
        check_options(self.options)
        self._forget()

    def _forget(self) -> None:
        self.lock = threading.RLock()
        self._known = KnownStudies(self.options)
        self._suggested: dict[tuple[int, int], dict[str, Any]] = {}  # of running trials: (study, number) -> values
        self._read: tuple[int, int] | None = None  # the trial for which the others were read last
        self._cost_checked = self.options.cost in (None, "seconds")

    def __getstate__(self) -> dict[str, Any]:
        """For copies in other processes: what was read is read again there."""
        return {"options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.options = state["options"]
        self._forget()

    def __repr__(self) -> str:
        options = self.options
        return f"ShoestringSampler({options.method!r}, cost={options.cost!r}, seed={options.seed})"

    def reseed_rng(self) -> None:
        """Nothing to do: draws depend on the trial's number, so that workers with one seed draw different values."""

    # -- what Optuna calls -----------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters that finished trials have had, conditional ones too."""
        require_one_objective(study)
        with self.lock:
            return self.read(study, trial.number).search_space

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for the parameters that the trial is expected to need."""
        require_one_objective(study)
        if not search_space:
            return {}
        with self.lock:
            known = self.read(study, trial.number)
            self._read = None
            found: dict[str, Any] = {}
            internal: dict[str, Any] = {}
            for mirror in known.mirrors(search_space):
                config = mirror.suggest(trial.number)
                internal |= config
                found |= external_params(mirror, config)
            self._suggested[study._study_id, trial.number] = found
            others = any(each.state is TrialState.RUNNING and each.number != trial.number for each in known.trials)
        if others and not isinstance(study._storage, InMemoryStorage):  # so that the other workers know it before it is used
            study._storage.set_trial_system_attr(trial._trial_id, PARAMS_KEY, internal)
        return found

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter of which nothing is known yet: random; nearest to the suggestion if its range has changed."""
        require_one_objective(study)
        suggested = self._suggested.get((study._study_id, trial.number), {})
        if param_name in suggested and not isinstance(param_distribution, CategoricalDistribution):
            return nearest(param_distribution, suggested[param_name])
        entropy = [self.options.seed, trial.number, zlib.crc32(param_name.encode())]
        seed = int(np.random.SeedSequence(entropy).generate_state(1)[0]) % MAX_SEED
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: OptunaStudy, trial: FrozenTrial, state: Any, values: Any) -> None:
        """Forget what was suggested to a trial that has ended."""
        self._suggested.pop((study._study_id, trial.number), None)

    # -- what is known ---------------------------------------------------------------------------------------------------

    def read(self, study: OptunaStudy, number: int | None = None) -> OptunaTrials:
        """What is known of a study, up to date; it is read once for the trial with this ``number``."""
        with self.lock:
            known = self._known.of(study)
            mark = None if number is None else (study._study_id, number)
            if mark is None or mark != self._read:
                known.update(study.get_trials(deepcopy=False))
                self._check_cost(known.trials)
                self._read = mark
            return known

    def _check_cost(self, trials: Iterable[FrozenTrial]) -> None:
        """Say once that the first complete trial has no cost: the name may be misspelled. Trials from before may have none."""
        done = None if self._cost_checked else next((each for each in trials if each.state is TrialState.COMPLETE), None)
        if done is None:
            return
        self._cost_checked, cost = True, self.options.cost
        if cost not in done.user_attrs:
            has = ", ".join(done.user_attrs) or "none"
            how = f"set it in the objective: trial.set_user_attr({cost!r}, number)"
            log.warning("trial %d has no user attribute %r, which cost= names; %s; it has: %s", done.number, cost, how, has)


def require_one_objective(study: OptunaStudy) -> None:
    """A MethodError, which is a ValueError, for studies with several objectives."""
    if len(study.directions) > 1:
        how = "use a sampler for several (NSGAIISampler), or return one number and keep the others by trial.set_user_attr"
        raise MethodError(f"this study has {len(study.directions)} objectives, and Shoestring optimizes one; {how}")


def check_target_only(method: Any) -> None:
    """A MethodError for methods that choose fidelities."""
    found = read_search_method(method)
    chooses = isinstance(found, Hyperband | BOCA) or (isinstance(found, Bayes) and found.acquisition.chooses_fidelity)
    if chooses:
        how = 'use "auto" or st.EI(), and ShoestringPruner to end trials early; or st.minimize, which chooses fidelities'
        raise MethodError(f"{method!r} chooses fidelities, but an Optuna trial decides by itself how many steps it makes; {how}")


def check_options(options: MirrorOptions) -> None:
    """An error now, and not at the second trial, for options that a study does not take."""
    found = read_search_method(options.method)
    if options.budget is None and isinstance(found, Bayes) and found.acquisition.needs_budget:
        how = 'give what the study may spend: ShoestringSampler(..., budget="3h"), or another method'
        raise MethodError(f"{options.method!r} needs to know the budget; {how}")
    unit = None if options.budget is None else options.budget.unit
    if unit not in (None, "s") and options.cost in (None, "seconds"):
        how = 'name the user attribute that holds a trial\'s cost: cost="usd" with trial.set_user_attr("usd", 0.31)'
        raise MethodError(f"the budget is in {unit}, but cost={options.cost!r} counts no {unit}; {how}, or give a budget in time")
    Study(Space(x=Float(0, 1)), options.method, stop=None, cost_model=options.cost_model, model=options.model)


def nearest(distribution: Any, value: float) -> Any:
    """The value of a numeric distribution that is nearest to a given one."""
    inside = min(max(value, distribution.low), distribution.high)
    if distribution.step is not None:
        steps = round((inside - distribution.low) / distribution.step)
        inside = min(distribution.low + steps * distribution.step, distribution.high)
    return distribution.to_external_repr(distribution.to_internal_repr(inside))
