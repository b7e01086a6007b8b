"""``ShoestringTerminator``: ends an Optuna study by a stopping rule of this library, whatever its sampler.

The rule sees the trials of the Optuna study as a history (``optuna_mirror``), and a belief that is fitted to them. With a
``ShoestringSampler`` the belief is the one that its next suggestion uses, so a check costs next to nothing.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any

try:
    from optuna.study import Study as OptunaStudy
    from optuna.trial import FrozenTrial
except ImportError as error:
    raise ImportError('ShoestringTerminator needs Optuna: pip install "shoestring[optuna]"') from error

from .._validation import whole_number
from ..errors import MethodError
from ..search.auto import Auto
from ..state.registry import read_code
from ..surrogate.belief import Belief
from ..termination.auto import read_rule
from ..termination.base import StopRule, Verdict
from .optuna_mirror import Mirror, MirrorOptions, OptunaTrials
from .optuna_sampler import KnownStudies, ShoestringSampler, require_one_objective
from .optuna_trials import read_cost

log = logging.getLogger("shoestring")

REASON_KEY = "shoestring:stop"  # user attribute of a study: why it was stopped


class ShoestringTerminator:
    """A callback for ``study.optimize(objective, callbacks=[ShoestringTerminator()])`` that ends the study when it is worth it.

    When it stops the study, it logs why, and keeps the reason in ``study.user_attrs["shoestring:stop"]`` and its last verdict in
    ``verdict``. Folds of a cross-validation are the user attribute "folds": ``trial.set_user_attr("folds", scores)``.

    rule    "auto" (a regret bound where trials have folds, else little is left to gain), or a rule: st.RegretBound(0.01),
            st.Patience(30), ..., joined by | and &, also as text: "Patience(30)"
    cost    what a trial costs, for rules that weigh it: "seconds", the name of a user attribute, or None
    every   how many trials to wait between two checks
    seed    of the draws of the model

    >>> import optuna
    >>> from shoestring.integrations.optuna import ShoestringTerminator
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> stop = ShoestringTerminator(st.Patience(5))
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=100, callbacks=[stop])
    >>> len(study.trials) < 100, stop.verdict.reason
    (True, 'the best value has not changed for 5 trials')
    """

    def __init__(self, rule: Any = "auto", *, cost: str | None = "seconds", every: int = 1, seed: int = 0) -> None:
        found = read_rule(read_code("stop", rule) if isinstance(rule, str) else rule, Auto())
        if found is None:
            raise MethodError(f'rule={rule!r} never ends a study; give "auto", st.RegretBound(0.01), st.Patience(30), ...')
        self.rule = found
        self.options = MirrorOptions(cost=read_cost(cost), seed=whole_number(seed, "seed", 0))
        self.every = whole_number(every, "every", 1)
        self.verdict: Verdict | None = None
        self._lock = threading.RLock()
        self._known = KnownStudies(self.options)
        self._calls = 0

    def __call__(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """Check the rule, and end the study if it says so; Optuna calls this after each trial."""
        with self._lock:
            self._calls += 1
            if self._calls % self.every:
                return
            verdict = self.check(study)
        if verdict.stop:
            log.info("stopped after %d trials: %s", trial.number + 1, verdict.reason)
            study.set_user_attr(REASON_KEY, verdict.reason)
            study.stop()

    def check(self, study: OptunaStudy) -> Verdict:
        """The rule's verdict on a study: for those who ask and tell, and have no callbacks."""
        require_one_objective(study)
        sampler = study.sampler
        if isinstance(sampler, ShoestringSampler) and sampler.options.cost == self.options.cost:
            with sampler.lock:
                known = sampler.read(study)
                self.verdict = self._judge(known, own=False)
        else:
            with self._lock:
                known = self._known.of(study)
                known.update(study.get_trials(deepcopy=False))
                self.verdict = self._judge(known, own=True)
        return self.verdict

    def _judge(self, known: OptunaTrials, *, own: bool) -> Verdict:
        space = known.search_space
        if not space:
            return Verdict(False, "no trial with a parameter to search has finished")
        mirror = known.mirrors(space)[0]
        history, rule = mirror.history, self.rule
        wanted = rule.needs_belief(history) if isinstance(rule, StopRule) else True
        belief = None
        if wanted and mirror.context().data.finished:
            belief = mirror.context().belief(costs=rule.wants_cost if isinstance(rule, StopRule) else True)
        verdict = rule.check(history, belief)
        if not isinstance(verdict, Verdict):
            raise MethodError(f"{type(rule).__name__}.check must return st.Verdict(stop, reason), not {verdict!r}")
        if own and belief is not None:
            keep_warm_start(mirror, belief)
        return verdict


def keep_warm_start(mirror: Mirror, belief: Belief) -> None:
    """Store the fit with the last trial, as a suggestion does: the next fit then begins there."""
    row = len(mirror.trials) - 1
    last = mirror.trials[row]
    model = belief.to_warm_start(mirror.context().data.finished + mirror.context().data.intermediate)
    mirror.put(row, replace(last, suggestion={**last.suggestion, "model": model}))
