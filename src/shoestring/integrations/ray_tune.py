"""``ShoestringSearch``: the search algorithm of a Ray Tune experiment (``pip install "shoestring[tune]"``).

Tune runs the trials: its scheduler, its resources, its storage of results. The study chooses the configs and says when to stop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    from ray.tune.result import DEFAULT_METRIC
    from ray.tune.search import Searcher
except ImportError as error:
    raise ImportError('ShoestringSearch needs Ray Tune: pip install "shoestring[tune]"') from error

from ..budget import read_budget
from ..errors import MethodError, SpaceError
from ..search.auto import read_cost_model, read_search_method
from ..space.space import Space
from ..study import Study
from ..termination.auto import read_rule
from ..termination.base import Verdict
from .distributions import Translation
from .ray_spaces import read_ray_space
from .ray_study import TIME_TOTAL, TuneStudy, check_cost_key, check_state

__all__ = ["ShoestringSearch"]

DIRECTIONS = {"min": "minimize", "max": "maximize"}


class ShoestringSearch(Searcher):
    """A searcher of Ray Tune that chooses trials by cost and value, and ends the experiment when more of them would not pay.

    tune.TuneConfig(search_alg=ShoestringSearch(budget="2h"), num_samples=-1, metric="loss", mode="min")

    space      an st.Space, or a dict as Tune's ``param_space``; None: the ``param_space`` of the Tuner. With an st.Space,
               parameters may be conditional, and one may be an st.Fidelity (how long to train), which schedulers may cut short
    metric     the key of the objective in what trials report; None: that of the TuneConfig
    mode       "min" or "max"; None: that of the TuneConfig
    budget     "2h" (wall-clock time), a number of trials, "20 USD" (with cost= or per_hour=), or st.Budget(...); None:
               ``num_samples`` and the rule decide
    cost       the key of the cost in what trials report, that of the whole trial so far; by default Tune's seconds
    points_to_evaluate   configs to try first
    method, stop, seed, unit, per_hour, model, cost_model, initial   as for st.Study

    ``suggest`` returns FINISHED when the budget is spent, the rule says stop, or all configs of a finite space were tried. Give
    ``num_samples=-1``, since Tune's own limit is 1 trial. ``study`` is the study, ``stop_reason`` why it has ended.

    Tune asks for one config more than it runs, before the results of those are in. ``max_concurrent_trials`` avoids that.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        budget: Any = None,
        cost: str = TIME_TOTAL,
        method: Any = "auto",
        stop: Any = "auto",
        seed: int | None = 0,
        unit: str | None = None,
        per_hour: float | None = None,
        model: Any = None,
        cost_model: Any = "auto",
        initial: int | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if isinstance(metric, list | tuple) or isinstance(mode, list | tuple):
            raise MethodError("ShoestringSearch has one objective; give one metric and one mode, not a list")
        if mode is not None and mode not in DIRECTIONS:
            raise MethodError(f'mode must be "min" or "max", not {mode!r}')
        if not isinstance(cost, str) or not cost:
            raise MethodError(f"cost= must be a key of the results, such as {TIME_TOTAL!r}, not {cost!r}")
        read_rule(stop, read_search_method(method))  # what is wrong is said here, not at the first suggestion
        read_cost_model(cost_model)
        planned = None if budget is None else read_budget(budget)
        check_cost_key(cost, planned, unit, per_hour)
        super().__init__(metric=metric, mode=mode)
        self._options: dict[str, Any] = {
            "method": method, "stop": stop, "seed": seed, "unit": unit, "per_hour": per_hour, "model": model,
            "cost_model": cost_model, "budget": planned,
        }  # fmt: skip
        if initial is not None:
            self._options["initial"] = initial
        self._cost = cost
        self._points = [dict(point) for point in points_to_evaluate]
        self._given = None if space is None else _read_space(space)
        self._tune: TuneStudy | None = None

    # -- what Tune calls ---------------------------------------------------------------------------------------------

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take the metric, the mode and the search space of the Tuner; False if it has a space of its own already."""
        for name, given, own in (("metric", metric, self._metric), ("mode", mode, self._mode)):
            if isinstance(given, list | tuple):
                raise MethodError(f"ShoestringSearch has one objective; give one {name}, not {given!r}")
            if given is not None and own is not None and given != own:
                raise MethodError(f"{name} is {own!r} in ShoestringSearch and {given!r} in the TuneConfig; give one of the two")
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if self._given is not None:
            return False
        translation = read_ray_space(config)
        conditional = [name for name, parameter in translation.space.items() if parameter.when]
        if conditional:
            raise SpaceError(
                f"{conditional[0]}: a conditional parameter cannot be in param_space, since Tune would keep it where it is not "
                "active; give ShoestringSearch(space=...)"
            )
        self._given = translation
        return True

    def suggest(self, trial_id: str) -> Any:
        """The config of a new trial; FINISHED at the end; None if there is none at the moment."""
        return self._begun().suggest(trial_id)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Take an intermediate result."""
        self._begun().result(trial_id, result)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Take the result of a trial that has ended, or its failure."""
        self._begun().complete(trial_id, result, bool(error))

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Add a result from elsewhere. One of a trial that was pruned is left out: its value is of another length."""
        if not pruned:
            self._begun().add(parameters, value, error=error)

    def save(self, checkpoint_path: str) -> None:
        """Write the state of the search to a file, as JSON."""
        state = None if self._tune is None else self._tune.state()
        Path(checkpoint_path).write_text(json.dumps(state, allow_nan=False), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file that ``save`` wrote: the next suggestion is the one that would have been made then.

        The search is made with the same arguments as before; only the budget may be another one.
        """
        try:
            state = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise MethodError(f"{os.fspath(checkpoint_path)!r} is not a file that save() wrote: {error}") from None
        if state is None:
            return
        check_state(state)
        if self._given is None:
            self._given = _read_space(Space.from_json(state["study"]["space"]))
        self._metric = self._metric or state["metric"]
        self._mode = self._mode or next(mode for mode, words in DIRECTIONS.items() if words == state["study"]["direction"])
        self._begun().set_state(state)

    # -- what can be read --------------------------------------------------------------------------------------------

    @property
    def study(self) -> Study:
        """The study of the experiment: its trials, the best one, the model's recommendation."""
        return self._begun().study

    @property
    def verdict(self) -> Verdict | None:
        """Why the search has ended, with the evidence; None while it goes on."""
        return None if self._tune is None else self._tune.verdict

    @property
    def stop_reason(self) -> str | None:
        """Why the search has ended, in words; None while it goes on."""
        verdict = self.verdict
        return None if verdict is None else verdict.reason

    def _begun(self) -> TuneStudy:
        """The study, made when it is first needed: by then Tune has handed over what it knows."""
        if self._tune is not None:
            return self._tune
        if self._given is None:
            raise SpaceError(
                "there is no search space; give Tuner(..., param_space={...}) with a distribution in it, or "
                "ShoestringSearch(space=st.Space(...))"
            )
        if self._mode is None:
            raise MethodError(
                'there is no mode; give ShoestringSearch(metric="loss", mode="min"), or TuneConfig(metric=..., mode=...) '
                "together with a param_space that is not empty"
            )
        self._metric = self._metric or DEFAULT_METRIC
        options = {**self._options, "direction": DIRECTIONS[self._mode], "name": "ray-tune"}
        self._tune = TuneStudy(self._given, metric=self._metric, cost=self._cost, options=options)
        for point in self._points:
            self._tune.enqueue(point)
        return self._tune

    # -- pickling: Tune pickles its searcher --------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_tune": None if self._tune is None else self._tune.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _tune=None)
        if state["_tune"] is not None:
            self._begun().set_state(state["_tune"])


def _read_space(space: Any) -> Translation:
    if isinstance(space, Space):
        return Translation(space, {name: (name, None) for name in space})
    if isinstance(space, Mapping):
        return read_ray_space(space)
    raise SpaceError(f"space= must be an st.Space or a dict as Tune's param_space, not {space!r}")
