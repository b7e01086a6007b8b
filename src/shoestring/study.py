"""A study: ask, tell, and the loop that does both.

Everything a study knows is its list of trials: suggestions are computed from it and from (seed, number of the trial), so
k trials, a pause and N - k more are the same as N trials.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .budget import Budget, read_budget
from .encoding import Encoding
from .errors import MethodError, OutcomeError, SpaceError, TrialError
from .evaluate import Evaluation, Objective
from .history import History, observe
from .loop import Callback, run
from .numerics import Array
from .outcome import Outcome, conclude, is_cost
from .result import Recommendation, Result
from .search.choose import choose_method
from .search.method import Situation
from .space import Config, Space
from .surrogate.belief import form_belief
from .surrogate.gp import GP
from .termination.verdict import Rule, Verdict
from .trial import State, Trial

INITIAL = 8  # trials of the space-filling start: after a handful the model is a better guide than chance


class Study:
    """``Study(space, method="auto", stop="auto", seed=0)``; then ``ask`` and ``tell``, or ``minimize`` / ``maximize``.

    method     "auto", a search method (st.Random(), ...) or an acquisition (st.EI(), ...)
    stop       "auto" or None (the budget alone), or a rule with ``check(history, space) -> Verdict``
    model      st.GP(...): the surrogate of the objective
    initial    trials of the space-filling start
    unit       of the trials' costs
    """

    def __init__(
        self,
        space: Space,
        method: Any = "auto",
        stop: Rule | Literal["auto"] | None = "auto",
        seed: int | None = 0,
        *,
        name: str = "study",
        unit: str = "s",
        model: GP | None = None,
        initial: int = INITIAL,
        direction: Literal["minimize", "maximize"] = "minimize",
    ) -> None:
        if not isinstance(space, Space):
            raise SpaceError(f"expected an st.Space, not {space!r}; write st.Space(x=st.Float(0, 1), ...)")
        if direction not in ("minimize", "maximize"):
            raise MethodError(f'direction must be "minimize" or "maximize", not {direction!r}')
        if stop is not None and stop != "auto" and not hasattr(stop, "check"):
            raise MethodError(f'stop={stop!r} is not a rule; give "auto", None, or an object with check(history, space)')
        if initial < 1:
            raise MethodError(f"initial must be 1 or more, not {initial!r}")
        if seed is not None and (isinstance(seed, bool) or int(seed) < 0):
            raise MethodError(f"seed must be a whole number >= 0 or None, not {seed!r}")
        self.space, self.name, self.direction = space, name, direction
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self.method = choose_method(method)
        self.rule: Rule | None = None if stop is None or isinstance(stop, str) else stop
        self.model = model or GP()
        self.initial = int(initial)
        self.seconds = 0.0  # spent inside minimize
        self.optimizer_seconds = 0.0  # spent on suggestions
        self.unit = unit
        self._encoding = Encoding(space)
        self._trials: list[Trial] = []
        self._points: list[Array] = []
        self._queue: list[tuple[Config, Mapping[str, Any]]] = []
        self._asked_at: dict[int, float] = {}
        self.halted: str | None = None
        self._lock = threading.RLock()

    # -- what happened -----------------------------------------------------------------------------------------------

    @property
    def history(self) -> History:
        return History(tuple(self._trials), self.space, self.direction == "maximize")

    @property
    def best(self) -> Trial | None:
        return self.history.best

    @property
    def result(self) -> Result:
        return Result(self, self.history, Verdict(False, "it goes on"))

    def recommend(self) -> Recommendation | None:
        """The evaluated config whose value the model predicts to be best: noise cannot fool it as it fools ``best``."""
        situation = self._situation()
        seen = situation.seen
        if not len(seen.y):
            return None
        belief = form_belief(seen, self._encoding, self.model, situation.known)
        pool = np.flatnonzero(seen.at_target) if seen.at_target.any() else np.arange(len(seen.y))
        means = belief.fit.posterior.mean_at(self._encoding.features(seen.U[pool]))
        done = self.history.having(State.DONE)
        trial = done[pool[int(np.argmin(means))]]
        value = seen.sign * float(belief.output.inverse(np.array(means.min())))
        return Recommendation(trial.config, value, trial.number)

    # -- ask and tell ------------------------------------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial to evaluate: an enqueued config first, else what the method suggests.

        Raises SpaceExhausted when every config of a finite space has been tried.
        """
        with self._lock:
            if self._queue:
                config, suggestion = self._queue.pop(0)
            else:
                began = time.perf_counter()
                suggested = self.method.suggest(self._situation())
                self.optimizer_seconds += time.perf_counter() - began
                config, suggestion = suggested.config, suggested.to_dict()
            trial = self._new(config, suggestion)
            self._asked_at[trial.number] = time.perf_counter()
            return replace(trial, config=copy.deepcopy(trial.config))

    def tell(
        self,
        trial: Trial | int,
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        error: str | None = None,
    ) -> Trial:
        """Record what came of a trial: a value (or the folds it is the mean of), or an error.

        A NaN or infinite value is a failed trial. Without a cost, the seconds since ``ask`` are the cost. Bad input
        raises OutcomeError and leaves the trial open; telling the same result twice changes nothing.
        """
        with self._lock:
            number = trial.number if isinstance(trial, Trial) else int(trial)
            if not 0 <= number < len(self._trials):
                raise TrialError(f"there is no trial {number} in this study; it has {len(self._trials)}")
            asked = self._asked_at.get(number)
            seconds = None if asked is None else time.perf_counter() - asked
            told = value if isinstance(value, Outcome) else Outcome(value)
            given: dict[str, Any] = {"cost": cost, "folds": folds, "gradient": gradient}
            told = replace(told, **{name: item for name, item in given.items() if item is not None})
            return self._close(number, told, error, seconds)

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Have a config asked next (after those enqueued before it)."""
        with self._lock:
            self._queue.append((self.space.check(config), {"by": "you", "why": "enqueued"}))

    def add(self, config: Mapping[str, Any], value: float | None = None, **results: Any) -> Trial:
        """A result from elsewhere: ``study.add(config, 0.05, cost=9.0)``; ``folds=``, ``gradient=``, ``error=`` as for tell."""
        with self._lock:
            trial = self._new(self.space.check(config), {"by": "you", "why": "added"})
            try:
                return self.tell(trial, value, **results)
            except Exception:
                self._trials.pop()
                self._points.pop()
                raise

    def halt(self, reason: str = "halted by request") -> None:
        """End the running ``minimize`` after the present trial; for callbacks and other threads."""
        self.halted = reason

    # -- the loop ----------------------------------------------------------------------------------------------------

    def minimize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        callbacks: Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
    ) -> Result:
        """Evaluate the objective until the budget is used up, counting what this study spent before.

        A failed evaluation is recorded and charged, and the study goes on (``raise_errors=True`` raises instead). Ctrl-C
        returns what was learnt; the same call again goes on from there.
        """
        self._set_direction("minimize")
        return run(self, objective, read_budget(budget), tuple(callbacks), raise_errors, progress)

    def maximize(
        self,
        objective: Objective,
        budget: str | int | Budget,
        *,
        callbacks: Iterable[Callback] = (),
        raise_errors: bool = False,
        progress: bool | None = None,
    ) -> Result:
        """As ``minimize``, the other way up."""
        self._set_direction("maximize")
        return run(self, objective, read_budget(budget), tuple(callbacks), raise_errors, progress)

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _situation(self) -> Situation:
        history = self.history
        known = next((t.suggestion["model"] for t in reversed(self._trials) if "model" in t.suggestion), None)
        number = len(history) - len(history.having(State.ABANDONED))  # so that an interrupted trial shifts nothing
        return Situation(
            self.space, self._encoding, observe(history, self._points), number, self.seed, self.model, self.initial, known
        )

    def _new(self, config: Config, suggestion: Mapping[str, Any]) -> Trial:
        fidelity = {name: config[name] for name in self.space.fidelities}
        trial = Trial(len(self._trials), config, fidelity=fidelity, suggestion=suggestion)
        self._trials.append(trial)
        self._points.append(self.space.encode(config))
        return trial

    def _close(self, number: int, told: Outcome, error: str | None, seconds: float | None, reports: Sequence[Any] = ()) -> Trial:
        trial = self._trials[number]
        finished = conclude(trial, told, error, seconds, reports)
        if trial.finished:
            if trial.state is State.ABANDONED or (trial.state is finished.state and trial.value == finished.value):
                return trial
            raise TrialError(f"trial {number} is already {trial.state} with value {trial.value}; a result cannot be changed")
        self._trials[number] = finished
        self._asked_at.pop(number, None)
        return finished

    def record(self, trial: Trial, seen: Evaluation) -> Trial:
        """Record an evaluation; a result that cannot be read is a failed trial."""
        with self._lock:
            try:
                return self._close(trial.number, seen.outcome, seen.error, seen.seconds, seen.reports)
            except OutcomeError as error:
                cost = seen.outcome.cost if is_cost(seen.outcome.cost) else None
                return self._close(trial.number, Outcome(None, cost), str(error), seen.seconds, seen.reports)

    def give_back(self, trial: Trial) -> None:
        """Abandon an interrupted trial, charge it, and have its config asked first next time."""
        with self._lock:
            if self._trials[trial.number].finished:
                return
            seconds = time.perf_counter() - self._asked_at.pop(trial.number, time.perf_counter())
            self._trials[trial.number] = trial.finish(State.ABANDONED, seconds=seconds, cost=seconds or None)
            self._queue.insert(0, (trial.config, trial.suggestion))

    def _set_direction(self, direction: Literal["minimize", "maximize"]) -> None:
        if direction != self.direction and any(trial.state is State.DONE for trial in self._trials):
            raise MethodError(f"this study was begun to {self.direction}; its results cannot be read the other way up")
        self.direction = direction

    # -- to text and back --------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole state but for method, model and rule, which are code: give them to ``from_json`` again."""
        with self._lock:
            return json.dumps({
                "shoestring": 1, "name": self.name, "direction": self.direction, "seed": self.seed, "initial": self.initial,
                "seconds": self.seconds, "unit": self.unit, "space": json.loads(self.space.to_json()),
                "trials": [trial.to_dict() for trial in self._trials],
                "queue": [[config, dict(suggestion)] for config, suggestion in self._queue],
            })

    @classmethod
    def from_json(cls, text: str, method: Any = "auto", stop: Any = "auto", model: GP | None = None) -> Study:
        """A study as ``to_json`` left it; its next suggestion is the one the original would have made."""
        state = json.loads(text)
        study = cls(
            Space.from_json(state["space"]), method, stop, state["seed"], name=state["name"], model=model,
            initial=state["initial"], direction=state["direction"], unit=state["unit"],
        )
        study.seconds = state["seconds"]
        study._trials = [Trial.from_dict(record) for record in state["trials"]]
        study._points = [study.space.encode(trial.config) for trial in study._trials]
        study._queue = [(config, suggestion) for config, suggestion in state["queue"]]
        return study


def minimize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """Find the config with the lowest value: ``st.minimize(train, space, budget="10m", seed=0)``.

    The objective takes a config (a dict) and returns a number or an ``st.Outcome``. ``options`` are those of ``Study``
    and of ``Study.minimize``.
    """
    return _optimize("minimize", objective, space, budget, options)


def maximize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """As ``minimize``, the other way up."""
    return _optimize("maximize", objective, space, budget, options)


def _optimize(
    direction: Literal["minimize", "maximize"], objective: Objective, space: Space, budget: Any, options: dict[str, Any]
) -> Result:
    running = {name: options.pop(name) for name in ("callbacks", "raise_errors", "progress") if name in options}
    read_budget(budget)
    study = Study(space, direction=direction, **options)
    return getattr(study, direction)(objective, budget, **running)  # type: ignore[no-any-return]

