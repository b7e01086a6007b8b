"""The read side of a study: what it was made with, what happened, and what its model says.

``Study`` adds what changes a study: ask and tell, and the loop.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._format import amount, plural, rounded
from .budget import Budget, read_budget
from .cost.base import CostModel
from .data.history import History
from .data.trial import State, Trial
from .report.explain import Explanation, explain
from .report.importance import importance
from .report.result import Recommendation
from .report.views import StudyViews
from .search.base import Method, SearchContext
from .search.pareto import Front, pareto_front
from .search.pruning import PruningForecast
from .space.space import Space
from .state.attributes import StudyAttributes
from .state.checkpoints import Checkpoints, read_root
from .state.persistence import study_id
from .state.replay import Replay, replay
from .state.results import Results
from .state.study_state import StudyState
from .state.suggester import Suggester
from .storage import Storage
from .surrogate.base import Surrogate
from .termination.base import Rule, Verdict


class StudyView:
    """The base class of ``Study``: everything about a study that can be read."""

    state: StudyState
    suggester: Suggester
    _results: Results
    _checkpoints: Checkpoints

    def __repr__(self) -> str:
        history, settings = self.state.history, self.state.settings
        if self.state.heartbeat is not None and not len(history):
            record = self.storage.find(self.name)
            count = plural(0 if record is None else record.counted, "trial")
            return f"Study {self.name!r} to {settings.direction}: {count} in {self.storage.url}, not read yet"
        best = history.best
        value = "nothing finished yet" if best is None else f"best {rounded(best.value)} (trial {best.number})"
        where = "in memory" if self.state.heartbeat is None else f"in {self.storage.url}"
        spent = f"spent {amount(history.spent, settings.unit)}"
        count = plural(history.trials_started, "trial")
        return f"Study {self.name!r} to {settings.direction}: {count}, {value}, {spent}, {where}"

    # -- what it was made with ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the study in its storage."""
        return self.state.name

    @property
    def id(self) -> str:
        """The identity of the study: a UUID that is made with it and kept in its storage. No other study has it, of any name.

        >>> len(st.Study(st.Space(x=st.Float(0, 1))).id)
        36
        """
        with self.state.lock:
            return study_id(self.state)

    @property
    def storage(self) -> Storage:
        """Where the study is kept."""
        return self.state.storage

    @property
    def space(self) -> Space:
        """The space of today: the study may have been extended."""
        return self.state.space

    @property
    def direction(self) -> str:
        """What is searched for: "minimize" or "maximize"."""
        return self.state.settings.direction

    @property
    def seed(self) -> int:
        """What all random draws follow from, together with the number of the trial."""
        return self.state.settings.seed

    @property
    def initial(self) -> int:
        """Trials of the initial design."""
        return self.state.settings.initial

    @property
    def unit(self) -> str:
        """The unit of the trials' costs."""
        return self.state.settings.unit

    @property
    def per_hour(self) -> float | None:
        """The price of an hour, for trials that report no cost; None: a second costs 1."""
        return self.state.settings.per_hour

    @property
    def budget(self) -> Budget | None:
        """The budget of the last run, or the one that ``ask`` plans with."""
        return self.state.settings.budget

    @budget.setter
    def budget(self, budget: str | int | Budget | None) -> None:
        self.state.settings.budget = None if budget is None else read_budget(budget)

    @property
    def code(self) -> Mapping[str, str | None]:
        """The texts of method, stop, model, cost_model and subset, and of a meter; None where there is none to store."""
        return self.state.settings.code

    @property
    def method(self) -> Method:
        """The search method."""
        return self.suggester.method

    @property
    def model(self) -> Surrogate:
        """The surrogate of the objective."""
        return self.suggester.model

    @property
    def cost_model(self) -> CostModel:
        """The surrogate of the cost."""
        return self.suggester.cost_model

    @property
    def rule(self) -> Rule | None:
        """The stopping rule; None: the budget alone decides."""
        return self.suggester.rule

    @rule.setter
    def rule(self, rule: Rule | None) -> None:
        self.suggester.rule = rule

    # -- what happened -----------------------------------------------------------------------------------------------

    @property
    def attrs(self) -> StudyAttributes:
        """Facts that you keep with the study, as a dict: ``study.attrs["data"] = "v3"``; stored at once."""
        return StudyAttributes(self.state)

    def set_attr(self, name: str, value: Any) -> None:
        """Keep a fact with the study: the same as ``study.attrs[name] = value``.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.set_attr("data", "v3")
        >>> study.attrs["data"]
        'v3'
        """
        self.attrs[name] = value

    @property
    def history(self) -> History:
        """The trials so far: a copy, which is yours to change."""
        self.refresh()
        return self.state.detached_history()

    @property
    def log(self) -> History:
        """The trials that this process knows of, shared with the study: to look at, not to change."""
        return self.state.history

    def refresh(self) -> None:
        """Learn what other processes have written. ``history`` and ``best`` do so by themselves.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.refresh()
        """
        with self.state.lock:
            self.state.refresh()

    @property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        state = self.state
        if state.heartbeat is not None and not len(state):  # no need to read all the others
            with state.lock:
                state.reload_settings()
            return state.storage.best(state.study, state.settings.maximize)
        self.refresh()
        found = state.history.best
        return None if found is None else found.detached()

    def recommend(self, history: History | None = None, *, tried: bool = False) -> Recommendation | None:
        """The config whose value the model predicts to be best, after all trials or after an earlier history.

        Over the whole space at the target fidelity, or with ``tried=True`` among what was evaluated.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> for x in (0.1, 0.4, 0.9):
        ...     _ = study.add({"x": x}, (x - 0.4) ** 2)
        >>> study.recommend(tried=True).config
        {'x': 0.4}
        """
        with self.state.lock:
            found = self.suggester.recommend(history, tried=tried, budget=self.budget)
            if found is None:
                return None
            if found.row is None:
                return Recommendation(self.space.decode(found.u), found.value, None)
            trial = (self.state.history if history is None else history).having(State.DONE)[found.row]
            return Recommendation(trial.detached().config, found.value, trial.number)

    def pareto_front(self) -> Front:
        """The EI-cost front at the present step, where each method would land on it, and the alpha of each landing.

        >>> study = st.Study(st.Space(n=st.Int(1, 9)))
        >>> for n in (1, 3, 9):
        ...     _ = study.add({"n": n}, value=1 / n, cost=n)
        >>> len(study.pareto_front().points) > 0
        True
        """
        with self.state.lock:
            return pareto_front(self.context)

    def importance(self) -> dict[str, float]:
        """The share of each parameter in what makes the value change, largest first; the shares sum to 1.

        They are total Sobol indices of the model's prediction over the whole space, at the target fidelity: a parameter's own
        effect and its interactions. Failed and running trials do not count. With few trials or much noise they are rough; a
        StudyError while there are fewer than four finished trials, or than one more than there are parameters.

        >>> study = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)))
        >>> for x in (0.0, 0.5, 1.0):
        ...     for y in (0.0, 0.5, 1.0):
        ...         added = study.add({"x": x, "y": y}, x + 2 * y)
        >>> {name: round(share, 2) for name, share in study.importance().items()}
        {'y': 0.8, 'x': 0.2}
        """
        with self.state.lock:
            self.state.refresh()
            return importance(self.context)

    def explain(self) -> Explanation:
        """What the study does next and why, with what was rejected; what it expected of its last trial. Print it.

        >>> study = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 12).study
        >>> "costs are left out" in str(study.explain())
        True
        """
        with self.state.lock:
            self.state.refresh()
            return explain(self.context, self.method, self.rule, self.checked, self.budget)

    @property
    def views(self) -> StudyViews:
        """What the pictures of the study show, by name, as dicts that are ready for JSON: ``study.views["best_against_cost"]``.

        They are what the page, the report and the plots draw. ``study.views("contour", parameters=["x", "y"])`` gives options. A
        view that needs a model fits one, unless the study runs or ``fit=False`` is given: then it shows what the trials store.

        >>> study = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 3, method=st.Random()).study
        >>> view = study.views["best_against_trials"]
        >>> view["title"], view["x"]["label"], len(view["series"][0]["y"])
        ('Best value against trials', 'trial', 3)
        """
        return StudyViews(self)

    @property
    def context(self) -> SearchContext:
        """All that a method may look at, at this moment.

        >>> st.Study(st.Space(x=st.Float(0, 1))).context.number
        0
        """
        return self.suggester.context(budget=self.budget)

    def replay(self) -> Replay:
        """Compute every suggestion again from what is stored, and report the first that differs.

        >>> study = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 3, method=st.Random()).study
        >>> study.replay().first_difference is None
        True
        """
        with self.state.lock:
            self.state.refresh()
            return replay(self.suggester)

    # -- while it runs -----------------------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> Path | None:
        """The folder that holds the checkpoint folders; None: a temporary one, made when it is needed. It can be set.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.checkpoints = "saved"
        >>> study.checkpoints.name
        'saved'
        """
        return self._checkpoints.root

    @checkpoints.setter
    def checkpoints(self, root: str | os.PathLike[str]) -> None:
        self._checkpoints.root = read_root(root)

    def checkpoint_dir(self, trial: Trial | int) -> Path:
        """A folder for the files of a trial's configuration, made on first use: the same at every fidelity of a run.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)), checkpoints="checkpoints")
        >>> study.checkpoint_dir(study.ask()).is_dir()
        True
        """
        with self.state.lock:
            return self._checkpoints.trial_folder(self._results.find(trial), self.space)

    def pruning_forecast(self, trial: Trial | int, reports: Sequence[Mapping[str, Any]]) -> PruningForecast | None:
        """Whether a running trial with such reports may still become the answer; None where there is no forecast.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> study.pruning_forecast(study.ask(), reports=[]) is None
        True
        """
        with self.state.lock:
            return self.suggester.forecast(self._results.find(trial), reports, self.budget)

    @property
    def halted(self) -> str | None:
        """Why a stop was requested, or None; all processes that work on the study see it."""
        return self.state.run_status.halted

    @property
    def seconds(self) -> float:
        """Wall-clock seconds during which any process was inside ``minimize``."""
        return self.state.run_status.seconds

    @property
    def optimizer_seconds(self) -> float:
        """Seconds that this process spent on suggestions."""
        return self.suggester.seconds

    @property
    def checked(self) -> Verdict | None:
        """The last verdict of the stopping rule."""
        return self.suggester.checked
